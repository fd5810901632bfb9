"""What of a treatment's components a check looks at: treatments alike in it are looked at once."""

from __future__ import annotations

from collections.abc import Hashable

from samovar.plan.model import DirectionPlan, HostPlan, PathPlan
from samovar.plan.pool import RunPlan


def mtu(one: HostPlan | RunPlan) -> int | None:
    """Return the MTU of a host, or of all."""
    return one.mtu_bytes


def rwnd(host: HostPlan) -> Hashable:
    """Return what the windows of a host come to."""
    return host.rwnd_bytes, host.role, tuple(host.settings.get("shaper", {}).items())


def sockets(host: HostPlan) -> Hashable:
    """Return what the windows and socket buffers of a host come to."""
    return host.rwnd_bytes, host.mtu_bytes, host.role, tuple(host.settings.get("buffers", {}).items())


def sends_as(host: HostPlan) -> Hashable:
    """Return the congestion control of a host, and whether it sends."""
    return host.cc, host.role


def queues_as(path: PathPlan | None) -> Hashable:
    """Return the queue disciplines of a path."""
    return path and tuple(way.aqm for way in _both(path))


def duration(run: RunPlan) -> float:
    """Return how long a trial's traffic lasts, in seconds."""
    return run.duration_s


def queue_sizes(path: PathPlan | None) -> Hashable:
    """Return the rates and buffers of a path."""
    return path and tuple((way.rate_bps, way.buffer_packets, way.buffer_bytes) for way in _both(path))


def times(path: PathPlan | None) -> Hashable:
    """Return what the time in an empty and in a full queue depends on."""
    return path and (path.rtt_s, queue_sizes(path))


def delays(path: PathPlan | None) -> Hashable:
    """Return the rates and delays of a path."""
    return path and tuple((way.rate_bps, way.delay_s) for way in _both(path))


def rate_and_rtt(path: PathPlan | None) -> Hashable:
    """Return the rates and the round-trip time of a path."""
    return path and (path.down.rate_bps, path.up.rate_bps, path.rtt_s)


def _both(path: PathPlan) -> tuple[DirectionPlan, DirectionPlan]:
    return path.down, path.up
