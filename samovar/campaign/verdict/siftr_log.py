"""The verdict on a SIFTR log (siftr(4)): whole, of a known form, and with a line for every packet."""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from samovar.campaign.verdict.bounded_reading import open_lines
from samovar.campaign.verdict.judge import Check, check_window
from samovar.plan import Resolved

COLUMNS: Mapping[str, tuple[int, ...]] = {"1.2": (25, 26, 27, 28), "1.3": (27,)}
"""How many columns a line of each version has; both have had 27, so only the header tells the version."""
HASH: Mapping[str, int] = {"1.2": 1, "1.3": 0}
"""How many columns stand between direction and time: the hash, which shifts all that follow."""
Flow = tuple[str, str, str]
"""A connection by its local address, foreign address and foreign port."""
Ports = tuple[str, str]
"""The local and the foreign port of a connection."""
LOST = ("malloc", "mtx")
"""What it had no memory or lock for, as the footer names it; packets without a socket here are not lost."""


@dataclass(frozen=True)
class SiftrLog:
    """What the first and last lines of a log say, and how many lines and columns stand between."""

    header: Mapping[str, str]
    footer: Mapping[str, str]
    lines: int
    columns: frozenset[int]
    windows: Mapping[Flow, int]
    ports: frozenset[Ports] = frozenset()

    @property
    def version(self) -> str:
        """Return SIFTR's version, "" when there is no header."""
        return self.header.get("siftrver", "")

    @property
    def lost(self) -> int:
        """Return how many packets the kernel could make no line for."""
        return sum(
            int(value) for key, value in self.footer.items() if key.startswith("num_") and key.endswith(LOST)
        )

    @property
    def due(self) -> int:
        """Return how many lines there would be with one for each packet.

        What a filter of ports leaves out is not counted (siftr_chkpkt() of 1.3); up to 1.2, which counts it,
        a filter is refused.
        """
        return int(self.footer.get("total_tcp_pkts", 0)) - int(self.footer.get("total_skipped_tcp_pkts", 0))


def read_siftr(lines: Iterable[str]) -> SiftrLog:
    """Read a log: a header and a footer of key=value and tabs, and comma-separated lines between them."""
    header: dict[str, str] = {}
    footer: dict[str, str] = {}
    count, columns, windows, ports = 0, set[int](), dict[Flow, int](), set[Ports]()
    for line in lines:
        if line.startswith("enable_time_secs="):
            header = _pairs(line)
        elif line.startswith("disable_time_secs="):
            footer = _pairs(line)
        elif line.strip():
            count += 1
            parts = line.split(",")
            columns.add(len(parts))
            shift = HASH.get(header.get("siftrver", "")[:3])
            if shift is not None and len(parts) >= 25:
                ports.add((parts[3 + shift], parts[5 + shift]))
                _widen(windows, parts, shift)
    return SiftrLog(header, footer, count, frozenset(columns), windows, frozenset(ports))


def _widen(windows: dict[Flow, int], parts: Sequence[str], shift: int) -> None:
    """Take note of the window that the peer offers, of a connection in the state ESTABLISHED (4) or later."""
    if parts[13 + shift].isdecimal() and int(parts[13 + shift]) >= 4:
        flow = (parts[2 + shift], parts[4 + shift], parts[5 + shift])
        windows[flow] = max(windows.get(flow, 0), int(parts[9 + shift]))


def _pairs(line: str) -> dict[str, str]:
    return {key: value for key, _, value in (part.partition("=") for part in line.rstrip("\n").split("\t"))}


def check_siftr(
    resolved: Resolved, host: str, trace: Path, packets_per_line: int = 1, port_filter: int = 0
) -> Iterator[Check]:
    """Check that a log is whole and of a known form, that no packet is missing, and what windows it shows.

    With a `port_filter` other than 0 it must hold packets of connections of this port, and of no other.
    """
    try:
        with open_lines(trace) as file:
            log = read_siftr(file)
    except (OSError, EOFError, zlib.error, ValueError) as error:
        yield Check(f"trace {trace.name}", host, "readable", f"{type(error).__name__}: {error}", False)
        return
    yield from _form(host, log, packets_per_line)
    if port_filter:
        yield _filtered(host, log, str(port_filter))
    for flow in resolved.flows:
        seen = log.windows.get((flow.from_address, flow.to_address, str(flow.port)))
        if flow.from_host == host and seen is not None:
            yield from check_window(resolved, flow, seen)


def _form(host: str, log: SiftrLog, packets_per_line: int) -> Iterator[Check]:
    whole = bool(log.header and log.footer)
    ends = "whole" if whole else f"without {'footer' if log.header else 'header'}"
    yield Check("SIFTR log", host, "whole", ends, whole)
    known = COLUMNS.get(log.version[:3], ())
    seen = ", ".join(str(number) for number in sorted(log.columns)) or "none"
    asked = f"{' or '.join(str(number) for number in known) or 'those of a known version'} columns"
    observed = f"{seen} columns, version {log.version or 'unknown'}"
    yield Check("form of the SIFTR log", host, asked, observed, bool(known) and log.columns <= set(known))
    if whole:
        yield Check("packets that SIFTR lost", host, "0", str(log.lost), log.lost == 0)
        if packets_per_line == 1:
            yield Check("lines of the SIFTR log", host, str(log.due), str(log.lines), log.lines == log.due)


def _filtered(host: str, log: SiftrLog, port: str) -> Check:
    others = sorted(pair for pair in log.ports if port not in pair)
    seen = f"port {port} alone" if log.ports else "no connection"
    if others:
        shown = ", ".join("-".join(pair) for pair in others[:3])
        seen = f"{len(others)} connection(s) of other ports: {shown}"
    return Check("ports in the SIFTR log", host, f"port {port} alone", seen, bool(log.ports) and not others)
