"""What makes a duration impossible: a part of a second, where a generator counts in whole ones."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from samovar.experiment.checks.check_context import Context, chosen, varied
from samovar.experiment.checks.validate import Loc
from samovar.experiment.keys import Flow, Level, Part
from samovar.units import format_duration

EXACT_S = 1e-6


class Asked(NamedTuple):
    """A duration that is asked for, where, and of which level it is, if of any."""

    where: Loc
    value: object
    level: Level | None = None


def check_grain(context: Context, name: str, part: Part) -> None:
    """Report durations of flows that their generator cannot keep; what a formula comes to, the plan tells."""
    for index, flow in enumerate(part.traffic):
        for asked in _asked(part, ("parts", name), index, flow):
            _check(context, part, flow, asked)


def is_whole(duration_s: float, step_s: float) -> bool:
    """Tell whether a duration is a whole number of steps, and not none."""
    steps = round(duration_s / step_s)
    return steps > 0 and abs(duration_s - steps * step_s) < EXACT_S


def _asked(part: Part, where: Loc, index: int, flow: Flow) -> Iterator[Asked]:
    own, levels = f"traffic.{flow.label}.duration", varied(part)
    others = {f"traffic.{flow.label}.{key}" for key in ("size", "until")}
    if flow.duration_s is not None and own not in levels:
        yield Asked((*where, "traffic", index, "duration"), flow.duration_s)
    elif own in levels:
        yield from _levels(part, where, own)
    elif flow.size_bytes is None and flow.until is None and not levels & others:
        if "duration" in levels:
            yield from _levels(part, where, "duration")
        else:
            yield Asked((*where, "duration"), part.duration_s)


def _levels(part: Part, where: Loc, target: str) -> Iterator[Asked]:
    for factor in part.factors.values():
        for index, level in enumerate(factor.levels):
            if target in level.values:
                at = (*where, "factors", factor.name, "levels", index, *([target] if factor.linked else []))
                yield Asked(at, level.values[target], level)


def _check(context: Context, part: Part, flow: Flow, asked: Asked) -> None:
    system = context.system_of(flow.from_end)
    if system is None or not isinstance(asked.value, int | float):
        return
    for name in chosen(part, f"traffic.{flow.label}.generator", (flow.generator,), asked.level):
        if name not in context.catalogue.names("generator", system):
            continue
        step_s = context.catalogue.duration_step_s("generator", name, system)
        if step_s is not None and not is_whole(asked.value, step_s):
            message = f"{format_duration(asked.value)} of flow '{flow.label}': {name} counts in steps of"
            step = format_duration(step_s)
            expected = f"{format_duration(-(-asked.value // step_s) * step_s)}, or another multiple of {step}"
            context.checked.report(asked.where, f"{message} {step}; expected {expected}")
            return
