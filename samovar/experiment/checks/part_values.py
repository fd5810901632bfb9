"""Collect the inputs of the checks of a part: all values that its keys have in trials, and its recipes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from samovar.experiment import keys
from samovar.experiment.checks.validate import Loc, Validation
from samovar.experiment.logger_recipes import logger_parameters
from samovar.experiment.values import Directional, PerHost

Parameters = Mapping[str, keys.ParameterInfo]
RECIPE_KINDS = {"path": "aqm", "traffic": "generator", "loggers": "logger"}
"""The keys that name the recipe of a path, flow or logger. Each key is also the kind of that recipe."""
GENERATOR_KEYS = ("cc", "dscp")
"""Keys that a flow may have only if its generator has a parameter of the same name."""


@dataclass(frozen=True)
class PartValue:
    """A value that a key of a part has in some trial, from the part itself or from a level.

    `owner` is path, traffic.LABEL, loggers.NAME, the name of a setting recipe, or empty. `place` has the
    nested keys that lead from the part to the value. If the value is for one direction or host, `step` is
    this direction or host. If the text cannot be read, `value` is the error. `model` is the class that
    declares the key, or, for a recipe's parameter, the class with the key that names the recipe. `model` is
    None for settings of hosts.
    """

    owner: str
    key: str
    value: object
    place: Loc
    step: str = ""
    model: type[keys.Strict] | None = None
    factor: keys.Factor | None = None
    level: keys.Level | None = None

    @property
    def target(self) -> str:
        """The key in the form that factors use, such as path.rate."""
        return f"{self.owner}.{self.key}" if self.owner else self.key

    @property
    def where(self) -> Loc:
        """The place of this value, including its direction or host."""
        return (*self.place, self.step) if self.step else self.place

    @property
    def of_hosts(self) -> bool:
        """Whether the target is a setting of hosts."""
        return self.place[0] == "settings" or (self.factor is not None and is_setting(self.target))

    @property
    def of_recipe(self) -> bool:
        """Whether the key must be a recipe's parameter, because paths, flows and loggers have no such key."""
        if self.model is None or not issubclass(self.model, keys.WithParameters):
            return False
        return self.key not in keys.keys_of(self.model)

    @property
    def key_place(self) -> tuple[Loc, bool]:
        """The place in the file with the target's name, and whether the name is a key there (not a value)."""
        factor = self.factor
        if factor is None or isinstance(self.place[-1], str):
            return self.place, True
        if self.target in factor.sets:
            return ("factors", factor.name, "sets", factor.sets.index(self.target)), False
        return ("factors", factor.name), True

    def split(self) -> Iterator[PartValue]:
        """Yield a PartValue for each direction or host, or this one alone if the value applies to all."""
        steps: Mapping[str, object] = {"": self.value}
        if isinstance(self.value, Directional):
            steps = {"down": self.value.down, "up": self.value.up}
        elif isinstance(self.value, PerHost):
            steps = self.value.hosts
        for step, value in steps.items():
            if value is not None:
                yield replace(self, value=value, step=step)


