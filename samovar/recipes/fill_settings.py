"""Render the recipes of a host's settings with the values of a trial, in the order in which they are applied.

Most values are taken from the plan. This module computes the values of `rwnd` and `bpf`. bottleneck.py
computes the values of `bottleneck` and `adapter`, and wlan.py computes the values of `air`. Receive buffers
for measured windows are computed in samovar/campaign/calibration/rwnd_calibration.py.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property, partial

from samovar.plan import FlowPlan, Resolved
from samovar.recipes.bottleneck import adapter_values, bottleneck_values, match_servers
from samovar.recipes.catalogue import Catalogue
from samovar.recipes.recipe import Recipe
from samovar.recipes.wlan import WLAN_RECIPES, air_values

FLOW_HOST_RECIPES = ("buffers", "tcp")
"""Setting recipes for each host that sends or receives a flow, unless the host's system lacks the recipe."""
CAPTURE_RECIPE = "tcpdump"
"""The logger recipe that makes captures."""


@dataclass(frozen=True)
class Setting:
    """A setting recipe and its values, which are computed on first use."""

    recipe: Recipe
    compute: Callable[[], Mapping[str, object]]

    @cached_property
    def values(self) -> Mapping[str, object]:
        """The values of the recipe's parameters. Raises RecipeError for an impossible path."""
        return self.compute()

    @property
    def is_lasting(self) -> bool:
        """Whether the setting takes effect only after a reboot."""
        return self.recipe.header.change == "reboot"


def fill_settings(name: str, resolved: Resolved, catalogue: Catalogue) -> Iterator[Setting]:
    """Yield the settings of one host of a trial in the order in which they are set."""
    host = resolved.hosts[name]
    known = catalogue.names("setting", host.system)
    simulated = WLAN_RECIPES if any(one.wlans for one in resolved.hosts.values()) else ()
    given = {
        recipe: catalogue.recipe("setting", recipe, host.system).parse_values(texts)
        for recipe, texts in host.settings.items()
        if recipe not in simulated
    }

    def setting(recipe: str, compute: Callable[[], Mapping[str, object]]) -> Setting:
        return Setting(catalogue.recipe("setting", recipe, host.system), compute)

    def at_interfaces(recipe: str, **values: object) -> Setting:
        values = {"interfaces": host.interfaces, **values, **given.pop(recipe, {})}
        return setting(recipe, lambda: values)

    yield at_interfaces("offloads")
    if host.mtu_bytes is not None:
        yield at_interfaces("mtu", mtu_bytes=host.mtu_bytes)
    if host.txd is not None:
        yield at_interfaces("txd", txd=host.txd)
    if any(name in (flow.from_host, flow.to_host) for flow in resolved.flows):
        yield from (at_interfaces(recipe) for recipe in FLOW_HOST_RECIPES if recipe in known)
        if host.cc is not None:
            yield setting("cc", partial(dict, algorithm=host.cc, parameters=host.cc_parameters))
        for window_bytes, peers in _receive_windows(name, resolved, catalogue):
            yield setting("rwnd", partial(dict, size_bytes=window_bytes, peers=peers))
    if "bpf" in known and (sizes_kib := _capture_buffers_kib(name, resolved, catalogue)):
        yield setting("bpf", partial(dict, buffer_kib=max(sizes_kib)))
    yield from map(at_interfaces, sorted(given))
    for recipe, compute in _links(name, resolved, catalogue):
        yield setting(recipe, compute)


def _links(
    name: str, resolved: Resolved, catalogue: Catalogue
) -> Iterator[tuple[str, Callable[[], Mapping[str, object]]]]:
    """Yield the recipes that set a lab's devices and the path, with functions that compute their values."""
    host, path, device = resolved.hosts[name], resolved.path, resolved.path and resolved.path.device
    for wlan in host.wlans:
        yield "air", partial(air_values, wlan, resolved.hosts, catalogue)
    if path and device and device.settable and device.host == name:
        yield "adapter", partial(adapter_values, path, device)
    if path and path.router == name:
        path = match_servers(path, resolved, catalogue)
        yield "bottleneck", partial(bottleneck_values, path, host, resolved.mtu_bytes, catalogue)


def _receive_windows(
    name: str, resolved: Resolved, catalogue: Catalogue
) -> list[tuple[int, tuple[str, ...]]]:
    """Return the receive windows of a host in bytes, each with the addresses of the peers that it applies to.

    A flow's window overrides the host's. If a peer sends TCP flows, its other flows are ignored.
    """

    def is_tcp(flow: FlowPlan) -> bool:
        return catalogue.transport(flow.generator, resolved.hosts[flow.from_host].system) == "tcp"

    own = [flow for flow in resolved.flows if flow.to_host == name]
    tcp_peers = {flow.from_address for flow in own if is_tcp(flow)}
    peers: dict[int, set[str]] = {}
    for flow in own:
        window_bytes = resolved.window_bytes(flow)
        if window_bytes is not None and (flow.from_address not in tcp_peers or is_tcp(flow)):
            peers.setdefault(window_bytes, set()).add(flow.from_address)
    return [(window_bytes, tuple(sorted(addresses))) for window_bytes, addresses in sorted(peers.items())]


def _capture_buffers_kib(name: str, resolved: Resolved, catalogue: Catalogue) -> list[int]:
    """Return the buffer size of each capture on a host, in KiB."""
    recipe = catalogue.recipe("logger", CAPTURE_RECIPE, resolved.hosts[name].system)
    captures: list[Mapping[str, str]] = [{} for capture in resolved.captures if capture.host == name]
    captures += [
        logger.parameters
        for logger in resolved.loggers
        if (logger.host, logger.logger) == (name, CAPTURE_RECIPE)
    ]
    sizes = ({**recipe.defaults, **recipe.parse_values(given)}["buffer_kib"] for given in captures)
    return [int(str(size)) for size in sizes]
