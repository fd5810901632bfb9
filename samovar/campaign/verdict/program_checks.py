"""Check the programs of a trial: start, duration, exit codes, and what ended the traffic early."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from samovar.campaign.verdict.check_result import Check
from samovar.campaign.verdict.evidence import Evidence


def check_traffic_failures(evidence: Evidence) -> Iterator[Check]:
    """Yield a failed check for each failure that ended the traffic early."""
    limits = evidence.policy.thresholds
    checks = {
        "failed": ("generators", "run to their end"),
        "lost": ("loggers", "record until the traffic has ended"),
        "disk": ("disk during the traffic", f"at least {limits.disk_bytes >> 20} MiB free"),
        "clock": ("clock during the traffic", f"no step above {limits.clock_step_s * 1e3:g} ms"),
    }
    for failure in evidence.failures:
        name, requested = checks[failure.word]
        yield Check(name, failure.host, requested, failure.text, False)


def check_exit_codes(evidence: Evidence) -> Iterator[Check]:
    """Check that each client ended by itself without an error."""
    for ends in evidence.scripts.flows:
        name = ends.name("client")
        if name not in evidence.halted:
            code = evidence.exit_codes.get(name, "none")
            yield Check(f"exit code of {name}", ends.client_host, "0", code, code == "0")


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
