"""Evidence of a sample trial, as the phases of a trial would record it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from samovar.campaign.policy import Policy
from samovar.campaign.verdict import Evidence
from samovar.plan import FlowPlan, Resolved, Trial
from samovar.recipes import TrialScripts
from tests.unit.plans import CATALOGUE
from tests.unit.trials import RESOLVED


def evidence_of(
    folder: Path = Path("trial"), resolved: Resolved = RESOLVED, policy: Policy | None = None, **fields: Any
) -> Evidence:
    """Make evidence of a trial whose first flow was started; `fields` are further fields of the evidence."""
    trial = Trial(id="t", part="main", treatment={}, replicate=1, block=1, source=resolved)
    scripts = TrialScripts(trial, CATALOGUE, "verdicts")
    fields = {"started": {f"{resolved.flows[0].label}-client": 0.0}, **fields}
    return Evidence(scripts, folder, policy or Policy(), **fields)


def with_flow(flow: FlowPlan, resolved: Resolved = RESOLVED) -> Resolved:
    """Return the resolved values of a trial whose only flow is this one."""
    return resolved.model_copy(update={"flows": (flow,)})
