"""A plan for machines: JSON with its cost and standing, CSV with a row per trial."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Mapping

from samovar.cli.show_plan import Seen
from samovar.plan import Cost, Plan
from samovar.plan.diff import Comparison
from samovar.plan.groups import durations_s


def plan_json(seen: Seen) -> Mapping[str, object]:
    """Return plan.json's keys, and beside them the cost, the campaign, and why trials cannot run."""
    folder = seen.standing.folder
    return {
        **seen.plan.as_json(),
        "cost": _cost(seen.whole),
        "left": _cost(seen.left),
        "possible": _cost(seen.possible or seen.left),
        "campaign": {
            "folder": str(folder) if folder else None,
            **_standing(seen.standing.comparison),
            "recipes_changed": list(seen.recipes),
        },
        "refused": [str(one) for one in seen.findings if one.stops and not one.trials],
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
        "again_s": cost.again_s,
        "boots": cost.boots,
        "reboot_s": cost.reboot_s,
        "paths_measured": cost.paths,
        "path_s": cost.path_s,
        "host_bytes": dict(cost.host_bytes),
        "controller_bytes": cost.controller_bytes,
    }


def _standing(comparison: Comparison) -> Mapping[str, object]:
    return {
        "stands": list(comparison.stands),
        "runs": dict(comparison.runs),
        "stale": [vars(one) for one in comparison.stale],
        "orphans": list(comparison.orphans),
        "renamed": comparison.renamed,
    }


def plan_csv(seen: Seen) -> Iterator[str]:
    """Yield a line per trial in order: its place, a column per factor, how long it sends, how it stands."""
    factors = factors_of(seen.plan)
    yield _row(["order", "id", "part", *factors, "replicate", "block", "duration_s", "state"])
    table = seen.plan.table
    lasts_s = durations_s(table)
    for number, trial in enumerate(seen.plan.trials, 1):
        levels = [trial.treatment.get(factor, "") for factor in factors]
        duration = f"{lasts_s[table.order.treatments[number - 1]]:.9g}"
        place = [str(trial.replicate), str(trial.block), duration, seen.state(trial.id)]
        yield _row([str(number), trial.id, trial.part, *levels, *place])


def factors_of(plan: Plan) -> list[str]:
    """Name the factors of all parts, each once."""
    return list(dict.fromkeys(factor for part in plan.parts for factor in part.factors))


def _row(cells: list[str]) -> str:
    out = io.StringIO()
    csv.writer(out, lineterminator="").writerow(cells)
    return out.getvalue()
