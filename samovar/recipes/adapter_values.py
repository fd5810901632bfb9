"""What a lab's pair of adapters is told to be."""

from __future__ import annotations

from collections.abc import Mapping

from samovar.errors import RecipeError
from samovar.plan import DevicePlan, PathPlan
from samovar.units import format_rate

PORTS_BPS = (100_000_000, 1_000_000_000, 10_000_000_000, 100_000_000_000)
"""Rates of Ethernet: an adapter's port is the first that its medium does not outrun."""


def adapter_values(path: PathPlan, device: DevicePlan) -> Mapping[str, object]:
    """Give the values of the setting `adapter`: rates in bit/s, delays in ns, buffers in frames.

    Raises RecipeError for what no adapter of a lab can be.
    """
    ways = {"down": path.down, "up": path.up}
    rates_bps = [way.rate_bps for way in ways.values() if way.rate_bps]
    if max(rates_bps) > PORTS_BPS[-1]:
        most = format_rate(PORTS_BPS[-1])
        raise RecipeError(
            f"path: rate {format_rate(max(rates_bps))} is beyond link '{path.link}'; accepted: at most {most}"
        )
    if any(way.buffer_packets is None for way in ways.values()):
        raise RecipeError(f"path: link '{path.link}' queues frames; accepted: a buffer in packets")
    numbers = {
        **{f"rate_{name}_bps": way.rate_bps for name, way in ways.items()},
        **{f"buffer_{name}_frames": way.buffer_packets for name, way in ways.items()},
        **{f"delay_{name}_ns": round(way.delay_s * 1e9) for name, way in ways.items()},
        **{f"loss_{name}": way.loss for name, way in ways.items()},
        "simplex": int(device.medium == "simplex"),
        "flow_control": int(device.flow_control),
        "pause_quanta": device.pause_quanta,
        "drift": device.drift,
        "seed": device.seed or 1,
        "link_bps": next(port for port in PORTS_BPS if port >= max(rates_bps)),
    }
    return {"link": path.link, "keys": {key: f"{value:.10g}" for key, value in numbers.items()}}
