"""Resolve host settings: the value of cc, rwnd, mtu, txd, cc.PARAMETER and RECIPE.PARAMETER on each host.

Layers, the weakest first: config.yaml, its section for the host's OS, testbed, host, experiment. When trials
are planned, the levels of factors override all these layers. A layer may give one value for all hosts, or a
value per host or role. A host that a layer does not name gets the value of the next weaker layer.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from samovar.errors import DefinitionError
from samovar.experiment.keys import SETTINGS, Config, Experiment, Testbed
from samovar.experiment.layers.merge import values_below
from samovar.experiment.yaml_tree import Map, Node, Position, Text, flow_text, node_at
from samovar.units import UnitError


@dataclass(frozen=True)
class LayerValue:
    """The value of a key in one layer, as it is written in the file.

    `layer` is a layer of the experiment (as in Position.layer), `host`, `testbed`, `os`, `site`, `recipe`,
    `default` or `level of factor NAME`. `place` is the `position` in the file as text, or the recipe's name.
    """

    text: str
    layer: str
    place: str = ""
    position: Position | None = None

    @classmethod
    def of(cls, node: Node, layer: str) -> LayerValue:
        """Return the value of a node whose file belongs to this layer."""
        return cls(flow_text(node), layer, str(node.position), node.position)


@dataclass(frozen=True)
class HostSetting:
    """A setting of one host: the value that the host gets, and the values in all layers, strongest first.

    `value` is typed for cc (a name), rwnd (bytes or a Formula), mtu (bytes) and txd (descriptors); parameters
    of recipes stay texts.
    """

    value: object
    layers: tuple[LayerValue, ...]


SettingsByHost = Mapping[str, Mapping[str, HostSetting]]
"""The settings of every host, by host and key."""


def resolve_settings(
    experiment: Experiment, part: str, testbed: Testbed, config: Config | None = None
) -> SettingsByHost:
    """Return the settings of all hosts in one part, before factors set any. Raises DefinitionError."""
    own = node_at(experiment.tree, "parts", part, "settings")
    site = config.tree if config is not None else None
    found: dict[str, dict[str, HostSetting]] = {}
    for host, machine in testbed.hosts.items():
        values: dict[str, list[LayerValue]] = {}
        layers = (
            ("", own),
            ("host", node_at(testbed.tree, "hosts", host, "settings")),
            ("testbed", node_at(testbed.tree, "settings")),
            ("os", node_at(site, "os", machine.os, "settings")),
            ("site", node_at(site, "settings")),
        )
        for layer, settings in layers:
            for key, node in _nodes_of_host(settings, testbed.names_of(host)):
                values.setdefault(key, []).append(LayerValue.of(node, layer or node.position.layer))
        found[host] = {key: HostSetting(_typed(key, every[0]), tuple(every)) for key, every in values.items()}
    return found


def settings_by_host(tree: Map, testbed: Testbed) -> Map:
    """Return an experiment, part or profile in which no setting depends on values of weaker layers.

    If layers give a setting to different hosts, the setting gets a value for each host.
    """
    result, settings = tree.copied(), tree.get("settings")
    if isinstance(settings, Map):
        result["settings"] = whole = settings.copied()
        for key in (one for one in settings.overridden if isinstance(settings.get(one), Map)):
            whole[key] = by_host = Map(settings[key].position)
            for host in testbed.hosts:
                nodes = (node for one, node in _nodes_of_host(settings, testbed.names_of(host)) if one == key)
                if strongest := next(nodes, None):
                    by_host.put(host, strongest, strongest.position)
    for group in ("parts", "profiles"):
        layers = tree.get(group)
        if isinstance(layers, Map):
            result[group] = whole = layers.copied()
            for name, layer in layers.items():
                whole[name] = settings_by_host(layer, testbed) if isinstance(layer, Map) else layer
    return result


def _nodes_of_host(settings: Node | None, names: tuple[str, ...]) -> Iterator[tuple[str, Text]]:
    """Yield (key, text) of each setting that a tree has for a host, including overridden values."""
    if not isinstance(settings, Map):
        return
    for key in settings:
        for one in values_below(settings, key):
            named = [node for name in names for node in values_below(one, name)]
            yield from ((key, node) for node in (one, *named) if isinstance(node, Text))


def _typed(key: str, given: LayerValue) -> object:
    try:
        return SETTINGS[key](given.text) if key in SETTINGS else given.text
    except UnitError as error:
        assert given.position is not None
        raise DefinitionError([given.position.problem(f"{key}: {error}")]) from error
