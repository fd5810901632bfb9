"""Setting recipes of a host, in the order in which they are set, each filled in with the values of a trial.

A recipe that needs more than the plan's own values is filled in here (`rwnd`, `bpf`) or in bottleneck.py
(`bottleneck`, `adapter`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property, partial

from samovar.plan import Resolved
from samovar.recipes.bottleneck import adapter_values, bottleneck_values
from samovar.recipes.catalogue import Catalogue

FLOW_HOST_RECIPES = ("buffers", "tcp")
"""Setting recipes of every host that sends or receives a flow, if its system has them."""
CAPTURE_RECIPE = "tcpdump"
"""The logger recipe that makes captures."""


@dataclass(frozen=True)
class Setting:
    """A setting recipe by name, and its values, which are computed on first use."""

    recipe: str
    compute: Callable[[], Mapping[str, object]]

    @cached_property
    def values(self) -> Mapping[str, object]:
        """The values of the recipe's parameters. Raises RecipeError for an impossible path."""
        return self.compute()


def fill_settings(
    name: str, resolved: Resolved, catalogue: Catalogue, lasting: bool | None = None
) -> tuple[Setting, ...]:
    """Return the settings of one host of a trial in the order in which they are set.

    Lasting settings take effect after a reboot. `lasting` selects these, or the others; None selects all.
    """
    system = resolved.hosts[name].system

    def is_lasting(setting: Setting) -> bool:
        return catalogue.header("setting", setting.recipe, system).change == "reboot"

    settings = _settings(name, resolved, catalogue)
    return tuple(setting for setting in settings if lasting is None or is_lasting(setting) is lasting)


def _settings(name: str, resolved: Resolved, catalogue: Catalogue) -> Iterator[Setting]:
    host = resolved.hosts[name]
    interfaces = {"interfaces": host.interfaces}
    given = {
        recipe: catalogue.recipe("setting", recipe, host.system).parse_values(parameters)
        for recipe, parameters in host.settings.items()
    }
    yield _filled("offloads", {**interfaces, **given.pop("offloads", {})})
    if host.mtu_bytes is not None:
        yield _filled("mtu", {**interfaces, "mtu_bytes": host.mtu_bytes})
    if host.txd is not None:
        yield _filled("txd", {**interfaces, "txd": host.txd})
    if any(name in (flow.from_host, flow.to_host) for flow in resolved.flows):
        known = catalogue.names("setting", host.system)
        for recipe in (recipe for recipe in FLOW_HOST_RECIPES if recipe in known):
            yield _filled(recipe, {**interfaces, **given.pop(recipe, {})})
        if host.cc is not None:
            yield _filled("cc", {"algorithm": host.cc, "parameters": host.cc_parameters})
        yield from _receive_windows(name, resolved)
    yield from _capture_buffers(name, resolved, catalogue)
    for recipe, values in sorted(given.items()):
        yield _filled(recipe, {**interfaces, **values})
    path = resolved.path
    if path is not None and path.device is not None and path.device.settable and path.device.host == name:
        yield Setting("adapter", partial(adapter_values, path, path.device))
    if path is not None and path.router == name:
        yield Setting("bottleneck", partial(bottleneck_values, path, host, resolved.mtu_bytes, catalogue))


def _filled(recipe: str, values: Mapping[str, object]) -> Setting:
    return Setting(recipe, lambda: values)


def _receive_windows(name: str, resolved: Resolved) -> Iterator[Setting]:
    """Yield setting `rwnd` for each window of a receiving host, with the peers that it applies to.

    The window of a flow overrides that of its host.
    """
    peers: dict[int, set[str]] = {}
    for flow in resolved.flows:
        window_bytes = resolved.window_bytes(flow)
        if flow.to_host == name and window_bytes is not None:
            peers.setdefault(window_bytes, set()).add(flow.from_address)
    for window_bytes, addresses in sorted(peers.items()):
        yield _filled("rwnd", {"size_bytes": window_bytes, "peers": tuple(sorted(addresses))})


def _capture_buffers(name: str, resolved: Resolved, catalogue: Catalogue) -> Iterator[Setting]:
    """Yield setting `bpf` with the largest buffer of a host's captures, if the system limits buffers."""
    system = resolved.hosts[name].system
    captures: list[Mapping[str, str]] = [{} for capture in resolved.captures if capture.host == name]
    captures += [
        logger.parameters
        for logger in resolved.loggers
        if (logger.host, logger.logger) == (name, CAPTURE_RECIPE)
    ]
    if captures and "bpf" in catalogue.names("setting", system):
        recipe = catalogue.recipe("logger", CAPTURE_RECIPE, system)
        sizes = ({**recipe.defaults, **recipe.parse_values(given)}["buffer_kib"] for given in captures)
        yield _filled("bpf", {"buffer_kib": max(int(str(size)) for size in sizes)})
