"""Rewrite a sender's recordings as if its network card had processed PAUSE frames without passing them to the kernel."""

from __future__ import annotations

from pathlib import Path

from tests.lab.skew import FILE_HEAD, RECORD_HEAD, rewrite

MAC_CONTROL = b"\x88\x08"
"""The type of PAUSE frames (IEEE 802.3, annex 31B), behind both addresses of an Ethernet header."""


def swallow_pauses(trial: Path, host: str) -> None:
    """Take the PAUSE frames out of a host's captures, and the rows out of what watched for them."""
    rewrite(trial, lambda entry: entry["host"] == host and entry["kind"] == "capture", without_pauses)
    rewrite(trial, lambda entry: (entry["host"], entry["logger"]) == (host, "pause-frames"), head_line)


def without_pauses(pcap: bytes) -> bytes:
    """Leave out a capture's records of MAC control frames."""
    out, at = bytearray(pcap[:FILE_HEAD]), FILE_HEAD
    while at + RECORD_HEAD.size <= len(pcap):
        end = at + RECORD_HEAD.size + RECORD_HEAD.unpack_from(pcap, at)[2]
        frame = pcap[at + RECORD_HEAD.size : end]
        out += b"" if frame[12:14] == MAC_CONTROL else pcap[at:end]
        at = end
    return bytes(out)


def head_line(content: bytes) -> bytes:
    """Leave the names of a table's columns alone."""
    return content.splitlines(keepends=True)[0]
