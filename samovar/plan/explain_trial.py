"""Explain a key in one trial: where its value comes from, and the value after formulas are evaluated."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

from samovar.experiment import Explainer, Explanation, merge
from samovar.plan.model import PlanValue, Resolved
from samovar.plan.plan import Plan
from samovar.units import format_share

UNITS = {"": "", "_bps": " bit/s", "_s": " s", "_packets": " packets", "_bytes": " B", "_host": ""}
"""The suffixes of attributes that hold the value of a key, and the units to print."""
SHARES = ("loss", "reorder", "duplicate")
PARAMETERS = ("parameters", "aqm_parameters")


def explain_trial(explainer: Explainer, plan: Plan, key: str, name: str) -> list[Explanation]:
    """Explain a key in the trial whose id begins with a name; raises PlanError or DefinitionError."""
    trial = plan.find(name)
    values = tuple(_values(trial.resolved, key.removeprefix(f"parts.{trial.part}.")))
    return [
        replace(one, in_trial=tuple(value for value in values if not one.hosts or value[0] in one.hosts))
        for one in explainer.explain(key, trial.part, trial.treatment)
    ]


def _values(resolved: Resolved, key: str) -> Iterator[tuple[str, str]]:
    """Yield the host, direction or flow that has a value (empty for the whole trial), and the value."""
    path, hosts = resolved.path, resolved.hosts.items()
    holders: list[tuple[str, object]]
    match merge.nested_keys(key):
        case ["path", own, *directions] if path is not None:
            every = (("", path), ("down", path.down), ("up", path.up))
            holders = [(where, one) for where, one in every if where in (directions or ("", "down", "up"))]
        case ["traffic", flow, own]:
            holders = [(one.label, one) for one in resolved.flows if flow in (one.label, one.group)]
        case ["loggers", logger, own]:
            holders = [(one.host, one) for one in resolved.loggers if one.logger == logger]
        case ["stop", *_, own]:
            holders = [("", resolved.stop)]
        case ["duration" as own]:
            holders = [("", resolved)]
        case [setting] if "." in setting:
            recipe, _, own = setting.partition(".")
            holders = [
                (name, host.cc_parameters if recipe == "cc" else host.settings.get(recipe))
                for name, host in hosts
            ]
        case [*_, own]:
            holders = list(hosts)
    for where, holder in holders:
        for text in _texts(holder, own):
            yield where, text


def _texts(holder: object, key: str) -> Iterator[str]:
    """Yield the values that attributes or parameters give a key, with their units."""
    fields = dict(holder) if isinstance(holder, PlanValue) else {}
    for suffix, unit in UNITS.items():
        value = fields.get(key + suffix)
        if value is not None and key in SHARES:
            yield format_share(value)
        elif value is not None:
            yield f"{value:g}{unit}" if isinstance(value, float) else f"{value}{unit}"
    for parameters in (holder, *map(fields.get, PARAMETERS)):
        if isinstance(parameters, Mapping) and key in parameters:
            yield str(parameters[key])
