"""What an attempt at a trial begins with and comes to."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from samovar.campaign.calibration.measure_paths import Paths
from samovar.campaign.calibration.receive_windows import Windows
from samovar.campaign.trial.boot_settings import Lasting
from samovar.campaign.verdict.judge import Verdict

Outcome = Literal["completed", "failed", "interrupted"]


@dataclass(frozen=True)
class Finished:
    """What came of one attempt at a trial; `blamed` are the hosts that a failure names, with reasons."""

    outcome: Outcome
    verdict: Verdict
    reasons: tuple[str, ...]
    overhead_s: float
    phases: tuple[tuple[str, float], ...] = ()
    blamed: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Carried:
    """What goes on from one trial of a campaign to the next: what takes a reboot, what was measured."""

    lasting: Lasting
    paths: Paths
    windows: Windows


def whole(folder: Path) -> Finished | None:
    """Read what a trial came to that is whole on disk; None when it is not."""
    manifest = folder / "manifest.json"
    if not manifest.is_file():
        return None
    seen = json.loads(manifest.read_bytes())
    return Finished(seen["outcome"], seen["verdict"], tuple(seen["reasons"]), seen["overhead_s"])
