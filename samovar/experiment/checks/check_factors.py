"""What makes a part's design impossible: factors, levels, and treatments taken away or added."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import product
from math import prod

from pydantic import ValidationError

from samovar.experiment.checks.check_context import Context, varied
from samovar.experiment.checks.check_levels import Place, check_value, is_setting
from samovar.experiment.checks.setting_values import known_settings
from samovar.experiment.checks.validate import Loc, position_at
from samovar.experiment.keys import (
    PLAIN_FACTORS,
    Factor,
    Level,
    Part,
    Treatment,
    end_names,
    hosts_of,
    included_level,
    is_excluded,
    is_target,
    known_factors,
    matches,
    parameter_owners,
    wanted_labels,
)
from samovar.experiment.nearest import unknown
from samovar.experiment.yaml.syntax import Position

ENDS = ("size", "duration", "until")
"""Keys of a flow of which one only can stand."""
Line = Mapping[str, str | tuple[str, ...]]
MOST_COUNTED = 20_000  # treatments that are looked through for exclude lines that leave nothing


def check_factors(context: Context, name: str, part: Part) -> None:
    """Report factors that are not known, levels that cannot be, and lines of exclude and include."""
    where: Loc = ("parts", name)
    for factor in part.factors.values():
        _check_factor(context, (*where, "factors", factor.name), factor, part)
    _check_targets(context, where, part)
    _check_duration(context, where, part)
    _check_ends(context, where, part)
    _check_excluded(context, where, part)
    _check_included(context, where, part)


def _check_factor(context: Context, where: Loc, factor: Factor, part: Part) -> None:
    """Check one factor; what follows only from something that was left out of it is not said."""
    whole = context.checked.intact(*where)
    if not factor.levels and whole:
        context.checked.report(where, f"factor '{factor.name}' has no levels; expected at least one")
    if factor.recipe is not None:
        if _check_own(context, where, factor) and (whole or factor.parameter):
            _check_levels(context, where, factor, part)
    elif factor.sets:
        if _check_sets(context, where, factor, part):
            _check_levels(context, where, factor, part)
    elif _is_bare(factor) and not is_known(context, factor.name, part):
        if whole and not _is_excused(context, where, factor.name):
            context.checked.report(where, _unknown_factor(context, factor.name, part), key=True)
    else:
        _check_levels(context, where, factor, part)


def _is_bare(factor: Factor) -> bool:
    """Say whether a factor's own name says what its levels set."""
    return not factor.linked or any(level.texts.keys() == {factor.name} for level in factor.levels)


def is_known(context: Context, target: str, part: Part) -> bool:
    """Say whether a factor may have a name; whether a recipe takes a parameter is said by the recipe."""
    if not is_target(target, part):
        return False
    recipe, dot, _ = target.partition(".")
    if not is_setting(target) or not dot or recipe in PLAIN_FACTORS:
        return True
    systems = {host.system for host in context.testbed.hosts.values()} if context.testbed else set()
    return not systems or any(recipe in context.catalogue.names("setting", one) for one in systems)


def _is_excused(context: Context, where: Loc, target: str) -> bool:
    """Say whether a factor may be of a flow or logger that was left out for a mistake of its own."""
    owner = target.partition(".")[0]
    return owner in ("traffic", "loggers") and not context.checked.intact(*where[:2], owner)


def _check_sets(context: Context, where: Loc, factor: Factor, part: Part) -> bool:
    """Check the keys that a factor sets at once; say whether all are known."""
    strange = [(n, key) for n, key in enumerate(factor.sets) if not is_known(context, key, part)]
    for index, key in strange:
        if not _is_excused(context, where, key):
            context.checked.report((*where, "sets", index), _unknown_factor(context, key, part))
    return not strange


def _check_own(context: Context, where: Loc, factor: Factor) -> bool:
    """Check the recipe that a factor names; say whether its levels can be checked."""
    before = len(context.checked.problems)
    systems = sorted({host.system for host in context.testbed.hosts.values()}) if context.testbed else []
    recipes = {name for system in systems for name in context.catalogue.names("setting", system)}
    if systems and factor.recipe not in recipes:
        context.checked.report((*where, "recipe"), unknown("setting", factor.recipe or "", recipes))
    elif factor.parameter is None and factor.recipe not in PLAIN_FACTORS and context.checked.intact(*where):
        keys = sorted({key for system in systems for key in known_settings(context.catalogue, system)})
        takes = [key.partition(".")[2] for key in keys if key.startswith(f"{factor.recipe}.")]
        message = f"recipe '{factor.recipe}' needs a parameter; expected parameter: one of {', '.join(takes)}"
        context.checked.report((*where, "recipe"), message)
    for index, end in enumerate(factor.at):
        if context.testbed is not None and not hosts_of(context.testbed, end):
            message = unknown("host or role", end, end_names(context.testbed))
            context.checked.report((*where, "at", index), message)
    return len(context.checked.problems) == before


