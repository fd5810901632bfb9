"""What an experiment is checked against: a testbed, if it is sound enough, and the recipes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from samovar.experiment.checks.validate import Validation
from samovar.experiment.keys import (
    DEVICE_PARAMETERS,
    Adapter,
    Experiment,
    Level,
    Part,
    Testbed,
    hosts_of,
    places_of,
    settable,
    texts_of,
)
from samovar.experiment.outputs import Exhibits
from samovar.experiment.recipe_interface import ParameterInfo, RecipeCatalogue

Known = Mapping[str, ParameterInfo]


@dataclass(frozen=True)
class Context:
    """One experiment with the testbed it runs on (None when unknown), the recipes and figures there are."""

    checked: Validation[Experiment]
    testbed: Testbed | None
    catalogue: RecipeCatalogue
    exhibits: Exhibits = field(default_factory=dict)

    def system_of(self, name: str) -> str | None:
        """Return the system of a host, a role or the first host of a plural one; None without such a host."""
        hosts = hosts_of(self.testbed, name) if self.testbed else ()
        return self.testbed.hosts[hosts[0]].system if self.testbed and hosts else None

    def systems_at(self, at: tuple[str, ...]) -> tuple[str, ...]:
        """Return the systems of the hosts where something is recorded, each once."""
        hosts = places_of(self.testbed, at) if self.testbed else ()
        return tuple(dict.fromkeys(self.testbed.hosts[one].system for one in hosts)) if self.testbed else ()

    @property
    def device(self) -> Adapter | None:
        """The device that is the testbed's bottleneck."""
        return self.testbed.device if self.testbed else None

    def router_system(self) -> str | None:
        """Return the system of the bottleneck's router."""
        bottleneck = self.testbed.bottleneck if self.testbed else None
        return self.system_of(bottleneck.router) if bottleneck else None

    def parameters(self, part: Part) -> Iterator[tuple[str, Known]]:
        """Yield what stands before the dot and the parameters it takes, for all recipes that a part names."""
        owners = ["path", *(f"traffic.{flow.label}" for flow in part.traffic)]
        owners += [f"loggers.{logger.logger}" for logger in part.loggers]
        for owner in owners:
            for _, known in self.takers(part, owner, None):
                yield owner, known

    def takers(self, part: Part, owner: str, level: Level | None) -> Iterator[tuple[str, Known]]:
        """Yield each recipe that gets the parameters of an owner, with those it takes.

        Those are all that a factor may put there, or the one that the level itself names.
        """
        if owner == "path" and self.testbed is not None and self.testbed.bottleneck_link is not None:
            yield "the adapter", DEVICE_PARAMETERS
        elif owner == "path":
            yield from self._takers("aqm", aqms_of(part, level), self.router_system())
        for flow in part.traffic:
            if owner == f"traffic.{flow.label}":
                names = chosen(part, f"{owner}.generator", (flow.generator,), level)
                yield from self._takers("generator", names, self.system_of(flow.from_end))
        for logger in part.loggers:
            if owner == f"loggers.{logger.logger}":
                for system in self.systems_at(logger.at):
                    yield from self._takers("logger", (logger.logger,), system)

    def _takers(self, kind: str, names: tuple[str, ...], system: str | None) -> Iterator[tuple[str, Known]]:
        for name in names if system else ():
            if system and name in self.catalogue.names(kind, system):
                yield name, settable(self.catalogue, kind, name, system)


def aqms_of(part: Part, level: Level | None = None) -> tuple[str, ...]:
    """Return the queue disciplines that a part may set, each once."""
    aqm = part.path.aqm if part.path else "pfifo"
    written = (aqm,) if isinstance(aqm, str) else tuple(one for one in (aqm.down, aqm.up) if one is not None)
    return chosen(part, "path.aqm", written, level)


def chosen(part: Part, target: str, written: tuple[str, ...], level: Level | None = None) -> tuple[str, ...]:
    """Return the texts that a target may have: a level's, those of all levels, or the written."""
    if level is not None and target in level.texts:
        return tuple(dict.fromkeys(texts_of(level.texts[target])))
    levels = [one for factor in part.factors.values() for one in factor.levels if target in one.texts]
    found = tuple(dict.fromkeys(text for one in levels for text in texts_of(one.texts[target])))
    return found or written


def varied(part: Part) -> frozenset[str]:
    """Return everything that a level of the part may set."""
    return frozenset(
        target for factor in part.factors.values() for one in factor.levels for target in one.texts
    )
