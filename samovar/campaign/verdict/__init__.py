"""The verdict of a trial: valid, suspect or invalid, with reasons."""

from samovar.campaign.verdict.counters import DUMMYNET, is_leaf, plausible
from samovar.campaign.verdict.evidence import NOT_OVERHEAD, Ending, Evidence, Failure
from samovar.campaign.verdict.judge import LINUX_NAME, Check, Verdict

__all__ = [
    "DUMMYNET",
    "LINUX_NAME",
    "NOT_OVERHEAD",
    "Check",
    "Ending",
    "Evidence",
    "Failure",
    "Verdict",
    "is_leaf",
    "plausible",
]
