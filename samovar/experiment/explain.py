"""`fab explain`: show where the value of a key comes from, with its value in each layer, strongest first."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property

from samovar.errors import DefinitionError, unknown
from samovar.experiment import keys
from samovar.experiment.checks.check_values import setting_parameters
from samovar.experiment.checks.part_values import RECIPE_KINDS, PartToCheck, is_setting
from samovar.experiment.checks.validate import Validation
from samovar.experiment.layers.host_settings import LayerValue
from samovar.experiment.layers.merge import MAIN, nested_keys, nodes_at
from samovar.experiment.load import ResolvedExperiment
from samovar.experiment.logger_recipes import recorder_of
from samovar.experiment.yaml_tree import Map, Node, Position, Text, map_at, node_at


@dataclass(frozen=True)
class Explanation:
    """The values of a key in all layers, the strongest first.

    The first value is used. If `removed` is True, no value is used, because another key excludes this key.
    `levels` are the levels of a factor that sets the key. `in_trial` has a tuple for each resolved value in a
    trial: where the value applies, its name in plan.json, and the value itself. For a setting, `hosts` are
    the hosts that get it from the same layers and share this explanation; `at` names them as text. If the key
    contains other keys, `keys` has the explanations of those that are set.
    """

    title: str
    values: tuple[LayerValue, ...]
    levels: tuple[str, ...] = ()
    removed: bool = False
    in_trial: tuple[tuple[str, str, object], ...] = ()
    hosts: tuple[str, ...] = ()
    at: str = ""
    keys: tuple[tuple[str, Explanation], ...] = ()


def explain_key(
    resolved: ResolvedExperiment,
    catalogue: keys.RecipeCatalogue,
    key: str,
    part: str = "",
    levels: Mapping[str, str] | None = None,
) -> list[Explanation]:
    """Return the explanations of a key in every part that has it, or only in `part`.

    If a key contains other keys, as `path` does, the inner keys that are set are explained. `levels` maps
    factors to the levels of one trial of that part. Raises DefinitionError for an unknown key, with the most
    similar known key.
    """
    experiment, named = resolved.experiment, ""
    if key.startswith("parts."):
        named, _, key = key.removeprefix("parts.").partition(".")
        if named not in experiment.parts:
            raise DefinitionError.at(experiment.name, unknown("part", named, experiment.parts))
    key = key.removeprefix("settings.").removeprefix("factors.")
    names = [name for name in experiment.parts if name in (named or part or name)]
    explainers = [PartExplainer(resolved, catalogue, name, levels) for name in names]
    found = [explanation for one in explainers for explanation in one.explain(key)]
    if not found:
        if key.partition(".")[0] in keys.keys_of(keys.Experiment).keys() - keys.keys_of(keys.Part).keys():
            message = f"{key} is a key of the whole experiment; only keys of its parts can be explained"
            raise DefinitionError.at(experiment.name, message)
        known = {other for one in explainers for other in one.known_keys}
        raise DefinitionError.at(experiment.name, unknown("key", key, known))
    return found


class PartExplainer:
    """Explains the keys of one part, or of one of its trials if the levels of the trial are given."""

    def __init__(
        self,
        resolved: ResolvedExperiment,
        catalogue: keys.RecipeCatalogue,
        name: str,
        levels: Mapping[str, str] | None = None,
    ) -> None:
        self.testbed, self.catalogue, self.name, self.levels = resolved.testbed, catalogue, name, levels
        self.settings, self.model = resolved.settings[name], resolved.experiment.parts[name]
        self.prefix = "" if list(resolved.experiment.parts) == [MAIN] else f"{name}: "  # of headings
        tree = resolved.experiment.tree or Map(Position(resolved.experiment.name, 0, 0))
        self.tree = node_at(tree, "parts", name)
        part = PartToCheck(Validation(resolved.experiment, tree, []), self.testbed, catalogue, self.model)
        self.setters = part.setters
        self.setting_keys = sorted(set[str]().union(*self.settings.values()))
        self.owners: dict[str, tuple[type[keys.Strict], Mapping[str, keys.ParameterInfo]]] = {}
        """Maps each key that contains keys, such as `path`, to its model and its recipes' parameters."""
        for owner in keys.owners_of(self.model):
            recipes = part.recipes_of(owner) if owner.partition(".")[0] in RECIPE_KINDS else ()
            parameters = {key: info for known in recipes for key, info in known.items()}
            self.owners[owner] = (keys.model_of(owner) or keys.Part, parameters)

    @cached_property
    def known_keys(self) -> list[str]:
        """Every key of the part that can be explained, in the order of the reference."""
        known = [*keys.keys_of(keys.Part)]
        for owner, (model, parameters) in self.owners.items():
            known += (f"{owner}.{key}".removeprefix(".") for key in (*keys.keys_of(model), *parameters))
        known += [*self.model.factors, *self.setters, *self.setting_keys]
        known += setting_parameters(self.catalogue, *{host.system for host in self.testbed.hosts.values()})
        by_direction = (
            f"path.{key}"
            for key, value in (map_at(self.tree, "path") or {}).items()
            if isinstance(value, Map) and value.keys() <= {"down", "up"} and f"path.{key}" not in self.setters
        )
        ends = dict.fromkeys(by_direction, (".down", ".up"))
        known = [f"{key}{end}" for key in known for end in ends.get(key, ("",))]
        hidden = {"use", "factors", "settings", "traffic", "loggers"}.union(self.owners)
        hidden |= {f"{owner}.flow" for owner in self.owners}
        hidden |= {f"path.{key}" for key in (keys.ROUTER_ONLY if self.testbed.device else ())}
        return [key for key in dict.fromkeys(known) if key not in hidden]

    def explain(self, key: str) -> Iterator[Explanation]:
        """Yield the explanations of a key, or of the keys that it contains; none for an unknown key."""
        if key in self.known_keys:
            yield from self._explain_one(key)
            return
        group = {"factors": list(self.model.factors), "settings": self.setting_keys}.get(key)
        for one in group or ():
            yield from self._explain_one(one)
        if group == []:
            yield Explanation(self.prefix + key, ())
        inner = [one.removeprefix(f"{key}.") for one in self.known_keys if one.startswith(f"{key}.")]
        found = [(own, one) for own in inner for one in self._explain_one(f"{key}.{own}")]
        if inner:
            are_set = (one for one in found if any(value.layer != "default" for value in one[1].values))
            yield Explanation(self.prefix + key, (), keys=tuple(are_set))

    def _explain_one(self, key: str) -> Iterator[Explanation]:
        """Return a key's explanation or, for a setting, one for each group of hosts with the same layers."""
        return self._explain_setting(key) if is_setting(key) else iter([self._explain_key(key)])

    def _explain_key(self, key: str) -> Explanation:
        steps = nested_keys(key)
        written = _values(nodes_at(self.tree, steps))
        factor_values, levels = self._factor_values(key)
        holder = nodes_at(self.tree, steps[:-1])[:1]
        # a `duration` in a stronger layer removes `size`
        removed = bool(written) and isinstance(holder[0], Map) and steps[-1] not in holder[0]
        arrivals = nodes_at(self.tree, (*steps[:-1], "arrivals")) if steps[-1] == "start" else []
        below = () if removed else self._weakest(key)
        # Parts have copies of the top level's values; dict.fromkeys keeps each value only once.
        recipes = self._of_recipes(steps[1], "logger") if steps[-1] == "logger" else ()
        values = dict.fromkeys([*recipes, *factor_values, *_values(arrivals), *written, *below])
        return Explanation(self.prefix + key, tuple(values), levels, removed and not factor_values)

    def _of_recipes(self, name: str, key: str) -> tuple[LayerValue, ...]:
        """Return what the recipes of a logger determine, as one value: `VALUE at HOST, HOST; ...`.

        For the key `logger`, VALUE is a recipe that records the quantity; for `interval`, its default.
        """
        hosts: dict[str, list[str]] = {}
        for logger in (one for one in self.model.loggers if one.logger == name):
            for host in keys.hosts_of(self.testbed, *logger.at):
                system = self.testbed.hosts[host].system
                recipe = recorder_of(self.catalogue, logger, system) or name
                text = None if recipe == name else recipe
                if key == "interval":
                    known = self.catalogue.parameters("logger", recipe, system) or {}
                    text = known["interval_s"].default if "interval_s" in known else None
                if text is not None:
                    hosts.setdefault(text, []).append(host)
        text = "; ".join(f"{text} at {', '.join(names)}" for text, names in hosts.items())
        return (LayerValue(text, "recipe", f"records {name}"),) if text else ()

    def _weakest(self, key: str) -> tuple[LayerValue, ...]:
        """Return a key's values in the weakest layers: the default and, in a path, the bottleneck device."""
        owner, _, own = key.rpartition(".")
        if owner == "path" and self.testbed.device is not None and own != "delay":
            own, factor = ("delay", "2 * ") if own == "rtt" else (own, "")  # the device's delay is one-way
            link = self.testbed.bottleneck_link or ""
            node = node_at(self.testbed.tree, "links", link, "adapter", own)
            values = [LayerValue.of(node, "testbed")] if isinstance(node, Text) else []
            values += _default(keys.keys_of(keys.Adapter).get(own))
            if values:
                return tuple(replace(one, text=factor + one.text) for one in values)
            own = key.rpartition(".")[2]
        if owner.startswith("loggers.") and own == "interval":
            return self._of_recipes(owner.removeprefix("loggers."), own)
        model, parameters = self.owners.get(owner, (keys.Part, {})) if owner else (keys.Part, {})
        return _default(parameters.get(own)) or _default(keys.keys_of(model).get(own))

    def _factor_values(self, key: str, host: str = "") -> tuple[tuple[LayerValue, ...], tuple[str, ...]]:
        """Return the value of the factor that sets a key, and the texts of the factor's levels.

        If no factor sets the key, both are empty. If the levels of a trial are given, the
        value of the trial's level is returned, without texts.
        """
        factor = self.model.factors.get(key) or next(iter(self.setters.get(key, ())), None)
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
            text = self.testbed.value_at(host, value) or ""
        place = written[0].place if written else ""
        return (LayerValue(text, f"level of factor {factor.name}", place),) if text else (), ()

    def _explain_setting(self, key: str) -> Iterator[Explanation]:
        """Yield one explanation of a setting for each group of hosts that get it from the same layers."""
        hosts_by_values: dict[tuple[LayerValue, ...], list[str]] = {}
        for host, own in self.settings.items():
            values = [*self._factor_values(key, host)[0], *(own[key].layers if key in own else ())]
            system, recipe = self.testbed.hosts[host].system, key.partition(".")[0]
            is_run = any(one.startswith(f"{recipe}.") for one in (*own, *self.setters))
            if is_run or recipe in keys.APPLIED_BY_DEFAULT:
                parameter = setting_parameters(self.catalogue, system).get(key)
                values += _default(parameter, "recipe", f"setting/{recipe} on {system}")
            hosts_by_values.setdefault(tuple(dict.fromkeys(values)), []).append(host)
        levels = self._factor_values(key)[1]
        for values_of_hosts, hosts in hosts_by_values.items():
            at = f" at {', '.join(hosts)}" if len(hosts_by_values) > 1 else "" if levels else " at every host"
            yield Explanation(self.prefix + key, values_of_hosts, levels, hosts=tuple(hosts), at=at)


def _values(nodes: Iterable[Node]) -> tuple[LayerValue, ...]:
    return tuple(LayerValue.of(node, node.position.layer) for node in nodes)


def _level_text(level: keys.Level, key: str) -> str:
    """Return the value that a level gives to a key, or the level's label if it does not set the key.

    If the level gives this value to several hosts (`at`), it is returned once.
    """
    texts = list(keys.texts_of(level.texts.get(key, level.label)))
    return level.label if {*texts} == {level.label} else "-".join(texts)


def _default(
    declared: keys.Key | keys.ParameterInfo | None, layer: str = "default", place: str = ""
) -> tuple[LayerValue, ...]:
    """Return the default of a key or parameter as a layer's value, or () if it has no default."""
    default = declared.default if declared else None
    return () if default is None else (LayerValue(str(default), layer, place),)
