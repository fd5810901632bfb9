"""Compute the setting `air`, which describes a lab's WLAN, from the settings of the lab's hosts."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from samovar.errors import RecipeError
from samovar.experiment import keys
from samovar.plan import HostPlan, WlanPlan
from samovar.recipes.catalogue import Catalogue
from samovar.recipes.lab_devices import WLAN_RANGES, device_values
from samovar.units import format_rate, parse_rate

WLAN_RECIPES = ("air", "wlan")
"""Setting recipes whose values, from all hosts of a simulated WLAN, are applied together."""
STANDARDS = {"802.11b": 0, "802.11g": 1, "802.11a": 2}
ADAPTATIONS = {"arf": 1, "sampling": 2}
FIXED = 0
ANY_RTS_BYTES = 65536
LARGEST_MTU_BYTES = 2296
"""An MSDU of IEEE 802.11 has at most 2304 bytes, of which LLC and SNAP take 8."""


def air_values(wlan: WlanPlan, hosts: Mapping[str, HostPlan], catalogue: Catalogue) -> Mapping[str, object]:
    """Return the values of setting `air`, with the keys of samovar/lab/devices/wlan/keys.c.

    Settings of the whole network are taken from its access point. Raises RecipeError for an MTU or rate
    that the standard does not have, or a value that the device does not accept.
    """
    radios = [_radio(hosts[name], catalogue) for name in wlan.hosts]
    network = radios[0]
    standard = str(network.get("standard", wlan.standard))
    numbers: dict[str, float] = {
        "standard": STANDARDS[standard],
        "short_preamble": int(network["preamble"] == "short"),
        "protection": network["protection"],
        "edca": network["edca"],
        "rts_bytes": network.get("rts", ANY_RTS_BYTES),
        "tries": network["tries"],
        "basic_mbit": network["basic"] / 1e6,
        "seed": wlan.seed,
    }
    for port, (name, radio) in enumerate(zip(wlan.hosts, radios, strict=True)):
        mtu_bytes = hosts[name].mtu_bytes or 0
        if mtu_bytes > LARGEST_MTU_BYTES:
            raise RecipeError(
                f"{name} on link '{wlan.link}': mtu is {mtu_bytes}", f"at most {LARGEST_MTU_BYTES}"
            )
        rate_bps = _rate_bps(name, hosts[name], wlan, standard)
        numbers[f"adaptation@{port}"] = FIXED if rate_bps else ADAPTATIONS[radio["adaptation"]]
        numbers[f"rate_mbit@{port}"] = (rate_bps or max(keys.WLAN_RATES_BPS[standard])) / 1e6
        numbers[f"snr_db@{port}"] = radio["snr"]
        numbers[f"loss@{port}"] = radio["loss"]
        numbers[f"queue_frames@{port}"] = radio["queue"]
    return device_values(wlan.link, numbers, WLAN_RANGES, wlan.hosts)


def _radio(host: HostPlan, catalogue: Catalogue) -> dict[str, Any]:
    recipe = catalogue.recipe("setting", "air", host.system)
    return {**recipe.defaults, **recipe.parse_values(host.settings.get("air", {}))}


def _rate_bps(name: str, host: HostPlan, wlan: WlanPlan, standard: str) -> int | None:
    """Return a host's rate from its setting `wlan`, else from the testbed; None if the host adapts it."""
    text = host.settings.get("wlan", {}).get("rate")
    rate_bps = None if text == "auto" else parse_rate(text) if text else wlan.rate_bps
    rates_bps = keys.WLAN_RATES_BPS[standard]
    if rate_bps and rate_bps not in rates_bps:
        what = f"{name} on link '{wlan.link}': {standard} has no rate of {format_rate(rate_bps)}"
        raise RecipeError(what, ", ".join(map(format_rate, rates_bps)))
    return rate_bps
