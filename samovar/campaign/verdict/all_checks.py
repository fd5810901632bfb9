"""List every check of the verdict, run them on a trial, and derive the verdict.

A check function takes the evidence of a trial and yields one `Check` for each comparison for which the trial
has recorded data. To add a check, write such a function in the module for its subject, list it in CHECKS, and
describe it in docs/explanation/verdict.md.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from samovar.campaign.verdict import (
    capture_checks,
    host_checks,
    pace_checks,
    path_checks,
    program_checks,
    siftr_checks,
    socket_checks,
)
from samovar.campaign.verdict.check_result import Check, Verdict, short_reasons
from samovar.campaign.verdict.evidence import Evidence

CHECKS: tuple[Callable[[Evidence], Iterable[Check]], ...] = (
    path_checks.check_path_calibration,
    host_checks.check_restored_states,
    program_checks.check_traffic_failures,
    host_checks.check_settings,
    host_checks.check_network,
    host_checks.check_foreign_shaping,
    program_checks.check_exit_codes,
    program_checks.check_loggers,
    capture_checks.check_capture_drops,
    host_checks.check_cpus,
    host_checks.check_clock_steps,
    path_checks.check_delay_drops,
    capture_checks.check_captures_complete,
    capture_checks.check_frame_sizes,
    capture_checks.check_competing_traffic,
    capture_checks.check_mss,
    capture_checks.check_receive_windows,
    capture_checks.check_routers,
    socket_checks.check_tcp_info,
    siftr_checks.check_siftr_logs,
    socket_checks.check_generator_cc,
    capture_checks.check_flow_bytes,
    pace_checks.check_offered_rates,
    path_checks.check_bottleneck_bytes,
    path_checks.check_queue_samples,
    program_checks.check_start_times,
    host_checks.check_clock_offsets,
    host_checks.check_clock_drift,
    program_checks.check_duration,
)
"""All check functions, in the order in which they run. Of equal checks, only the first is kept (see
run_checks()), so checks of captures come before checks of socket samples."""


def run_checks(evidence: Evidence) -> list[Check]:
    """Run all check functions on a completed trial, and return their checks.

    Of several checks with the same name, host, requested value and result, only the first is kept.
    """
    unique: dict[tuple[str, str, str, bool], Check] = {}
    for function in CHECKS:
        for check in function(evidence):
            unique.setdefault((check.name, check.host, check.requested, check.ok), check)
    return list(unique.values())


def run_checks_without_traffic(evidence: Evidence) -> list[Check]:
    """Return the checks of an aborted trial, which are those that do not need traffic."""
    return [*evidence.calibration, *host_checks.check_restored_states(evidence)]


def verdict_of(checks: Iterable[Check]) -> tuple[Verdict, tuple[str, ...]]:
    """Return the worst verdict among the checks, and the reasons of the failed checks, worst first."""
    failed = sorted(
        (check for check in checks if not check.ok), key=lambda check: check.severity != "invalid"
    )
    verdict: Verdict = "valid"
    if failed:
        verdict = "invalid" if any(check.severity == "invalid" for check in failed) else "suspect"
    return verdict, tuple(short_reasons(check.reason for check in failed))
