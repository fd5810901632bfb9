"""Check each value of a part: its key and the names in it are known, and types and recipes accept it.

The values of levels are checked like the part's own values. Settings of hosts in config.yaml and testbeds are
checked here as well.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import cast

from samovar.errors import Problem, unknown
from samovar.experiment import keys
from samovar.experiment.checks.part_values import (
    RECIPE_KINDS,
    Parameters,
    PartToCheck,
    PartValue,
    setting_values,
)
from samovar.experiment.checks.validate import Loc, position_at
from samovar.experiment.logger_recipes import recorders_by_system
from samovar.experiment.values import PerHost, errors_of
from samovar.experiment.yaml_tree import Map, node_at, plain
from samovar.units import UnitError

NAMES: Mapping[tuple[type[keys.Strict] | None, str], str] = {
    (keys.Flow, "from"): "host or role",
    (keys.Flow, "to"): "host or role",
    (keys.Flow, "generator"): "generator",
    (keys.Flow, "until"): "flow",
    (keys.Stop, "when"): "flow",
    (keys.NetworkPath, "aqm"): "aqm",
    (keys.PathClass, "flow"): "flow",
    (keys.PathClass, "from"): "host or role",
    (keys.PathClass, "to"): "host or role",
    (keys.Capture, "at"): "host or role",
    (keys.Logger, "at"): "host or role",
    (keys.Logger, "logger"): "logger",
    (keys.Logger, "prefer"): "preferred logger",
}
"""Keys whose values are names, and what each names."""
Refusal = tuple[Loc, bool, str]
"""A problem: its place in the part, whether the key (not the value) is wrong, and the message."""


def check_values(part: PartToCheck) -> None:
    """Report unknown keys, unreadable values, unknown names, and values that recipes do not accept."""
    for one in (one for values in part.values.values() for one in values):
        group = one.target.partition(".")[0]
        known = one.factor is None or keys.is_target(one.target, part.model)
        if group in ("traffic", "loggers") and not known and not part.checked.intact(group):
            continue  # its flow or logger may have been left out as invalid
        incomplete = one.factor is not None and not part.checked.intact("factors", one.factor.name)
        for place, at_key, message in _refusals(part, one):
            if not incomplete or (place, at_key) != one.key_place:
                part.checked.report(place, message, key=at_key, once=True)  # levels of a range share a place
    _check_weaker_settings(part)


def _check_weaker_settings(part: PartToCheck) -> None:
    """Report problems in settings of weaker layers, for the hosts that the strongest layer does not name."""
    settings = node_at(part.checked.tree, *map(str, part.checked.prefix), "settings")
    known = part.systems, part.end_names, part.catalogue
    for key, nodes in settings.overridden.items() if isinstance(settings, Map) else ():
        for node in nodes if isinstance(node_at(settings, key), Map) else ():
            layer = Map(node.position)
            layer.put(key, node, node.position)
            for one in setting_values({key: cast(PerHost[str], plain(node))}):
                for place, at_key, message in _setting_refusals(one, *known):
                    problem = position_at(layer, place[1:], key=at_key).problem(message)
                    part.checked.problems.append(problem)


def _refusals(part: PartToCheck, one: PartValue) -> Iterator[Refusal]:
    """Yield the problem of a value's key or, if the key is valid, the problems of the value."""
    if one.of_hosts:
        systems = part.systems_at(one.step) if one.step else part.systems
        names = None if one.factor is not None and one.factor.at else part.end_names
        yield from _setting_refusals(one, systems, names, part.catalogue)
        return
    recipes = part.recipes_of(one.owner) if one.of_recipe else []
    if one.factor is not None and not keys.is_target(one.target, part.model):
        yield *one.key_place, _unknown_factor(part, one.target)
    elif recipes and not any(one.key in known for known in part.recipes_of(one.owner, of_kind=True)):
        own = keys.keys_of(one.model) if one.model and one.level is None else keys.varied_keys(one.owner)
        refused = keys.ROUTER_ONLY if part.device_link and one.model is keys.NetworkPath else ()
        known = {*own}.difference(refused).union(*recipes)
        yield *one.key_place, unknown("key or parameter", one.key, known)
    elif isinstance(one.value, ValueError):
        yield from _unreadable(one)
    else:
        yield from _unknown_names(part, one)
        yield from _refused_by_recipes(one, one.key, recipes)


