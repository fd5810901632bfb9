"""What lines of the scorecard, figures and tables name that is not there: parts, factors, levels, options."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from samovar.experiment.checks.check_context import Context
from samovar.experiment.checks.validate import Loc
from samovar.experiment.keys import Expect, Experiment, Part, included_treatments
from samovar.experiment.metrics import METRICS
from samovar.experiment.nearest import unknown
from samovar.experiment.outputs import COMMON, KINDS, Exhibit

SEVERAL = ("part", "trial")
"""Options of all figures and tables that may name more than one."""
PERCENTAGE = 2
"""A share is 1 at most, or a little more by errors of measuring; from here on it is meant in percent."""


def check_lines(context: Context, experiment: Experiment, said: Collection[str]) -> None:
    """Report what lines of expect, figures and tables, those of them that are said, cannot speak of."""
    for index, line in enumerate(experiment.expect if "expect" in said else ()):
        _check_expect(context, experiment, index, line)
    for kind, entries in zip(KINDS, (experiment.figures, experiment.tables), strict=True):
        for index, entry in enumerate(entries if f"{kind}s" in said else ()):
            _check_entry(context, experiment, kind, (f"{kind}s", index), entry)


def _check_entry(
    context: Context, experiment: Experiment, kind: str, where: Loc, entry: Mapping[str, Any]
) -> None:
    """Check what a figure or table is told to show."""
    named = [one for one in _listed(entry.get("part", [])) if isinstance(one, str)]
    for place, name in enumerate(named):
        _check_part(context, experiment, (*where, "part", place), name)
    chosen = {name: part for name, part in experiment.parts.items() if name in named}
    parts = chosen or experiment.parts
    factors = {factor for part in experiment.parts.values() for factor in part.factors}
    exhibit = context.exhibits.get(kind, {}).get(str(entry[kind]))
    for option, value in entry.items():
        at = (*where, option)
        if (option in SEVERAL or option in factors) and (isinstance(value, dict) or not _listed(value)):
            context.checked.report(at, f"{option}: expected one name, or a list of several")
        elif option in factors:
            _check_treatment(context, at, parts, tuple(_texts(value)))
        elif option in COMMON:
            _check_common(context, at, option, value)
        elif exhibit is not None and option != kind:
            _check_option(context, at, value, exhibit, _Names(factors, labels_of(parts.values())))


def _check_common(context: Context, where: Loc, option: str, value: Any) -> None:
    several = option in SEVERAL and isinstance(value, list)
    for place, one in enumerate(value if several else [value]):
        if not isinstance(one, str):
            at = (*where, place) if several else where
            context.checked.report(at, f"{option}: expected {'words' if option == 'title' else 'a name'}")


class _Names(NamedTuple):
    """What options of figures and tables may name of the experiment."""

    factors: Collection[str]
    flows: Collection[str]


def _check_option(context: Context, where: Loc, value: Any, exhibit: Exhibit, names: _Names) -> None:
    option = str(where[-1])
    if option not in exhibit.options:
        message = unknown("option or factor", option, {*exhibit.options, *names.factors, *COMMON})
        context.checked.report(where, message, key=True)
        return
    what, words = _words(option, exhibit.options[option], names)
    for place, one in enumerate(_texts(value) if words else ()):
        if one not in words and not (what == "flow" and _is_of_counted(one, words)):
            context.checked.report((*where, place), f"{option}: {unknown(what, one, words)}")


def _words(option: str, own: Collection[str], names: _Names) -> tuple[str, Collection[str]]:
    """Return what an option names, and the words that it takes; none for any."""
    if option in ("metric", "metrics"):
        return "metric", METRICS
    if option in ("factor", "rows", "columns"):
        return "factor", names.factors
    return ("flow", names.flows) if option == "flow" else (option, own)


def labels_of(parts: Iterable[Part]) -> set[str]:
    """Return the labels of the flows of parts, of a counted one that of all."""
    return {flow.label for part in parts for flow in part.traffic}


def _is_of_counted(label: str, known: Collection[str]) -> bool:
    """Tell whether a label is that of one of several; how many they are may be a factor's to say."""
    stem, _, number = label.rpartition("-")
    return number.isdigit() and stem in known


def _texts(value: Any) -> list[str]:
    return [str(one) for one in _listed(value)]


def _listed(value: Any) -> list[Any]:
    return list(value) if isinstance(value, list | tuple) else [value]


def _check_expect(context: Context, experiment: Experiment, index: int, line: Expect) -> None:
    if not context.checked.intact("parts"):
        return
    where: Loc = ("expect", index)
    if line.part is not None and not _check_part(context, experiment, (*where, "part"), line.part):
        return
    parts = {line.part: experiment.parts[line.part]} if line.part else experiment.parts
    labels = labels_of(parts.values())
    if line.flow is not None and line.flow not in labels and not _is_of_counted(line.flow, labels):
        context.checked.report((*where, "flow"), unknown("flow", line.flow, labels))
    _check_bounds(context, where, line)
    for key, levels in (("where", line.where), ("relative_to", line.relative_to or {})):
        for factor, wanted in levels.items():
            _check_treatment(context, (*where, key, factor), parts, wanted)


def _check_bounds(context: Context, where: Loc, line: Expect) -> None:
    """Report a ratio of trials to themselves, and shares that are written as percentages."""
    to = line.relative_to or {}
    if to and all(_listed(line.where.get(name, ())) == [level] for name, level in to.items()):
        message = "the line divides trials by themselves; expected other levels than those of where"
        context.checked.report((*where, "relative_to"), message)
    if to or METRICS[line.metric].unit != "share":
        return
    for key in ("equals", "below", "above", "between"):
        for place, bound in enumerate(_listed(getattr(line, key))):
            if bound is not None and abs(bound) >= PERCENTAGE:
                whole = f"{line.metric} is a share of the whole"
                message = f"{key}: {whole}; expected {bound / 100:g} for {bound:g} %"
                context.checked.report((*where, key, place), message)


def _check_treatment(
    context: Context, where: Loc, parts: Mapping[str, Part], wanted: str | tuple[str, ...]
) -> None:
    factor = str(where[-1])
    having = {name: part for name, part in parts.items() if factor in part.factors}
    if not having:
        factors = {factor for part in parts.values() for factor in part.factors}
        context.checked.report(where, unknown("factor", factor, factors), key=True)
        return
    if not all(context.checked.sound("parts", name, "factors", factor) for name in having):
        return  # the level may be the one that is written wrongly there
    known = {level for part in having.values() for level in part.factors[factor].labels}
    known |= {text for part in having.values() for text in _added(part, factor)}
    for place, level in enumerate([wanted] if isinstance(wanted, str) else wanted):
        if known and level not in known:
            context.checked.report((*where, place), unknown(f"level of {factor}", level, known))


def _added(part: Part, factor: str) -> Iterator[str]:
    """Yield the levels that include lines give a factor."""
    try:
        yield from (treatment[factor].label for treatment in included_treatments(part))
    except (ValueError, KeyError):
        return  # a line that cannot be read is reported with the factors


def _check_part(context: Context, experiment: Experiment, where: Loc, name: str) -> bool:
    if name in experiment.parts:
        return True
    context.checked.report(where, unknown("part", name, experiment.parts))
    return False
