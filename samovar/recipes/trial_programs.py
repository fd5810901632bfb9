"""The programs of a trial (generators, loggers, captures) and the rules that end them."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, NamedTuple

from samovar.errors import RecipeError
from samovar.plan import FlowPlan
from samovar.recipes.recipe import Recipe

End = Literal["client", "server"]
NEVER_NS = 2**62


@dataclass(frozen=True)
class Program:
    """One program that a trial starts on a host, the file it writes, and the values of its recipe.

    Output that grows fast is compressed while it is written (.gz); other output is compressed when it is
    collected. A generator is one end of a flow; the flow's client starts `start_s` seconds after the start of
    traffic.
    """

    name: str
    kind: Literal["capture", "logger", "generator"]
    recipe: str
    output: str
    values: Mapping[str, object]
    parameters: Mapping[str, str] = field(default_factory=dict)
    interface: str | None = None
    flow: str = ""
    end: End | None = None
    start_s: float = 0.0


@dataclass(frozen=True)
class FlowEnds:
    """A flow with its generator's recipe, which says at which ends the server and the client run."""

    flow: FlowPlan
    recipe: Recipe

    @property
    def server_host(self) -> str | None:
        """The host of the flow's server; None for a generator without a server."""
        if "server" not in self.recipe.blocks:
            return None
        return self.flow.to_host if self.recipe.header.listens == "to" else self.flow.from_host

    @property
    def client_host(self) -> str:
        """The host of the flow's client."""
        return self.flow.from_host if self.recipe.header.listens == "to" else self.flow.to_host

    @property
    def parameters(self) -> Mapping[str, object]:
        """The values of the generator's parameters: those of the flow, otherwise the defaults."""
        return {**self.recipe.defaults, **self.recipe.parse_values(self.flow.parameters)}

    def name(self, end: End) -> str:
        """Return the name of the program at one end, such as bulk-client; files and verdicts use it."""
        return f"{self.flow.label}-{end}"

    def earliest_end_ns(self, t0_ns: int, least_share: float) -> int:
        """Return the earliest time in ns at which the client may end by itself.

        t0_ns is second 0 of the trial; `least_share` is the share of its duration that a flow must last.
        Returns 0 for a flow with a size, and NEVER_NS for a flow that has neither size nor duration.
        """
        if self.flow.size_bytes is not None:
            return 0
        if self.flow.duration_s is None:
            return NEVER_NS
        return t0_ns + round((self.flow.start_s + least_share * self.flow.duration_s) * 1e9)


class Pace(NamedTuple):
    """The planned sending rate of one endpoint of a flow, in bits of payload or packets per second."""

    end: str
    per_s: float
    in_bits: bool


_PACE = re.compile(r"(from|to) (\d*\.?\d+(?:e[+-]?\d+)?)(bit|/s)")


def parse_paces(text: str) -> tuple[Pace, ...]:
    """Read block `pace` of a generator: lines such as `from 2000000bit` or `to 50/s`; raises RecipeError."""
    paces = []
    for line in filter(None, map(str.strip, text.splitlines())):
        match = _PACE.fullmatch(line)
        if match is None or not 0 < float(match[2]) < math.inf:
            expected = "lines such as `from 2000000bit` or `to 50/s`"
            raise RecipeError(f"block pace has the line `{line}`; expected {expected}")
        paces.append(Pace(match[1], float(match[2]), match[3] == "bit"))
    return tuple(paces)


@dataclass(frozen=True)
class StopRule:
    """When all clients in `when` have ended, the clients in `finish` are ended."""

    when: frozenset[str]
    finish: tuple[str, ...]
