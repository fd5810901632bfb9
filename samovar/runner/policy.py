"""By what a campaign's trials are judged, how often they are tried: what is known beyond the plan."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from samovar.definition.verdict import Thresholds

DEFAULTS = Thresholds()


@dataclass(frozen=True)
class Ends:
    """Two hosts on either side of the bottleneck: a way through it, from one to an address of the other."""

    sender: str
    receiver: str
    address: str


@dataclass(frozen=True)
class Policy:
    """Thresholds, repeats, calibration, and what the testbed's layout says.

    `routers` counts the routers between two addresses of the testbed, `ways` has the ends of `down` and `up`,
    `behind` the addresses that each leads to. `boots` is what tells a host's boots apart. `control_ports`
    carry what is no experiment's.
    """

    thresholds: Thresholds = DEFAULTS
    retries: int = 0
    calibrate: bool = False
    clock_tolerance_s: float = 1.0
    routers: Mapping[tuple[str, str], int] = field(default_factory=dict)
    ways: Mapping[str, Ends] = field(default_factory=dict)
    behind: Mapping[str, frozenset[str]] = field(default_factory=dict)
    boots: Mapping[str, str] = field(default_factory=dict)
    control_ports: frozenset[int] = frozenset({22})


AS_ALWAYS = Policy()
