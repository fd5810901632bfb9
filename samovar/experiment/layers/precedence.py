"""Where a host's setting comes from: recipe < site < OS < testbed < host < experiment < level.

Keys are cc, rwnd, mtu, txd, cc.PARAMETER and RECIPE.PARAMETER; values are texts as written. A layer may
give one value for all hosts or one per host or role; a host that it does not name has the layer's below.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from samovar.experiment.keys.config_file import Config
from samovar.experiment.keys.experiment_file import Experiment
from samovar.experiment.keys.testbed_file import ROLES, Testbed
from samovar.experiment.keys.values import PerHost
from samovar.experiment.recipe_interface import RecipeCatalogue
from samovar.experiment.yaml.tree import Map, Node

LAYERS = ("recipe", "site", "os", "testbed", "host", "experiment", "level")
"""The layers of a setting, the weakest first."""


@dataclass(frozen=True)
class Origin:
    """Which layer says something and where: `file:line:column`, `--set ...`, `factor NAME` or a recipe."""

    layer: str
    place: str


@dataclass(frozen=True)
class Given:
    """What one layer says for one host."""

    value: str
    origin: Origin


@dataclass(frozen=True)
class ResolvedSetting:
    """The value of a setting at a host, where it comes from, and what it hides (the nearest first)."""

    key: str
    host: str
    value: str
    origin: Origin
    hides: tuple[Given, ...] = ()


@dataclass(frozen=True)
class SettingLayers:
    """Every layer below a factor's level, resolved per host once for all trials of a part."""

    by_host: Mapping[str, Mapping[str, ResolvedSetting]] = field(default_factory=dict)

    def of(self, host: str) -> Mapping[str, ResolvedSetting]:
        """Return all settings of a host, without levels."""
        return self.by_host.get(host, {})


def resolve_setting(
    key: str, host: str, layers: SettingLayers, level: Given | None = None
) -> ResolvedSetting | None:
    """Return what a host is set to, a factor's level before all else; None where nothing says anything."""
    below = layers.of(host).get(key)
    if level is None:
        return below
    hides = (Given(below.value, below.origin), *below.hides) if below else ()
    return ResolvedSetting(key, host, level.value, level.origin, hides)


def level_of(factor: str, value: str | PerHost[str], host: str, testbed: Testbed) -> Given | None:
    """Return what a level says for a host; None when it has values per host and none for this one."""
    own = value if isinstance(value, str) else _named(value.hosts, host, testbed)
    return None if own is None else Given(str(own), Origin("level", f"factor {factor}"))


def layers_for(
    experiment: Experiment,
    part: str,
    testbed: Testbed,
    config: Config | None = None,
    catalogue: RecipeCatalogue | None = None,
) -> SettingLayers:
    """Lay the layers of a part of an experiment, a profile and overrides included if they were applied."""
    own = _at(experiment.complete, "parts", part, "settings")
    site = config.written if config is not None else None
    return setting_layers(testbed, experiment=own, site=site, catalogue=catalogue)


def setting_layers(
    testbed: Testbed,
    *,
    experiment: Node | None = None,
    site: Map | None = None,
    catalogue: RecipeCatalogue | None = None,
) -> SettingLayers:
    """Lay the layers for every host of a testbed.

    `experiment` is the `settings` of a complete part (or nothing), `site` the tree of config.yaml,
    `catalogue` gives the defaults of setting recipes when they are wanted as well.
    """
    by_host: dict[str, Mapping[str, ResolvedSetting]] = {}
    for host in testbed.hosts:
        chains: dict[str, list[Given]] = {}
        for key, given in _of_host(testbed, host, experiment, site, catalogue):
            chains.setdefault(key, []).append(given)
        by_host[host] = {key: _resolved(key, host, chain) for key, chain in chains.items()}
    return SettingLayers(by_host)


def _resolved(key: str, host: str, chain: Sequence[Given]) -> ResolvedSetting:
    return ResolvedSetting(key, host, chain[0].value, chain[0].origin, tuple(chain[1:]))


def _of_host(
    testbed: Testbed, host: str, experiment: Node | None, site: Map | None, catalogue: RecipeCatalogue | None
) -> Iterator[tuple[str, Given]]:
    """Yield what the layers say for a host, the strongest first."""
    machine = testbed.hosts[host]
    tree = testbed.written
    layers = (
        ("experiment", experiment),
        ("host", _at(tree, "hosts", host, "settings")),
        ("testbed", _at(tree, "settings")),
        ("os", _at(site, "os", machine.os, "settings")),
        ("site", _at(site, "settings")),
    )
    for layer, settings in layers:
        yield from _of_layer(layer, settings, host, testbed)
    if catalogue is not None:
        yield from _defaults(catalogue, machine.system)


def _of_layer(layer: str, settings: Node | None, host: str, testbed: Testbed) -> Iterator[tuple[str, Given]]:
    if not isinstance(settings, Map):
        return
    for key, value in settings.items():
        for one in (value, *settings.hidden.get(key, ())):
            yield from ((key, given) for given in _given(layer, one, host, testbed))


def _given(layer: str, value: Node, host: str, testbed: Testbed) -> Iterator[Given]:
    if isinstance(value, str):
        yield Given(str(value), Origin(layer, str(value.mark)))
    elif isinstance(value, Map):
        for name in names_of(host, testbed):
            for one in (value.get(name), *value.hidden.get(name, ())):
                if isinstance(one, str):
                    yield Given(str(one), Origin(layer, str(one.mark)))


def names_of(host: str, testbed: Testbed) -> Iterator[str]:
    """Yield the names that mean a host, the most particular first: its own, sender2, senders."""
    yield host
    yield from (name for name, meant in testbed.names().items() if meant == host and name != host)
    yield from (f"{role}s" for role in ROLES if testbed.hosts[host].role == role)


def _named(values: Mapping[str, str], host: str, testbed: Testbed) -> str | None:
    return next((values[name] for name in names_of(host, testbed) if name in values), None)


def _defaults(catalogue: RecipeCatalogue, os: str) -> Iterator[tuple[str, Given]]:
    for recipe in sorted(catalogue.names("setting", os)):
        for name, info in (catalogue.parameters("setting", recipe, os) or {}).items():
            default = getattr(info, "default", None)
            if default is not None:
                yield f"{recipe}.{name}", Given(str(default), Origin("recipe", f"setting/{recipe} on {os}"))


def _at(tree: Node | None, *keys: str) -> Node | None:
    for key in keys:
        tree = tree.get(key) if isinstance(tree, Map) else None
    return tree
