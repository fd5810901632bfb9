"""Explain where values come from: what each layer gives for a key, the strongest layer first."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import yaml

from samovar.errors import DefinitionError, Problem
from samovar.experiment.checks.check_context import is_setting, setters_of, targets_of, varied
from samovar.experiment.checks.check_values import setting_parameters
from samovar.experiment.keys import (
    DEVICE_PARAMETERS,
    ROUTER_ONLY,
    SETTINGS,
    Adapter,
    Arrivals,
    Config,
    Experiment,
    Factor,
    Flow,
    Logger,
    NetworkPath,
    Order,
    Part,
    Stop,
    Strict,
    Testbed,
    Thresholds,
    keys_of,
    own_keys,
    settable,
    texts_of,
)
from samovar.experiment.layers.host_settings import LayerValue, resolve_settings
from samovar.experiment.layers.merge import LISTED, MAIN, nested_keys
from samovar.experiment.nearest import unknown
from samovar.experiment.recipe_interface import ParameterInfo, RecipeCatalogue
from samovar.experiment.values import PerHost
from samovar.experiment.yaml.tree import Map, Node, Position, Seq, Text, node_at, plain, read_yaml

GROUPS = ("settings", "factors")
"""Keys of a part whose entries are explained one by one."""
NESTED_KEYS: Mapping[str, tuple[str, ...]] = {
    "order": tuple(keys_of(Order)),
    "verdict": tuple(keys_of(Thresholds)),
}
EXPERIMENT_KEYS = (
    *("testbed", "title", "source", "description", "figures", "tables", "expect", "order"),
    *(f"order.{key}" for key in NESTED_KEYS["order"]),
)
POLICY_KEYS = ("calibrate", "retries", "verdict", *(f"verdict.{key}" for key in NESTED_KEYS["verdict"]))
"""Keys that an experiment may give, else config.yaml for all experiments."""
MODELS: Mapping[str, type[Strict]] = {"path": NetworkPath, "stop": Stop, "order": Order}
DIRECTIONS = ("down", "up")


@dataclass(frozen=True)
class Explanation:
    """The values that all layers give for a key, the strongest first: the first is used, unless `removed`.

    `levels` are those of a factor that sets the key, and in a trial `in_trial` is the resolved value with the
    place that it applies to. A setting is explained for the `hosts` that get it from the same layers, named
    by `at`. A key that contains others has explanations of these in `keys`.
    """

    title: str
    values: tuple[LayerValue, ...]
    levels: tuple[str, ...] = ()
    removed: bool = False
    in_trial: tuple[tuple[str, str], ...] = ()
    hosts: tuple[str, ...] = ()
    at: str = ""
    keys: tuple[tuple[str, Explanation], ...] = ()


class Explainer:
    """Explains the keys of an experiment to which profile and overrides have been applied."""

    def __init__(
        self,
        experiment: Experiment,
        testbed: Testbed,
        catalogue: RecipeCatalogue,
        config: Config | None = None,
    ) -> None:
        self.experiment, self.testbed, self.catalogue, self.config = experiment, testbed, catalogue, config
        self._layers_by_file: dict[str, dict[str, str]] = {}

    def explain(self, key: str, part: str = "", levels: Mapping[str, str] | None = None) -> list[Explanation]:
        """Return the explanations of a key in every part that has it, or in one.

        `levels` are those of a trial of that part, by factor. Raises DefinitionError for an unknown key, with
        the nearest known one.
        """
        named, rest = self._split_part(key)
        parts = [name for name in self.experiment.parts if name in (named or part or name)]
        known = {name: self.known_keys(name) for name in parts}
        having = [name for name, keys in known.items() if rest in keys]
        if rest in (*EXPERIMENT_KEYS, *POLICY_KEYS) and not named and not (part and having):
            return [self._explain_policy(rest) if rest in POLICY_KEYS else self._explain_top(rest)]
        if not having:
            every = {*(() if named else (*EXPERIMENT_KEYS, *POLICY_KEYS))}.union(*known.values())
            raise self._refuse(unknown("key", rest, every))
        explainers = (_PartExplainer(self, name, rest, levels) for name in having)
        return [one for explainer in explainers for one in explainer.explain()]

    def _split_part(self, key: str) -> tuple[str, str]:
        """Return the part that a key names, if any, and the rest of the key; settings and factors by name."""
        name = ""
        if key.startswith("parts."):
            name, _, key = key.removeprefix("parts.").partition(".")
            if name not in self.experiment.parts:
                raise self._refuse(unknown("part", name, self.experiment.parts))
        return name, key.removeprefix("settings.").removeprefix("factors.")

    def _refuse(self, message: str) -> DefinitionError:
        return DefinitionError([Problem(self.experiment.name, 0, 0, message)])

    def known_keys(self, name: str) -> set[str]:
        """Return every key of a part that can be explained."""
        part = self.experiment.parts[name]
        targets = varied(part)
        known = {*keys_of(Part), *part.factors, *SETTINGS, *targets, "stop.after", "stop.when"} - {"use"}
        for flow in part.traffic:
            keys = own_keys(Arrivals) if flow.arrivals is not None else ()
            known |= {f"traffic.{flow.label}.arrivals.{key}" for key in keys}
        for owner, (model, parameters) in self._owners(part).items():
            known |= {owner, *(f"{owner}.{key}" for key in (*own_keys(model), *parameters))}
        for key in keys_inside(self.experiment.complete, ("parts", name, "path")):
            if "." in key and f"path.{key.partition('.')[0]}" not in targets:
                known.add(f"path.{key}")  # a value for one direction that no factor overrides
        if self.testbed.device is not None:
            known -= {f"path.{key}" for key in ROUTER_ONLY}
        for settings in resolve_settings(self.experiment, name, self.testbed, self.config).values():
            known |= settings.keys()
        systems = {host.system for host in self.testbed.hosts.values()}
        return known | setting_parameters(self.catalogue, *systems).keys()

    def _owners(self, part: Part) -> dict[str, tuple[type[Strict], Mapping[str, ParameterInfo]]]:
        """Return, for each key that contains others, its own keys (a model) and its recipe's parameters."""
        owners: dict[str, tuple[type[Strict], Mapping[str, ParameterInfo]]] = {}
        if self.testbed.bottleneck is not None:
            aqm = part.path.aqm if part.path is not None else "pfifo"
            owners["path"] = (NetworkPath, self._parameters("aqm", str(aqm), self.testbed.bottleneck.router))
        elif self.testbed.device is not None:
            owners["path"] = (NetworkPath, DEVICE_PARAMETERS)
        for flow in part.traffic:
            parameters = self._parameters("generator", flow.generator, flow.from_end)
            owners[f"traffic.{flow.label}"] = (Flow, parameters)
        for logger in part.loggers:
            parameters = self._parameters("logger", logger.logger, logger.at[0])
            owners[f"loggers.{logger.logger}"] = (Logger, parameters)
        return owners

    def _parameters(self, kind: str, recipe: str, at: str) -> Mapping[str, ParameterInfo]:
        host = self.testbed.host_of(at) or self.testbed.host_of(at.removesuffix("s"))
        return settable(self.catalogue, kind, recipe, self.testbed.hosts[host].system) if host else {}

    def default(self, key: str, part: Part | None) -> str | None:
        """Return the default of a key as text, None without one."""
        *nested, own = nested_keys(key)
        owner = ".".join(nested)
        model: type[Strict] = MODELS.get(owner, Part if part is not None else Experiment)
        parameters: Mapping[str, ParameterInfo] = {}
        if part is not None:
            model, parameters = self._owners(part).get(owner, (model, parameters))
        if own in parameters:
            default = getattr(parameters[own], "default", None)
            return None if default is None else str(default)
        return _default(model, own)

    def tree_explanation(self, title: str, tree: Node | None, key: str, default: str | None) -> Explanation:
        """Return what the layers of the experiment's files give for a key, then its default."""
        steps = nested_keys(key)
        values = self.layer_values(nodes_at(tree, steps))
        removed = bool(values) and is_removed(tree, steps)
        if default is not None and not removed:
            values = (*values, LayerValue(default, "default", ""))
        return Explanation(title, values, removed=removed)

    def _explain_top(self, key: str) -> Explanation:
        """Explain a key of the whole experiment."""
        if key in NESTED_KEYS:
            inside = ((own, self._explain_top(f"{key}.{own}")) for own in NESTED_KEYS[key])
            return Explanation(key, (), keys=tuple(inside))
        found = self.tree_explanation(key, self.experiment.complete, key, self.default(key, None))
        if key == "testbed" and found.values and found.values[0].text != self.testbed.name:
            option = LayerValue(self.testbed.name, "--testbed", f"--testbed {self.testbed.name}")
            return replace(found, values=(option, *found.values))
        return found

    def _explain_policy(self, key: str) -> Explanation:
        """Explain a key that the experiment, config.yaml or else its default gives."""
        keys = NESTED_KEYS.get(key, ())
        if keys:
            return Explanation(
                key, (), keys=tuple((own, self._explain_policy(f"{key}.{own}")) for own in keys)
            )
        owner, _, own = key.rpartition(".")
        steps = tuple(key.split("."))
        configured = nodes_at(self.config.written if self.config else None, steps)
        default = _default(Thresholds if owner else Config, own)
        values = (
            *self.layer_values(nodes_at(self.experiment.complete, steps)),
            *(replace(one, layer="config") for one in self.layer_values(configured)),
            *(() if default is None else (LayerValue(default, "default", ""),)),
        )
        return Explanation(key, values)

    def layer_values(self, nodes: Sequence[Node]) -> tuple[LayerValue, ...]:
        """Return some nodes of the experiment's files as values with the names of their layers."""
        return tuple(
            LayerValue(flow_text(node), self.layer_name(node.position), str(node.position), node.position)
            for node in nodes
        )

    def layer_name(self, position: Position) -> str:
        """Return the layer that a position belongs to, such as profile quick; reads each file once more."""
        if position.file.startswith("--set "):
            return "--set"
        if position.file not in self._layers_by_file:
            self._layers_by_file[position.file] = _read_layers(Path(position.file))
        return self._layers_by_file[position.file].get(str(position), "experiment")


