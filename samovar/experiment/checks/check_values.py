"""Check each value of a part: its key is known, it can be read, what it names exists, its recipe takes it.

Values that a part gives and those that its levels set are checked alike; settings of hosts are also given by
config.yaml and by testbeds.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence

from samovar.errors import Problem
from samovar.experiment.checks.check_context import GENERATOR_KEYS, RECIPE_KINDS, PartInContext, PartValue
from samovar.experiment.checks.validate import Loc, errors_of
from samovar.experiment.keys import (
    OPERATING_SYSTEMS,
    PLAIN_FACTORS,
    ROUTER_ONLY,
    SETTINGS,
    Capture,
    Config,
    Factor,
    Flow,
    Logger,
    NetworkPath,
    PathClass,
    Stop,
    Strict,
    Testbed,
    is_target,
    known_factors,
    own_keys,
    parameter_owners,
    read_parameter,
    read_target,
    refusal,
    settable,
    varied_keys,
)
from samovar.experiment.nearest import unknown
from samovar.experiment.recipe_interface import ParameterInfo, RecipeCatalogue
from samovar.experiment.yaml_tree import Map, node_at

NAMES: Mapping[tuple[type[Strict] | None, str], str] = {
    (Flow, "from"): "host or role",
    (Flow, "to"): "host or role",
    (Flow, "generator"): "generator",
    (Flow, "until"): "flow",
    (Stop, "when"): "flow",
    (NetworkPath, "aqm"): "aqm",
    (PathClass, "flow"): "flow",
    (PathClass, "from"): "host or role",
    (PathClass, "to"): "host or role",
    (Capture, "at"): "host or role",
    (Logger, "at"): "host or role",
    (Logger, "logger"): "logger",
}
"""What the values of keys name."""
Refusal = tuple[Loc, bool, str]
"""The place of a problem in a part, whether it is at the key there, and the message."""


def check_values(part: PartInContext) -> None:
    """Report unknown keys, values that cannot be read, names of nothing, and what recipes do not take."""
    for factor in part.model.factors.values():
        _check_recipe(part, factor)
    for one in (one for values in part.values.values() for one in values):
        if not _lacks_owner(part, one):
            for place, at_key, message in _refusals(part, one):
                part.report_value(place, message, key=at_key)


def _check_recipe(part: PartInContext, factor: Factor) -> None:
    """Report an unknown recipe that a factor names, one without a parameter, and unknown hosts beside it."""
    where = ("factors", factor.name)
    if part.systems and factor.recipe and factor.recipe not in PLAIN_FACTORS:
        settings = [key.split(".") for key in setting_parameters(part.catalogue, *part.systems)]
        known = {*SETTINGS, *(recipe for recipe, _ in settings)}
        if part.check_name((*where, "recipe"), "setting", factor.recipe, known) and part.intact(*where):
            takes = ", ".join(sorted(name for recipe, name in settings if recipe == factor.recipe))
            message = f"recipe '{factor.recipe}' needs a parameter; add parameter: with one of {takes}"
            if not factor.parameter:
                part.report((*where, "recipe"), message)
    for index, end in enumerate(factor.at):
        part.check_name((*where, "at", index), "host or role", end, part.end_names)


def _lacks_owner(part: PartInContext, one: PartValue) -> bool:
    """Return whether a level sets a key of a flow or logger that was left out for an error of its own."""
    group = one.target.partition(".")[0]
    of_list = one.factor is not None and group in ("traffic", "loggers")
    return of_list and not is_target(one.target, part.model) and not part.intact(group)


def _refusals(part: PartInContext, one: PartValue) -> Iterator[Refusal]:
    """Yield why a value is refused: for its key alone, or else for what it is."""
    message = _key_error(part, one)
    if message:
        where = ("factors", one.factor.name if one.factor else "")
        if part.intact(*where) and part.valid(*where, "recipe"):
            yield *one.key_place, message
    elif isinstance(one.value, ValueError):
        for steps, message, at_key in errors_of(one.value):
            yield (*one.where, *steps), at_key, message if at_key else f"{one.target}: {message}"
    else:
        yield from _unknown_names(part, one)
        message = _value_error(part, one)
        if message:
            yield one.where, False, message


def _key_error(part: PartInContext, one: PartValue) -> str | None:
    """Return why a key cannot be set; None if it can."""
    if one.of_hosts:
        errors = (setting_key_error(one.target, systems, part.catalogue) for systems in _systems(part, one))
        return next((error for error in errors if error), None)
    if one.factor is not None and not is_target(one.target, part.model):
        return _unknown_factor(part, one.target)
    if not one.of_recipe:
        return None
    recipes = part.recipes_of(one.owner, one.level)
    having = [name for name, known in recipes if one.key in known]
    lacking = [(name, known) for name, known in recipes if one.key not in known]
    if not lacking:
        return None
    name, known = lacking[0]
    if having:
        kind = RECIPE_KINDS[one.owner.partition(".")[0]]
        together = f"{{{one.owner}.{kind}: {having[0]}, {one.target}: ...}}"
        return f"{name} does not take {one.key}, {having[0]} does; set both in one level, {together}"
    if one.key in GENERATOR_KEYS and one.model is Flow:
        return _not_of_generator(part, one, name)
    own = own_keys(one.model) if one.model and one.level is None else varied_keys(one.owner).keys()
    not_taken = ROUTER_ONLY if part.device_link and one.owner == "path" else ()
    return unknown("key or parameter", one.key, {*known, *own}.difference(not_taken))


def _not_of_generator(part: PartInContext, one: PartValue, generator: str) -> str:
    """Return the message for a congestion control or DSCP that a flow's generator cannot set."""
    catalogue = part.catalogue
    able = {
        name
        for system in part.systems_of(one.owner)
        for name in catalogue.names("generator", system)
        if one.key in (catalogue.parameters("generator", name, system) or {})
    }
    instead = f"use one that does: {', '.join(sorted(able))}" if able else "no generator there does"
    per_host = "; or settings: {cc: {HOST: ...}} for all flows of a host" if one.key == "cc" else ""
    return f"generator {generator} does not take {one.key}; {instead}{per_host}"


