"""The files of a TEACUP results folder: whose they are, the packets of a capture, TCP logs as traces here."""

from __future__ import annotations

import csv
import gzip
import re
import struct
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path

from samovar.errors import CampaignError

MARKER = re.compile(r"(?P<trial>.+)_(?P<host>[^_]+)_uname\.log(?:\.gz)?")
"""The file that every host of a trial has; host names with _ were not possible."""
SECRETS = ("_config.tar.gz", "_tpconf_vars.log.gz", "_tpconf_vars.log")
"""Files with the configuration, in which the passwords of hosts and power controllers are."""
PROTOCOLS = {6: "tcp", 17: "udp"}
RECORD = struct.Struct("IIII")
BYTE_ORDERS = {b"\xd4\xc3\xb2\xa1": "<", b"\xa1\xb2\xc3\xd4": ">"}
LARGEST_PACKET_BYTES = 262_144
WEB10G: Mapping[str, int] = {
    "time": 0,
    "src": 2,
    "sport": 3,
    "dst": 4,
    "dport": 5,
    "retrans": 10,
    "mss": 19,
    "srtt_ms": 22,
    "rto_ms": 23,
    "cwnd": 25,
    "ssthresh": 26,
    "window": 31,
    "una": 107,
    "nxt": 108,
}
"""Columns of web10g-logger 2.0.7 and 2.0.9, which differ behind these."""
TCP_INFO = (
    "t_ns,src,sport,dst,dport,cwnd_packets,ssthresh_packets,srtt_us,rto_us,snd_mss_bytes,unacked_packets,"
    "total_retrans_packets,bytes_acked,snd_wnd_bytes,ca_state"
)
TCP_PROBE = (
    "t_ns,src,sport,dst,dport,data_bytes,snd_nxt,snd_una,cwnd_packets,ssthresh_packets,snd_wnd_bytes,"
    "rcv_wnd_bytes,srtt_us,cookie"
)
NEVER_SET = 2147483647


@dataclass
class Stream:
    """Packets from one address and port to another; times are epoch seconds."""

    protocol: str
    source: str
    destination: str
    ports: tuple[int, int]
    first_s: float
    last_s: float
    payload_bytes: int = 0


@dataclass(frozen=True)
class TrialFiles:
    """The files of one trial by host, and those of no host, each with the rest of its name."""

    id: str
    hosts: Mapping[str, Mapping[str, Path]]


def find_trials(folder: Path) -> list[TrialFiles]:
    """Return the trials of a results folder in order of their names; links are not followed."""
    files = sorted(one for one in folder.rglob("*") if one.is_file() and not one.is_symlink())
    hosts: dict[tuple[Path, str], dict[str, dict[str, Path]]] = {}
    for file in files:
        match = MARKER.fullmatch(file.name)
        if match:
            hosts.setdefault((file.parent, match["trial"]), {})[match["host"]] = {}
    for file in (one for one in files if not one.name.endswith(SECRETS)):
        key = _owner(file, hosts)
        if key is not None:
            rest = file.name.removeprefix(f"{key[1]}_")
            host = next((one for one in hosts[key] if rest.startswith((f"{one}_", f"{one}."))), "")
            hosts[key].setdefault(host, {})[rest.removeprefix(host).lstrip("_.")] = file
    return [TrialFiles(key[1], by_host) for key, by_host in hosts.items()]


def _owner(file: Path, trials: Collection[tuple[Path, str]]) -> tuple[Path, str] | None:
    """Return the trial that a file belongs to: its test id ends where another word begins."""
    words = file.name.split("_")
    keys = ((file.parent, "_".join(words[:end])) for end in range(len(words) - 1, 0, -1))
    return next((key for key in keys if key in trials), None)


def read_text(file: Path) -> str:
    """Return the text of a log, compressed or not; raises CampaignError."""
    try:
        with gzip.open(file, "rb") if file.suffix == ".gz" else file.open("rb") as opened:
            return opened.read().decode("utf-8", "replace")
    except (OSError, EOFError, ValueError) as error:
        raise CampaignError(f"{file}: cannot be read: {error}") from error


def read_snaplen(file: Path) -> int:
    """Return how many bytes of each frame a readable capture holds at most."""
    with gzip.open(file, "rb") if file.suffix == ".gz" else file.open("rb") as source:
        head = source.read(20)
    return int(struct.unpack_from(f"{BYTE_ORDERS[head[:4]]}I", head, 16)[0])