@dataclass(frozen=True)
class _PartExplainer:
    """Explains a key of one part, in a trial of it if that trial's levels are given."""

    of: Explainer
    name: str
    key: str
    levels: Mapping[str, str] | None

    def explain(self) -> Iterator[Explanation]:
        """Yield the explanations: one for each entry of a group, one for the hosts that share a setting."""
        if self.key in GROUPS:
            keys = self._names_in_group()
            yield from (one for key in keys for one in replace(self, key=key).explain())
            if not keys:
                yield Explanation(self._title, ())
        elif self.key in SETTINGS or (
            is_setting(self.key) and self.key.partition(".")[0] not in (*MODELS, *LISTED)
        ):
            yield from self._explain_setting()
        else:
            yield self._explain_key()

    @property
    def _part(self) -> Part:
        return self.of.experiment.parts[self.name]

    @property
    def _title(self) -> str:
        return self.key if list(self.of.experiment.parts) == [MAIN] else f"{self.name}: {self.key}"

    @property
    def _tree(self) -> Node | None:
        return node_at(self.of.experiment.complete, "parts", self.name)

    def _names_in_group(self) -> list[str]:
        """Return the factors of the part, or the settings that a layer other than recipes gives."""
        if self.key == "factors":
            return list(self._part.factors)
        settings = resolve_settings(self.of.experiment, self.name, self.of.testbed, self.of.config)
        return sorted({key for own in settings.values() for key in own})

    def _explain_key(self) -> Explanation:
        below = self._explain_tree()
        values = self._factor_values()
        keys = () if values else dict.fromkeys(self._keys_inside())
        inside = tuple((key, replace(self, key=f"{self.key}.{key}")._explain_key()) for key in keys)
        values = below.values[1:] if inside else (*values, *self._with_device(below.values))
        removed = below.removed and not self._factor_values()
        return Explanation(self._title, _unique(values), self._level_texts(), removed, keys=inside)

    def _explain_tree(self) -> Explanation:
        """Explain what the files give; the start of a flow with arrivals comes from these first."""
        found = self.of.tree_explanation(
            self._title, self._tree, self.key, self.of.default(self.key, self._part)
        )
        *nested, own = nested_keys(self.key)
        arrivals = nodes_at(self._tree, (*nested, "arrivals")) if own == "start" else []
        return replace(found, values=(*self.of.layer_values(arrivals), *found.values))

    def _with_device(self, values: tuple[LayerValue, ...]) -> tuple[LayerValue, ...]:
        """Return the values of a key of the path, then those of the device that is the bottleneck."""
        owner, _, key = self.key.partition(".")
        device = tuple(_device_values(self.of.testbed, key)) if owner == "path" else ()
        return (*(one for one in values if one.layer != "default"), *device) if device else values

    def _keys_inside(self) -> Iterator[str]:
        """Yield the keys within this key that the experiment, the testbed's device or a factor gives."""
        owner = f"{self.key}."
        targets = [target for factor in self._part.factors.values() for target in sorted(targets_of(factor))]
        set_by_factors = [target.removeprefix(owner) for target in targets if target.startswith(owner)]
        for key in keys_inside(self._tree, nested_keys(self.key)):
            if key.rpartition(".")[0] not in set_by_factors:  # a factor overrides both directions
                yield key
        if self.key == "path":
            yield from ("rtt" if key == "delay" else key for key in _device_tree(self.of.testbed))
        yield from set_by_factors

    def _level_texts(self) -> tuple[str, ...]:
        """Return the levels of the factor, with their values for this key if these differ from the labels."""
        factor = self._factor
        if factor is None or self.levels is not None:
            return ()
        texts = ((level.label, self._level_value(factor, level.label)) for level in factor.levels)
        return tuple(label if value == label else f"{label} ({value})" for label, value in texts)

    @property
    def _factor(self) -> Factor | None:
        """The factor that is named like the key, or whose levels set it."""
        return self._part.factors.get(self.key) or next(iter(setters_of(self._part, self.key)), None)

    def _level_value(self, factor: Factor, label: str) -> str:
        level = factor.level(label)
        value = level.texts.get(self.key) if level else None
        return label if value is None else "-".join(texts_of(value))

    def _factor_values(self, host: str = "") -> tuple[LayerValue, ...]:
        """Return what the factor that sets the key gives: its levels, or the level of the trial."""
        factor = self._factor
        if factor is None:
            return ()
        written = self.of.layer_values(nodes_at(node_at(self._tree, "factors"), (factor.name,)))
        if self.levels is None:
            return written
        label = self.levels.get(factor.name, "")
        text: str | None = self._level_value(factor, label)
        level = factor.level(label)
        value = level.texts.get(self.key) if level else None
        if host and isinstance(value, PerHost):
            text = self.of.testbed.value_at(host, value.hosts)
        elif host and isinstance(value, str):
            text = value
        place = written[0].place if written else ""
        return () if text is None else (LayerValue(text, f"level of factor {factor.name}", place),)

    def _explain_setting(self) -> Iterator[Explanation]:
        """Explain a setting; hosts that get it from the same layers are named together."""
        of = self.of
        settings = resolve_settings(of.experiment, self.name, of.testbed, of.config, of.catalogue)
        hosts_by_values: dict[tuple[LayerValue, ...], list[str]] = {}
        for host, own in settings.items():
            layers = own[self.key].layers if self.key in own else ()
            below = (
                replace(one, layer=of.layer_name(one.position))
                if one.layer == "experiment" and one.position is not None
                else one
                for one in layers
            )
            hosts_by_values.setdefault((*self._factor_values(host), *below), []).append(host)
        for values, hosts in hosts_by_values.items():
            at = ", ".join(hosts) if len(hosts_by_values) > 1 else "every host"
            yield Explanation(
                self._title, _unique(values), self._level_texts(), hosts=tuple(hosts), at=f" at {at}"
            )


