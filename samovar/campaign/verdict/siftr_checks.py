"""Check that SIFTR logs (siftr(4)) are complete, and compare the receive windows in them with `rwnd`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from samovar.campaign.verdict.check_result import Check, unreadable
from samovar.campaign.verdict.evidence import Evidence
from samovar.campaign.verdict.socket_checks import FlowKey, check_largest_window, tcp_flows
from samovar.campaign.verdict.traces import UNREADABLE, open_lines

COLUMNS: Mapping[str, tuple[int, ...]] = {"1.2": (25, 26, 27, 28), "1.3": (27,)}
"""The numbers of columns that a log can have, for each version of SIFTR. A log of either version may have 27
columns, so only its header tells the version."""
HASH_COLUMNS: Mapping[str, int] = {"1.2": 1, "1.3": 0}
"""For each version, the number of columns between direction and time: 1.2 has a hash there, which shifts all
later columns by one."""
LOST = ("malloc", "mtx")
"""Suffixes of the footer's counters of lost packets, which are packets that SIFTR skipped because it got no
memory or no lock. Packets that it skipped because they have no local socket are not lost."""
TICK_S = 0.01
"""The resolution of time stamps on some file systems. A file's time stamp shows when the traffic ended."""


@dataclass(frozen=True)
class SiftrLog:
    """The content of a SIFTR log: header, footer, and a summary of the lines between them.

    `lines` is the number of lines between header and footer; `columns` has each number of columns that occurs
    in these lines. `windows` maps flows to the largest window that the receiver offered.

    The other values are from the footer, or 0 without a footer: `lost` is the number of packets for which
    SIFTR could not write a line, and `disabled_s` is when SIFTR was disabled, in seconds since the epoch by
    the host's clock. `due` is the number of lines that the log must have if each packet has one line.
    """

    header: Mapping[str, str]
    footer: Mapping[str, str]
    lines: int
    columns: frozenset[int]
    windows: Mapping[FlowKey, int]
    lost: int
    disabled_s: float
    due: int

    @property
    def version(self) -> str:
        """The version of SIFTR from the header; empty if the log has no header."""
        return self.header.get("siftrver", "")


def read_siftr(lines: Iterable[str]) -> SiftrLog:
    """Parse a log.

    Header and footer are tab-separated key=value pairs; the lines in between are comma-separated. The windows
    are those that the peer offered while the connection was in state ESTABLISHED (4) or later. Raises
    ValueError if a number in the log is damaged.
    """
    ends: dict[str, dict[str, str]] = {}
    count, columns, windows = 0, set[int](), dict[FlowKey, int]()
    for line in lines:
        start = line.partition("=")[0]
        if start in ("enable_time_secs", "disable_time_secs"):
            ends[start] = dict(part.split("=", 1) for part in line.rstrip("\n").split("\t") if "=" in part)
        elif line.strip():
            count += 1
            parts = line.split(",")
            columns.add(len(parts))
            version = ends.get("enable_time_secs", {}).get("siftrver", "")
            shift = HASH_COLUMNS.get(version[:3])
            if shift is None or len(parts) < 25:
                continue
            local, _, foreign, foreign_port = parts[2 + shift : 6 + shift]
            if parts[13 + shift].isdecimal() and int(parts[13 + shift]) >= 4:
                flow = (local, foreign, foreign_port)
                windows[flow] = max(windows.get(flow, 0), int(parts[9 + shift]))
    header, footer = (ends.get(word, {}) for word in ("enable_time_secs", "disable_time_secs"))
    lost = sum(int(v) for k, v in footer.items() if k.startswith("num_") and k.endswith(LOST))
    disabled_s = int(footer.get("disable_time_secs", 0)) + int(footer.get("disable_time_usecs", 0)) / 1e6
    due = int(footer.get("total_tcp_pkts", 0)) - int(footer.get("total_skipped_tcp_pkts", 0))
    return SiftrLog(header, footer, count, frozenset(columns), windows, lost, disabled_s, due)


def check_siftr_logs(evidence: Evidence) -> Iterator[Check]:
    """Check every SIFTR log of a trial, and the largest window of each flow in it."""
    for host, program in evidence.programs("logger", "siftr"):
        recipe = evidence.scripts.recipe_of(host, program)
        values: dict[str, Any] = {**recipe.defaults, **recipe.parse_values(program.parameters)}
        yield from check_siftr_log(evidence, host, evidence.trace(program), values["packets_per_line"])


def check_siftr_log(evidence: Evidence, host: str, trace: Path, packets_per_line: int = 1) -> Iterator[Check]:
    """Check one SIFTR log: completeness, format, a line for every packet, and windows."""
    try:
        with open_lines(trace) as file:
            log = read_siftr(file)
    except UNREADABLE as error:
        yield unreadable(trace, host, error)
        return
    whole = bool(log.header and log.footer)
    observed = "complete" if whole else f"without {'footer' if log.header else 'header'}"
    yield Check("SIFTR log", host, "complete", observed, whole)
    known = COLUMNS.get(log.version[:3], ())
    requested = f"{' or '.join(map(str, known))} columns" if known else "a known version"
    columns = ", ".join(map(str, sorted(log.columns))) or "no"
    observed = f"{columns} columns, version {log.version or 'unknown'}"
    ok = bool(known) and log.columns <= set(known)
    yield Check("format of the SIFTR log", host, requested, observed, ok)
    if whole:
        yield Check("packets lost by SIFTR", host, "0", str(log.lost), log.lost == 0)
        if packets_per_line == 1:
            yield Check("lines of the SIFTR log", host, str(log.due), str(log.lines), log.lines == log.due)
        yield from _check_end(evidence, host, log)
    for flow in (ends.flow for ends in tcp_flows(evidence)):
        window_bytes = log.windows.get((flow.from_address, flow.to_address, str(flow.port)))
        if flow.from_host == host and window_bytes is not None:
            yield from check_largest_window(evidence, flow, window_bytes, flow.size_bytes)


def _check_end(evidence: Evidence, host: str, log: SiftrLog) -> Iterator[Check]:
    """Check that SIFTR was enabled until the end of the traffic.

    The log itself does not show whether SIFTR was disabled too early. The end of the traffic is taken from
    the host's clock, or from the controller's if the host did not report it.
    """
    over_s, error_s = evidence.earliest_end_s(host), TICK_S
    if over_s is None and (clock := evidence.clocks.get(host)):
        over_s, error_s = evidence.t_end_s + clock.correction_s, TICK_S + clock.error_s
    requested, observed, ok = "after the traffic", "unknown: the clock of this host was not read", True
    if over_s is not None:
        early_s = over_s - log.disabled_s
        ok = early_s <= error_s
        observed = requested if ok else f"disabled {early_s:.2f} s before the end of the traffic"
    yield Check("end of the SIFTR log", host, requested, observed, ok)
