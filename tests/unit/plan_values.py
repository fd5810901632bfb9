"""Small plans as values, for tests of what is made from them."""

from __future__ import annotations

from collections.abc import Iterable

from samovar.plan import PartPlan, Plan, Resolved, Trial
from tests.unit.trials import RESOLVED


def trial(label: str, replicate: int = 1, resolved: Resolved = RESOLVED, part: str = "main") -> Trial:
    """Make a trial of one factor, `cc`; its id tells its duration, as a hash would tell all of it."""
    id_ = f"{label}-r{replicate}-{resolved.duration_s:g}"
    return Trial(
        id=id_, part=part, treatment={"cc": label}, replicate=replicate, block=replicate, resolved=resolved
    )


def lasting(duration_s: float) -> Resolved:
    """Return what trials come to, with another duration."""
    return RESOLVED.model_copy(update={"duration_s": duration_s})


def plan_of(trials: Iterable[Trial], **values: object) -> Plan:
    """Make a plan of trials of one part."""
    trials = tuple(trials)
    labels = tuple(dict.fromkeys(one.treatment["cc"] for one in trials))
    replicates = max((one.replicate for one in trials), default=1)
    part = PartPlan(name="main", title="", factors={"cc": labels}, replicates=replicates)
    known: dict[str, object] = {
        "experiment": "x",
        "title": "A title",
        "source": "",
        "description": "",
        "profile": None,
        "testbed": "lab",
        "seed": 1,
        "order": "blocked",
        "parts": (part,),
        "figures": (),
        "tables": (),
        "trials": trials,
    }
    return Plan.model_validate({**known, **values})
