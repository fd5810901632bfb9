"""What the phases of a trial leave for its verdict, and the verdict's checks made of it."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from samovar.campaign.clocks import ClockOffset
from samovar.campaign.collection import Expected
from samovar.campaign.host_state import compared, parse_named
from samovar.campaign.policy import DEFAULT_POLICY, Policy
from samovar.campaign.verdict.counters import Span
from samovar.campaign.verdict.counts import check_counts, check_host
from samovar.campaign.verdict.judge import (
    Check,
    check_captures,
    check_clients,
    check_clocks,
    check_drift,
    check_duration,
    check_settings,
    check_sockets,
    check_starts,
    parse_tells,
)
from samovar.campaign.verdict.siftr_log import check_siftr
from samovar.campaign.verdict.wire import Seen, check_wire, read_captures
from samovar.experiment import Thresholds
from samovar.hosts import ScriptResult
from samovar.plan import FlowPlan, Resolved
from samovar.recipes import Program, TrialScripts

BEGAN = re.compile(r"^(\S+)\.pid (\d+\.\d+)$", re.MULTILINE)
OVER = re.compile(r"^order-stop (\d+\.\d+)$", re.MULTILINE)
TRAFFIC = frozenset({"traffic"})
NOT_OVERHEAD = TRAFFIC | {"reboot", "calibrate", "windows"}
"""The phases whose time the experiment asked for."""


@dataclass(frozen=True)
class Failure:
    """What ended a trial before its time: the word of the watch that saw it, the host, and what it saw."""

    word: str
    host: str
    text: str

    def __str__(self) -> str:
        """Say it in words."""
        return f"{self.host}: {self.text}"


@dataclass
class Ending:
    """How the traffic came to its end."""

    failures: list[Failure] = field(default_factory=list)
    t_end_s: float = 0.0


@dataclass
class Evidence:
    """What is known of a trial so far.

    `finished` are the clients that were ended, or never begun, as was asked for; `began` holds when clients
    were started, `over` when a host was told that all traffic is over, in seconds since the epoch by the
    host's own clock. `spans` holds what hosts counted over the traffic, `found` the state in which it left
    them.
    """

    phases: list[tuple[str, float]] = field(default_factory=list)
    before: dict[str, dict[str, str]] = field(default_factory=dict)
    checks: list[Check] = field(default_factory=list)
    files: list[Mapping[str, object]] = field(default_factory=list)
    codes: dict[str, str] = field(default_factory=dict)
    complaints: dict[str, list[str]] = field(default_factory=dict)
    finished: set[str] = field(default_factory=set)
    began: dict[str, float] = field(default_factory=dict)
    over: dict[str, float] = field(default_factory=dict)
    clocks: Mapping[str, ClockOffset] = field(default_factory=dict)
    spans: dict[str, Span] = field(default_factory=dict)
    found: dict[str, dict[str, str]] = field(default_factory=dict)
    ending: Ending = field(default_factory=Ending)
    t_start_s: float = 0.0
    t_end_s: float = 0.0

    def hear(self, done: Mapping[str, ScriptResult]) -> None:
        """Take in how the programs of each host ended."""
        for host, result in done.items():
            codes, complaints = parse_tells(result.text)
            self.codes |= codes
            self.complaints |= complaints
            self.finished |= set(parse_named(result.text, "finished"))
            self.began |= {name: float(t_s) for name, t_s in BEGAN.findall(result.text)}
            if told := OVER.search(result.text):
                self.over[host] = latest(told[1])

    def seconds(self, phases: Collection[str]) -> float:
        """Add up how long some phases took."""
        return sum(seconds for name, seconds in self.phases if name in phases)


def latest(written_s: str) -> float:
    """Return when a file was written at the latest: some file systems keep whole seconds."""
    t_s = float(written_s)
    return t_s + t_s.is_integer()


def checks_of(
    seen: Evidence, scripts: TrialScripts, folder: Path, policy: Policy = DEFAULT_POLICY
) -> Iterator[Check]:
    """Compare what was asked of a trial with what was seen of it; what is seen twice is told once."""
    wire = read_captures(scripts.resolved, folder, policy.thresholds)
    known: set[tuple[str, str, str, bool]] = set()
    for check in _checks(seen, scripts, folder, policy, wire):
        # The wire tells windows first; what samples of sockets tell beside it is the same, or less.
        key = (check.check, check.host, check.requested, check.ok)
        if key not in known:
            known.add(key)
            yield check


def _checks(
    seen: Evidence, scripts: TrialScripts, folder: Path, policy: Policy, wire: Seen
) -> Iterator[Check]:
    limits = policy.thresholds
    begun = [ends for ends in scripts.flows if ends.name("client") in seen.began]
    yield from _failures(seen, limits)
    for host in scripts.resolved.hosts:
        if host in seen.found:
            yield from check_settings(host, compared(scripts.wanted(host), seen.found[host]))
        yield from _programs(seen, scripts, host)
        if host in seen.spans:
            yield from check_host(host, seen.spans[host], scripts.resolved, limits)
    yield from check_wire(scripts.resolved, begun, wire, policy)
    for host in scripts.resolved.hosts:
        yield from _traces(seen, scripts, host, folder)
    whole = [ends for ends in begun if ends.name("client") not in seen.finished]
    yield from check_counts(scripts.resolved, whole, wire, folder, seen.spans, policy)
    yield from check_starts(starts_of(seen, scripts), limits.late_s)
    yield from check_clocks(seen.clocks.values(), policy.clock_tolerance_s)
    yield from check_drift(seen.clocks.values(), limits.clock_drift_ppm)
    flows, seconds = _flows(scripts, seen.finished), seen.seconds(TRAFFIC)
    yield from check_duration(flows, seconds, limits.duration)


def _failures(seen: Evidence, limits: Thresholds) -> Iterator[Check]:
    """Say what ended the traffic before its time."""
    asked = {
        "failed": ("generators", "run to their end"),
        "lost": ("loggers", "record until the traffic has ended"),
        "disk": ("disk over the traffic", f"at least {limits.disk_bytes >> 20} MiB free"),
        "clock": ("clock over the traffic", f"no step above {limits.clock_step_s * 1e3:g} ms"),
    }
    for failure in seen.ending.failures:
        yield Check(asked[failure.word][0], failure.host, asked[failure.word][1], failure.text, False)


def _programs(seen: Evidence, scripts: TrialScripts, host: str) -> Iterator[Check]:
    """Check how the programs of a host ended."""
    own_ends = [client for client in scripts.clients(host) if client not in seen.finished]
    yield from check_clients(host, own_ends, seen.codes)
    captures = [p.name for p in scripts.processes(host) if p.kind == "capture"]
    yield from check_captures(host, captures, seen.complaints)


def _traces(seen: Evidence, scripts: TrialScripts, host: str, folder: Path) -> Iterator[Check]:
    """Check what the loggers of a host saw of sockets."""
    for process in scripts.processes(host):
        trace = folder / expected(process).packed.path
        if process.recipe == "tcp-info":
            yield from check_sockets(_with_sockets(seen, scripts), host, trace)
        if process.recipe == "siftr":
            given = _siftr_options(host, scripts)
            yield from check_siftr(_with_sockets(seen, scripts), host, trace, **given)


def _with_sockets(seen: Evidence, scripts: TrialScripts) -> Resolved:
    """Leave the flows that TCP_INFO can have seen."""
    other = {ends.name("client") for ends in scripts.flows if ends.recipe.header.transport != "tcp"}
    never = seen.finished - seen.began.keys()
    return scripts.resolved.model_copy(update={"flows": tuple(_flows(scripts, other | never))})


def _flows(scripts: TrialScripts, without: Collection[str]) -> list[FlowPlan]:
    return [ends.flow for ends in scripts.flows if ends.name("client") not in without]


def starts_of(seen: Evidence, scripts: TrialScripts) -> Iterator[Mapping[str, object]]:
    """Say for each flow when it was to begin and when it did, by the controller's clock."""
    for ends in scripts.flows:
        host, name = ends.client_host, ends.name("client")
        if name in seen.began and host in seen.clocks:
            asked_s = seen.t_start_s + ends.flow.start_s
            began_s = seen.began[name] - seen.clocks[host].correction_s
            yield {
                "flow": ends.flow.label,
                "host": host,
                "asked_s": round(asked_s, 6),
                "began_s": round(began_s, 6),
                "late_s": round(began_s - asked_s, 6),
            }


def expected(process: Program) -> Expected:
    """Say which file a process leaves, and where it belongs in the trial's folder."""
    return Expected(
        remote=process.output,
        path=f"{'logs' if process.kind == 'generator' else 'traces'}/{process.output}",
        kind=process.kind,
        logger=process.recipe,
        interface=process.interface,
    )


def _siftr_options(host: str, scripts: TrialScripts) -> Mapping[str, int]:
    loggers = (entry for entry in scripts.resolved.loggers if (entry.host, entry.logger) == (host, "siftr"))
    given = next(loggers).parameters
    return {
        "packets_per_line": int(given.get("packets_per_line", "1")),
        "port_filter": int(given.get("port_filter", "0")),
    }
