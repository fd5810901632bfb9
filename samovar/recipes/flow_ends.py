"""The flows of a trial: which programs run at which end, and what ends when."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from samovar.plan import FlowPlan, Resolved
from samovar.recipes.catalogue import Catalogue
from samovar.recipes.recipe import Recipe

End = Literal["client", "server"]
ENDS: tuple[End, ...] = ("client", "server")
EARLY_SHARE = 0.95
"""A flow that ends by itself before this share of its time has failed."""


@dataclass(frozen=True)
class StopRule:
    """Clients that are ended once all of others have ended."""

    when: frozenset[str]
    finish: tuple[str, ...]


@dataclass(frozen=True)
class FlowEnds:
    """A flow with its recipe: where its server and its client run."""

    flow: FlowPlan
    recipe: Recipe

    @property
    def server_host(self) -> str | None:
        """Where the flow's server runs; None for a generator without one."""
        if "server" not in self.recipe.blocks:
            return None
        return self.flow.to_host if self.recipe.header.listens == "to" else self.flow.from_host

    @property
    def client_host(self) -> str:
        """Where the flow's client runs."""
        return self.flow.from_host if self.recipe.header.listens == "to" else self.flow.to_host

    @property
    def peer_address(self) -> str:
        """The address that the flow's client talks to."""
        flow = self.flow
        return flow.to_address if self.client_host == flow.from_host else flow.from_address

    def host(self, end: End) -> str | None:
        """Where one end's program runs."""
        return self.client_host if end == "client" else self.server_host

    def name(self, end: End) -> str:
        """Name one end's program, as files and verdicts do."""
        return f"{self.flow.label}-{end}"

    @property
    def due_s(self) -> float | None:
        """The earliest second of the trial at which the client may end by itself; None for any."""
        if self.flow.size_bytes is not None:
            return None
        if self.flow.duration_s is None:
            return float("inf")
        return self.flow.start_s + EARLY_SHARE * self.flow.duration_s


def trial_flows(resolved: Resolved, catalogue: Catalogue) -> tuple[FlowEnds, ...]:
    """Give each flow of a trial its recipe. Raises RecipeError."""
    systems = {name: host.system for name, host in resolved.hosts.items()}
    return tuple(
        FlowEnds(flow, catalogue.recipe("generator", flow.generator, systems[flow.from_host]))
        for flow in resolved.flows
    )


def stop_rules(resolved: Resolved, flows: Sequence[FlowEnds]) -> tuple[StopRule, ...]:
    """List what ends with something else: flows with `until`, and everything with the trial's `stop`."""
    return tuple(_rules(resolved, flows))


def _rules(resolved: Resolved, flows: Sequence[FlowEnds]) -> Iterator[StopRule]:
    for label in dict.fromkeys(ends.flow.until for ends in flows if ends.flow.until is not None):
        yield StopRule(_named(flows, label), tuple(e.name("client") for e in flows if e.flow.until == label))
    if resolved.stop is not None and resolved.stop.when is not None:
        when = _named(flows, resolved.stop.when)
        yield StopRule(when, tuple(e.name("client") for e in flows if e.name("client") not in when))


def _named(flows: Sequence[FlowEnds], label: str) -> frozenset[str]:
    """Name the clients of a flow, or of all flows that one entry of the experiment made."""
    return frozenset(e.name("client") for e in flows if label in (e.flow.label, e.flow.group))
