"""Check SIFTR logs (siftr(4)): complete, in a known format, a line for every packet, and the windows."""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from samovar.campaign.verdict.check_result import Check, unreadable
from samovar.campaign.verdict.evidence import Evidence
from samovar.campaign.verdict.socket_checks import check_largest_window, sampled_flows
from samovar.campaign.verdict.traces import open_lines

COLUMNS: Mapping[str, tuple[int, ...]] = {"1.2": (25, 26, 27, 28), "1.3": (27,)}
"""Columns of a line by version; both have had 27, so only the header distinguishes them."""
HASH_COLUMNS: Mapping[str, int] = {"1.2": 1, "1.3": 0}
"""Columns between direction and time: the hash, which shifts all later columns."""
FlowKey = tuple[str, str, str]
"""A connection's local address, foreign address and foreign port."""
LOST = ("malloc", "mtx")
"""The footer's counters of packets without memory or lock; packets without a socket here are not lost."""


@dataclass(frozen=True)
class SiftrLog:
    """The first and last line of a log, and what the lines between show; `ports` are local and foreign."""

    header: Mapping[str, str]
    footer: Mapping[str, str]
    lines: int
    columns: frozenset[int]
    windows: Mapping[FlowKey, int]
    ports: frozenset[tuple[str, str]] = frozenset()

    @property
    def version(self) -> str:
        """SIFTR's version, empty without a header."""
        return self.header.get("siftrver", "")

    @property
    def lost(self) -> int:
        """Packets for which the kernel could not write a line."""
        counts = (v for k, v in self.footer.items() if k.startswith("num_") and k.endswith(LOST))
        return sum(map(int, counts))

    @property
    def due(self) -> int:
        """Lines that the log must have at one line for each packet.

        Packets that a port filter leaves out are not in the footer's count (siftr_chkpkt() of 1.3). Up to 1.2
        they are, so the recipe refuses a filter there.
        """
        return int(self.footer.get("total_tcp_pkts", 0)) - int(self.footer.get("total_skipped_tcp_pkts", 0))


def read_siftr(lines: Iterable[str]) -> SiftrLog:
    """Read a log: header and footer of tab-separated key=value, and comma-separated lines between them."""
    header: dict[str, str] = {}
    footer: dict[str, str] = {}
    count, columns, windows, ports = 0, set[int](), dict[FlowKey, int](), set[tuple[str, str]]()
    for line in lines:
        if line.startswith("enable_time_secs="):
            header = _pairs(line)
        elif line.startswith("disable_time_secs="):
            footer = _pairs(line)
        elif line.strip():
            count += 1
            parts = line.split(",")
            columns.add(len(parts))
            shift = HASH_COLUMNS.get(header.get("siftrver", "")[:3])
            if shift is not None and len(parts) >= 25:
                ports.add((parts[3 + shift], parts[5 + shift]))
                _read_window(windows, parts, shift)
    return SiftrLog(header, footer, count, frozenset(columns), windows, frozenset(ports))


def _read_window(windows: dict[FlowKey, int], parts: Sequence[str], shift: int) -> None:
    """Note the window that the peer offers, of a connection in state ESTABLISHED (4) or later."""
    if parts[13 + shift].isdecimal() and int(parts[13 + shift]) >= 4:
        flow = (parts[2 + shift], parts[4 + shift], parts[5 + shift])
        windows[flow] = max(windows.get(flow, 0), int(parts[9 + shift]))


def _pairs(line: str) -> dict[str, str]:
    return {key: value for key, _, value in (part.partition("=") for part in line.rstrip("\n").split("\t"))}


def check_siftr_logs(evidence: Evidence) -> Iterator[Check]:
    """Check every SIFTR log of a trial, and the largest window that it shows of each flow."""
    for host, program in evidence.programs():
        if program.recipe == "siftr":
            entries = (entry for entry in evidence.resolved.loggers if entry.host == host)
            given = next(entry for entry in entries if entry.logger == "siftr").parameters
            per_line, port = int(given.get("packets_per_line", "1")), int(given.get("port_filter", "0"))
            yield from check_siftr_log(evidence, host, evidence.trace(program), per_line, port)


def check_siftr_log(
    evidence: Evidence, host: str, trace: Path, packets_per_line: int = 1, port_filter: int = 0
) -> Iterator[Check]:
    """Check one log: complete, known format, all packets, windows.

    With a `port_filter` other than 0 it must hold packets of connections on this port and no other.
    """
    try:
        with open_lines(trace) as file:
            log = read_siftr(file)
    except (OSError, EOFError, zlib.error, ValueError) as error:
        yield unreadable(trace, host, error)
        return
    yield from _format_checks(host, log, packets_per_line)
    if port_filter:
        yield _port_check(host, log, str(port_filter))
    for flow in sampled_flows(evidence):
        window_bytes = log.windows.get((flow.from_address, flow.to_address, str(flow.port)))
        if flow.from_host == host and window_bytes is not None:
            yield from check_largest_window(evidence, flow, window_bytes)


def _format_checks(host: str, log: SiftrLog, packets_per_line: int) -> Iterator[Check]:
    whole = bool(log.header and log.footer)
    observed = "complete" if whole else f"without {'footer' if log.header else 'header'}"
    yield Check("SIFTR log", host, "complete", observed, whole)
    known = COLUMNS.get(log.version[:3], ())
    requested = f"{' or '.join(map(str, known))} columns" if known else "a known version"
    columns = ", ".join(map(str, sorted(log.columns))) or "no"
    observed = f"{columns} columns, version {log.version or 'unknown'}"
    yield Check(
        "format of the SIFTR log", host, requested, observed, bool(known) and log.columns <= set(known)
    )
    if whole:
        yield Check("packets lost by SIFTR", host, "0", str(log.lost), log.lost == 0)
        if packets_per_line == 1:
            yield Check("lines of the SIFTR log", host, str(log.due), str(log.lines), log.lines == log.due)


def _port_check(host: str, log: SiftrLog, port: str) -> Check:
    others = sorted(pair for pair in log.ports if port not in pair)
    observed = f"port {port} only" if log.ports else "no connection"
    if others:
        shown = ", ".join("-".join(pair) for pair in others[:3])
        observed = f"{len(others)} connection(s) on other ports: {shown}"
    ok = bool(log.ports) and not others
    return Check("ports in the SIFTR log", host, f"port {port} only", observed, ok)
