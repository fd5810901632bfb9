"""The settings of a lab's devices, adapters and WLANs, within the ranges that their programs accept."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from samovar.errors import RecipeError

ADAPTER_RANGES = {
    "rate_down_bps": (1e3, 1e11),
    "rate_up_bps": (1e3, 1e11),
    "buffer_down_frames": (1, 1e6),
    "buffer_up_frames": (1, 1e6),
    "delay_down_ns": (0, 6e10),
    "delay_up_ns": (0, 6e10),
    "access_ns": (0, 1e9),
    "burst_ns": (0, 1e9),
    "pause_quanta": (0, 65535),
    "drift": (0, 0.9),
}
"""The range that samovar/lab/devices/adapter/adapter.c accepts for each key that experiments can set."""
WLAN_RANGES = {
    "rts_bytes": (0, 65536),
    "tries": (1, 255),
    "basic_mbit": (1, 54),
    "snr_db": (-20, 100),
    "queue_frames": (1, 1e6),
}
"""The range that samovar/lab/devices/wlan/keys.c accepts for each key that experiments can set."""


def device_values(
    link: str | None,
    numbers: Mapping[str, float],
    ranges: Mapping[str, tuple[float, float]],
    hosts: Sequence[str] = (),
) -> Mapping[str, object]:
    """Return the values of a device's setting.

    A key of `numbers` is KEY, or KEY@PORT for a value that only the host at this port has. Raises RecipeError
    for a number that the device would refuse.
    """
    for key, number in numbers.items():
        name, _, port = key.partition("@")
        if name in ranges and not ranges[name][0] <= number <= ranges[name][1]:
            where = f"{hosts[int(port)]} on link '{link}'" if port else f"link '{link}'"
            accepted = " to ".join(f"{bound:.12g}" for bound in ranges[name])
            raise RecipeError(f"{where}: {name} is {number:.12g}", accepted)
    return {"link": link, "keys": {key: f"{number:.10g}" for key, number in numbers.items()}}
