"""A plan for machines: JSON with its cost and standing, CSV with a row per trial."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Mapping

from samovar.plan import Cost, Plan
from samovar.plan.compare import Comparison
from samovar.view.plan import Seen


def plan_json(seen: Seen) -> Mapping[str, object]:
    """Return plan.json's keys, and beside them the cost, the campaign, and why trials cannot run."""
    folder = seen.standing.folder
    return {
        **seen.plan.as_json(),
        "cost": _cost(seen.whole),
        "left": _cost(seen.left),
        "campaign": {"folder": str(folder) if folder else None, **_standing(seen.standing.comparison)},
        "cannot_run": {id_: list(why) for id_, why in seen.blocked.items()},
        "not_asked": seen.unasked or None,
    }


def _cost(cost: Cost) -> Mapping[str, object]:
    return {
        "trials": cost.trials,
        "hours": cost.hours,
        "testbeds": cost.testbeds,
        "traffic_s": cost.traffic_s,
        "overhead_s": cost.overhead_s,
        "overhead_measured": cost.overhead.measured,
        "host_bytes": dict(cost.host_bytes),
        "controller_bytes": cost.controller_bytes,
    }


def _standing(comparison: Comparison) -> Mapping[str, object]:
    return {
        "stands": list(comparison.stands),
        "runs": dict(comparison.runs),
        "stale": [vars(one) for one in comparison.stale],
        "orphans": list(comparison.orphans),
    }


def plan_csv(seen: Seen) -> Iterator[str]:
    """Yield a line per trial in order: order, id, part, a column per factor, replicate, block, state."""
    factors = factors_of(seen.plan)
    yield _row(["order", "id", "part", *factors, "replicate", "block", "state"])
    for number, trial in enumerate(seen.plan.trials, 1):
        levels = [trial.treatment.get(factor, "") for factor in factors]
        place = [str(trial.replicate), str(trial.block), seen.state(trial.id)]
        yield _row([str(number), trial.id, trial.part, *levels, *place])


def factors_of(plan: Plan) -> list[str]:
    """Name the factors of all parts, each once."""
    return list(dict.fromkeys(factor for part in plan.parts for factor in part.factors))


def _row(cells: list[str]) -> str:
    out = io.StringIO()
    csv.writer(out, lineterminator="").writerow(cells)
    return out.getvalue()
