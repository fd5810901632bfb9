"""Check the programs of a trial: that traffic started on time, lasted as planned, and ended well."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from samovar.campaign.verdict.check_result import Check
from samovar.campaign.verdict.evidence import TRAFFIC, Evidence


def check_traffic_failures(evidence: Evidence) -> Iterator[Check]:
    """List what ended the traffic early."""
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


def start_times(evidence: Evidence) -> Iterator[Mapping[str, object]]:
    """Yield for each started flow its planned and actual start in seconds, by the controller's clock.

    These are the entries of `starts` in manifest.json.
    """
    for ends in evidence.started_flows:
        host = ends.client_host
        if host in evidence.clocks:
            asked_s = evidence.t_start_s + ends.flow.start_s
            began_s = evidence.started[ends.name("client")] - evidence.clocks[host].correction_s
            yield {
                "flow": ends.flow.label,
                "host": host,
                "asked_s": round(asked_s, 6),
                "began_s": round(began_s, 6),
                "late_s": round(began_s - asked_s, 6),
            }


def check_start_times(evidence: Evidence) -> Iterator[Check]:
    """Check that each flow started on time."""
    most_s = evidence.policy.thresholds.late_s
    for start in start_times(evidence):
        late_s = float(str(start["late_s"]))
        observed = f"{abs(late_s) * 1e3:.1f} ms {'late' if late_s >= 0 else 'early'}"
        name, host, tolerance = f"start of flow {start['flow']}", str(start["host"]), f"± {most_s * 1e3:g} ms"
        yield Check(name, host, "on time", observed, abs(late_s) <= most_s, "suspect", tolerance)


def check_duration(evidence: Evidence) -> Iterator[Check]:
    """Check that the traffic lasted as long as its longest flow with a duration."""
    flows = [ends.flow for ends in evidence.scripts.flows if ends.name("client") not in evidence.halted]
    asked = [flow.start_s + flow.duration_s for flow in flows if flow.duration_s and flow.size_bytes is None]
    if asked:
        least_s = evidence.policy.thresholds.duration * max(asked)
        seconds = evidence.seconds(TRAFFIC)
        requested = f"{max(asked):g} s, at least {least_s:.2f} s"
        yield Check("duration of the traffic", "all", requested, f"{seconds:.2f} s", seconds >= least_s)
