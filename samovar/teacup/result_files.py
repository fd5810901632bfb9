"""Read a TEACUP results folder: find the trial and host of each file, and read captures and logs."""

from __future__ import annotations

import csv
import gzip
import re
import struct
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from samovar.campaign.verdict import packets_of, snaplen_of
from samovar.errors import CampaignError

MARKER = re.compile(r"(?P<trial>.+)_(?P<host>[^_]+)_uname\.log\.gz")
"""The file that TEACUP writes for every host of a trial."""
SECRETS = ("_config.tar.gz", "_tpconf_vars.log.gz")
"""Endings of the names of files that hold the configuration, which contains passwords."""
PROTOCOLS = {6: "tcp", 17: "udp"}
HEADERS_BYTES = {"tcp": 54, "udp": 42}
"""The size of the headers of Ethernet, IPv4 and the protocol, all without options."""
WEB10G = {
    "time": 0, "src": 2, "sport": 3, "dst": 4, "dport": 5, "retransmitted": 10, "mss": 19, "srtt_ms": 22,
    "rto_ms": 23, "cwnd": 25, "ssthresh": 26, "window": 31, "una": 107, "nxt": 108,
}  # fmt: skip
"""Columns of web10g-logger 2.0.7 and 2.0.9, which differ only in later columns."""
TTPROBE = {
    "time": 1, "src": 2, "sport": 3, "dst": 4, "dport": 5, "mss": 7, "srtt_us": 8, "cwnd": 9,
    "ssthresh": 10, "snd_wnd": 11, "rcv_wnd": 12, "una": 14, "nxt": 15, "length": 16,
}  # fmt: skip
TCP_INFO = (
    "t_ns,src,sport,dst,dport,cwnd_packets,ssthresh_packets,srtt_us,rto_us,snd_mss_bytes,unacked_packets,"
    "total_retrans_packets,bytes_acked,snd_wnd_bytes,ca_state"
)
TCP_PROBE = (
    "t_ns,src,sport,dst,dport,data_bytes,snd_nxt,snd_una,cwnd_packets,ssthresh_packets,snd_wnd_bytes,"
    "rcv_wnd_bytes,srtt_us,cookie"
)
NEVER_SET = 2147483647
"""The slow-start threshold of a connection that has not lost a packet yet."""


@dataclass(eq=False)
class Stream:
    """Packets from one address and port to another; times are seconds since the epoch.

    `sender` and `receiver` are the hosts with these addresses; they are empty until the hosts are known.
    """

    protocol: str
    source: str
    destination: str
    ports: tuple[int, int]
    first_s: float
    last_s: float
    payload_bytes: int = 0
    sender: str = ""
    receiver: str = ""

    @property
    def flow(self) -> tuple[str, str, str, int]:
        """The key of a flow: protocol, hosts, port. Streams with equal keys are one flow in all trials."""
        return self.protocol, self.sender, self.receiver, min(self.ports)

    @property
    def ends(self) -> tuple[tuple[str, int], tuple[str, int]]:
        """The source and destination addresses, each with its port."""
        return (self.source, self.ports[0]), (self.destination, self.ports[1])


@dataclass(frozen=True)
class TrialFiles:
    """The files of one trial, by host ('' if a file's name has no host) and by the rest of their names."""

    id: str
    hosts: dict[str, dict[str, Path]] = field(default_factory=dict)


def find_trials(folder: Path) -> list[TrialFiles]:
    """Return the trials of a results folder in the order of their names. Symbolic links are not followed."""
    files = sorted(one for one in folder.iterdir() if one.is_file() and not one.is_symlink())
    found: dict[str, TrialFiles] = {}
    for marker in filter(None, (MARKER.fullmatch(one.name) for one in files)):
        found.setdefault(marker["trial"], TrialFiles(marker["trial"])).hosts[marker["host"]] = {}
    for file in files:
        words = file.name.split("_")
        ids = ("_".join(words[:end]) for end in range(len(words) - 1, 0, -1))
        trial = next((found[one] for one in ids if one in found), None)
        if trial is not None and not file.name.endswith(SECRETS):
            rest = file.name.removeprefix(f"{trial.id}_")
            host = next((one for one in trial.hosts if rest.startswith((f"{one}_", f"{one}."))), "")
            trial.hosts.setdefault(host, {})[rest.removeprefix(host).lstrip("_.")] = file
    return list(found.values())


def read_text(file: Path) -> str:
    """Return the text of a log; raises CampaignError, also for a log in the binary format of ttprobe."""
    try:
        data = gzip.decompress(file.read_bytes())
    except (OSError, EOFError, zlib.error) as error:
        raise CampaignError(f"{file}: cannot be read: {error}") from error
    if b"\0" in data:
        raise CampaignError(f"{file}: cannot be read: it is binary, not text")
    return data.decode("utf-8", "replace")