def _unknown_factor(part: PartInContext, target: str) -> str:
    """Return the message for an unknown factor, with the nearest known one."""
    flow, dot, _ = target.removeprefix("traffic.").rpartition(".arrivals.")
    if dot and any(one.label == flow for one in part.model.traffic):
        return f"flow '{flow}' has no arrivals; add such as arrivals: {{poisson: 2/s, until: 60s}} to it"
    owners = list(parameter_owners(part.model))
    settings = setting_parameters(part.catalogue, *part.systems)
    recipes = ((owner, known) for owner in owners if owner != "cc" for _, known in part.recipes_of(owner))
    parameters = (f"{owner}.{name}" for owner, known in recipes for name in known)
    kinds = [
        *PLAIN_FACTORS,
        *(f"{owner}.<{'parameter' if owner == 'cc' else 'key'}>" for owner in owners),
        *(f"{key.partition('.')[0]}.<parameter>" for key in settings),
    ]
    return unknown("factor", target, {*known_factors(part.model), *settings, *parameters}, set(kinds))


def _unknown_names(part: PartInContext, one: PartValue) -> Iterator[Refusal]:
    """Yield a refusal of a host, flow or recipe that a value names and that does not exist."""
    name, what = str(one.value), NAMES.get((one.model, one.key))
    known: dict[str, Collection[str] | None] = {}
    if one.of_hosts and one.step and not (one.factor and one.factor.at):
        if part.end_names is not None and one.step not in part.end_names:
            yield one.where, True, unknown("host or role", one.step, part.end_names)
    elif what == "flow":
        known = {"flow": part.flows}
    elif what == "host or role" and "/" not in name and ":" not in name:
        known = {"host or role": part.end_names}
    elif what in ("aqm", "generator", "logger"):
        systems = part.systems_of(one.owner, receivers=True)
        known = {f"{what} on {system}": part.catalogue.names(what, system) for system in systems}
    for of, names in known.items():
        if names is not None and name not in names:
            yield one.where, False, unknown(of, name, names)


