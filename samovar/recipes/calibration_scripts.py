"""Render scripts that send probe packets through a path, to measure it before the trials."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import NamedTuple

from samovar.plan import DirectionPlan, PathPlan, Resolved
from samovar.recipes.bottleneck import ETHERNET_HEADER_BYTES
from samovar.recipes.catalogue import COMMON, Catalogue
from samovar.recipes.recipe import Recipe
from samovar.units import ETHERNET_MTU_BYTES

IP_UDP_BYTES = 28
OVERLOAD = 4
"""A burst arrives at this multiple of the rate, so the buffer fills in a third of its drain time."""
FULL_S, MOST_BURST_PACKETS = 0.15, 20_000
"""How long a burst keeps the buffer full for sampling, and the most packets that it sends in this time."""
MOST_PACED_S = 5.0
PACED_PACKETS, PACED_PACKETS_WITHOUT_LOSS = 2000, 500
PACED_FRAME_BYTES = 64 + IP_UDP_BYTES + ETHERNET_HEADER_BYTES
LOWEST_GAP_S = 0.0002
"""The shortest gap that a program can keep by sleeping between two packets."""
PING_GAP_S = 0.01
SPARE_S = 0.2
SAMPLING_S, SLOW_SAMPLING_S = 0.002, 0.02
"""Interval of queue samples. A recipe whose default is above SLOW_SAMPLING_S keeps its default, because it
starts a program for each sample."""


@dataclass(frozen=True)
class PathProbe:
    """The packets that probe one direction. The field names are parameters of the recipe `calibrate`."""

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

    @property
    def duration_s(self) -> float:
        """The approximate duration of the probe."""
        burst_s = self.burst_packets * self.burst_gap_s + self.drain_s
        return self.pings * self.ping_gap_s + burst_s + self.paced_packets * self.paced_gap_s + self.quiet_s


def plan_probe(
    path: PathPlan,
    direction: DirectionPlan,
    mtu_bytes: int | None,
    *,
    pings: int = 30,
    paced_packets: int | None = None,
) -> PathProbe:
    """Return a probe of a few seconds: a burst that fills the buffer, and paced packets that do not fill it.

    Pings measure the RTT, the paced packets measure the loss, and the burst measures the rate and the buffer.
    RTT and loss of a path with classes are not measured, because each class has its own.
    """
    mtu = mtu_bytes or ETHERNET_MTU_BYTES
    frame_bytes = mtu + ETHERNET_HEADER_BYTES
    buffered = direction.buffer_packets or math.ceil((direction.buffer_bytes or 0) / frame_bytes)
    frame_s = least_gap_s = drain_s = 0.0
    burst_packets = 0
    if direction.rate_bps is not None:
        frame_s = frame_bytes * 8 / direction.rate_bps
        least_gap_s = 2 * PACED_FRAME_BYTES * 8 / direction.rate_bps
        burst_packets = 2 * buffered + min(round(OVERLOAD * FULL_S / frame_s), MOST_BURST_PACKETS)
        drain_s = buffered * frame_s + path.rtt_s + SPARE_S
    paced_gap_s = max(LOWEST_GAP_S, least_gap_s)
    if paced_packets is None:
        wanted = PACED_PACKETS if direction.loss else PACED_PACKETS_WITHOUT_LOSS
        paced_packets = min(wanted, int(MOST_PACED_S / paced_gap_s))
    return PathProbe(
        payload_bytes=mtu - IP_UDP_BYTES,
        pings=0 if path.classes else pings,
        ping_gap_s=PING_GAP_S,
        burst_packets=burst_packets,
        burst_gap_s=frame_s / OVERLOAD,
        drain_s=drain_s,
        paced_packets=0 if path.classes else paced_packets,
        paced_gap_s=paced_gap_s,
        quiet_s=2 * (path.rtt_s + SPARE_S),
    )


class ProbeScripts(NamedTuple):
    """The scripts of a probe in the order in which they run.

    `abandon` stops a receiver whose sender failed.
    """

    receive: str
    send: str
    collect: str
    abandon: str = ""


def render_calibration(
    probe: PathProbe,
    catalogue: Catalogue,
    systems: tuple[str, str],
    address: str,
    port: int,
    name: str = "calibrate",
) -> ProbeScripts:
    """Return the bodies of a probe's scripts; `systems` are the operating systems of sender and receiver.

    If sender and receiver have different recipes, both use the recipe in the folder `posix`, which needs
    other programs.
    """
    values: Mapping[str, object] = {
        **asdict(probe),
        "name": name,
        "address": address,
        "port": port,
        "limit_s": probe.duration_s + probe.drain_s + 30,
    }
    recipe = _recipe(catalogue, systems)
    return ProbeScripts(*(recipe.render(block, values) for block in ("receive", "script", "collect")))


def sampling_s(sampler: Recipe) -> float:
    """Return the interval of queue samples while the buffer fills, in seconds."""
    usual_s = sampler.defaults.get("interval_s")
    return usual_s if isinstance(usual_s, float) and usual_s > SLOW_SAMPLING_S else SAMPLING_S


def calibration_needs(resolved: Resolved, host: str, catalogue: Catalogue) -> frozenset[str]:
    """Return the programs that a host needs to calibrate the path of flows that it sends or receives."""
    if resolved.path is None or not resolved.path.router:
        return frozenset()
    needs: set[str] = set()
    for flow in resolved.flows:
        systems = resolved.hosts[flow.from_host].system, resolved.hosts[flow.to_host].system
        able = all("calibrate" in catalogue.names("step", system) for system in systems)
        if able and host in (flow.from_host, flow.to_host):
            needs.update(_recipe(catalogue, systems).header.needs)
    return frozenset(needs)


def _recipe(catalogue: Catalogue, systems: tuple[str, str]) -> Recipe:
    """Return the recipe `calibrate` for the operating systems of both the sender and the receiver."""
    sender, receiver = (catalogue.recipe("step", "calibrate", system) for system in systems)
    return sender if sender.path == receiver.path else catalogue.recipe("step", "calibrate", COMMON)
