"""Check the design of a part: factors, their levels, excluded and included treatments."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import product
from math import prod

from samovar.experiment.checks.check_context import Context, setters_of, varied
from samovar.experiment.checks.check_path import not_taken
from samovar.experiment.checks.check_settings import (
    is_setting,
    setting_key_error,
    setting_parameters,
    setting_value_error,
)
from samovar.experiment.checks.check_traffic import flows_by_label
from samovar.experiment.checks.validate import Loc, errors_of, position_at
from samovar.experiment.keys import (
    FLOW_ENDS,
    PLAIN_FACTORS,
    Experiment,
    Factor,
    Level,
    Part,
    Treatment,
    included_level,
    is_excluded,
    is_target,
    known_factors,
    matches,
    parameter_owners,
    read_target,
    refusal,
    wanted_labels,
)
from samovar.experiment.nearest import unknown
from samovar.experiment.values import Directional, LevelText, PerHost
from samovar.experiment.yaml.tree import Position

MOST_TRIALS = 2_000_000
MOST_COUNTED = 20_000  # treatments that are tried to see whether the exclude lines leave any
Line = Mapping[str, str | tuple[str, ...]]


def check_size(context: Context, experiment: Experiment) -> None:
    """Report the part with which the experiment has too many trials to be planned."""
    count = 0
    for name, part in experiment.parts.items():
        treatments = prod(len(factor.levels) for factor in part.factors.values())
        count += treatments * part.replicates
        if count > MOST_TRIALS:
            key, size = "factors", f"{treatments:,} treatments"
            if treatments <= MOST_TRIALS:
                key, size = "replicates", f"{size} x {part.replicates:,} replicates"
            message = f"{size} are too many; an experiment may have {MOST_TRIALS:,} trials"
            context.report(("parts", name, key), message)
            return


def check_design(context: Context, name: str, part: Part) -> None:
    """Report unknown factors, levels that cannot be set, and invalid lines of exclude and include."""
    where: Loc = ("parts", name)
    for factor in part.factors.values():
        _check_factor(context, (*where, "factors", factor.name), factor, part)
    _check_conflicts(context, where, part)
    _check_exclude(context, where, part)
    _check_include(context, where, part)


def _check_factor(context: Context, where: Loc, factor: Factor, part: Part) -> None:
    """Check one factor, but not what follows only from an error that is reported already."""
    whole = context.checked.intact(*where)
    if not factor.levels and whole:
        context.report(where, f"factor '{factor.name}' has no levels; give at least one")
    if factor.recipe is not None:
        if _check_recipe(context, where, factor) and (whole or factor.parameter):
            _check_levels(context, where, factor, part)
    elif factor.sets:
        if _check_sets(context, where, factor, part):
            _check_levels(context, where, factor, part)
    elif _is_named_after_target(factor) and not _is_known(context, factor.name, part):
        if whole and not _lacks_owner(context, where, factor.name):
            context.report(where, _unknown_factor(context, factor.name, part), key=True)
    else:
        _check_levels(context, where, factor, part)


def _is_named_after_target(factor: Factor) -> bool:
    """Return whether the name of a factor is the key that its levels set."""
    return not factor.linked or any(level.texts.keys() == {factor.name} for level in factor.levels)


def _is_known(context: Context, target: str, part: Part) -> bool:
    """Return whether a level may set a key; whether a recipe takes a parameter is checked with its value."""
    recipe, dot, _ = target.partition(".")
    if not is_target(target, part) or not is_setting(target) or not dot or recipe in PLAIN_FACTORS:
        return is_target(target, part)
    systems = _all_systems(context)
    return not systems or any(recipe in context.catalogue.names("setting", one) for one in systems)


def _all_systems(context: Context) -> list[str]:
    return sorted({host.system for host in context.testbed.hosts.values()}) if context.testbed else []


def _lacks_owner(context: Context, where: Loc, target: str) -> bool:
    """Return whether a target may be of a flow or logger that was left out for an error of its own."""
    owner = target.partition(".")[0]
    return owner in ("traffic", "loggers") and not context.checked.intact(*where[:2], owner)


def _check_sets(context: Context, where: Loc, factor: Factor, part: Part) -> bool:
    """Check the keys that a factor sets together; return whether all are known."""
    strange = [(n, key) for n, key in enumerate(factor.sets) if not _is_known(context, key, part)]
    for index, key in strange:
        if not _lacks_owner(context, where, key):
            context.report((*where, "sets", index), _unknown_factor(context, key, part))
    return not strange


def _check_recipe(context: Context, where: Loc, factor: Factor) -> bool:
    """Check the recipe that a factor names; return whether its levels can be checked."""
    before = len(context.checked.problems)
    systems = _all_systems(context)
    recipes = {name for system in systems for name in context.catalogue.names("setting", system)}
    if systems and factor.recipe not in recipes:
        context.report((*where, "recipe"), unknown("setting", factor.recipe or "", recipes))
    elif factor.parameter is None and factor.recipe not in PLAIN_FACTORS and context.checked.intact(*where):
        keys = (key.partition(".") for key in sorted(setting_parameters(context.catalogue, *systems)))
        takes = ", ".join(parameter for recipe, _, parameter in keys if recipe == factor.recipe)
        message = f"recipe '{factor.recipe}' needs a parameter; add parameter: with one of {takes}"
        context.report((*where, "recipe"), message)
    for index, end in enumerate(factor.at):
        context.check_name((*where, "at", index), "host or role", end, context.end_names)
    return len(context.checked.problems) == before


def _check_levels(context: Context, where: Loc, factor: Factor, part: Part) -> None:
    seen: dict[str, str] = {}
    invalid: Position | None = None
    for index, level in enumerate(factor.levels):
        at = (*where, "levels", index)
        position = position_at(context.checked.tree, at)
        if position == invalid:
            continue  # all levels of a range have the same position and the same error
        if _check_level(context, at, factor, level, part):
            _check_duplicate(context, at, level, seen)
        else:
            invalid = position


def _check_level(context: Context, where: Loc, factor: Factor, level: Level, part: Part) -> bool:
    """Report what is wrong with one level; return whether nothing is."""
    sound = True
    for target in level.texts:
        at = (*where, target) if factor.linked else where
        if not _is_known(context, target, part):
            sound = False
            if not _lacks_owner(context, where, target):
                context.report(at, _unknown_factor(context, target, part), key=factor.linked)
        else:
            sound = _LevelCheck(context, part, factor, level, target, at).run() and sound
        if factor.sets and not sound:
            break  # the next key would have the same error
    return sound


def _check_duplicate(context: Context, where: Loc, level: Level, seen: dict[str, str]) -> None:
    """Report a level or label that the factor has already; `seen` holds labels by the level's values."""
    values = repr(sorted((target, repr(value)) for target, value in level.values.items()))
    first, name = seen.get(values), where[where.index("levels") - 1]
    if first is not None:
        same = "is a duplicate" if first == level.label else f"is the same as '{first}'"
        context.report(where, f"{name}: level '{level.label}' {same}; remove it")
    elif level.label in seen.values():
        message = f"label '{level.label}' is that of another level; choose another"
        context.report(where, f"{name}: {message}")
    seen.setdefault(values, level.label)