def _check_levels(context: Context, where: Loc, factor: Factor, part: Part) -> None:
    seen: dict[str, str] = {}
    wrong: Position | None = None
    for index, level in enumerate(factor.levels):
        at = (*where, "levels", index)
        position = position_at(context.checked.tree, at)
        if position == wrong:
            continue  # a range says the same of each of its levels
        if _check_level(context, at, factor, level, part):
            _check_once(context, at, level, part, seen)
        else:
            wrong = position


def _check_level(context: Context, where: Loc, factor: Factor, level: Level, part: Part) -> bool:
    """Report what is wrong with one level; say whether nothing is."""
    sound = True
    for target in level.texts:
        at = (*where, target) if factor.linked else where
        if not is_known(context, target, part):
            sound = False
            if not _is_excused(context, where, target):
                context.checked.report(at, _unknown_factor(context, target, part), key=factor.linked)
        elif not check_value(context, part, Place(at, target, level, _named(where, factor, target))):
            sound = False
        if factor.sets and not sound:
            break  # the next key would be told the same
    return sound


def _named(where: Loc, factor: Factor, target: str) -> Loc:
    """Return where a target's name stands when it is no key: in `sets`, or as a recipe's parameter."""
    own = where[: where.index("levels")]
    if target in factor.sets:
        return (*own, "sets", factor.sets.index(target))
    return (*own, "parameter") if factor.parameter else ()


def _check_once(context: Context, where: Loc, level: Level, part: Part, seen: dict[str, str]) -> None:
    """Report a level or a label that stands in the factor before; `seen` has the labels by their values."""
    first = seen.get(values := repr(sorted((target, repr(value)) for target, value in level.values.items())))
    name = where[where.index("levels") - 1]
    if first is not None:
        same = "stands here again" if first == level.label else f"is the same as '{first}'"
        context.checked.report(where, f"{name}: level '{level.label}' {same}; expected it once")
    elif level.label in seen.values():
        message = f"label '{level.label}' is another level's already; expected one of its own"
        context.checked.report(where, f"{name}: {message}")
    seen.setdefault(values, level.label)


def _check_targets(context: Context, where: Loc, part: Part) -> None:
    """Report what two factors would set."""
    setters: dict[str, str] = {}
    for factor in part.factors.values():
        for target in dict.fromkeys(target for level in factor.levels for target in level.texts):
            first = setters.setdefault(target, factor.name)
            if first != factor.name:
                message = f"factor '{factor.name}' sets {target}, which '{first}' sets; expected one of them"
                context.checked.report((*where, "factors", factor.name), message, key=True)


def _check_duration(context: Context, where: Loc, part: Part) -> None:
    ends = [(flow.size_bytes, flow.duration_s, flow.until) for flow in part.traffic]
    if "duration" in varied(part) and all(any(one is not None for one in end) for end in ends):
        message = "factor 'duration' changes nothing, as every flow has its own end; expected one without"
        setters = [one.name for one in part.factors.values() if "duration" in _targets(one)]
        context.checked.report((*where, "factors", setters[0]), message, key=True)


def _check_ends(context: Context, where: Loc, part: Part) -> None:
    """Report two factors of which each gives a flow an end, where it can have one only."""
    for flow in part.traffic:
        ends = {f"traffic.{flow.label}.{key}" for key in ENDS}
        setters = [factor for factor in part.factors.values() if ends & _targets(factor)]
        for factor in setters[1:]:
            message = (
                f"factor '{factor.name}' gives flow '{flow.label}' an end, which '{setters[0].name}' gives it"
            )
            expected = "expected one of them, or levels that move together"
            context.checked.report((*where, "factors", factor.name), f"{message}; {expected}", key=True)


def _targets(factor: Factor) -> frozenset[str]:
    return frozenset(target for level in factor.levels for target in level.texts)


def _unknown_factor(context: Context, factor: str, part: Part) -> str:
    """Name the nearest factor; a bare parameter's name is answered with the form that is known."""
    flow, dot, _ = factor.removeprefix("traffic.").rpartition(".arrivals.")
    if dot and any(one.label == flow for one in part.traffic):
        such = "arrivals: {poisson: 2/s, until: 60s}"
        return f"flow '{flow}' has no arrivals; expected them there, such as {such}"
    for owner, known in context.parameters(part):
        if factor in known:
            return f"unknown factor '{factor}'; did you mean '{owner}.{factor}'?"
    testbed = context.testbed
    systems = {host.system for host in testbed.hosts.values()} if testbed else set()
    settings = {key for system in systems for key in known_settings(context.catalogue, system)}
    return unknown("factor", factor, {*known_factors(part), *settings}, _kinds(part, settings))


