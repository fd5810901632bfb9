"""Explain a key in one trial: where its value comes from, and the value after formulas are evaluated."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

from samovar.experiment import Explainer, Explanation, nested_keys
from samovar.plan.model import PlanValue, Resolved
from samovar.plan.plan import Plan
from samovar.units import format_share

UNITS = {"": "", "_bps": " bit/s", "_s": " s", "_packets": " packets", "_bytes": " B", "_host": ""}
"""The suffixes of attributes that hold the value of a key, and the units to print."""
SHARES = ("loss", "reorder", "duplicate")
PARAMETERS = ("parameters", "aqm_parameters")

Located = tuple[str, str]
"""The host, direction or flow that has a value (empty for the whole trial), and the value with its unit."""


def explain_trial(explainer: Explainer, plan: Plan, key: str, name: str) -> list[Explanation]:
    """Explain a key in the trial with an id, or with an id that begins so.

    Raises PlanError for an unknown trial and DefinitionError for an unknown key.
    """
    trial = plan.find(name)
    values = tuple(_values(trial.resolved, key.removeprefix(f"parts.{trial.part}.")))
    return [
        replace(one, in_trial=tuple(value for value in values if not one.hosts or value[0] in one.hosts))
        for one in explainer.explain(key, trial.part, trial.treatment)
    ]


def _values(resolved: Resolved, key: str) -> Iterator[Located]:
    """Yield the values of a key in a resolved trial."""
    steps = nested_keys(key)
    if steps[0] in ("path", "traffic", "loggers", "stop"):
        own = steps[1] if steps[0] == "path" and len(steps) > 1 else steps[-1]
        for where, value in _holders(resolved, steps):
            yield from _fields(where, value, own)
    elif key == "duration":
        yield "", f"{resolved.duration_s:g} s"
    else:
        yield from _of_hosts(resolved, key)


def _holders(resolved: Resolved, steps: tuple[str, ...]) -> Iterator[tuple[str, PlanValue]]:
    path, stop = resolved.path, resolved.stop
    if steps[0] == "path" and len(steps) > 1 and path is not None:
        holders: tuple[tuple[str, PlanValue], ...] = (("", path), ("down", path.down), ("up", path.up))
        yield from (one for one in holders if one[0] in (steps[2:] or ("", "down", "up")))
    if steps[0] == "stop" and len(steps) > 1 and stop is not None:
        yield "", stop
    if len(steps) == 3 and steps[0] == "traffic":
        yield from ((one.label, one) for one in resolved.flows if steps[1] in (one.label, one.group))
    if len(steps) == 3 and steps[0] == "loggers":
        yield from ((one.host, one) for one in resolved.loggers if one.logger == steps[1])


def _of_hosts(resolved: Resolved, key: str) -> Iterator[Located]:
    recipe, _, parameter = key.partition(".")
    for name, host in resolved.hosts.items():
        if not parameter:
            yield from _fields(name, host, key)
        else:
            known = host.cc_parameters if recipe == "cc" else host.settings.get(recipe, {})
            if parameter in known:
                yield name, known[parameter]


def _fields(where: str, value: PlanValue, key: str) -> Iterator[Located]:
    for suffix, unit in UNITS.items():
        one = getattr(value, key + suffix, None)
        if one is not None:
            yield where, _text(key, one, unit)
    for group in PARAMETERS:
        parameters = getattr(value, group, None)
        if isinstance(parameters, Mapping) and key in parameters:
            yield where, str(parameters[key])


def _text(key: str, value: object, unit: str) -> str:
    if key in SHARES and isinstance(value, float):
        return format_share(value)
    return f"{value:g}{unit}" if isinstance(value, float) else f"{value}{unit}"
