"""Check what expectations, figures and tables name: parts, factors, levels, flows and options."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Any

from samovar.errors import Problem
from samovar.experiment.checks.check_context import Context
from samovar.experiment.checks.validate import Loc
from samovar.experiment.keys import Expect, Experiment, Part, included_treatments
from samovar.experiment.nearest import unknown
from samovar.experiment.outputs import COMMON_OPTIONS, OutputOption, Outputs
from samovar.experiment.yaml_tree import Map, Seq, Text

SEVERAL = ("part", "trial")
"""Options of all figures and tables that may name more than one."""
LEAST_PERCENTAGE = 2
"""A share is at most 1, or a little more by measurement error; a bound from here on is meant in percent."""


def check_output_names(tree: Map, outputs: Outputs) -> Iterator[Problem]:
    """Yield a problem for each unknown figure and table of an experiment and its profiles."""
    profiles = tree.get("profiles")
    layers = [tree, *(profiles.values() if isinstance(profiles, Map) else ())]
    for layer in layers:
        for kind, known in outputs.kinds.items() if isinstance(layer, Map) else ():
            entries = layer.get(f"{kind}s")
            for entry in entries if isinstance(entries, Seq) else ():
                name = entry.get(kind) if isinstance(entry, Map) else entry
                if isinstance(name, Text) and name not in known:
                    yield name.position.problem(unknown(kind, name, known))


def check_outputs(context: Context, experiment: Experiment, keys: Collection[str]) -> None:
    """Report what the lines of some keys name that does not exist; keys are expect, figures and tables."""
    lines = experiment.expect if "expect" in keys else ()
    for index, line in enumerate(lines):
        if line.metric not in context.outputs.metrics:
            message = unknown("metric", line.metric, context.outputs.metrics)
            context.report(("expect", index, "metric"), f"metric: {message}")
    if not context.checked.intact("parts"):
        return
    for index, line in enumerate(lines):
        _check_expect(context, experiment, ("expect", index), line)
    for kind, entries in (("figure", experiment.figures), ("table", experiment.tables)):
        for index, entry in enumerate(entries if f"{kind}s" in keys else ()):
            _check_entry(context, experiment, kind, (f"{kind}s", index), entry)


def _check_entry(
    context: Context, experiment: Experiment, kind: str, where: Loc, entry: Mapping[str, Any]
) -> None:
    """Check the options of a figure or table."""
    names = [name for name in _as_list(entry.get("part", [])) if isinstance(name, str)]
    for index, name in enumerate(names):
        context.check_name((*where, "part", index), "part", name, experiment.parts)
    parts = {name: part for name, part in experiment.parts.items() if name in names} or experiment.parts
    factors = {factor for part in experiment.parts.values() for factor in part.factors}
    known = context.outputs.kinds[kind].get(str(entry[kind]))
    for option, value in entry.items():
        at = (*where, option)
        if (option in SEVERAL or option in factors) and (isinstance(value, dict) or not _as_list(value)):
            context.report(at, f"{option}: must be a name or a list of names")
        elif option in factors:
            _check_levels(context, at, parts, [str(one) for one in _as_list(value)])
        elif option in COMMON_OPTIONS:
            several = option in SEVERAL and isinstance(value, list)
            for index, one in enumerate(value if several else [value]):
                if not isinstance(one, str):
                    must = "must be a text" if option == "title" else "must be a name"
                    context.report((*at, index) if several else at, f"{option}: {must}")
        elif known is not None and option != kind:
            if option in known.options:
                labels = flow_labels(parts.values())
                allowed = {
                    "metric": context.outputs.metrics,
                    "factor": factors,
                    "flow": labels,
                }
                _check_option(context, at, known.options[option], value, allowed)
            else:
                every = {*known.options, *factors, *COMMON_OPTIONS}
                context.report(at, unknown("option or factor", option, every), key=True)


def _check_option(
    context: Context, where: Loc, option: OutputOption, value: Any, names: Mapping[str, Collection[str]]
) -> None:
    """Check the value of an option; `names` holds the names that options of some types may have."""
    what, known = (option.type, names[option.type]) if option.type in names else (where[-1], option.values)
    if option.type == "seconds" and not _is_seconds(str(value)):
        context.report(where, f"{where[-1]}: `{value}` is not a number of seconds such as 6s")
    for index, one in enumerate(_as_list(value) if known else ()):
        if str(one) not in known and not (what == "flow" and _is_numbered(str(one), known)):
            context.report((*where, index), f"{where[-1]}: {unknown(str(what), str(one), known)}")


def _is_seconds(text: str) -> bool:
    try:
        return float(text.removesuffix("s")) > 0
    except ValueError:
        return text == "all"


def flow_labels(parts: Iterable[Part]) -> set[str]:
    """Return the labels of the flows of some parts; counted flows have the label of their group."""
    return {flow.label for part in parts for flow in part.traffic}


def _is_numbered(label: str, known: Collection[str]) -> bool:
    """Return whether a label is that of one of several counted flows, whose number a factor may set."""
    stem, _, number = label.rpartition("-")
    return number.isdigit() and stem in known


def _as_list(value: Any) -> list[Any]:
    return list(value) if isinstance(value, list | tuple) else [value]


def _check_expect(context: Context, experiment: Experiment, where: Loc, line: Expect) -> None:
    if line.part is not None and not context.check_name(
        (*where, "part"), "part", line.part, experiment.parts
    ):
        return
    parts = {line.part: experiment.parts[line.part]} if line.part else experiment.parts
    labels = flow_labels(parts.values())
    if line.flow is not None and not _is_numbered(line.flow, labels):
        context.check_name((*where, "flow"), "flow", line.flow, labels)
    _check_bounds(context, where, line)
    for key, levels in (("where", line.where), ("relative_to", line.relative_to or {})):
        for factor, wanted in levels.items():
            _check_levels(context, (*where, key, factor), parts, _as_list(wanted))


def _check_bounds(context: Context, where: Loc, line: Expect) -> None:
    """Report a ratio of trials to themselves, and shares that are given as percentages."""
    to = line.relative_to or {}
    if to and all(_as_list(line.where.get(name, ())) == [level] for name, level in to.items()):
        message = "the line divides trials by themselves; give other levels than in where"
        context.report((*where, "relative_to"), message)
    metric = context.outputs.metrics.get(line.metric)
    if to or metric is None or metric.unit != "share":
        return
    for key in ("equals", "below", "above", "between"):
        for index, bound in enumerate(_as_list(getattr(line, key))):
            if bound is not None and abs(bound) >= LEAST_PERCENTAGE:
                message = f"{key}: {line.metric} is a share of 1; write {bound / 100:g} for {bound:g} %"
                context.report((*where, key, index), message)


def _check_levels(context: Context, where: Loc, parts: Mapping[str, Part], wanted: Iterable[str]) -> None:
    """Report levels of a factor, which `where` ends in, that no part has."""
    factor = str(where[-1])
    having = {name: part for name, part in parts.items() if factor in part.factors}
    if not having:
        factors = {factor for part in parts.values() for factor in part.factors}
        context.report(where, unknown("factor", factor, factors), key=True)
        return
    if not all(context.checked.valid("parts", name, "factors", factor) for name in having):
        return  # the level may be the one with an error there
    known: set[str] = set()
    for part in having.values():
        known |= set(part.factors[factor].labels)
        try:
            known |= {treatment[factor].label for treatment in included_treatments(part)}
        except (ValueError, KeyError):
            continue  # an invalid line is reported with the factors
    for index, level in enumerate(wanted):
        if known and level not in known:
            context.report((*where, index), unknown(f"level of {factor}", level, known))