def _unreadable(one: PartValue) -> Iterator[Refusal]:
    """Yield the errors of a value that could not be read."""
    for steps, message, at_key in errors_of(one.value) if isinstance(one.value, ValueError) else ():
        yield (*one.where, *steps), at_key, message if at_key else f"{one.target}: {message}"


def _refused_by_recipes(one: PartValue, name: str, recipes: Iterable[Parameters]) -> Iterator[Refusal]:
    """Yield an error for each recipe that does not accept the given text as the value of its parameter."""
    for known in recipes:
        if isinstance(one.value, str) and name in known:
            try:
                keys.parse_parameter(known[name], one.value, formulas=True)
            except UnitError as error:
                yield one.where, False, f"{name}: {error}"


def _unknown_factor(part: PartToCheck, target: str) -> str:
    """Return the message for an unknown factor, with the most similar known factor."""
    flow, dot, _ = target.removeprefix("traffic.").rpartition(".arrivals.")
    if dot and flow in part.flow_labels:
        return f"flow '{flow}' has no arrivals; add them, such as arrivals: {{poisson: 2/s, until: 60s}}"
    settings = setting_parameters(part.catalogue, *part.systems)
    every = list(keys.owners_of(part.model))
    factors = {f"{owner}.{name}".removeprefix(".") for owner in every for name in keys.varied_keys(owner)}
    owners = [owner for owner in every if owner.partition(".")[0] in RECIPE_KINDS]
    recipes = [(owner, known) for owner in owners for known in part.recipes_of(owner)]
    parameters = {f"{owner}.{name}" for owner, known in recipes for name in known}
    kinds = {*keys.PLAIN_FACTORS, "cc.<parameter>", *(f"{owner}.<key>" for owner in owners)}
    kinds |= {f"{key.partition('.')[0]}.<parameter>" for key in settings}
    return unknown("factor", target, {*factors, *settings, *parameters}, kinds)


def _unknown_names(part: PartToCheck, one: PartValue) -> Iterator[Refusal]:
    """Yield a problem if a value names a host, flow or recipe that does not exist."""
    name, what = str(one.value), NAMES.get((one.model, one.key))
    known: dict[str, Collection[str] | None] = {}
    if what == "flow":
        known = {"flow": part.flow_labels}
    elif what == "host or role" and "/" not in name and ":" not in name:  # otherwise, it is a subnet
        known = {"host or role": part.end_names}
    elif what == "logger":
        yield from ((one.where, False, message) for message in _unknown_logger(part, one.owner, name))
    elif what == "preferred logger":
        yield from ((one.where, False, message) for message in _unknown_recorder(part, one.owner, name))
    elif what in ("aqm", "generator"):
        systems = part.systems_of(one.owner, receivers=True)
        known = {f"{what} on {system}": part.catalogue.names(what, system) for system in systems}
    for of, names in known.items():
        if names is not None and name not in names:
            yield one.where, False, unknown(of, name, names)


def _unknown_logger(part: PartToCheck, owner: str, name: str) -> Iterator[str]:
    """Yield a message for each system that has neither a logger nor a recorded quantity of this name."""
    for system in part.systems_of(owner):
        quantities = part.catalogue.quantities(system)
        names = part.catalogue.names("logger", system)
        if name in quantities or name in names:
            continue
        elsewhere = (part.catalogue.quantities(os).items() for os in keys.OPERATING_SYSTEMS)
        recorded = next((one for known in elsewhere for one, by in known if name in by), name)
        if recorded in quantities:
            instead = f"use `logger: {recorded}`, which {quantities[recorded][0]} records there"
            yield f"logger {name} does not run on {system}; {instead}"
        else:
            yield unknown(f"logger on {system}", name, {*quantities, *names})


