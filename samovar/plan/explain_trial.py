"""Explain a key in one trial: where its value comes from, and the value after formulas are evaluated."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from samovar.experiment import Explanation, RecipeCatalogue, ResolvedExperiment, explain_key, keys, merge
from samovar.plan.model import PlanValue, Resolved
from samovar.plan.plan import Plan

PARAMETERS = ("parameters", "aqm_parameters")


def explain_trial(
    own: ResolvedExperiment, catalogue: RecipeCatalogue, plan: Plan, key: str, name: str
) -> list[Explanation]:
    """Explain a key in one trial. `name` is the trial's id, which may be abbreviated.

    Raises PlanError, DefinitionError.
    """
    trial = plan.find(name)
    values = tuple(_values(trial.resolved, key.removeprefix(f"parts.{trial.part}."), catalogue))
    return [
        replace(one, in_trial=tuple(value for value in values if not one.hosts or value[0] in one.hosts))
        for one in explain_key(own, catalogue, key, trial.part, trial.treatment)
    ]


def _values(resolved: Resolved, key: str, catalogue: RecipeCatalogue) -> Iterator[tuple[str, str, object]]:
    """Yield each value of a key as (where, name in plan.json, value).

    `where` is a host, a direction, a flow, or empty.
    """
    path, hosts = resolved.path, resolved.hosts.items()
    holders: Sequence[tuple[str, PlanValue | Mapping[str, object] | None]]
    match merge.nested_keys(key):
        case ["path", own, *directions] if path is not None:
            every = (("", path), ("down", path.down), ("up", path.up))
            holders = [(where, one) for where, one in every if where in (directions or ("", "down", "up"))]
        case ["traffic", flow, own]:
            holders = [(one.label, one) for one in resolved.flows if flow in (one.label, one.group)]
        case ["loggers", logger, own]:
            named = {
                host: (logger, *catalogue.quantities(plan.system).get(logger, ())) for host, plan in hosts
            }
            holders = [(one.host, one) for one in resolved.loggers if one.logger in named[one.host]]
        case ["stop", *_, own]:
            holders = [("", resolved.stop)]
        case [setting] if "." in setting:
            recipe, _, own = setting.partition(".")
            holders = [
                (name, host.cc_parameters if recipe == "cc" else host.settings.get(recipe))
                for name, host in hosts
            ]
        case [*_, own]:
            holders = list(hosts)
    for where, holder in holders:
        fields: Mapping[str, Any] = holder.as_json() if isinstance(holder, PlanValue) else holder or {}
        parameters = [fields[one] for one in PARAMETERS if isinstance(fields.get(one), Mapping)]
        for name, value in (entry for one in (fields, *parameters) for entry in one.items()):
            if value is not None and own in (name, keys.key_name(name)):
                yield where, name, value
