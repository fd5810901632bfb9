"""Rewrite a sender's recordings as if its network card had processed PAUSE frames without passing them to the kernel."""

from __future__ import annotations

from pathlib import Path

from tests.lab.skew import FILE_HEAD, RECORD_HEAD, rewrite

MAC_CONTROL = b"\x88\x08"
"""The type of PAUSE frames (IEEE 802.3, annex 31B), behind both addresses of an Ethernet header."""


def swallow_pauses(trial: Path, host: str) -> None:
    """Remove the PAUSE frames from a host's captures, and the rows from the traces of its logger pause-frames."""
    rewrite(trial, lambda entry: entry["host"] == host and entry["kind"] == "capture", without_pauses)
    rewrite(trial, lambda entry: (entry["host"], entry["logger"]) == (host, "pause-frames"), head_line)


def without_pauses(pcap: bytes) -> bytes:
    """Return a capture without its MAC control frames."""
    out, at = bytearray(pcap[:FILE_HEAD]), FILE_HEAD
    while at + RECORD_HEAD.size <= len(pcap):
        end = at + RECORD_HEAD.size + RECORD_HEAD.unpack_from(pcap, at)[2]
        frame = pcap[at + RECORD_HEAD.size : end]
        out += b"" if frame[12:14] == MAC_CONTROL else pcap[at:end]
        at = end
    return bytes(out)


def head_line(content: bytes) -> bytes:
    """Return the first line of a table, which has the names of its columns."""
    return content.splitlines(keepends=True)[0]
