"""What the phases of a trial leave for its verdict, and the verdict's checks made of it."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from samovar.collect import Expected
from samovar.command.scripts import Process, TrialScripts
from samovar.plan import FlowPlan, Resolved
from samovar.runner.clocks import ClockOffset
from samovar.runner.judge import (
    Check,
    check_captures,
    check_clients,
    check_duration,
    check_sockets,
    parse_tells,
)
from samovar.runner.siftr import check_siftr
from samovar.runner.traffic import Ending, parse_named
from samovar.testbed import Completed

BEGAN = re.compile(r"^(\S+)\.pid (\d+\.\d+)$", re.MULTILINE)
TRAFFIC = frozenset({"traffic"})
NOT_OVERHEAD = TRAFFIC | {"reboot"}
"""The phases whose time the experiment asked for."""


@dataclass
class Evidence:
    """What is known of a trial so far.

    `finished` are the clients that were ended, or never begun, as was asked for; `began` holds when clients
    were started, in seconds since the epoch by their host's clock.
    """

    phases: list[tuple[str, float]] = field(default_factory=list)
    before: dict[str, dict[str, str]] = field(default_factory=dict)
    checks: list[Check] = field(default_factory=list)
    files: list[Mapping[str, object]] = field(default_factory=list)
    codes: dict[str, str] = field(default_factory=dict)
    complaints: dict[str, list[str]] = field(default_factory=dict)
    finished: set[str] = field(default_factory=set)
    began: dict[str, float] = field(default_factory=dict)
    clocks: Mapping[str, ClockOffset] = field(default_factory=dict)
    ending: Ending = field(default_factory=Ending)
    t_start_s: float = 0.0
    t_end_s: float = 0.0

    def hear(self, done: Iterable[Completed]) -> None:
        """Take in how programs ended."""
        for result in done:
            codes, complaints = parse_tells(result.text)
            self.codes |= codes
            self.complaints |= complaints
            self.finished |= set(parse_named(result.text, "finished"))
            self.began |= {name: float(t_s) for name, t_s in BEGAN.findall(result.text)}

    def seconds(self, phases: Collection[str]) -> float:
        """Add up how long some phases took."""
        return sum(seconds for name, seconds in self.phases if name in phases)


def checks_of(seen: Evidence, scripts: TrialScripts, folder: Path) -> Iterator[Check]:
    """Compare what was asked of the traffic with what was seen of it."""
    for failure in seen.ending.failures:
        host, _, what = failure.partition(": ")
        yield Check("generators", host, "run to their end", what, False)
    for host in scripts.resolved.hosts:
        own_ends = [client for client in scripts.clients(host) if client not in seen.finished]
        yield from check_clients(host, own_ends, seen.codes)
        processes = scripts.processes(host)
        captures = [p.name for p in processes if p.kind == "capture"]
        yield from check_captures(host, captures, seen.complaints)
        for process in processes:
            if process.recipe == "tcp-info":
                yield from check_sockets(
                    _with_sockets(seen, scripts), host, folder / expected(process).packed.path
                )
            if process.recipe == "siftr":
                yield from check_siftr(
                    _with_sockets(seen, scripts),
                    host,
                    folder / expected(process).packed.path,
                    _packets_per_line(host, scripts),
                )
    yield from check_duration(_flows(scripts, seen.finished), seen.seconds(TRAFFIC))


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


def expected(process: Process) -> Expected:
    """Say which file a process leaves, and where it belongs in the trial's folder."""
    return Expected(
        remote=process.output,
        path=f"{'logs' if process.kind == 'generator' else 'traces'}/{process.output}",
        kind=process.kind,
        logger=process.recipe,
        interface=process.interface,
    )


def _packets_per_line(host: str, scripts: TrialScripts) -> int:
    loggers = (entry for entry in scripts.resolved.loggers if (entry.host, entry.logger) == (host, "siftr"))
    return int(next(loggers).parameters.get("packets_per_line", "1"))