@dataclass(frozen=True)
class _LevelCheck:
    """The check of the value that one level sets a key to."""

    context: Context
    part: Part
    factor: Factor
    level: Level
    target: str
    where: Loc

    def run(self) -> bool:
        """Report what is wrong with the value; return whether nothing is."""
        before = len(self.context.checked.problems)
        value = self.level.texts[self.target]
        try:
            read_target(self.target, value)
        except ValueError as error:
            for steps, message, key in errors_of(error):
                where = (*self.where, *steps)
                self.context.report(where, message if key else f"{self.target}: {message}", key=key)
            return False
        if isinstance(value, PerHost):
            names = self.context.end_names
            for name in value.hosts:
                self.context.check_name((*self.where, name), "host or role", name, names, key=True)
        for steps, text in _texts(value):
            self._check_text(steps, text)
        return len(self.context.checked.problems) == before

    def _report(self, message: str, *steps: str, key: bool = False) -> None:
        self.context.report((*self.where, *steps), f"{self.target}: {message}", key=key)

    def _report_target(self, message: str) -> None:
        """Report what is wrong with the key, where its name is written."""
        factor_place = self.where[: self.where.index("levels")]
        if self.target in self.factor.sets:
            at = (*factor_place, "sets", self.factor.sets.index(self.target))
            self.context.report(at, message)
        elif self.factor.parameter:
            self.context.report((*factor_place, "parameter"), message)
        else:
            at = self.where if self.where[-1] == self.target else factor_place
            self.context.report(at, message, key=True)

    def _check_text(self, steps: tuple[str, ...], text: str) -> None:
        self._check_named(text)
        if is_setting(self.target):
            self._check_setting(steps, text)
        elif self.target not in known_factors(self.part):
            self._check_parameter(steps, text)

    def _check_named(self, text: str) -> None:
        """Report a host, flow or generator that a level of a flow names and that does not exist."""
        context, (owner, _, key) = self.context, self.target.rpartition(".")
        what, known = "", None
        if self.target == "stop.when" or (key == "until" and not owner.endswith(".arrivals")):
            what, known = "flow", list(flows_by_label(context, self.part))
        elif owner.startswith("traffic.") and key in ("from", "to"):
            what, known = "host or role", context.end_names
        elif owner.startswith("traffic.") and key == "generator":
            ends = (flow.from_end for flow in self.part.traffic if owner == f"traffic.{flow.label}")
            system = context.system_of(next(ends, ""))
            what = f"generator on {system}"
            known = list(context.catalogue.names(key, system)) if system else None
        context.check_name(self.where, what, text, known)

    def _check_setting(self, steps: tuple[str, ...], text: str) -> None:
        for system in self._systems(steps):
            key_error = setting_key_error(self.target, [system], self.context.catalogue)
            error = setting_value_error(self.target, text, [system], self.context.catalogue)
            if key_error:
                self._report_target(key_error)
            elif error:
                self._report(error, *steps)
            if key_error or error:
                return

    def _systems(self, names: tuple[str, ...]) -> list[str]:
        """Return the systems of the hosts that a setting is for: those named, else the ends of flows."""
        testbed = self.context.testbed
        if testbed is None or names:
            return sorted(set(self.context.systems_of(*names)))
        if self.target == "mtu":
            return sorted({host.system for host in testbed.hosts.values() if host.interfaces})
        of_sender = self.target in ("cc", "txd") or self.target.startswith("cc.")
        senders = [] if self.target == "rwnd" else [flow.from_end for flow in self.part.traffic]
        receivers = [] if of_sender else [flow.to_end for flow in self.part.traffic]
        return sorted(set(self.context.systems_of(*senders, *receivers)))

    def _check_parameter(self, steps: tuple[str, ...], text: str) -> None:
        """Report parameters that no recipe takes, or whose values it refuses."""
        owner, _, parameter = self.target.rpartition(".")
        recipes = dict(self.context.recipes_of(self.part, owner, self.level))
        not_by_all = not_taken(owner, parameter, recipes)
        if not_by_all:
            self._report_target(not_by_all)
            return
        for known in recipes.values():
            if parameter not in known:
                keys = [key for key in known_factors(self.part) if key.startswith(f"{owner}.")]
                own = [key.removeprefix(f"{owner}.") for key in keys]
                self._report_target(unknown(f"key or parameter of {owner}", parameter, [*known, *own]))
                return
            error = refusal(parameter, text, known, ())
            if error:
                self.context.report((*self.where, *steps), error)
                return