def _unique(values: Sequence[LayerValue]) -> tuple[LayerValue, ...]:
    """Return values without repetitions: a top-level value is also that of the parts."""
    return tuple(dict.fromkeys(values))


def _default(model: type[Strict], key: str) -> str | None:
    """Return the default of a model's key as a file would write it."""
    known = keys_of(model)
    return known[key].default if key in known else None


def _device_tree(testbed: Testbed) -> Mapping[str, Node]:
    """Return the device that is the bottleneck as the testbed's file gives it; empty without one."""
    link = testbed.bottleneck_link
    node = node_at(testbed.written, "links", link, "adapter") if link and testbed.device else None
    return node if isinstance(node, Map) else {}


def _device_values(testbed: Testbed, key: str) -> Iterator[LayerValue]:
    """Yield what the testbed gives for a key of the path through its device, then the default."""
    if testbed.device is None or key == "delay":
        return
    own, factor = (
        ("delay", "2 * ") if key == "rtt" else (key, "")
    )  # the device has the delay of one direction
    node = _device_tree(testbed).get(own)
    if isinstance(node, Text):
        yield LayerValue(f"{factor}{node}", "testbed", str(node.position), node.position)
    default = _default(Adapter, own)
    if default is not None:
        yield LayerValue(f"{factor}{default}", "default", "")


