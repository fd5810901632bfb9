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
    """The result of one attempt at a trial; `blamed` maps each host that caused a failure to the reason."""

    outcome: Outcome
    verdict: Verdict
    reasons: tuple[str, ...]
    overhead_s: float
    phases: tuple[tuple[str, float], ...] = ()
    blamed: Mapping[str, str] = field(default_factory=dict)


def read_result(folder: Path) -> TrialResult | None:
    """Read the result of a complete trial from its manifest, or return None without a manifest."""
    manifest = folder / "manifest.json"
    if not manifest.is_file():
        return None
    seen = json.loads(manifest.read_bytes())
    return TrialResult(seen["outcome"], seen["verdict"], tuple(seen["reasons"]), seen["overhead_s"])