def read_streams(file: Path) -> list[Stream]:
    """Return the streams of TCP and UDP over IPv4 of a capture; raises CampaignError."""
    found: dict[bytes, Stream] = {}
    try:
        with gzip.open(file, "rb") if file.suffix == ".gz" else file.open("rb") as source:
            head = source.read(24)
            order = BYTE_ORDERS.get(head[:4])
            if order is None or len(head) < 24 or struct.unpack_from(f"{order}I", head, 20)[0] & 0xFFFF != 1:
                raise CampaignError(f"{file}: not a capture of Ethernet frames by tcpdump")
            record = struct.Struct(f"{order}{RECORD.format}")
            while len(head := source.read(record.size)) == record.size:
                second, micro, kept, _ = record.unpack(head)
                if kept > LARGEST_PACKET_BYTES:
                    raise CampaignError(f"{file}: a packet of {kept} bytes; the file is damaged")
                _count(found, source.read(kept), second + micro / 1e6)
    except (OSError, EOFError) as error:
        raise CampaignError(f"{file}: cannot be read: {error}") from error
    return list(found.values())


def _count(found: dict[bytes, Stream], frame: bytes, t_s: float) -> None:
    protocol = PROTOCOLS.get(frame[23]) if frame[12:15] == b"\x08\x00\x45" and len(frame) > 46 else None
    if protocol is None:
        return
    key = frame[23:24] + frame[26:38]
    stream = found.get(key)
    if stream is None:
        ends = [".".join(map(str, frame[at : at + 4])) for at in (26, 30)]
        ports = struct.unpack_from(">HH", frame, 34)
        stream = found[key] = Stream(protocol, ends[0], ends[1], ports, t_s, t_s)
    stream.last_s = t_s
    header_bytes = (frame[46] >> 4) * 4 if protocol == "tcp" else 8
    stream.payload_bytes += int.from_bytes(frame[16:18]) - 20 - header_bytes


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


def web10g_as_tcp_info(text: str) -> str:
    """Return a log of web10g-logger as a trace of the logger tcp-info."""
    lines, first = [TCP_INFO], dict[tuple[str, ...], int]()
    for row in csv.reader(text.splitlines()):
        try:
            value = {name: row[at] for name, at in WEB10G.items()}
            mss, una = max(1, int(value["mss"])), int(value["una"])
            end = tuple(value[name] for name in ("src", "sport", "dst", "dport"))
            in_flight = (int(value["nxt"]) - una) % 2**32
            acked = (una - first.setdefault(end, una)) % 2**32
            numbers = (
                *(round(int(value["cwnd"]) / mss, 3), _ssthresh(value["ssthresh"], mss)),
                *(int(value["srtt_ms"]) * 1000, int(value["rto_ms"]) * 1000, mss, -(-in_flight // mss)),
                *(int(value["retrans"]), acked, int(value["window"]), 0),
            )
            lines.append(",".join(map(str, (_ns(value["time"]), *end, *numbers))))
        except (IndexError, ValueError):
            continue  # the line of names, or one that was cut off
    return "\n".join(lines) + "\n"


def ttprobe_as_tcp_probe(text: str) -> str:
    """Return a log of ttprobe as a trace of the logger tcp-probe."""
    lines = [TCP_PROBE]
    for row in csv.reader(text.splitlines()):
        try:
            _, time, src, sport, dst, dport, _, mss, srtt, cwnd, ssthresh, snd, rcv, _, una, nxt, length = (
                row[:17]
            )
            size = max(1, int(mss))
            windows = (round(int(cwnd) / size, 3), _ssthresh(ssthresh, size), int(snd), int(rcv), int(srtt))
            values = (
                _ns(time),
                src,
                int(sport),
                dst,
                int(dport),
                int(length),
                int(nxt),
                int(una),
                *windows,
                0,
            )
            lines.append(",".join(map(str, values)))
        except ValueError:
            continue
    return "\n".join(lines) + "\n"


def _ssthresh(text: str, mss: int) -> float:
    return NEVER_SET if int(text) >= NEVER_SET // 2 else round(int(text) / mss, 3)


def _ns(text: str) -> int:
    """Return seconds as nanoseconds, without the error of a double."""
    seconds, _, fraction = text.partition(".")
    return int(seconds) * 10**9 + int((fraction + "0" * 9)[:9])
