"""Check the programs of a trial: start, duration, exit codes, samples, and what ended the traffic early."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import NamedTuple

from samovar.campaign.verdict.check_result import Check, unreadable
from samovar.campaign.verdict.evidence import Evidence
from samovar.campaign.verdict.traces import UNREADABLE, open_lines
from samovar.recipes import Program
from samovar.units import format_bytes

STOPPED = ("0", "143")
"""Exit codes of a logger that was stopped: 0 if it ended by itself after SIGTERM, 143 (128 + SIGTERM) if the
signal ended it. A logger that is killed because it takes too long to end has the exit code KILLED, or
124 on FreeBSD."""
KILLED = "137"
RECORD_TRAFFIC = frozenset({"beacons", "tcp-info"})
"""Loggers that record packets or connections of other programs at an interval. They may have nothing to
record."""
UNSEEN_QUEUES = frozenset({"fq_codel", "fq_pie"})
"""Queue disciplines whose queues ipfw(8) of FreeBSD does not show."""


def check_traffic_failures(evidence: Evidence) -> Iterator[Check]:
    """Yield a failed check for each failure that ended the traffic early."""
    limits = evidence.policy.thresholds
    checks = {
        "failed": ("generators", "run to their end"),
        "lost": ("loggers", "record until the traffic has ended"),
        "disk": ("disk during the traffic", f"at least {format_bytes(limits.disk_bytes)} free"),
        "clock": ("clock during the traffic", f"no step above {limits.clock_step_s * 1e3:g} ms"),
    }
    for failure in evidence.failures:
        name, requested = checks[failure.word]
        yield Check(name, failure.host, requested, failure.text, False)


def blamed_for_traffic(evidence: Evidence) -> dict[str, str]:
    """Return the hosts whose disk, clock or logger ended the traffic early, each with the reason.

    A generator that failed blames no host, because the cause may be the host at its other end.
    """
    checks = check_traffic_failures(evidence)
    return {check.host: check.reason for check in checks if check.name != "generators"}


def check_exit_codes(evidence: Evidence) -> Iterator[Check]:
    """Check that each client ended by itself without an error."""
    for ends in evidence.scripts.flows:
        name = ends.name("client")
        if name not in evidence.halted:
            code = evidence.exit_codes.get(name, "none")
            yield Check(f"exit code of {name}", ends.client_host, "0", code, code == "0")


def check_loggers(evidence: Evidence) -> Iterator[Check]:
    """Check that each logger ended without an error when stopped, and has the samples that it must have.

    The first line of a trace has the names of its columns.
    """
    for host, program in evidence.programs("logger"):
        code, requested = evidence.exit_codes.get(program.name, "none"), "0, or 143 (SIGTERM)"
        messages = list(filter(None, evidence.messages.get(program.name, ()))) if code not in STOPPED else []
        observed = ": ".join((f"{code} (SIGKILL)" if code == KILLED else code, *messages[-1:]))
        yield Check(f"exit code of logger {program.name}", host, requested, observed, code in STOPPED)
        if _has_samples(evidence, host, program):
            trace = evidence.trace(program)
            try:
                with open_lines(trace) as lines:
                    ok = len(list(islice(lines, 2))) == 2
            except UNREADABLE as error:
                yield unreadable(trace, host, error)
            else:
                name, observed = f"samples of logger {program.name}", "one or more" if ok else "none"
                yield Check(name, host, "one or more", observed, ok, "suspect")


def _has_samples(evidence: Evidence, host: str, program: Program) -> bool:
    """Return whether the trace of a logger must have samples.

    A trace must have samples if its logger takes them at an interval, and the traffic lasted longer than the
    interval. The loggers in RECORD_TRAFFIC, and loggers of UNSEEN_QUEUES on FreeBSD, are exceptions.
    """
    recipe, path = evidence.scripts.recipe_of(host, program), evidence.resolved.path
    interval_s = program.values.get("interval_s", recipe.defaults.get("interval_s"))
    if not isinstance(interval_s, float) or program.recipe in RECORD_TRAFFIC:
        return False
    if program.recipe == "queue" and path is not None and evidence.resolved.hosts[host].os == "freebsd":
        directions = (path.down, path.up)
        if any(one.interface == program.interface and one.aqm in UNSEEN_QUEUES for one in directions):
            return False
    return evidence.seconds({"traffic"}) > interval_s


class FlowStart(NamedTuple):
    """The requested and the actual start of a flow, in seconds since the epoch by the controller's clock."""

    flow: str
    host: str
    asked_s: float
    began_s: float
    late_s: float


def start_times(evidence: Evidence) -> Iterator[FlowStart]:
    """Yield the start of each started flow, if the clock of its client's host was read."""
    for ends in evidence.started_flows:
        host = ends.client_host
        if host in evidence.clocks:
            asked_s = evidence.t_start_s + ends.flow.start_s
            began_s = evidence.started[ends.name("client")] - evidence.clocks[host].correction_s
            times_s = (round(time_s, 6) for time_s in (asked_s, began_s, began_s - asked_s))
            yield FlowStart(ends.flow.label, host, *times_s)


def check_start_times(evidence: Evidence) -> Iterator[Check]:
    """Check that each flow started on time."""
    most_s = evidence.policy.thresholds.late_s
    for start in start_times(evidence):
        observed = f"{abs(start.late_s) * 1e3:.1f} ms {'late' if start.late_s >= 0 else 'early'}"
        name, ok = f"start of flow {start.flow}", abs(start.late_s) <= most_s
        yield Check(name, start.host, "on time", observed, ok, "suspect", f"± {most_s * 1e3:g} ms")


def check_duration(evidence: Evidence) -> Iterator[Check]:
    """Check that the traffic lasted until the requested durations of all flows had passed."""
    flows = [ends.flow for ends in evidence.scripts.flows if ends.name("client") not in evidence.halted]
    asked = [flow.start_s + flow.duration_s for flow in flows if flow.duration_s and flow.size_bytes is None]
    if asked:
        least_s = evidence.policy.thresholds.duration * max(asked)
        seconds = evidence.seconds({"traffic"})
        requested = f"{max(asked):g} s, at least {least_s:.2f} s"
        yield Check("duration of the traffic", "all", requested, f"{seconds:.2f} s", seconds >= least_s)
