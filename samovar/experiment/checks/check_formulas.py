"""What makes formulas impossible: names that have no value in a part, and values that need themselves."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from samovar.experiment.checks.check_context import Context
from samovar.experiment.checks.validate import Loc
from samovar.experiment.expressions import Directional, Distribution, Formula, PerHost, canonical
from samovar.experiment.keys import (
    ARRIVALS_FIELDS,
    FLOW_FIELDS,
    PATH_FIELDS,
    Adapter,
    Part,
    is_directed,
    read_target,
    with_device,
)
from samovar.experiment.nearest import unknown
from samovar.units import UnitError

MOST_STEPS = 10_000
_OF_PATH = ("rate", "rtt", "delay", "jitter", "loss", "loss_burst", "reorder", "duplicate", "buffer")
_OF_FLOW = ("start", "size", "duration", "rwnd", "every", "count")


@dataclass(frozen=True)
class Held:
    """A value that a name may have, where it stands, and the factor's level that gives it, if one does."""

    value: object
    where: Loc
    factor: str = ""
    level: int = 0


@dataclass
class Values:
    """Every value that the names of a part may have."""

    by_name: dict[str, list[Held]] = field(default_factory=dict)

    def add(self, target: str, held: Held) -> None:
        """Add a target's value under the names that it has: one for each direction."""
        value = held.value
        if isinstance(value, Directional):
            ways = {way: one for way, one in (("down", value.down), ("up", value.up)) if one is not None}
            for way, one in ways.items():
                self._put(f"{target}.{way}", Held(one, (*held.where, way), held.factor, held.level))
        elif isinstance(value, PerHost):
            for host, one in value.hosts.items():  # only formulas matter: no one value has the name
                self._put(f"{target}@{host}", Held(one, (*held.where, host), held.factor, held.level))
        elif isinstance(value, Distribution):
            for one in (value, *value.parameters):  # formulas may name its mean, and it may contain formulas
                self._put(target, Held(one, held.where, held.factor, held.level))
        elif value is not None:
            self._put(f"{target}.down" if is_directed(target) else target, held)

    def _put(self, name: str, held: Held) -> None:
        self.by_name.setdefault(name, []).append(held)

    def formulas(self) -> Iterator[tuple[str, Held, Formula]]:
        """Yield every formula with the name that it is a value of."""
        for name, every in self.by_name.items():
            yield from ((name, held, held.value) for held in every if isinstance(held.value, Formula))

    def has(self, name: str) -> bool:
        """Say whether a name can have a value."""
        both = name.removesuffix(".up") + ".down"
        if name.startswith("path.buffer.") and both in self.by_name:
            return "path.rate.up" in self.by_name or name == both
        return name == "mtu" or name in self.by_name


def check_formulas(context: Context, name: str, part: Part) -> None:
    """Report formulas whose names have no value in the part, and those that need their own value."""
    values = values_of(part, ("parts", name), context.device)
    for _, held, formula in values.formulas():
        for one in formula.names:
            message = _missing(values, part, one)
            if message:
                context.report(held.where, f"'{formula.text}': {message}")
    reported: set[frozenset[str]] = set()
    for owner, held, _ in values.formulas():
        way = _Search(values).cycle(owner, held)
        if way and frozenset(way) not in reported:
            reported.add(frozenset(way))
            message = f"the value needs itself ({' -> '.join(way)}); expected formulas that end"
            context.report(held.where, message)


