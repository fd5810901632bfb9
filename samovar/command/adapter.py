"""What a lab's pair of adapters is told to be."""

from __future__ import annotations

from collections.abc import Mapping

from samovar.plan import DevicePlan, PathPlan

PORTS_BPS = (100_000_000, 1_000_000_000, 10_000_000_000, 100_000_000_000)
"""Rates of Ethernet: an adapter's port is the first that its medium does not outrun."""


def adapter_values(path: PathPlan, device: DevicePlan) -> Mapping[str, object]:
    """Give the values of the setting `adapter`: rates in bit/s, delays in ns, buffers in frames."""
    ways = {"down": path.down, "up": path.up}
    rates_bps = [way.rate_bps for way in ways.values() if way.rate_bps]
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
