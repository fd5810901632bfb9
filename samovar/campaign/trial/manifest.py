"""The manifest of a trial: what it was to be, what came of it, and what it left."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from samovar.campaign.trial.attempt import TrialResult
from samovar.campaign.verdict import Evidence
from samovar.campaign.verdict.evidence import starts_of
from samovar.recipes import TrialScripts


@dataclass(frozen=True)
class Attempt:
    """Which attempt at a trial it was, and on which testbed."""

    number: int
    testbed: str = ""


def manifest_of(
    attempt: Attempt, scripts: TrialScripts, seen: Evidence, finished: TrialResult
) -> Mapping[str, object]:
    """Return the manifest as a JSON value."""
    trial = scripts.trial.as_json()
    return {
        "schema": 1,
        **{key: trial[key] for key in ("id", "part", "treatment", "replicate", "block")},
        "attempt": attempt.number,
        "testbed": attempt.testbed,
        "resolved": trial["resolved"],
        "outcome": finished.outcome,
        "verdict": finished.verdict,
        "reasons": list(finished.reasons),
        "t_start_s": round(seen.t_start_s, 6),
        "t_end_s": round(seen.t_end_s, 6),
        "clocks": [clock.as_json() for clock in seen.clocks.values()],
        "starts": list(starts_of(seen, scripts)),
        "ends": [{"host": host, "over_s": round(t_s, 6)} for host, t_s in seen.over.items()],
        "phases": [{"phase": name, "seconds": seconds} for name, seconds in finished.phases],
        "overhead_s": finished.overhead_s,
        "checks": [check.as_json() for check in seen.checks],
        "files": seen.files,
    }
