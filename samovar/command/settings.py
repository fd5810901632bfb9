"""What each host of a trial is set to: the recipes that apply and the values they take."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from samovar.command.catalogue import Catalogue
from samovar.command.recipe import Recipe
from samovar.definition import parse_parameter
from samovar.errors import RecipeError
from samovar.plan import HostPlan, PathPlan, Resolved
from samovar.units import UnitError

BURST_S = 0.004
ETHERNET_HEADER_BYTES = 14
"""What Linux's queue disciplines count on top of an IP packet (skb->len on an Ethernet device)."""


@dataclass(frozen=True)
class Setting:
    """One setting recipe by name, with its values."""

    recipe: str
    values: Mapping[str, object]


def settings_of(name: str, resolved: Resolved, catalogue: Catalogue) -> tuple[Setting, ...]:
    """List the settings of one host of a trial in the order in which they are set."""
    return tuple(_settings(name, resolved, catalogue))


def _settings(name: str, resolved: Resolved, catalogue: Catalogue) -> Iterator[Setting]:
    host = resolved.hosts[name]
    given = {recipe: _given(recipe, host, catalogue) for recipe in host.settings}
    yield Setting("offloads", {"interfaces": host.interfaces, **given.pop("offloads", {})})
    if host.mtu_bytes is not None:
        yield Setting("mtu", {"interfaces": host.interfaces, "mtu_bytes": host.mtu_bytes})
    if host.txd is not None:
        yield Setting("txd", {"interfaces": host.interfaces, "txd": host.txd})
    ends = any(name in (flow.from_host, flow.to_host) for flow in resolved.flows)
    if ends or "tcp" in given:
        yield Setting("tcp", given.pop("tcp", {}))
    if ends:
        yield from _end_host(name, host, resolved)
    for recipe, values in sorted(given.items()):
        yield Setting(recipe, {"interfaces": host.interfaces, **values})
    if resolved.path is not None and resolved.path.router == name:
        yield Setting("bottleneck", bottleneck_values(resolved.path, host, resolved.mtu_bytes, catalogue))


def _given(recipe: str, host: HostPlan, catalogue: Catalogue) -> Mapping[str, object]:
    return typed(catalogue.recipe("setting", recipe, host.system), host.settings[recipe])


def _end_host(name: str, host: HostPlan, resolved: Resolved) -> Iterator[Setting]:
    if host.cc is not None:
        yield Setting("cc", {"algorithm": host.cc, "parameters": host.cc_parameters})
    yield from _windows(name, host, resolved)


def _windows(name: str, host: HostPlan, resolved: Resolved) -> Iterator[Setting]:
    """Give each peer that sends to a host its window: the flow's own, or else the host's."""
    peers: dict[int, set[str]] = {}
    for flow in resolved.flows:
        window_bytes = flow.rwnd_bytes if flow.rwnd_bytes is not None else host.rwnd_bytes
        if flow.to_host == name and window_bytes is not None:
            peers.setdefault(window_bytes, set()).add(flow.from_address)
    for window_bytes, addresses in sorted(peers.items()):
        yield Setting("rwnd", {"size_bytes": window_bytes, "peers": tuple(sorted(addresses))})


def bottleneck_values(
    path: PathPlan, host: HostPlan, mtu_bytes: int | None, catalogue: Catalogue
) -> Mapping[str, object]:
    """Work out what the bottleneck recipe takes: bucket, queue discipline, delay in microseconds."""
    frame_bytes = (mtu_bytes or 1500) + ETHERNET_HEADER_BYTES
    down = path.down
    if down.rate_bps is None or down.aqm is None:
        raise RecipeError("bottleneck: no rate from its `from` to its `to`; expected one")
    buffer = {"buffer_packets": down.buffer_packets, "buffer_bytes": down.buffer_bytes}
    given = {key: value for key, value in buffer.items() if value is not None}
    aqm = catalogue.recipe("aqm", down.aqm, host.system)
    values = {**given, **typed(aqm, down.aqm_parameters)}
    return {
        "from_interface": path.up.interface,
        "to_interface": down.interface,
        "rate_bps": down.rate_bps,
        "rate_text": tc_rate(down.rate_bps),
        # A timer may come so late before rate is lost; while a queue stands, the bucket is empty.
        "burst_bytes": max(2 * frame_bytes, round(down.rate_bps / 8 * BURST_S)),
        "rtt_us": round(path.rtt_s * 1e6),
        "loss_percent": down.loss * 100,
        "queue": aqm.render("qdisc", values).strip(),
        "queue_text": aqm.render("shown", values).strip(),
    }


def typed(recipe: Recipe, parameters: Mapping[str, str]) -> dict[str, object]:
    """Read the parameters that an experiment gives a recipe as the recipe's header types them.

    Raises RecipeError for a parameter that the recipe does not take, or a value that is not of its type.
    """
    known = recipe.header.parameters
    try:
        return {name: parse_parameter(known[name], text) for name, text in parameters.items()}
    except KeyError as error:
        names = ", ".join(known) or "none"
        raise RecipeError(f"{recipe.path}: no parameter {error}; it takes: {names}") from None
    except UnitError as error:
        raise RecipeError(f"{recipe.path}: {error}") from error


def tc_rate(rate_bps: int) -> str:
    """Write a rate as tc(8) prints it back: 40Mbit, 1500Kbit, 999bit (iproute2's tc_print_rate)."""
    value, units = rate_bps, ("bit", "Kbit", "Mbit", "Gbit", "Tbit")
    for unit in units[:-1]:
        if value < 1000 or (value % 1000 and value < 1000 * 1000):
            return f"{value}{unit}"
        value //= 1000
    return f"{value}{units[-1]}"