def _kinds(part: Part, settings: Iterable[str]) -> Iterator[str]:
    """Name the factors that there are, those of one owner together: path.<key>, tcp.<parameter>."""
    yield from PLAIN_FACTORS
    yield from (f"{owner}.<{'parameter' if owner == 'cc' else 'key'}>" for owner in parameter_owners(part))
    yield from (f"{key.partition('.')[0]}.<parameter>" for key in settings)


def _check_excluded(context: Context, where: Loc, part: Part) -> None:
    sound = [index for index, line in enumerate(part.exclude) if _known_levels(context, where, part, index)]
    earlier: list[int] = []
    for index in sound:
        same = next((one for one in earlier if _within(part.exclude[index], part.exclude[one])), None)
        if same is not None:
            message = f"the line takes nothing away that line {same + 1} leaves; expected other levels"
            context.checked.report((*where, "exclude", index), message)
        earlier.append(index)
    count = prod(len(factor.levels) for factor in part.factors.values())
    if sound and not part.include and count <= MOST_COUNTED and not any(_left(part)):
        context.checked.report((*where, "exclude"), "every treatment is excluded; expected one that is left")


def _left(part: Part) -> Iterator[bool]:
    for levels in product(*(factor.levels for factor in part.factors.values())):
        yield not is_excluded(part, dict(zip(part.factors, levels, strict=True)))


def _known_levels(context: Context, where: Loc, part: Part, index: int) -> bool:
    """Report factors and levels of an exclude line that the part does not have; say whether it has all."""
    sound = True
    for name, wanted in part.exclude[index].items():
        at = (*where, "exclude", index, name)
        if name not in part.factors:
            context.checked.report(at, unknown("factor", name, part.factors), key=True)
            sound = False
            continue
        for place, label in enumerate(wanted_labels(wanted)):
            if label not in part.factors[name].labels:
                sound = False
                if not context.checked.sound(*where, "factors", name):
                    continue  # the level may be the one that is written wrongly there
                message = unknown(f"level of {name}", label, part.factors[name].labels)
                context.checked.report((*at, place), f"{message}; the line matches nothing")
    return sound


def _within(line: Line, other: Line) -> bool:
    """Say whether whatever a line matches is matched by another."""
    return all(
        name in line and set(wanted_labels(line[name])) <= set(wanted_labels(wanted))
        for name, wanted in other.items()
    )


def _check_included(context: Context, where: Loc, part: Part) -> None:
    seen: dict[tuple[str, ...], int] = {}
    for index, line in enumerate(part.include):
        at = (*where, "include", index)
        missing = [name for name in part.factors if name not in line]
        others = [name for name in line if name not in part.factors]
        for name in others:
            context.checked.report((*at, name), unknown("factor", name, part.factors), key=True)
        if missing:
            message = f"the line names no {' and no '.join(missing)}; expected a level for every factor"
            context.checked.report(at, message)
        treatment = _included(context, at, part, line) if not missing and not others else None
        if treatment is None:
            continue
        texts = tuple(level.label for level in treatment.values())
        if _stands(part, treatment):
            context.checked.report(at, f"treatment {' '.join(texts)} is there already; expected another")
        elif seen.setdefault(texts, index) != index:
            context.checked.report(at, f"treatment {' '.join(texts)} is included twice; expected it once")


def _included(context: Context, where: Loc, part: Part, line: Mapping[str, object]) -> Treatment | None:
    """Read the levels of an include line and report what is wrong with them."""
    found: dict[str, Level] = {}
    for name, factor in part.factors.items():
        at = (*where, name)
        try:
            level = included_level(part, name, line[name])
        except ValidationError as error:
            for one in error.errors(include_url=False):
                context.checked.report((*at, *one["loc"]), f"{name}: {one['ctx']['error']}")
            continue
        except ValueError as error:
            context.checked.report(at, f"{name}: {error}")
            continue
        if level in factor.levels or _check_level(context, (*at, "levels"), factor, level, part):
            found[name] = level
    return found if len(found) == len(part.factors) else None


def _stands(part: Part, treatment: Treatment) -> bool:
    """Say whether a treatment is one of the product and is not excluded."""
    known = all(level in part.factors[name].levels for name, level in treatment.items())
    return known and not any(matches(line, treatment) for line in part.exclude)
