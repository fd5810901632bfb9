"""Check formulas: the names in them must have a value in the part, and no value may depend on itself."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace

from samovar.experiment.checks.check_context import Context
from samovar.experiment.checks.validate import Loc
from samovar.experiment.formula import Formula, canonical
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
from samovar.experiment.values import Directional, Distribution, PerHost

MOST_STEPS = 10_000  # of the search for values that depend on themselves


@dataclass(frozen=True)
class PossibleValue:
    """A value that a name may have, its place, and the factor and level that give it, if any."""

    value: object
    where: Loc
    factor: str = ""
    level: int = 0


@dataclass
class _Values:
    """The values that the names of a part may have, by name; `path.rate.down` names one direction."""

    by_name: dict[str, list[PossibleValue]] = field(default_factory=dict)

    def add(self, target: str, possible: PossibleValue) -> None:
        """Add the value of a key under the names that it has in formulas."""
        value, where = possible.value, possible.where
        if isinstance(value, Directional):
            for direction, one in (("down", value.down), ("up", value.up)):
                if one is not None:
                    at = (*where, direction)
                    self._add(f"{target}.{direction}", replace(possible, value=one, where=at))
        elif isinstance(value, PerHost):
            for host, one in value.hosts.items():  # no name means the value of one host
                self._add(f"{target}@{host}", replace(possible, value=one, where=(*where, host)))
        elif isinstance(value, Distribution):
            for one in (value, *value.parameters):  # its name means the mean, its parameters may be formulas
                self._add(target, replace(possible, value=one))
        elif value is not None:
            self._add(f"{target}.down" if is_directed(target) else target, possible)

    def _add(self, name: str, possible: PossibleValue) -> None:
        self.by_name.setdefault(name, []).append(possible)

    def formulas(self) -> Iterator[tuple[str, PossibleValue, Formula]]:
        """Yield every formula with the name whose value it is."""
        for name, every in self.by_name.items():
            yield from ((name, one, one.value) for one in every if isinstance(one.value, Formula))

    def has(self, name: str) -> bool:
        """Return whether a name can have a value."""
        down = name.removesuffix(".up") + ".down"
        if name.startswith("path.buffer.") and down in self.by_name:
            return "path.rate.up" in self.by_name or name == down
        return name == "mtu" or name in self.by_name

    def inputs(self, name: str) -> tuple[str, ...]:
        """Return the names whose values a name is computed from: itself, unless it is derived."""
        if name.startswith("BDP."):
            return (f"path.rate.{name.removeprefix('BDP.')}", *self.inputs("path.rtt"))
        if name == "path.rtt" and "path.delay.down" in self.by_name and "path.rtt" not in self.by_name:
            return ("path.delay.down", "path.delay.up")
        return (name,)


def check_formulas(context: Context, name: str, part: Part) -> None:
    """Report names in formulas that have no value in the part, and values that depend on themselves."""
    values = _possible_values(part, ("parts", name), context.device)
    for _, possible, formula in values.formulas():
        for one in formula.names:
            message = _missing(values, part, one)
            if message:
                context.report(possible.where, f"'{formula.text}': {message}")
    reported: set[frozenset[str]] = set()
    for owner, possible, _ in values.formulas():
        cycle = _CycleSearch(values).find(owner, possible)
        if cycle and frozenset(cycle) not in reported:
            reported.add(frozenset(cycle))
            context.report(possible.where, f"the value depends on itself ({' -> '.join(cycle)})")


def _models(
    part: Part, where: Loc, device: Adapter | None
) -> Iterator[tuple[str, object, Mapping[str, str], Loc]]:
    """Yield the models of a part: name that their keys begin with, model, attributes by key, place."""
    path = with_device(part.path, device)
    if path is not None:
        keys = {key: name for key, name in PATH_FIELDS.items() if key != "rtt" or path.delay_s is None}
        yield "path", path, keys, (*where, "path")
        keys = {key: PATH_FIELDS[key] for key in ("rtt", "delay", "loss")}
        for index, one in enumerate(path.classes):
            yield f"path.classes.{index}", one, keys, (*where, "path", "classes", index)
    for index, flow in enumerate(part.traffic):
        label, at = f"traffic.{flow.label}", (*where, "traffic", index)
        yield label, flow, FLOW_FIELDS, at
        if flow.arrivals is not None:
            yield f"{label}.arrivals", flow.arrivals, ARRIVALS_FIELDS, (*at, "arrivals")
    for index, logger in enumerate(part.loggers):
        yield f"loggers.{logger.logger}", logger, {"interval": "interval_s"}, (*where, "loggers", index)
    yield "stop", part.stop, {"after": "after_s"}, (*where, "stop")


def _possible_values(part: Part, where: Loc, device: Adapter | None) -> _Values:
    """Return the values of the keys of a part, its settings and levels, and the device of its path."""
    values = _Values()
    for owner, model, fields, at in _models(part, where, device):
        for key, name in fields.items():
            values.add(f"{owner}.{key}", PossibleValue(getattr(model, name, None), (*at, key)))
    values.add("duration", PossibleValue(part.duration_s, (*where, "duration")))
    for key, text in part.settings.items():
        try:
            values.add(key, PossibleValue(read_target(key, text), (*where, "settings", key)))
        except ValueError:
            continue  # is reported where settings are checked
    for factor in part.factors.values():
        for index, level in enumerate(factor.levels):
            at = (*where, "factors", factor.name, "levels", index)
            for target, value in level.values.items():
                place = (*at, target) if factor.linked else at
                values.add(target, PossibleValue(value, place, factor.name, index))
    return values


def _missing(values: _Values, part: Part, name: str) -> str | None:
    """Return the message for a name that has no value in the part."""
    known = canonical(name)
    if known.startswith("traffic."):
        label = known.removeprefix("traffic.").rpartition(".")[0]
        labels = [flow.label for flow in part.traffic]
        if label not in labels:
            return unknown("flow", label, labels)
    missing = [one for one in values.inputs(known) if not values.has(one)]
    if not missing:
        return None
    key = missing[0].removesuffix(".down")
    return f"{name} has no value here, as the part has no {key}; add it, as a value or a factor"


class _CycleSearch:
    """A depth-first search through formulas, in which a factor has the same level throughout."""

    def __init__(self, values: _Values) -> None:
        self.values, self.steps = values, 0

    def find(self, name: str, possible: PossibleValue) -> tuple[str, ...]:
        """Return the names on a way from a value back to itself, or nothing."""
        return self._follow(name, possible, (), {})

    def _follow(
        self, name: str, possible: PossibleValue, trail: tuple[str, ...], levels: Mapping[str, int]
    ) -> tuple[str, ...]:
        self.steps += 1
        if name in trail:
            return (*trail, name) if trail[0] == name else ()
        if not isinstance(possible.value, Formula) or self.steps > MOST_STEPS:
            return ()
        if possible.factor:
            levels = {**levels, possible.factor: possible.level}
        for used in possible.value.names:
            for one in self.values.inputs(canonical(used)):
                for other in self.values.by_name.get(one, ()):
                    if levels.get(other.factor, other.level) == other.level:
                        found = self._follow(one, other, (*trail, name), levels)
                        if found:
                            return found
        return ()
