"""Host settings: the value that each host gets for cc, rwnd, mtu, txd, cc.PARAMETER and RECIPE.PARAMETER.

Layers, the weakest first: default of the recipe, config.yaml, its section for the host's OS, testbed, host,
experiment. A factor's level overrides all of them when trials are planned. A layer may give one value for all
hosts or one per host or role; a host that it does not name gets the value of the layer below.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from samovar.errors import DefinitionError
from samovar.experiment.keys import SETTINGS, Config, Experiment, Testbed
from samovar.experiment.recipe_interface import RecipeCatalogue
from samovar.experiment.yaml.tree import Map, Node, Position, node_at
from samovar.units import UnitError


@dataclass(frozen=True)
class LayerValue:
    """The value that one layer gives a setting at one host, as written.

    `layer` is recipe, site, os, testbed, host or experiment; `position` is the place in a file, None for the
    default of a recipe.
    """

    text: str
    layer: str
    place: str
    position: Position | None = None


@dataclass(frozen=True)
class HostSetting:
    """A setting of one host: its value, and what every layer gives, the strongest first.

    `value` is typed for cc (a name), rwnd (bytes or a Formula), mtu (bytes) and txd (descriptors); parameters
    of recipes stay texts.
    """

    value: object
    layers: tuple[LayerValue, ...]

    @property
    def text(self) -> str:
        """The value as written."""
        return self.layers[0].text


SettingsByHost = Mapping[str, Mapping[str, HostSetting]]
"""Settings by host and key."""


def resolve_settings(
    experiment: Experiment,
    part: str,
    testbed: Testbed,
    config: Config | None = None,
    catalogue: RecipeCatalogue | None = None,
) -> SettingsByHost:
    """Return the settings of all hosts of a testbed in one part of an experiment, without factors' levels.

    Defaults of setting recipes are included when a catalogue is given. Raises DefinitionError for a value
    that cannot be read.
    """
    own = node_at(experiment.complete, "parts", part, "settings")
    site = config.written if config is not None else None
    found: dict[str, dict[str, HostSetting]] = {}
    for host, machine in testbed.hosts.items():
        values: dict[str, list[LayerValue]] = {}
        layers = (
            ("experiment", own),
            ("host", node_at(testbed.written, "hosts", host, "settings")),
            ("testbed", node_at(testbed.written, "settings")),
            ("os", node_at(site, "os", machine.os, "settings")),
            ("site", node_at(site, "settings")),
        )
        for layer, settings in layers:
            for key, text, position in _layer_values(settings, testbed.names_of(host)):
                values.setdefault(key, []).append(LayerValue(text, layer, str(position), position))
        for key, text, recipe in _defaults(catalogue, machine.system):
            values.setdefault(key, []).append(LayerValue(text, "recipe", recipe))
        found[host] = {key: HostSetting(_typed(key, every[0]), tuple(every)) for key, every in values.items()}
    return found


def _layer_values(settings: Node | None, names: tuple[str, ...]) -> Iterator[tuple[str, str, Position]]:
    """Yield the key, text and place of what one layer gives a host, and of what that overrides."""
    if not isinstance(settings, Map):
        return
    for key, value in settings.items():
        for one in (value, *settings.overridden.get(key, ())):
            if isinstance(one, str):
                yield key, str(one), one.position
            elif isinstance(one, Map):
                named = (text for name in names for text in (one.get(name), *one.overridden.get(name, ())))
                yield from ((key, str(text), text.position) for text in named if isinstance(text, str))


def _defaults(catalogue: RecipeCatalogue | None, system: str) -> Iterator[tuple[str, str, str]]:
    for recipe in sorted(catalogue.names("setting", system)) if catalogue else ():
        for name, info in ((catalogue and catalogue.parameters("setting", recipe, system)) or {}).items():
            default = getattr(info, "default", None)
            if default is not None:
                yield f"{recipe}.{name}", str(default), f"setting/{recipe} on {system}"


def _typed(key: str, given: LayerValue) -> object:
    try:
        return SETTINGS[key](given.text) if key in SETTINGS else given.text
    except UnitError as error:
        if given.position is None:
            raise
        raise DefinitionError([given.position.problem(f"{key}: {error}")]) from error
