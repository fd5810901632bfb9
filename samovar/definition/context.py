"""What an experiment is checked against: a testbed, if it is sound enough, and the recipes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from samovar.definition.catalogue import ParameterInfo, RecipeCatalogue
from samovar.definition.experiment import Experiment, Part
from samovar.definition.parameters import settable
from samovar.definition.testbed import Testbed
from samovar.definition.validate import Checked


@dataclass(frozen=True)
class Context:
    """One experiment with the testbed it runs on (None when unknown) and the recipes there are."""

    checked: Checked[Experiment]
    testbed: Testbed | None
    catalogue: RecipeCatalogue

    def host_os(self, name: str) -> str | None:
        """Return the operating system of a host or role; None when there is none of that name."""
        host = self.testbed.host_of(name) if self.testbed else None
        return self.testbed.hosts[host].os if self.testbed and host else None

    def router_os(self) -> str | None:
        """Return the operating system of the bottleneck's router."""
        bottleneck = self.testbed.bottleneck if self.testbed else None
        return self.host_os(bottleneck.router) if bottleneck else None

    def parameters(self, part: Part) -> Iterator[tuple[str, Mapping[str, ParameterInfo]]]:
        """Yield what stands before the dot and the parameters it takes, for all recipes that a part names."""
        router = self.router_os()
        if part.path is not None and router:
            yield "path", settable(self.catalogue, "aqm", str(part.path.aqm), router)
        for flow in part.traffic:
            os = self.host_os(flow.from_end)
            if os:
                yield f"traffic.{flow.label}", settable(self.catalogue, "generator", flow.generator, os)
        for logger in part.loggers:
            os = self.host_os(logger.at)
            if os:
                yield f"loggers.{logger.logger}", settable(self.catalogue, "logger", logger.logger, os)