def _unknown_recorder(part: PartToCheck, owner: str, name: str) -> Iterator[str]:
    """Yield a message if the recipe in `prefer` does not record the quantity that the logger names."""
    logger, systems = owner.partition(".")[2], part.systems_of(owner)
    known = set[str]().union(*recorders_by_system(part.catalogue, logger, systems).values())
    if not known and any(logger in part.catalogue.names("logger", system) for system in systems):
        yield f"`logger: {logger}` is a recipe; with `prefer`, name a quantity, such as `logger: tcp-state`"
    elif known and name not in known:
        yield unknown(f"logger that records {logger}", name, known)


# Settings of hosts


def check_site(
    testbed: keys.Testbed, config: keys.Config | None, catalogue: keys.RecipeCatalogue
) -> Iterator[Problem]:
    """Yield the problems in the settings of config.yaml, of a testbed and of its hosts."""
    every, tree = list(testbed.hosts), testbed.tree
    layers: list[tuple[Map | None, Loc, Mapping[str, str | PerHost[str]], list[str]]] = [
        (tree, (), testbed.settings, every),
        *((tree, ("hosts", name), host.settings, [name]) for name, host in testbed.hosts.items()),
    ]
    if config is not None:
        layers.append((config.tree, (), config.settings, every))
        for os, system in config.os.items():
            hosts = [name for name in every if testbed.hosts[name].os == os]
            layers.append((config.tree, ("os", os), system.settings, hosts))
    for tree, prefix, settings, hosts in layers:
        if tree is None:
            continue
        names = {name for host in hosts for name in testbed.names_of(host)}
        known = names if tree is testbed.tree else None  # config.yaml may name hosts of other testbeds
        systems = sorted({testbed.hosts[host].system for host in hosts})
        for one in setting_values(settings):
            for place, at_key, message in _setting_refusals(one, systems, known, catalogue):
                yield position_at(tree, (*prefix, *place), key=at_key).problem(message)


def _setting_refusals(
    one: PartValue, systems: Sequence[str], names: Collection[str] | None, catalogue: keys.RecipeCatalogue
) -> Iterator[Refusal]:
    """Yield the problems of a host setting: unknown host, invalid value, or a key that no system has."""
    if one.step and names is not None and one.step not in names:
        yield one.where, True, unknown("host or role", one.step, names)
    if systems:
        plain = {name for name in keys.SETTINGS for os in systems if name in catalogue.names("setting", os)}
        known = {*plain, *setting_parameters(catalogue, *systems), "cc.<parameter>"}
        if one.target not in known and not one.target.startswith("cc."):
            message = unknown(f"setting on {', '.join(systems)}", one.target, known)
            parameters = sorted(key for key in known if key.startswith(f"{one.target}."))
            if parameters:  # nested, as in {tcp: {sack: off}}
                message = f"'{one.target}' is a recipe; expected one of {', '.join(parameters)}"
            yield *one.key_place, message
            return
        takes = [setting_parameters(catalogue, system) for system in systems]
        yield from _refused_by_recipes(one, one.target, takes)
    yield from _unreadable(one)


def setting_parameters(catalogue: keys.RecipeCatalogue, *systems: str) -> dict[str, keys.ParameterInfo]:
    """Return the parameters of all recipes of kind `setting` for these systems, if files may set them.

    The keys of the result are RECIPE.PARAMETER.
    """
    return {
        f"{recipe}.{name}": info
        for system in systems
        for recipe in sorted(catalogue.names("setting", system))
        for name, info in keys.settable(catalogue, "setting", recipe, system).items()
    }
