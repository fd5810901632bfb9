"""The verdict of a trial: valid, suspect or invalid, with reasons. `all_checks.py` lists every check."""

from samovar.campaign.verdict.all_checks import run_checks, run_checks_without_traffic, verdict_of
from samovar.campaign.verdict.check_result import Check, Verdict
from samovar.campaign.verdict.evidence import NOT_OVERHEAD, CounterSpan, Evidence, TrafficFailure
from samovar.campaign.verdict.path_checks import check_direction
from samovar.campaign.verdict.path_measurement import DirectionMeasurement, parse_measurement
from samovar.campaign.verdict.program_checks import start_times

__all__ = [
    "NOT_OVERHEAD",
    "Check",
    "CounterSpan",
    "DirectionMeasurement",
    "Evidence",
    "TrafficFailure",
    "Verdict",
    "check_direction",
    "parse_measurement",
    "run_checks",
    "run_checks_without_traffic",
    "start_times",
    "verdict_of",
]
