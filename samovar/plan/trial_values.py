"""Where a trial's values come from, and what they came to once everything was computed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

from samovar.errors import PlanError
from samovar.experiment import Explanation, Subject, explain, steps_of, unknown
from samovar.plan.model import Resolved, Trial, Value
from samovar.plan.plan import Plan
from samovar.units import format_share

UNITS = {"": "", "_bps": " bit/s", "_s": " s", "_packets": " packets", "_bytes": " B", "_host": ""}
SHARES = ("loss", "reorder", "duplicate")
WHERE = ("", "down", "up")
PARAMETERS = ("parameters", "aqm_parameters")


def explain_trial(subject: Subject, plan: Plan, key: str, name: str) -> list[Explanation]:
    """Explain a key in one trial, which may be named by the beginning of its id.

    Raises PlanError for a trial that is not in the plan, DefinitionError for a key that is not known.
    """
    trial = find_trial(plan, name)
    found = explain(subject, key, trial.part, trial.treatment)
    came_to = tuple(_came_to(trial.resolved, key.removeprefix(f"parts.{trial.part}.")))
    return [replace(one, came_to=_at(one.hosts, came_to)) for one in found]


def _at(hosts: tuple[str, ...], came_to: tuple[tuple[str, str], ...]) -> tuple[tuple[str, str], ...]:
    return tuple(one for one in came_to if not hosts or one[0] in hosts)


def find_trial(plan: Plan, name: str) -> Trial:
    """Return the trial of an id, or of the beginning of one; raises PlanError."""
    having = [trial for trial in plan.trials if trial.id.startswith(name)]
    exact = [trial for trial in having if trial.id == name]
    if len(exact or having) == 1:
        return (exact or having)[0]
    if having:
        raise PlanError(f"'{name}' begins the ids of {len(having)} trials; expected one of them in full")
    raise PlanError(unknown("trial", name, (trial.id for trial in plan.trials)))


def _came_to(resolved: Resolved, key: str) -> Iterator[tuple[str, str]]:
    """Yield where a key has a value in a resolved trial, and that value with its unit."""
    steps = steps_of(key)
    if steps[0] in ("path", "traffic", "loggers", "stop"):
        own = steps[1] if steps[0] == "path" and len(steps) > 1 else steps[-1]
        for where, value in _holders(resolved, steps):
            yield from _fields(where, value, own)
    elif key == "duration":
        yield "", f"{resolved.duration_s:g} s"
    else:
        yield from _of_hosts(resolved, key)


def _holders(resolved: Resolved, steps: tuple[str, ...]) -> Iterator[tuple[str, Value]]:
    path, stop = resolved.path, resolved.stop
    if steps[0] == "path" and len(steps) > 1 and path is not None:
        holders: tuple[tuple[str, Value], ...] = (("", path), ("down", path.down), ("up", path.up))
        yield from (one for one in holders if one[0] in (steps[2:] or WHERE))
    if steps[0] == "stop" and len(steps) > 1 and stop is not None:
        yield "", stop
    if len(steps) == 3 and steps[0] == "traffic":
        yield from ((one.label, one) for one in resolved.flows if steps[1] in (one.label, one.group))
    if len(steps) == 3 and steps[0] == "loggers":
        yield from ((one.host, one) for one in resolved.loggers if one.logger == steps[1])


def _of_hosts(resolved: Resolved, key: str) -> Iterator[tuple[str, str]]:
    recipe, _, parameter = key.partition(".")
    for name, host in resolved.hosts.items():
        if not parameter:
            yield from _fields(name, host, key)
        else:
            known = host.cc_parameters if recipe == "cc" else host.settings.get(recipe, {})
            if parameter in known:
                yield name, known[parameter]


def _fields(where: str, value: Value, key: str) -> Iterator[tuple[str, str]]:
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