def _texts(value: LevelText) -> Iterator[tuple[tuple[str, ...], str]]:
    """Yield the texts of a value with the keys that lead to each; a distribution is checked as a whole."""
    if isinstance(value, str):
        yield (), value
    elif isinstance(value, PerHost):
        yield from (((host,), text) for host, text in value.hosts.items())
    elif isinstance(value, Directional):
        pairs = (("down", value.down), ("up", value.up))
        yield from (((direction,), text) for direction, text in pairs if text is not None)


def _check_conflicts(context: Context, where: Loc, part: Part) -> None:
    """Report keys and ends of flows that two factors set, and durations that have no effect."""
    setters: dict[str, str] = {}
    for factor in part.factors.values():
        at = (*where, "factors", factor.name)
        for target in dict.fromkeys(target for level in factor.levels for target in level.texts):
            first = setters.setdefault(target, factor.name)
            if first != factor.name:
                message = f"factor '{factor.name}' sets {target}, which '{first}' sets; remove one of them"
                context.report(at, message, key=True)
    for flow in part.traffic:
        ending = setters_of(part, *(f"traffic.{flow.label}.{key}" for key in FLOW_ENDS))
        for factor in ending[1:]:
            message = f"factors '{ending[0].name}' and '{factor.name}' both end flow '{flow.label}'"
            advice = "remove one, or link their levels in one factor"
            context.report((*where, "factors", factor.name), f"{message}; {advice}", key=True)
    ends = [(flow.size_bytes, flow.duration_s, flow.until) for flow in part.traffic]
    if "duration" in varied(part) and all(any(one is not None for one in end) for end in ends):
        message = "factor 'duration' has no effect, as every flow has its own end; remove it"
        context.report((*where, "factors", setters_of(part, "duration")[0].name), message, key=True)


