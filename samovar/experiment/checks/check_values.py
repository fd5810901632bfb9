"""Check each value of a part: its key is known, it can be read, what it names exists, its recipe takes it.

Values that a part gives and those that its levels set are checked alike; settings of hosts are also given by
config.yaml and by testbeds.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from samovar.errors import Problem
from samovar.experiment.checks.part_values import (
    GENERATOR_KEYS,
    RECIPE_KINDS,
    PartToCheck,
    PartValue,
    part_values,
)
from samovar.experiment.checks.validate import Loc, errors_of
from samovar.experiment.formula import Formula, canonical
from samovar.experiment.keys import (
    OPERATING_SYSTEMS,
    PLAIN_FACTORS,
    ROUTER_ONLY,
    SETTINGS,
    Capture,
    Config,
    Factor,
    Flow,
    Level,
    Logger,
    NetworkPath,
    ParameterInfo,
    Part,
    PathClass,
    RecipeCatalogue,
    Stop,
    Strict,
    Testbed,
    is_directed,
    is_target,
    known_factors,
    own_keys,
    parameter_owners,
    read_parameter,
    read_target,
    refusal,
    settable,
    varied_keys,
    with_device,
)
from samovar.experiment.nearest import unknown
from samovar.experiment.values import Distribution
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
MOST_STEPS = 10_000  # of the search for values that depend on themselves
Refusal = tuple[Loc, bool, str]
"""The place of a problem in a part, whether it is at the key there, and the message."""


def check_values(part: PartToCheck) -> None:
    """Report unknown keys, values that cannot be read, names of nothing, and what recipes do not take."""
    for factor in part.model.factors.values():
        _check_recipe(part, factor)
    for one in (one for values in part.values.values() for one in values):
        if not _lacks_owner(part, one):
            for place, at_key, message in _refusals(part, one):
                part.report(place, message, key=at_key, once=True)  # levels of a range share a place


def _check_recipe(part: PartToCheck, factor: Factor) -> None:
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


def _lacks_owner(part: PartToCheck, one: PartValue) -> bool:
    """Return whether a level sets a key of a flow or logger that was left out for an error of its own."""
    group = one.target.partition(".")[0]
    of_list = one.factor is not None and group in ("traffic", "loggers")
    return of_list and not is_target(one.target, part.model) and not part.intact(group)


def _refusals(part: PartToCheck, one: PartValue) -> Iterator[Refusal]:
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


def _key_error(part: PartToCheck, one: PartValue) -> str | None:
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


def _not_of_generator(part: PartToCheck, one: PartValue, generator: str) -> str:
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


def _unknown_factor(part: PartToCheck, target: str) -> str:
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


def _unknown_names(part: PartToCheck, one: PartValue) -> Iterator[Refusal]:
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


def _value_error(part: PartToCheck, one: PartValue) -> str | None:
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


def _systems(part: PartToCheck, one: PartValue) -> list[list[str]]:
    """Return groups of systems of the hosts that a setting is for; of each group one must have the setting.

    A level sets hosts that it names, or the ends of flows; the setting of a part is for any host.
    """
    testbed, traffic = part.testbed, part.model.traffic
    if testbed is None or one.factor is None:
        return [part.systems] if part.systems else []
    if one.step:
        systems = part.systems_at(one.step)
    elif one.target == "mtu":
        systems = [host.system for host in testbed.hosts.values() if host.interfaces]
    else:
        of_sender = one.target in ("cc", "txd") or one.target.startswith("cc.")
        senders = [] if one.target == "rwnd" else [flow.from_end for flow in traffic]
        receivers = [] if of_sender else [flow.to_end for flow in traffic]
        systems = part.systems_at(*senders, *receivers)
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


# Formulas


class _Values:
    """The values that the names of a part may have, by name; `path.rate.down` names one direction."""

    def __init__(self, values: Iterable[PartValue]) -> None:
        self.by_name: dict[str, list[PartValue]] = {}
        for one in values:
            name = one.target
            if is_directed(name):
                name = f"{name}.{one.step or 'down'}"
            elif one.step:
                name = f"{name}@{one.step}"  # no name means the value of one host
            self.by_name.setdefault(name, []).append(one)
            if isinstance(one.value, Distribution):  # its name means the mean, its parameters may be formulas
                self.by_name[name] += [replace(one, value=number) for number in one.value.parameters]

    def formulas(self) -> Iterator[tuple[str, PartValue, Formula]]:
        """Yield every formula with the name whose value it is."""
        for name, every in self.by_name.items():
            yield from ((name, one, one.value) for one in every if isinstance(one.value, Formula))

    def has(self, name: str) -> bool:
        """Return whether a name can have a value."""
        down = name.removesuffix(".up") + ".down"
        if name.startswith("path.buffer.") and down in self.by_name:
            return "path.rate.up" in self.by_name or name == down
        return name == "mtu" or name in self.by_name

    def inputs(self, name: str) -> tuple[str, ...]:
        """Return the names whose values a name is computed from: itself, unless it is derived."""
        if name.startswith("BDP."):
            return (f"path.rate.{name.removeprefix('BDP.')}", *self.inputs("path.rtt"))
        if name == "path.rtt" and "path.delay.down" in self.by_name and "path.rtt" not in self.by_name:
            return ("path.delay.down", "path.delay.up")
        return (name,)


def check_formulas(part: PartToCheck) -> None:
    """Report names in formulas that have no value in the part, and values that depend on themselves."""
    device = part.testbed.device if part.testbed else None
    whole = part.model.model_copy(update={"path": with_device(part.model.path, device)})
    values = _Values(part_values(whole))
    for _, possible, formula in values.formulas():
        for one in formula.names:
            message = _missing(values, part.model, one)
            if message:
                part.report(possible.where, f"'{formula.text}': {message}")
    reported: set[frozenset[str]] = set()
    for owner, possible, _ in values.formulas():
        cycle = _CycleSearch(values).find(owner, possible)
        if cycle and frozenset(cycle) not in reported:
            reported.add(frozenset(cycle))
            part.report(possible.where, f"the value depends on itself ({' -> '.join(cycle)})")


def _missing(values: _Values, part: Part, name: str) -> str | None:
    """Return the message for a name that has no value in the part."""
    known = canonical(name)
    if known.startswith("traffic."):
        label = known.removeprefix("traffic.").rpartition(".")[0]
        labels = [flow.label for flow in part.traffic]
        if label not in labels:
            return unknown("flow", label, labels)
    missing = [one for one in values.inputs(known) if not values.has(one)]
    if not missing:
        return None
    key = missing[0].removesuffix(".down")
    return f"{name} has no value here, as the part has no {key}; add it, as a value or a factor"


class _CycleSearch:
    """A depth-first search through formulas, in which a factor has the same level throughout."""

    def __init__(self, values: _Values) -> None:
        self.values, self.steps = values, 0

    def find(self, name: str, possible: PartValue) -> tuple[str, ...]:
        """Return the names on a way from a value back to itself, or nothing."""
        return self._follow(name, possible, (), {})

    def _follow(
        self, name: str, possible: PartValue, trail: tuple[str, ...], levels: Mapping[str, Level]
    ) -> tuple[str, ...]:
        self.steps += 1
        if name in trail:
            return (*trail, name) if trail[0] == name else ()
        if not isinstance(possible.value, Formula) or self.steps > MOST_STEPS:
            return ()
        if possible.factor and possible.level:
            levels = {**levels, possible.factor.name: possible.level}
        for used in possible.value.names:
            for one in self.values.inputs(canonical(used)):
                for other in self.values.by_name.get(one, ()):
                    factor = other.factor.name if other.factor else ""
                    if levels.get(factor, other.level) == other.level:
                        found = self._follow(one, other, (*trail, name), levels)
                        if found:
                            return found
        return ()
