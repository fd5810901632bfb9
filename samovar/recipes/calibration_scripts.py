"""How a path is measured from outside before it is relied on: what is sent, and the scripts that do it."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, replace

from samovar.plan import DirectionPlan, PathPlan, Resolved
from samovar.recipes.bottleneck import ETHERNET_HEADER_BYTES
from samovar.recipes.catalogue import Catalogue
from samovar.recipes.recipe import Recipe
from samovar.units import ETHERNET_MTU_BYTES, parse_duration

IP_UDP_BYTES = 28
OVERLOAD = 4
"""How many times the rate a burst comes with: the buffer fills in a third of the time that it drains in."""
FULL_S, MOST_PACKETS = 0.15, 20_000
"""How long the buffer is kept full, so that samples meet it full, and the packets that may take at most."""
PACED_FRAME_BYTES = 64 + IP_UDP_BYTES + ETHERNET_HEADER_BYTES
LOWEST_GAP_S = 0.0002
"""What a program that sleeps between two packets can keep."""
PING_GAP_S = 0.01
BOTH = "posix"
"""The system whose recipes hosts of different systems have in common."""
SPARE_S = 0.2
SAMPLED_S, SELDOM_S = 0.002, 0.02
"""Time between looks at a queue; one that usually takes more than the latter starts programs for each."""


@dataclass(frozen=True)
class PathProbe:
    """What one way is probed with; the field names are the parameters of the recipe `calibrate`."""

    payload_bytes: int
    pings: int
    ping_gap_s: float
    burst_packets: int
    burst_gap_s: float
    drain_s: float
    paced_packets: int
    paced_gap_s: float
    quiet_s: float

    @property
    def frame_bytes(self) -> int:
        """The size of a frame of the burst."""
        return self.payload_bytes + IP_UDP_BYTES + ETHERNET_HEADER_BYTES

    def with_paced(self, packets: int) -> PathProbe:
        """Return the same with another number of paced packets."""
        return replace(self, paced_packets=packets)

    @property
    def duration_s(self) -> float:
        """About how long it takes."""
        burst_s = self.burst_packets * self.burst_gap_s + self.drain_s
        return self.pings * self.ping_gap_s + burst_s + self.paced_packets * self.paced_gap_s + self.quiet_s


def plan_probe(
    path: PathPlan,
    way: DirectionPlan,
    mtu_bytes: int | None,
    *,
    pings: int = 30,
    paced_packets: int = 1000,
    overload: bool = True,
) -> PathProbe:
    """Work out what fills the buffer of a way and what does not, within a few seconds.

    Without pings, paced packets or overload the round trip, losses, or rate and buffer are not looked at.
    """
    mtu = mtu_bytes or ETHERNET_MTU_BYTES
    frame_bytes = mtu + ETHERNET_HEADER_BYTES
    rate_bps = way.rate_bps or 0
    floods = overload and way.rate_bps is not None
    held = way.buffer_packets or math.ceil((way.buffer_bytes or 0) / frame_bytes)
    frame_s = frame_bytes * 8 / rate_bps if rate_bps else 0.0
    least_gap_s = 2 * PACED_FRAME_BYTES * 8 / rate_bps if rate_bps else 0.0
    return PathProbe(
        payload_bytes=mtu - IP_UDP_BYTES,
        pings=pings,
        ping_gap_s=PING_GAP_S,
        burst_packets=2 * held + min(round(OVERLOAD * FULL_S / frame_s), MOST_PACKETS) if floods else 0,
        burst_gap_s=frame_s / OVERLOAD,
        drain_s=held * frame_s + path.rtt_s + SPARE_S if floods else 0.0,
        paced_packets=paced_packets,
        paced_gap_s=max(LOWEST_GAP_S, least_gap_s),
        quiet_s=2 * (path.rtt_s + SPARE_S),
    )


@dataclass(frozen=True)
class CalibrationScripts:
    """The bodies of one way's scripts, in the order in which they run; each follows the prelude."""

    receive: str
    send: str
    collect: str


def render_calibration(
    probe: PathProbe,
    catalogue: Catalogue,
    systems: tuple[str, str],
    address: str,
    port: int,
    name: str = "calibrate",
) -> CalibrationScripts:
    """Render the scripts for the receiving host, the sending host, and the receiving host again.

    `systems` are the sender's and the receiver's; where these have recipes of their own, what both can do is
    used, which takes other programs. The queue is watched with the logger `queue` at the router.
    """
    values: Mapping[str, object] = {
        **asdict(probe),
        "name": name,
        "address": address,
        "port": port,
        "limit_s": probe.duration_s + probe.drain_s + 30,
    }
    sender, receiver = _recipes(catalogue, systems)
    return CalibrationScripts(
        receive=receiver.render("receive", values),
        send=sender.render("script", values),
        collect=receiver.render("collect", values),
    )


def sampling_s(sampler: Recipe) -> float:
    """Return the time between a sampler's looks at the queue that is filled: short, unless looks are dear."""
    usual = sampler.header.parameters["interval_s"].default
    usual_s = parse_duration(usual) if usual else 0.0
    return usual_s if usual_s > SELDOM_S else SAMPLED_S


def calibration_needs(resolved: Resolved, host: str, catalogue: Catalogue) -> frozenset[str]:
    """Name what a host needs as an end of a way that is measured, as any end of a flow may be."""
    if resolved.path is None or not resolved.path.router:
        return frozenset()
    pairs = {
        (resolved.hosts[flow.from_host].system, resolved.hosts[flow.to_host].system)
        for flow in resolved.flows
        if host in (flow.from_host, flow.to_host)
    }
    return frozenset(need for systems in pairs for need in _needs(catalogue, systems))


def _needs(catalogue: Catalogue, systems: tuple[str, str]) -> Iterator[str]:
    if all("calibrate" in catalogue.names("step", system) for system in systems):
        for recipe in _recipes(catalogue, systems):
            yield from recipe.header.needs


def _recipes(catalogue: Catalogue, systems: tuple[str, str]) -> tuple[Recipe, Recipe]:
    sender, receiver = (catalogue.recipe("step", "calibrate", system) for system in systems)
    if sender.path != receiver.path:
        sender = receiver = catalogue.recipe("step", "calibrate", BOTH)
    return sender, receiver