def addresses_of(text: str) -> dict[str, str]:
    """Return the interface of each IPv4 address in the output of ifconfig, of Linux or FreeBSD."""
    found, interface = {}, ""
    for line in text.splitlines():
        if line[:1].strip():
            interface = re.split(r"[:\s]", line)[0]
        match = re.search(r"\binet (?:addr:)?([0-9]{1,3}(?:\.[0-9]{1,3}){3})\b", line)
        if match and interface and not match[1].startswith("127."):
            found[match[1]] = interface
    return found


def read_capture(file: Path) -> tuple[int, list[Stream]]:
    """Return the snaplen in bytes and the TCP and UDP streams over IPv4; raises CampaignError."""
    found: dict[bytes, Stream] = {}
    try:
        snaplen_bytes = snaplen_of(file)
        for t_ns, frame in packets_of(file):
            _count(found, frame, t_ns / 1e9)
    except (OSError, EOFError, ValueError, zlib.error) as error:
        raise CampaignError(f"{file}: cannot be read: {error}") from error
    return snaplen_bytes, list(found.values())


def _count(found: dict[bytes, Stream], frame: bytes, t_s: float) -> None:
    if frame[12:15] != b"\x08\x00\x45" or len(frame) < HEADERS_BYTES["udp"]:
        return
    protocol, is_later_fragment = PROTOCOLS.get(frame[23]), frame[20] & 0x1F or frame[21]
    if protocol is None or is_later_fragment or len(frame) < HEADERS_BYTES[protocol]:
        return
    ends = frame[23:24] + frame[26:38]
    stream = found.get(ends)
    if stream is None:
        source, destination = (".".join(map(str, frame[at : at + 4])) for at in (26, 30))
        ports = struct.unpack_from(">HH", frame, 34)
        stream = found[ends] = Stream(protocol, source, destination, ports, t_s, t_s)
    stream.last_s = t_s
    header_bytes = (frame[46] >> 4) * 4 if protocol == "tcp" else 8
    stream.payload_bytes += int.from_bytes(frame[16:18]) - 20 - header_bytes


def web10g_as_tcp_info(text: str) -> str:
    """Return a log of web10g-logger as a trace of the logger tcp-info."""
    first_una: dict[tuple[str, ...], int] = {}

    def trace(row: Mapping[str, str]) -> Iterator[object]:
        ends = tuple(row[name] for name in ("src", "sport", "dst", "dport"))
        mss, una = max(1, int(row["mss"])), int(row["una"])
        in_flight_bytes = (int(row["nxt"]) - una) % 2**32
        yield from (_ns(row["time"]), *ends, round(int(row["cwnd"]) / mss, 3), _ssthresh(row, mss))
        yield from (int(row["srtt_ms"]) * 1000, int(row["rto_ms"]) * 1000, mss, -(-in_flight_bytes // mss))
        acked_bytes = (una - first_una.setdefault(ends, una)) % 2**32
        yield from (int(row["retransmitted"]), acked_bytes, int(row["window"]), 0)

    return _as_trace(text, WEB10G, TCP_INFO, trace)


def ttprobe_as_tcp_probe(text: str) -> str:
    """Return a log of ttprobe as a trace of the logger tcp-probe."""

    def trace(row: Mapping[str, str]) -> Iterator[object]:
        mss = max(1, int(row["mss"]))
        yield from (_ns(row["time"]), row["src"], int(row["sport"]), row["dst"], int(row["dport"]))
        yield from (int(row["length"]), int(row["nxt"]), int(row["una"]))
        yield from (round(int(row["cwnd"]) / mss, 3), _ssthresh(row, mss))
        yield from (int(row["snd_wnd"]), int(row["rcv_wnd"]), int(row["srtt_us"]), 0)

    return _as_trace(text, TTPROBE, TCP_PROBE, trace)


def _as_trace(
    text: str,
    columns: Mapping[str, int],
    header: str,
    trace: Callable[[Mapping[str, str]], Iterator[object]],
) -> str:
    """Return a log as the CSV of a trace, without the log's header and without lines that were cut off."""
    lines: list[Sequence[object]] = [[header]]
    for row in csv.reader(text.splitlines()):
        try:
            lines.append(list(trace({name: row[at] for name, at in columns.items()})))
        except (IndexError, ValueError):
            continue
    return "".join(f"{','.join(map(str, line))}\n" for line in lines)


def _ssthresh(row: Mapping[str, str], mss: int) -> float:
    value = int(row["ssthresh"])
    return NEVER_SET if value >= NEVER_SET // 2 else round(value / mss, 3)


def _ns(text: str) -> int:
    """Return seconds as nanoseconds, exactly, without the rounding error of a float."""
    seconds, _, fraction = text.partition(".")
    return int(seconds) * 10**9 + int((fraction + "0" * 9)[:9])