def _value_error(part: PartInContext, one: PartValue) -> str | None:
    """Return why a recipe refuses the value of a parameter or setting; None if none does."""
    if not isinstance(one.value, str) or (one.model and one.key in own_keys(one.model)):
        return None
    if one.of_hosts:
        every = [
            setting_value_error(one.target, one.value, own, part.catalogue) for own in _systems(part, one)
        ]
        return next((f"{one.target}: {error}" for error in every if error), None)
    recipes = part.recipes_of(one.owner, one.level) if one.of_recipe else ()
    refusals = (refusal(one.key, one.value, known, ()) for _, known in recipes)
    return next((message for message in refusals if message), None)


# Settings of hosts


def _systems(part: PartInContext, one: PartValue) -> list[list[str]]:
    """Return groups of systems of the hosts that a setting is for; of each group one must have the setting.

    A level sets hosts that it names, or the ends of flows; the setting of a part is for any host.
    """
    testbed, traffic = part.testbed, part.model.traffic
    if testbed is None or one.factor is None:
        return [part.systems] if part.systems else []
    if one.step:
        systems = part.context.systems_of(one.step)
    elif one.target == "mtu":
        systems = [host.system for host in testbed.hosts.values() if host.interfaces]
    else:
        of_sender = one.target in ("cc", "txd") or one.target.startswith("cc.")
        senders = [] if one.target == "rwnd" else [flow.from_end for flow in traffic]
        receivers = [] if of_sender else [flow.to_end for flow in traffic]
        systems = part.context.systems_of(*senders, *receivers)
    return [[system] for system in sorted(set(systems))]


def setting_parameters(catalogue: RecipeCatalogue, *systems: str) -> dict[str, ParameterInfo]:
    """Return RECIPE.PARAMETER of all setting recipes of some systems that a file may give a value."""
    return {
        f"{recipe}.{name}": info
        for system in systems
        for recipe in sorted(catalogue.names("setting", system))
        for name, info in settable(catalogue, "setting", recipe, system).items()
    }


def check_site(testbed: Testbed, config: Config | None, catalogue: RecipeCatalogue) -> Iterator[Problem]:
    """Yield the problems of the settings of config.yaml, of a testbed and of its hosts."""
    site, every = config.written if config is not None else None, list(testbed.hosts)
    by_os = {os: [name for name in every if testbed.hosts[name].os == os] for os in OPERATING_SYSTEMS}
    layers = [
        (node_at(site, "settings"), every, True),
        *((node_at(site, "os", os, "settings"), hosts, True) for os, hosts in by_os.items()),
        (node_at(testbed.written, "settings"), every, False),
        *((node_at(testbed.written, "hosts", host, "settings"), [host], False) for host in every),
    ]
    for settings, hosts, other_hosts in layers:
        systems = sorted({testbed.hosts[host].system for host in hosts})
        names = {name for host in hosts for name in testbed.names_of(host)}
        for key, value in settings.items() if isinstance(settings, Map) else ():
            by_host = value if isinstance(value, Map) else None
            for name in by_host or () if not other_hosts else ():
                if by_host is not None and name not in names:
                    yield by_host.key_positions[name].problem(unknown("host or role", name, names))
            message = setting_key_error(key, systems, catalogue)
            if message and isinstance(settings, Map):
                yield settings.key_positions[key].problem(message)
                continue
            for one in (value,) if by_host is None else by_host.values():
                error = setting_value_error(key, one, systems, catalogue) if isinstance(one, str) else None
                if error:
                    yield one.position.problem(f"{key}: {error}")


def setting_key_error(key: str, systems: Sequence[str], catalogue: RecipeCatalogue) -> str | None:
    """Return the message for a key that no setting recipe of some systems has; None if one has it."""
    builtin = {name for name in SETTINGS for one in systems if name in catalogue.names("setting", one)}
    settings = setting_parameters(catalogue, *systems)
    if not systems or key in builtin or key in settings or (key.startswith("cc.") and key != "cc."):
        return None
    return unknown(f"setting on {', '.join(systems)}", key, {*builtin, *settings, "cc.<parameter>"})


def setting_value_error(
    key: str, value: str, systems: Sequence[str], catalogue: RecipeCatalogue
) -> str | None:
    """Return why a setting cannot have a value on some systems; None if it can."""
    recipe, _, parameter = key.partition(".")
    try:
        read_target(key, str(value))
        for system in systems:
            info = settable(catalogue, "setting", recipe, system).get(parameter)
            if info is not None:
                read_parameter(info, str(value))
    except ValueError as error:
        return str(error)
    return None