def nodes_at(node: Node | None, steps: Sequence[str]) -> list[Node]:
    """Return the values that the layers give at a path of nested keys, the strongest first."""
    if node is None:
        return []
    if not steps or (isinstance(node, Text) and tuple(steps) == ("down",)):  # a plain value is for downstream
        return [node]
    if isinstance(node, Seq):
        return [found for one in _named(node, steps[0]) for found in nodes_at(one, steps[1:])]
    if not isinstance(node, Map):
        return []
    own = (node[steps[0]],) if steps[0] in node else ()
    return [found for one in (*own, *node.overridden.get(steps[0], ())) for found in nodes_at(one, steps[1:])]


def is_removed(node: Node | None, steps: Sequence[str]) -> bool:
    """Return whether the mapping that contained the last of some nested keys no longer has it."""
    for step in steps[:-1]:
        node = next(iter(_named(node, step)), None) if isinstance(node, Seq) else node_at(node, step)
    return isinstance(node, Map) and steps[-1] not in node


def keys_inside(tree: Node | None, steps: Sequence[str]) -> tuple[str, ...]:
    """Return the keys inside the value at the end of nested keys; none for a text or a plain list."""
    node = next(iter(nodes_at(tree, steps)), None)
    if steps[0] in LISTED and isinstance(node, Seq):
        name_key = LISTED[steps[0]][0]
        entries = [one for one in node if isinstance(one, Map)]
        return tuple(
            f"{one.get(name_key, '')}.{key}" for one in entries for key in _keys(one) if key != name_key
        )
    if not isinstance(node, Map) or (steps[0] in LISTED and len(steps) > 2):
        return ()
    return tuple(key for own in _keys(node) for key in _by_direction(node, own))


