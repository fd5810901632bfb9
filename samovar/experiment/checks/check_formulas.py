"""Check formulas: the names in them must have a value in the part, and no value may depend on itself."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace

from samovar.experiment.checks.check_context import PartInContext, PartValue, part_values
from samovar.experiment.formula import Formula, canonical
from samovar.experiment.keys import Level, Part, is_directed, with_device
from samovar.experiment.nearest import unknown
from samovar.experiment.values import Distribution

MOST_STEPS = 10_000  # of the search for values that depend on themselves


class _Values:
    """The values that the names of a part may have, by name; `path.rate.down` names one direction."""

    def __init__(self, values: Iterable[PartValue]) -> None:
        self.by_name: dict[str, list[PartValue]] = {}
        for one in values:
            name = one.target
            if is_directed(name):
                name = f"{name}.{one.step or 'down'}"
            elif one.step:
                name = f"{name}@{one.step}"  # no name means the value of one host
            self.by_name.setdefault(name, []).append(one)
            if isinstance(one.value, Distribution):  # its name means the mean, its parameters may be formulas
                self.by_name[name] += [replace(one, value=number) for number in one.value.parameters]

    def formulas(self) -> Iterator[tuple[str, PartValue, Formula]]:
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


def check_formulas(part: PartInContext) -> None:
    """Report names in formulas that have no value in the part, and values that depend on themselves."""
    device = part.testbed.device if part.testbed else None
    whole = part.model.model_copy(update={"path": with_device(part.model.path, device)})
    values = _Values(part_values(whole))
    for _, possible, formula in values.formulas():
        for one in formula.names:
            message = _missing(values, part.model, one)
            if message:
                part.report(possible.where, f"'{formula.text}': {message}")
    reported: set[frozenset[str]] = set()
    for owner, possible, _ in values.formulas():
        cycle = _CycleSearch(values).find(owner, possible)
        if cycle and frozenset(cycle) not in reported:
            reported.add(frozenset(cycle))
            part.report(possible.where, f"the value depends on itself ({' -> '.join(cycle)})")


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

    def find(self, name: str, possible: PartValue) -> tuple[str, ...]:
        """Return the names on a way from a value back to itself, or nothing."""
        return self._follow(name, possible, (), {})

    def _follow(
        self, name: str, possible: PartValue, trail: tuple[str, ...], levels: Mapping[str, Level]
    ) -> tuple[str, ...]:
        self.steps += 1
        if name in trail:
            return (*trail, name) if trail[0] == name else ()
        if not isinstance(possible.value, Formula) or self.steps > MOST_STEPS:
            return ()
        if possible.factor and possible.level:
            levels = {**levels, possible.factor.name: possible.level}
        for used in possible.value.names:
            for one in self.values.inputs(canonical(used)):
                for other in self.values.by_name.get(one, ()):
                    factor = other.factor.name if other.factor else ""
                    if levels.get(factor, other.level) == other.level:
                        found = self._follow(one, other, (*trail, name), levels)
                        if found:
                            return found
        return ()