def _unknown_factor(context: Context, factor: str, part: Part) -> str:
    """Return the message for an unknown factor, with the nearest known one."""
    flow, dot, _ = factor.removeprefix("traffic.").rpartition(".arrivals.")
    if dot and any(one.label == flow for one in part.traffic):
        return f"flow '{flow}' has no arrivals; add such as arrivals: {{poisson: 2/s, until: 60s}} to it"
    for owner, known in context.recipe_parameters(part):
        if factor in known:
            return f"unknown factor '{factor}'; did you mean '{owner}.{factor}'?"
    settings = setting_parameters(context.catalogue, *_all_systems(context))
    kinds = [
        *PLAIN_FACTORS,
        *(f"{owner}.<{'parameter' if owner == 'cc' else 'key'}>" for owner in parameter_owners(part)),
        *(f"{key.partition('.')[0]}.<parameter>" for key in settings),
    ]
    return unknown("factor", factor, {*known_factors(part), *settings}, set(kinds))


def _check_exclude(context: Context, where: Loc, part: Part) -> None:
    sound = [
        index for index, line in enumerate(part.exclude) if _has_levels(context, where, part, index, line)
    ]
    for place, index in enumerate(sound):
        earlier = (one for one in sound[:place] if _is_within(part.exclude[index], part.exclude[one]))
        same = next(earlier, None)
        if same is not None:
            message = f"line {same + 1} excludes all that this line excludes; remove one"
            context.report((*where, "exclude", index), message)
    count = prod(len(factor.levels) for factor in part.factors.values())
    if sound and not part.include and count <= MOST_COUNTED:
        every = product(*(factor.levels for factor in part.factors.values()))
        if all(is_excluded(part, dict(zip(part.factors, levels, strict=True))) for levels in every):
            context.report((*where, "exclude"), "every treatment is excluded; at least one must be left")


def _has_levels(context: Context, where: Loc, part: Part, index: int, line: Line) -> bool:
    """Report factors and levels of an exclude line that the part does not have; return whether it has all."""
    sound = True
    for name, wanted in line.items():
        at = (*where, "exclude", index, name)
        if not context.check_name(at, "factor", name, part.factors, key=True):
            sound = False
            continue
        labels = part.factors[name].labels
        for place, label in enumerate(wanted_labels(wanted)):
            if label not in labels:
                sound = False
                if context.checked.valid(*where, "factors", name):  # else it may be the level with an error
                    message = unknown(f"level of {name}", label, labels)
                    context.report((*at, place), f"{message}; the line matches nothing")
    return sound


def _is_within(line: Line, other: Line) -> bool:
    """Return whether another line matches all treatments that a line matches."""
    return all(
        name in line and set(wanted_labels(line[name])) <= set(wanted_labels(wanted))
        for name, wanted in other.items()
    )


def _check_include(context: Context, where: Loc, part: Part) -> None:
    seen: dict[tuple[str, ...], int] = {}
    for index, line in enumerate(part.include):
        at = (*where, "include", index)
        missing = [name for name in part.factors if name not in line]
        others = [name for name in line if name not in part.factors]
        for name in others:
            context.report((*at, name), unknown("factor", name, part.factors), key=True)
        if missing:
            message = f"the line has no level for {', '.join(missing)}; give one for every factor"
            context.report(at, message)
        treatment = _included(context, at, part, line) if not missing and not others else None
        if treatment is None:
            continue
        labels = tuple(level.label for level in treatment.values())
        known = all(level in part.factors[name].levels for name, level in treatment.items())
        if known and not any(matches(excluded, treatment) for excluded in part.exclude):
            context.report(at, f"treatment {' '.join(labels)} exists already; remove the line")
        elif seen.setdefault(labels, index) != index:
            context.report(at, f"treatment {' '.join(labels)} is included twice; remove one")


def _included(context: Context, where: Loc, part: Part, line: Mapping[str, object]) -> Treatment | None:
    """Return the levels of an include line, None with problems if some cannot be read."""
    found: dict[str, Level] = {}
    for name, factor in part.factors.items():
        at = (*where, name)
        try:
            level = included_level(part, name, line[name])
        except ValueError as error:
            for steps, message, _ in errors_of(error):
                context.report((*at, *steps), f"{name}: {message}")
            continue
        if level in factor.levels or _check_level(context, (*at, "levels"), factor, level, part):
            found[name] = level
    return found if len(found) == len(part.factors) else None