def values_of(part: Part, where: Loc, device: Adapter | None = None) -> Values:
    """Return every value of a part that a formula may name or be, those of the path's device among them."""
    values = Values()
    path, at = with_device(part.path, device), (*where, "path")
    for key in _OF_PATH if path else ():
        value = getattr(path, PATH_FIELDS[key])
        replaced = key == "rtt" and path is not None and path.delay_s is not None
        values.add(f"path.{key}", Held(None if replaced else value, (*at, key)))
    for index, one in enumerate(path.classes if path else ()):
        for key in ("rtt", "delay", "loss"):
            value = getattr(one, PATH_FIELDS[key])
            values.add(f"path.classes.{index}.{key}", Held(value, (*at, "classes", index, key)))
    for index, flow in enumerate(part.traffic):
        for key in _OF_FLOW:
            value = getattr(flow, FLOW_FIELDS[key])
            values.add(f"traffic.{flow.label}.{key}", Held(value, (*where, "traffic", index, key)))
        for key, name in ARRIVALS_FIELDS.items() if flow.arrivals else ():
            at = (*where, "traffic", index, "arrivals", key)
            values.add(f"traffic.{flow.label}.arrivals.{key}", Held(getattr(flow.arrivals, name), at))
    for index, logger in enumerate(part.loggers):
        at = (*where, "loggers", index, "interval")
        values.add(f"loggers.{logger.logger}.interval", Held(logger.interval_s, at))
    values.add("duration", Held(part.duration_s, (*where, "duration")))
    values.add("stop.after", Held(part.stop and part.stop.after_s, (*where, "stop", "after")))
    _add_settings(values, part, where)
    _add_levels(values, part, where)
    return values


def _add_settings(values: Values, part: Part, where: Loc) -> None:
    for key, value in part.settings.items():
        try:
            values.add(key, Held(read_target(key, value), (*where, "settings", key)))
        except UnitError:
            continue  # is reported where settings are checked


def _add_levels(values: Values, part: Part, where: Loc) -> None:
    for factor in part.factors.values():
        for index, level in enumerate(factor.levels):
            for target, value in level.values.items():
                at = (*where, "factors", factor.name, "levels", index, *([target] if factor.linked else []))
                values.add(target, Held(value, at, factor.name, index))


def _missing(values: Values, part: Part, name: str) -> str | None:
    """Say that a name has no value in the part, or return None."""
    known = canonical(name)
    if known.startswith("traffic."):
        label = known.removeprefix("traffic.").rpartition(".")[0]
        labels = [flow.label for flow in part.traffic]
        if label not in labels:
            return unknown("flow", label, labels)
    absent = [one for one in _needed(known, values) if not values.has(one)]
    if not absent:
        return None
    said = absent[0].removesuffix(".down")
    return f"{name} has no value here, as the part has no {said}; expected one, as a value or a factor"


def _needed(name: str, values: Values) -> tuple[str, ...]:
    """Return the names whose values a name is computed from."""
    if name.startswith("BDP."):
        return (f"path.rate.{name.removeprefix('BDP.')}", *_needed("path.rtt", values))
    if name == "path.rtt" and "path.delay.down" in values.by_name and "path.rtt" not in values.by_name:
        return ("path.delay.down", "path.delay.up")
    return (name,)


class _Search:
    """Follows formulas depth first; a factor has the same level all along a way."""

    def __init__(self, values: Values) -> None:
        self.values, self.steps = values, 0

    def cycle(self, name: str, held: Held) -> tuple[str, ...]:
        """Return the names of a way from a value back to itself, or nothing."""
        return self._follow(name, held, (), {})

    def _follow(
        self, name: str, held: Held, way: tuple[str, ...], levels: Mapping[str, int]
    ) -> tuple[str, ...]:
        self.steps += 1
        if name in way:
            return (*way, name) if way[0] == name else ()
        if not isinstance(held.value, Formula) or self.steps > MOST_STEPS:
            return ()
        if held.factor:
            levels = {**levels, held.factor: held.level}
        for used in held.value.names:
            for needed in _needed(canonical(used), self.values):
                found = self._into(needed, (*way, name), levels)
                if found:
                    return found
        return ()

    def _into(self, name: str, way: tuple[str, ...], levels: Mapping[str, int]) -> tuple[str, ...]:
        for held in self.values.by_name.get(name, ()):
            if levels.get(held.factor, held.level) == held.level:
                found = self._follow(name, held, way, levels)
                if found:
                    return found
        return ()
