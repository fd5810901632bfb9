"""`fab explain`: show where the value of a key comes from, with its value in each layer, strongest first."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import compress

from samovar.errors import DefinitionError, unknown
from samovar.experiment import keys
from samovar.experiment.checks.check_values import setting_parameters
from samovar.experiment.checks.part_values import RECIPE_KINDS, PartToCheck, is_setting, setters_of
from samovar.experiment.checks.validate import Validation
from samovar.experiment.layers.host_settings import LayerValue
from samovar.experiment.layers.merge import MAIN, nested_keys, nodes_at, values_below
from samovar.experiment.load import ResolvedExperiment
from samovar.experiment.logger_recipes import recorder_of
from samovar.experiment.yaml_tree import Map, Node, Position, Text, map_at, node_at

Owners = Mapping[str, tuple[type[keys.Strict], Mapping[str, keys.ParameterInfo]]]


@dataclass(frozen=True)
class Explanation:
    """The values of a key in all layers, the strongest first.

    The first value is used, unless `removed` is True: then a key that excludes this key replaces it. `levels`
    are the levels of a factor that sets the key. `in_trial` has, for each resolved value in a trial, where it
    applies, its name in plan.json, and the value. For a setting, `hosts` are the hosts that get it from the
    same layers and share this explanation; `at` names them as text. `keys` has the explanations of the keys
    within the key that are set.
    """

    title: str
    values: tuple[LayerValue, ...]
    levels: tuple[str, ...] = ()
    removed: bool = False
    in_trial: tuple[tuple[str, str, object], ...] = ()
    hosts: tuple[str, ...] = ()
    at: str = ""
    keys: tuple[tuple[str, Explanation], ...] = ()


class Explainer:
    """Explains the keys of an experiment's parts after its profile and overrides have been applied."""

    def __init__(self, resolved: ResolvedExperiment, catalogue: keys.RecipeCatalogue) -> None:
        self.experiment, self.testbed = resolved.experiment, resolved.testbed
        self.settings, self.catalogue = resolved.settings, catalogue
        tree = self.experiment.complete or Map(Position(self.experiment.name, 0, 0))
        self._checked = Validation(self.experiment, tree, [])

    def explain(self, key: str, part: str = "", levels: Mapping[str, str] | None = None) -> list[Explanation]:
        """Return the explanations of a key in every part that has it, or only in `part`.

        A key that contains keys, such as path, stands for those of its keys that are set. `levels` are the
        levels of one trial of that part, by factor. Raises DefinitionError for an unknown key, with the most
        similar known key.
        """
        named = ""
        if key.startswith("parts."):
            named, _, key = key.removeprefix("parts.").partition(".")
            if named not in self.experiment.parts:
                raise DefinitionError.at(self.experiment.name, unknown("part", named, self.experiment.parts))
        key = key.removeprefix("settings.").removeprefix("factors.")
        names = [name for name in self.experiment.parts if name in (named or part or name)]
        found = [one for name in names for one in self._explain_in_part(name, key, levels)]
        if not found:
            raise DefinitionError.at(
                self.experiment.name, unknown("key", key, set[str]().union(*map(self.known_keys, names)))
            )
        return found

    def _explain_in_part(
        self, name: str, key: str, levels: Mapping[str, str] | None
    ) -> Iterator[Explanation]:
        explainer, known = _PartExplainer(self, name, levels), self.known_keys(name)
        if key in known:
            yield from explainer.explain(key)
            return
        settings = sorted(set[str]().union(*self.settings[name].values()))
        groups = {"factors": list(self.experiment.parts[name].factors), "settings": settings}
        for one in groups.get(key, ()):
            yield from explainer.explain(one)
        inner = [one.removeprefix(f"{key}.") for one in known if one.startswith(f"{key}.")]
        found = tuple((own, one) for own in inner for one in explainer.explain(f"{key}.{own}"))
        if inner:
            is_set = [any(value.layer != "default" for value in one.values) for _, one in found]
            yield Explanation(explainer.title(key), (), keys=tuple(compress(found, is_set)))

    def known_keys(self, name: str) -> list[str]:
        """Return every key of a part that can be explained, in the order of the reference."""
        part, owners = self.experiment.parts[name], self.owners(name)
        setters = setters_of(part)
        known = [*keys.keys_of(keys.Part)]
        for owner, (model, parameters) in owners.items():
            known += (f"{owner}.{key}".removeprefix(".") for key in (*keys.keys_of(model), *parameters))
        known += [*part.factors, *setters, *sorted(set[str]().union(*self.settings[name].values()))]
        known += setting_parameters(self.catalogue, *{host.system for host in self.testbed.hosts.values()})
        path = map_at(self.experiment.complete, "parts", name, "path")
        by_direction = (
            f"path.{key}"
            for key, value in (path.items() if path else ())
            if isinstance(value, Map) and value.keys() <= {"down", "up"} and f"path.{key}" not in setters
        )
        ends = dict.fromkeys(by_direction, (".down", ".up"))
        known = [f"{key}{end}" for key in known for end in ends.get(key, ("",))]
        hidden = {"use", "factors", "settings", "traffic", "loggers"}.union(owners)
        hidden |= {f"{owner}.flow" for owner in owners}
        hidden |= {f"path.{key}" for key in (keys.ROUTER_ONLY if self.testbed.device else ())}
        return [key for key in dict.fromkeys(known) if key not in hidden]

    def owners(self, name: str) -> Owners:
        """Return, for each key that contains keys, such as path, the model and the recipes' parameters."""
        part = PartToCheck(self._checked, self.testbed, self.catalogue, self.experiment.parts[name])
        owners = {}
        for owner in keys.owners_of(part.model):
            recipes = part.recipes_of(owner) if owner.partition(".")[0] in RECIPE_KINDS else ()
            parameters = {key: info for known in recipes for key, info in known.items()}
            owners[owner] = (keys.model_of(owner) or keys.Part, parameters)
        return owners