@dataclass(frozen=True)
class PartToCheck:
    """A part of an experiment, its testbed (None if unknown), and `checked`, which collects problems."""

    checked: Validation[keys.Experiment]
    testbed: keys.Testbed | None
    catalogue: keys.RecipeCatalogue
    model: keys.Part

    @property
    def device_link(self) -> str | None:
        """The link whose device is the testbed's bottleneck, or None."""
        return self.testbed.bottleneck_link if self.testbed else None

    @cached_property
    def end_names(self) -> list[str] | None:
        """Names of hosts and roles that a flow may run from or to; None without a testbed."""
        return list(self.testbed.hosts_by_name) if self.testbed else None

    @cached_property
    def values(self) -> Mapping[str, Sequence[PartValue]]:
        """Maps each key to the values that it has in trials."""
        found: dict[str, list[PartValue]] = {}
        for one in part_values(self.model, self.has_path):
            found.setdefault(one.target, []).append(one)
        return found

    @cached_property
    def setters(self) -> Mapping[str, Sequence[keys.Factor]]:
        """Maps each key to the factors that set it."""
        found: dict[str, list[keys.Factor]] = {}
        for factor in self.model.factors.values():
            for target in sorted({target for level in factor.levels for target in level.texts}):
                found.setdefault(target, []).append(factor)
        return found

    @property
    def has_path(self) -> bool:
        """Whether the part has a path, or a factor that sets a key of the path."""
        return self.model.path is not None or any(target.startswith("path.") for target in self.setters)

    def setters_of(self, *targets: str) -> list[keys.Factor]:
        """Return the factors that set at least one of these keys."""
        found = [factor for target in targets for factor in self.setters.get(target, ())]
        return [factor for factor in self.model.factors.values() if factor in found]

    def recipes_of(self, owner: str, *, of_kind: bool = False) -> list[Parameters]:
        """Return the parameters of each recipe of a path, flow or logger, including recipes that levels name.

        With `of_kind`, the result includes queue disciplines or generators that the part does not use.
        The plan checks whether the recipe that a treatment uses has a parameter.
        """
        kind = RECIPE_KINDS[owner.partition(".")[0]]
        if kind == "aqm" and self.device_link:
            return [keys.DEVICE_PARAMETERS]
        if kind == "logger":
            name = owner.partition(".")[2]
            takes = (logger_parameters(self.catalogue, name, os) for os in self.systems_of(owner))
            return [parameters for parameters in takes if parameters is not None]
        chosen = {str(one.value) for one in self.values.get(f"{owner}.{kind}", ())}
        return [
            keys.settable(self.catalogue, kind, name, system)
            for system in self.systems_of(owner)
            for name in self.catalogue.names(kind, system)
            if of_kind or name in chosen
        ]

    def systems_of(self, owner: str, *, receivers: bool = False) -> list[str]:
        """Return the systems on which the recipes of a path, flow or logger run.

        These are the systems of the router, of the flow's senders (and its receivers, with `receivers`), or
        of the logger's hosts.
        """
        bottleneck = self.testbed.bottleneck if self.testbed else None
        names = [bottleneck.router] if bottleneck and owner == "path" else []
        for flow in self.model.traffic:
            if owner == f"traffic.{flow.label}":
                names += [flow.from_end, flow.to_end] if receivers else [flow.from_end]
        names += [at for one in self.model.loggers if owner == f"loggers.{one.logger}" for at in one.at]
        return self.systems_at(*names)

    def systems_at(self, *names: str) -> list[str]:
        """Return the systems of the hosts with these names or roles, each once."""
        if self.testbed is None:
            return []
        hosts = keys.hosts_of(self.testbed, *names)
        return list(dict.fromkeys(self.testbed.hosts[host].system for host in hosts))

    @property
    def systems(self) -> list[str]:
        """The operating systems of the testbed's hosts; empty if the testbed is unknown."""
        return sorted(self.systems_at(*self.testbed.hosts)) if self.testbed else []

    @cached_property
    def flow_labels(self) -> set[str]:
        """The labels of flows: of the entries of `traffic`, and of each flow that an entry may expand to."""
        labels = {flow.label for flow in self.model.traffic}
        if self.testbed is None:
            return labels
        for flow in self.model.traffic:
            targets = f"traffic.{flow.label}.count", f"traffic.{flow.label}.arrivals.count"
            counts = [one.value for target in targets for one in self.values.get(target, ())]
            counts.append(keys.number_of(flow, self.testbed))
            most = max((count for count in counts if isinstance(count, int)), default=None)
            labels |= {one.label for one in keys.members_of(flow, self.testbed, most)}
        return labels


def part_values(part: keys.Part, has_path: bool) -> Iterator[PartValue]:
    """Yield every value that the keys of a part have in some trial, one for each direction and host."""
    yield from _values_in(part, "", ())
    if part.path is None and has_path:
        yield from _values_in(keys.NetworkPath(), "path", ("path",))
    yield from setting_values(part.settings)
    for factor, level, place in part_levels(part):
        for target, value in level.values.items():
            at = (*place, target) if factor.linked and target != factor.name else place
            owner, _, key = target.rpartition(".")
            model = keys.model_of(owner)
            yield from PartValue(owner, key, value, at, model=model, factor=factor, level=level).split()


def setting_values(settings: Mapping[str, str | PerHost[str]]) -> Iterator[PartValue]:
    """Yield the values of settings of hosts."""
    for target, text in settings.items():
        recipe, _, key = target.rpartition(".")
        yield from PartValue(recipe, key, keys.read_target(target, text), ("settings", target)).split()


def _values_in(model: keys.Strict, owner: str, place: Loc) -> Iterator[PartValue]:
    """Yield the values of the keys and recipe parameters of a model and of the models in its fields."""
    for name, key in keys.keys_of(type(model)).items():
        value = getattr(model, key.attribute)
        many = isinstance(value, tuple)
        for index, one in enumerate(value if many else (value,)):
            at = (*place, name, index) if many else (*place, name)
            if isinstance(one, keys.Strict):
                label = str(getattr(one, "label", getattr(one, "logger", None)) or index) if many else ""
                yield from _values_in(one, ".".join(filter(None, (owner, name, label))), at)
            elif one is not None and not isinstance(one, Mapping):
                yield from PartValue(owner, name, one, at, model=type(model)).split()
    for name, text in getattr(model, "parameters", {}).items():
        yield PartValue(owner, name, text, (*place, name), model=type(model))


def part_levels(part: keys.Part) -> Iterator[tuple[keys.Factor, keys.Level, Loc]]:
    """Yield every level of a part with its factor and place, also levels that occur only in `include`."""
    for name, factor in part.factors.items():
        for index, level in enumerate(factor.levels):
            yield factor, level, ("factors", name, "levels", index)
    for index, treatment in enumerate(part.include):
        for name, level in treatment.items():
            if level not in part.factors[name].levels:
                yield part.factors[name], level, ("include", index, name)


def is_setting(target: str) -> bool:
    """Return whether a key is a setting of hosts: cc, rwnd, mtu, txd, cc.PARAMETER or RECIPE.PARAMETER."""
    return target in keys.SETTINGS or ("." in target and target.partition(".")[0] not in keys.NOT_OF_HOSTS)