def _keys(node: Map) -> Iterator[str]:
    yield from dict.fromkeys((*node, *node.overridden))


def _by_direction(node: Map, key: str) -> Iterator[str]:
    value = node.get(key)
    directed = isinstance(value, Map) and value.keys() <= set(DIRECTIONS)
    yield from (
        (f"{key}.{direction}" for direction in value) if directed and isinstance(value, Map) else (key,)
    )


def _named(entries: Seq, name: str) -> list[Map]:
    maps = [one for one in entries if isinstance(one, Map)]
    return [one for one in maps if name in (one.get("flow"), one.get("logger"))]


def _read_layers(path: Path) -> dict[str, str]:
    """Return the name of the layer of every position in a file; empty if it cannot be read."""
    try:
        tree, _ = read_yaml(path)
    except DefinitionError:
        return {}
    whole = f"experiment {tree['experiment']}" if "experiment" in tree else f"fragment {path.stem}"
    return {str(position): layer for position, layer in _layers(tree, (), whole)}


def _layers(node: Node, steps: tuple[str, ...], layer: str) -> Iterator[tuple[Position, str]]:
    """Yield every position below a node with its layer: profile quick, part window of profile quick, ..."""
    yield node.position, layer
    if isinstance(node, Seq):
        for one in node:
            yield from _layers(one, (*steps, "-"), layer)
    for key, value in node.items() if isinstance(node, Map) else ():
        own = layer
        kinds = {"profiles": "profile", "parts": "part", "fragments": "fragment"}
        if len(steps) in (1, 3) and steps[-1] in kinds:
            own = f"{kinds[steps[-1]]} {key}" + (f" of {layer}" if len(steps) == 3 else "")
        yield from _layers(value, (*steps, key), own)


def flow_text(node: Node) -> str:
    """Return a node in one line, as a file could have it."""
    if isinstance(node, str):
        return str(node)
    dumped = yaml.safe_dump(
        plain(node), default_flow_style=True, sort_keys=False, width=10**6, allow_unicode=True
    )
    return dumped.strip().replace("'", "")