class _PartExplainer:
    """Explains the keys of one part, or of one of its trials if the levels of the trial are given."""

    def __init__(self, of: Explainer, name: str, levels: Mapping[str, str] | None) -> None:
        self.of, self.name, self.levels = of, name, levels
        self.part, self.owners = of.experiment.parts[name], of.owners(name)
        self.tree = node_at(of.experiment.complete, "parts", name)

    def explain(self, key: str) -> Iterator[Explanation]:
        """Yield explanations of a key.

        For a setting, yield one explanation for each group of hosts that get the setting from the same
        layers.
        """
        if is_setting(key):
            yield from self._explain_setting(key)
        else:
            yield self._explain_key(key)

    def title(self, key: str) -> str:
        """Return a key for headings, with the part if there are several."""
        return key if list(self.of.experiment.parts) == [MAIN] else f"{self.name}: {key}"

    def _explain_key(self, key: str) -> Explanation:
        steps = nested_keys(key)
        written = _values(nodes_at(self.tree, steps))
        factor_values, levels = self._factor_values(key)
        removed = bool(written) and is_removed(self.tree, steps)  # a stronger duration removes size
        arrivals = nodes_at(self.tree, (*steps[:-1], "arrivals")) if steps[-1] == "start" else []
        below = () if removed else self._weakest(key)
        # each value once: every part has the values of the top level, too
        values = dict.fromkeys([*self._recorders(key), *factor_values, *_values(arrivals), *written, *below])
        return Explanation(self.title(key), tuple(values), levels, removed and not factor_values)

    def _recorders(self, key: str) -> Iterator[LayerValue]:
        """Yield one value with the recipes that record a logger's quantity: RECIPE at HOST, HOST."""
        named = [one for one in self.part.loggers if key == f"loggers.{one.logger}.logger"]
        hosts_by_recipe: dict[str, list[str]] = {}
        for logger in named:
            for host in keys.places_of(self.of.testbed, logger.at):
                recipe = recorder_of(self.of.catalogue, logger, self.of.testbed.hosts[host].system)
                if recipe is not None and recipe != logger.logger:
                    hosts_by_recipe.setdefault(recipe, []).append(host)
        if hosts_by_recipe:
            texts = (f"{recipe} at {', '.join(hosts)}" for recipe, hosts in hosts_by_recipe.items())
            yield LayerValue("; ".join(texts), "recipe", f"records {named[0].logger}")

    def _weakest(self, key: str) -> tuple[LayerValue, ...]:
        """Return a key's values in the weakest layers: the default and, in a path, the bottleneck device."""
        owner, _, own = key.rpartition(".")
        if owner == "path" and self.of.testbed.device is not None and own != "delay":
            own, factor = ("delay", "2 * ") if own == "rtt" else (own, "")  # its delay is one-way
            node = _device_tree(self.of.testbed).get(own)
            values = [LayerValue.of(node, "testbed")] if isinstance(node, Text) else []
            values += _default(keys.keys_of(keys.Adapter).get(own))
            if values:
                return tuple(replace(one, text=factor + one.text) for one in values)
            own = key.rpartition(".")[2]
        model, parameters = self.owners.get(owner, (keys.Part, {})) if owner else (keys.Part, {})
        return _default(parameters.get(own)) or _default(keys.keys_of(model).get(own))

    def _factor_values(self, key: str, host: str = "") -> tuple[tuple[LayerValue, ...], tuple[str, ...]]:
        """Return the value of the factor that sets a key, and the texts of the factor's levels.

        Both are empty if no factor sets the key.

        In a trial, return the level of that trial as the value, and no texts.
        """
        factor = self.part.factors.get(key) or next(iter(setters_of(self.part).get(key, ())), None)
        if factor is None:
            return (), ()
        written = _values(nodes_at(node_at(self.tree, "factors"), (factor.name,)))
        if self.levels is None:
            texts = ((one.label, _level_text(one, key)) for one in factor.levels)
            return written, tuple(label if text == label else f"{label} ({text})" for label, text in texts)
        level = factor.level(self.levels[factor.name])
        value = level.texts.get(key) if level else None
        text = _level_text(level, key) if level else self.levels[factor.name]
        if host and isinstance(value, Mapping):
            text = self.of.testbed.value_at(host, value) or ""
        place = written[0].place if written else ""
        return (LayerValue(text, f"level of factor {factor.name}", place),) if text else (), ()

    def _explain_setting(self, key: str) -> Iterator[Explanation]:
        """Yield one explanation of a setting for each group of hosts that get it from the same layers."""
        of = self.of
        hosts_by_values: dict[tuple[LayerValue, ...], list[str]] = {}
        for host, own in of.settings[self.name].items():
            values = [*self._factor_values(key, host)[0], *(own[key].layers if key in own else ())]
            system, recipe = of.testbed.hosts[host].system, key.partition(".")[0]
            parameter = setting_parameters(of.catalogue, system).get(key)
            values += _default(parameter, "recipe", f"setting/{recipe} on {system}")
            hosts_by_values.setdefault(tuple(dict.fromkeys(values)), []).append(host)
        levels = self._factor_values(key)[1]
        for values_of_hosts, hosts in hosts_by_values.items():
            at = f" at {', '.join(hosts) if len(hosts_by_values) > 1 else 'every host'}"
            yield Explanation(self.title(key), values_of_hosts, levels, hosts=tuple(hosts), at=at)


