"""What each host of a trial is set to: the recipes that apply and the values they take."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property, partial

from samovar.plan import HostPlan, Resolved
from samovar.recipes.adapter_values import adapter_values
from samovar.recipes.bottleneck import bottleneck_values
from samovar.recipes.catalogue import Catalogue
from samovar.recipes.typed_values import typed

END_HOST = ("buffers", "tcp")
"""Setting recipes that every host with an end of a flow is set by, where its system has them."""
CAPTURE = "tcpdump"
"""The logger that makes captures."""


@dataclass(frozen=True)
class Setting:
    """One setting recipe by name, with its values, which are worked out when they are asked for."""

    recipe: str
    work_out: Callable[[], Mapping[str, object]]

    @cached_property
    def values(self) -> Mapping[str, object]:
        """What the recipe takes; raises RecipeError for a path that cannot be."""
        return self.work_out()


def _known(recipe: str, values: Mapping[str, object]) -> Setting:
    return Setting(recipe, lambda: values)


def host_settings(
    name: str, resolved: Resolved, catalogue: Catalogue, lasting: bool | None = None
) -> tuple[Setting, ...]:
    """List the settings of one host of a trial in the order in which they are set.

    Those that last are what a reboot brings into force; `lasting` chooses these, or the others.
    """
    system = resolved.hosts[name].system

    def lasts(setting: Setting) -> bool:
        return catalogue.header("setting", setting.recipe, system).change == "reboot"

    every = _settings(name, resolved, catalogue)
    return tuple(setting for setting in every if lasting is None or lasts(setting) is lasting)


def _settings(name: str, resolved: Resolved, catalogue: Catalogue) -> Iterator[Setting]:
    host = resolved.hosts[name]
    given = {recipe: _given(recipe, host, catalogue) for recipe in host.settings}
    yield _known("offloads", {"interfaces": host.interfaces, **given.pop("offloads", {})})
    if host.mtu_bytes is not None:
        yield _known("mtu", {"interfaces": host.interfaces, "mtu_bytes": host.mtu_bytes})
    if host.txd is not None:
        yield _known("txd", {"interfaces": host.interfaces, "txd": host.txd})
    ends = any(name in (flow.from_host, flow.to_host) for flow in resolved.flows)
    if ends:
        known = catalogue.names("setting", host.system)
        for recipe in (recipe for recipe in END_HOST if recipe in known):
            yield _known(recipe, {"interfaces": host.interfaces, **given.pop(recipe, {})})
        yield from _end_host(name, host, resolved)
    yield from _captures(name, resolved, catalogue)
    for recipe, values in sorted(given.items()):
        yield _known(recipe, {"interfaces": host.interfaces, **values})
    device = resolved.path.device if resolved.path is not None else None
    if resolved.path is not None and device is not None and device.settable and device.host == name:
        yield Setting("adapter", partial(adapter_values, resolved.path, device))
    if resolved.path is not None and resolved.path.router == name:
        asked = partial(bottleneck_values, resolved.path, host, resolved.mtu_bytes, catalogue)
        yield Setting("bottleneck", asked)


def _given(recipe: str, host: HostPlan, catalogue: Catalogue) -> Mapping[str, object]:
    return typed(catalogue.recipe("setting", recipe, host.system), host.settings[recipe])


def _captures(name: str, resolved: Resolved, catalogue: Catalogue) -> Iterator[Setting]:
    """Have the kernel give the largest buffer that a host's captures ask for, where it has a limit."""
    system = resolved.hosts[name].system
    asked: list[Mapping[str, str]] = [{} for capture in resolved.captures if capture.host == name]
    asked += [one.parameters for one in resolved.loggers if (one.host, one.logger) == (name, CAPTURE)]
    if asked and "bpf" in catalogue.names("setting", system):
        recipe = catalogue.recipe("logger", CAPTURE, system)
        sizes = ({**recipe.defaults, **typed(recipe, given)}["buffer_kib"] for given in asked)
        yield _known("bpf", {"buffer_kib": max(int(str(size)) for size in sizes)})


def _end_host(name: str, host: HostPlan, resolved: Resolved) -> Iterator[Setting]:
    if host.cc is not None:
        yield _known("cc", {"algorithm": host.cc, "parameters": host.cc_parameters})
    yield from _windows(name, resolved)


def _windows(name: str, resolved: Resolved) -> Iterator[Setting]:
    """Give each peer that sends to a host its window: the flow's own, or else the host's."""
    peers: dict[int, set[str]] = {}
    for flow in resolved.flows:
        window_bytes = resolved.window_bytes(flow)
        if flow.to_host == name and window_bytes is not None:
            peers.setdefault(window_bytes, set()).add(flow.from_address)
    for window_bytes, addresses in sorted(peers.items()):
        yield _known("rwnd", {"size_bytes": window_bytes, "peers": tuple(sorted(addresses))})
