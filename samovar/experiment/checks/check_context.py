"""The context of the checks of an experiment: its testbed, if that is usable, and the recipes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from samovar.experiment.checks.validate import Loc, Validation
from samovar.experiment.keys import (
    DEVICE_PARAMETERS,
    Adapter,
    Experiment,
    Factor,
    Level,
    Part,
    Testbed,
    end_names,
    hosts_of,
    places_of,
    settable,
    texts_of,
)
from samovar.experiment.nearest import unknown
from samovar.experiment.outputs import Outputs, package_outputs
from samovar.experiment.recipe_interface import ParameterInfo, RecipeCatalogue

Parameters = Mapping[str, ParameterInfo]


@dataclass(frozen=True)
class Context:
    """One experiment with the testbed it runs on (None when unknown), the recipes and the known outputs."""

    checked: Validation[Experiment]
    testbed: Testbed | None
    catalogue: RecipeCatalogue
    outputs: Outputs = field(default_factory=package_outputs)

    def report(self, loc: Sequence[int | str], message: str, *, key: bool = False) -> None:
        """Add a problem at the value, or at the key, of a place in the experiment."""
        self.checked.report(loc, message, key=key)

    def check_name(
        self, loc: Loc, what: str, name: str, known: Iterable[str] | None, *, key: bool = False
    ) -> bool:
        """Return whether a name is known, and report it if not; nothing is unknown if `known` is None."""
        if known is None or name in (names := list(known)):
            return True
        self.report(loc, unknown(what, name, names), key=key)
        return False

    @property
    def end_names(self) -> list[str] | None:
        """The names of hosts and roles that an end of a flow may have; None without a testbed."""
        return end_names(self.testbed) if self.testbed else None

    @property
    def device(self) -> Adapter | None:
        """The device that is the testbed's bottleneck."""
        return self.testbed.device if self.testbed else None

    @property
    def router_system(self) -> str | None:
        """The system of the bottleneck's router."""
        bottleneck = self.testbed.bottleneck if self.testbed else None
        return self.system_of(bottleneck.router) if bottleneck else None

    def system_of(self, name: str) -> str | None:
        """Return the system of a host or role (of the first host of several), None without such a host."""
        return next(iter(self.systems_of(name)), None)

    def systems_of(self, *names: str) -> list[str]:
        """Return the systems of the hosts that some names of hosts and roles mean, each once."""
        testbed = self.testbed
        hosts = places_of(testbed, names) if testbed else ()
        return list(dict.fromkeys(testbed.hosts[host].system for host in hosts)) if testbed else []

    def hosts_of(self, name: str) -> tuple[str, ...]:
        """Return the hosts that a name means; none without a testbed."""
        return hosts_of(self.testbed, name) if self.testbed else ()

    def recipe_parameters(self, part: Part) -> Iterator[tuple[str, Parameters]]:
        """Yield the settable parameters of each recipe that a part names, with the owner that they belong to.

        An owner is path, traffic.LABEL or loggers.NAME, the name of a parameter's factor before its last dot.
        """
        owners = ["path", *(f"traffic.{flow.label}" for flow in part.traffic)]
        owners += [f"loggers.{logger.logger}" for logger in part.loggers]
        for owner in owners:
            yield from ((owner, known) for _, known in self.recipes_of(part, owner, None))

    def recipes_of(self, part: Part, owner: str, level: Level | None) -> Iterator[tuple[str, Parameters]]:
        """Yield the name and settable parameters of each recipe that an owner's parameters are passed to.

        These are all recipes that its levels name, or the one that the given level names.
        """
        kind, names, systems = "", tuple[str, ...](), list[str]()
        if owner == "path" and self.testbed is not None and self.testbed.bottleneck_link is not None:
            yield "the adapter", DEVICE_PARAMETERS
        elif owner == "path":
            system = self.router_system
            kind, names, systems = "aqm", aqms_of(part, level), [system] if system else []
        for flow in part.traffic:
            if owner == f"traffic.{flow.label}":
                kind, names = "generator", texts_set(part, f"{owner}.generator", (flow.generator,), level)
                systems = self.systems_of(flow.from_end)[:1]
        for logger in part.loggers:
            if owner == f"loggers.{logger.logger}":
                kind, names, systems = "logger", (logger.logger,), self.systems_of(*logger.at)
        for system in systems:
            for name in names:
                if name in self.catalogue.names(kind, system):
                    yield name, settable(self.catalogue, kind, name, system)


def aqms_of(part: Part, level: Level | None = None) -> tuple[str, ...]:
    """Return the queue disciplines that a part may use, each once."""
    aqm = part.path.aqm if part.path else "pfifo"
    written = (aqm,) if isinstance(aqm, str) else tuple(one for one in (aqm.down, aqm.up) if one is not None)
    return texts_set(part, "path.aqm", written, level)


def texts_set(
    part: Part, target: str, written: tuple[str, ...], level: Level | None = None
) -> tuple[str, ...]:
    """Return the texts that a key may have: those of the given level or of all levels, else the written."""
    levels = [level] if level is not None and target in level.texts else levels_setting(part, target)
    found = tuple(dict.fromkeys(text for one in levels for text in texts_of(one.texts[target])))
    return found or written


def levels_setting(part: Part, target: str) -> list[Level]:
    """Return the levels of all factors that set a key."""
    return [one for factor in part.factors.values() for one in factor.levels if target in one.texts]


def setters_of(part: Part, *targets: str) -> list[Factor]:
    """Return the factors of which a level sets one of some keys."""
    return [one for one in part.factors.values() if not targets_of(one).isdisjoint(targets)]


def targets_of(factor: Factor) -> frozenset[str]:
    """Return the keys that the levels of a factor set."""
    return frozenset(target for level in factor.levels for target in level.texts)


def varied(part: Part) -> frozenset[str]:
    """Return the keys that the levels of a part's factors set."""
    return frozenset[str]().union(*(targets_of(factor) for factor in part.factors.values()))


def level_places(part: Part, where: Loc, target: str) -> Iterator[tuple[Loc, Level]]:
    """Yield the place of each value of a key in the levels of a part, with its level."""
    for factor in part.factors.values():
        for index, level in enumerate(factor.levels):
            if target in level.texts:
                at = (*where, "factors", factor.name, "levels", index)
                yield ((*at, target) if factor.linked else at), level