def _values(nodes: Iterable[Node]) -> tuple[LayerValue, ...]:
    return tuple(LayerValue.of(node, node.position.layer) for node in nodes)


def _level_text(level: keys.Level, key: str) -> str:
    """Return the value that a level gives to a key, or its label if the key is the factor's own name."""
    return "-".join(keys.texts_of(level.texts[key])) if key in level.texts else level.label


def _default(
    declared: keys.Key | keys.ParameterInfo | None, layer: str = "default", place: str = ""
) -> tuple[LayerValue, ...]:
    """Return the default of a key or parameter as the value of a layer; empty if there is no default."""
    default = declared.default if declared else None
    return () if default is None else (LayerValue(str(default), layer, place),)


def _device_tree(testbed: keys.Testbed) -> Mapping[str, Node]:
    """Return the mapping `adapter` of the bottleneck link in the testbed file; empty for a router."""
    link = testbed.bottleneck_link
    node = node_at(testbed.written, "links", link, "adapter") if link and testbed.device else None
    return node if isinstance(node, Map) else {}


def is_removed(node: Node | None, steps: Sequence[str]) -> bool:
    """Return whether the last of nested keys is missing while the keys before it lead to a mapping."""
    for step in steps[:-1]:
        node = next(iter(values_below(node, step)), None)
    return isinstance(node, Map) and steps[-1] not in node
