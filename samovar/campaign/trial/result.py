"""The result of one attempt at a trial."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from samovar.campaign.verdict import Verdict

Outcome = Literal["completed", "failed", "interrupted"]


@dataclass(frozen=True)
class TrialResult:
    """Outcome and verdict of an attempt with their reasons, and the seconds of each phase.

    `overhead_s` is the time beyond what the experiment asked for. `blamed` maps each host that caused a
    failure to the reason.
    """

    outcome: Outcome
    verdict: Verdict
    reasons: tuple[str, ...]
    overhead_s: float
    phases: tuple[tuple[str, float], ...] = ()
    blamed: Mapping[str, str] = field(default_factory=dict)


def read_result(folder: Path) -> TrialResult | None:
    """Read the result of a complete trial from its manifest, or return None without a manifest."""
    file = folder / "manifest.json"
    if not file.is_file():
        return None
    manifest = json.loads(file.read_bytes())
    values = (manifest[key] for key in ("outcome", "verdict", "reasons", "overhead_s"))
    outcome, verdict, reasons, overhead_s = values
    return TrialResult(outcome, verdict, tuple(reasons), overhead_s)
