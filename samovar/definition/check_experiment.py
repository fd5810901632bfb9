"""What makes an experiment impossible although every value is sound: parts, expectations."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from math import prod
from pathlib import Path

from samovar.definition.check_buffer import check_buffer
from samovar.definition.check_factors import check_factors
from samovar.definition.check_formulas import check_formulas
from samovar.definition.check_grain import check_grain
from samovar.definition.check_path import check_path
from samovar.definition.check_settings import check_settings
from samovar.definition.check_traffic import check_traffic
from samovar.definition.context import Context
from samovar.definition.experiment import Expect, Experiment, Part
from samovar.definition.nearest import unknown
from samovar.definition.treatments import included
from samovar.definition.validate import Loc
from samovar.definition.yamltext import Map

MOST_TRIALS = 2_000_000  # a million take seconds and most of a gigabyte


def check_experiment(context: Context, lines: bool) -> None:
    """Report what cannot be in a complete experiment; expect lines are checked when `lines` says so.

    A profile may leave out levels that expect lines speak of: those have no data then.
    """
    experiment = context.checked.model
    if experiment is None:
        return
    for name, part in experiment.parts.items():
        check_factors(context, name, part)
        check_path(context, name, part)
        check_buffer(context, name, part)
        check_traffic(context, name, part)
        check_grain(context, name, part)
        check_formulas(context, name, part)
        _check_settings(context, name)
    _check_size(context, experiment)
    for index, line in enumerate(experiment.expect if lines else ()):
        _check_expect(context, experiment, index, line)
    for key, entries in (("figures", experiment.figures), ("tables", experiment.tables)):
        for index, entry in enumerate(entries):
            if "part" in entry and context.checked.intact("parts"):
                _check_part(context, experiment, (key, index, "part"), str(entry["part"]))


def check_name(context: Context, path: Path) -> None:
    """Report a name that is not the file's."""
    experiment = context.checked.model
    if experiment is not None and context.checked.intact("experiment") and experiment.name != path.stem:
        message = f"experiment '{experiment.name}' stands in {path.name}; expected '{path.stem}', as the file"
        context.checked.report(("experiment",), message)


def _check_size(context: Context, experiment: Experiment) -> None:
    """Report the part with which the trials become more than can be planned."""
    count = 0
    for name, part in experiment.parts.items():
        treatments = prod(len(factor.levels) for factor in part.factors.values())
        count += treatments * part.replicates
        if count > MOST_TRIALS:
            many = f"{treatments:,} treatments"
            key, size = "factors", many
            if treatments <= MOST_TRIALS:
                key, size = "replicates", f"{many} x {part.replicates:,} replicates"
            message = f"{size} are too many to be planned; expected at most {MOST_TRIALS:,} trials"
            context.checked.report(("parts", name, key), message)
            return


def _check_settings(context: Context, name: str) -> None:
    """Report settings of a part that no host can have."""
    parts = context.checked.tree.get("parts")
    part = parts.get(name) if isinstance(parts, Map) else None
    if context.testbed is not None and isinstance(part, Map) and "settings" in part:
        context.checked.problems += check_settings(part["settings"], context.testbed, context.catalogue)


def _check_expect(context: Context, experiment: Experiment, index: int, line: Expect) -> None:
    if not context.checked.intact("parts"):
        return
    where: Loc = ("expect", index)
    if line.part is not None and not _check_part(context, experiment, (*where, "part"), line.part):
        return
    parts = {line.part: experiment.parts[line.part]} if line.part else experiment.parts
    if line.flow is not None:
        _check_flow(context, (*where, "flow"), parts.values(), line.flow)
    for key, levels in (("where", line.where), ("relative_to", line.relative_to or {})):
        for factor, wanted in levels.items():
            _check_treatment(context, (*where, key, factor), parts, wanted)


def _check_flow(context: Context, where: Loc, parts: Collection[Part], label: str) -> None:
    """Report a label that no flow has; how many a counted one is may be a factor's to say."""
    labels = {flow.label for part in parts for flow in part.traffic}
    stem, _, number = label.rpartition("-")
    if label not in labels and not (number.isdigit() and stem in labels):
        context.checked.report(where, unknown("flow", label, labels))


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
    for level in [wanted] if isinstance(wanted, str) else wanted:
        if known and level not in known:
            context.checked.report(where, unknown(f"level of {factor}", level, known))


def _added(part: Part, factor: str) -> Iterator[str]:
    """Yield the levels that include lines give a factor."""
    try:
        yield from (treatment[factor].label for treatment in included(part))
    except (ValueError, KeyError):
        return  # a line that cannot be read is reported with the factors


def _check_part(context: Context, experiment: Experiment, where: Loc, name: str) -> bool:
    if name in experiment.parts:
        return True
    context.checked.report(where, unknown("part", name, experiment.parts))
    return False
