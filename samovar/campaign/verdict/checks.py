"""Every check of a trial, and the verdict made from them.

A check function takes the evidence of a trial and yields one `Check` for each comparison. It yields nothing
if the trial has recorded nothing to compare. To add a check, write such a function in the module of its
subject and list it in CHECKS; docs/explanation/verdict.md describes each check to users.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from samovar.campaign.verdict.bottleneck_checks import (
    check_bottleneck_bytes,
    check_bottleneck_rate,
    check_delay_drops,
)
from samovar.campaign.verdict.capture_checks import (
    check_capture_drops,
    check_captures_complete,
    check_competing_traffic,
    check_flow_bytes,
    check_frame_sizes,
    check_mss,
    check_receive_windows,
    check_routers,
)
from samovar.campaign.verdict.check import Check, Verdict
from samovar.campaign.verdict.evidence import Evidence
from samovar.campaign.verdict.host_checks import (
    check_clock_drift,
    check_clock_offsets,
    check_clock_steps,
    check_cpus,
    check_restored_states,
    check_settings,
)
from samovar.campaign.verdict.path_checks import check_path_calibration
from samovar.campaign.verdict.program_checks import (
    check_duration,
    check_exit_codes,
    check_start_times,
    check_traffic_failures,
)
from samovar.campaign.verdict.siftr_checks import check_siftr_logs
from samovar.campaign.verdict.socket_checks import check_generator_cc, check_tcp_info

CHECKS: tuple[Callable[[Evidence], Iterable[Check]], ...] = (
    check_path_calibration,
    check_restored_states,
    check_traffic_failures,
    check_settings,
    check_exit_codes,
    check_capture_drops,
    check_cpus,
    check_clock_steps,
    check_delay_drops,
    check_captures_complete,
    check_frame_sizes,
    check_competing_traffic,
    check_mss,
    check_receive_windows,
    check_routers,
    check_tcp_info,
    check_siftr_logs,
    check_generator_cc,
    check_flow_bytes,
    check_bottleneck_bytes,
    check_bottleneck_rate,
    check_start_times,
    check_clock_offsets,
    check_clock_drift,
    check_duration,
)
"""Captures come before samples of sockets: where both show the same, the capture's check is kept."""


def run_checks(evidence: Evidence) -> Iterator[Check]:
    """Yield every check of a completed trial; equal checks by several witnesses are yielded once."""
    known: set[tuple[str, str, str, bool]] = set()
    for function in CHECKS:
        for check in function(evidence):
            key = (check.name, check.host, check.requested, check.ok)
            if key not in known:
                known.add(key)
                yield check


def run_checks_without_traffic(evidence: Evidence) -> Iterator[Check]:
    """Yield the checks of a trial that was broken off: those that need nothing of its traffic."""
    yield from check_path_calibration(evidence)
    yield from check_restored_states(evidence)


def verdict_of(checks: Iterable[Check]) -> tuple[Verdict, tuple[str, ...]]:
    """Return the worst verdict of the checks, and the reason of each failed one."""
    failed = [check for check in checks if not check.ok]
    verdict: Verdict = "valid"
    if failed:
        verdict = "invalid" if any(check.severity == "invalid" for check in failed) else "suspect"
    return verdict, tuple(check.reason for check in failed)
