"""What makes an experiment impossible although every value is sound: factors, levels, path, expectations."""

from __future__ import annotations

from pathlib import Path

from samovar.definition.check_traffic import check_traffic
from samovar.definition.context import Context
from samovar.definition.experiment import Expect, Experiment, NetworkPath, Part
from samovar.definition.factors import known_factors, parameter_owners, parser_of
from samovar.definition.nearest import unknown
from samovar.definition.validate import Loc
from samovar.units import UnitError


def check_experiment(context: Context, lines: bool) -> None:
    """Report what cannot be in a complete experiment; expect lines are checked when `lines` says so.

    A profile may leave out levels that expect lines speak of: those have no data then.
    """
    experiment = context.checked.model
    if experiment is None:
        return
    for name, part in experiment.parts.items():
        _check_factors(context, name, part)
        _check_path(context, name, part)
        check_traffic(context, name, part)
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


def _check_factors(context: Context, name: str, part: Part) -> None:
    report = context.checked.report
    for factor, levels in part.factors.items():
        where: Loc = ("parts", name, "factors", factor)
        if parser_of(factor, part) is None:
            report(where, _unknown_factor(context, factor, part), key=True)
            continue
        if not levels.levels:
            report(where, f"factor '{factor}' has no levels; expected at least one")
        _check_levels(context, where, factor, part)
    own = [flow for flow in part.traffic if flow.size_bytes is None and flow.duration_s is None]
    if "duration" in part.factors and not own:
        message = "factor 'duration' changes nothing, as every flow has its own end; expected one without"
        report(("parts", name, "factors", "duration"), message, key=True)


def _check_levels(context: Context, where: Loc, factor: str, part: Part) -> None:
    parse = parser_of(factor, part)
    seen: dict[object, str] = {}
    for index, level in enumerate(part.factors[factor].labels):
        try:
            value = parse(level) if parse else level
        except UnitError as error:
            context.checked.report((*where, index), f"{factor}: {error}")
            continue
        first = seen.setdefault(value, level)
        if index and (first != level or level in part.factors[factor].labels[:index]):
            same = "stands here again" if first == level else f"is the same as '{first}'"
            context.checked.report((*where, index), f"{factor}: level '{level}' {same}; expected it once")


def _unknown_factor(context: Context, factor: str, part: Part) -> str:
    """Name the nearest factor; a bare parameter's name is answered with the form that is known."""
    for owner, known in context.parameters(part):
        if factor in known:
            return f"unknown factor '{factor}'; did you mean '{owner}.{factor}'?"
    names = [*known_factors(part), *(f"{owner}.<parameter>" for owner in parameter_owners(part))]
    return unknown("factor", factor, names)


def _check_path(context: Context, name: str, part: Part) -> None:
    where: Loc = ("parts", name, "path")
    touched = [factor for factor in part.factors if factor.startswith("path.")]
    if part.path is None and not touched:
        return
    testbed = context.testbed
    if testbed is not None and testbed.bottleneck is None:
        message = f"testbed '{testbed.name}' has no bottleneck to set; expected none of path here"
        context.checked.report(where, message, key=True)
    written = part.path or NetworkPath()
    for key, given in (("rate", written.rate_bps), ("buffer", written.buffer)):
        if not given and f"path.{key}" not in part.factors and context.checked.intact(*where[:2]):
            message = f"path has no {key}; expected {key}: ... here, or a factor path.{key}"
            context.checked.report(where, message, key=True)


def _check_expect(context: Context, experiment: Experiment, index: int, line: Expect) -> None:
    if not context.checked.intact("parts"):
        return
    where: Loc = ("expect", index)
    if line.part is not None and not _check_part(context, experiment, (*where, "part"), line.part):
        return
    parts = [experiment.parts[line.part]] if line.part else list(experiment.parts.values())
    for key, levels in (("where", line.where), ("relative_to", line.relative_to or {})):
        for factor, wanted in levels.items():
            _check_treatment(context, (*where, key, factor), parts, wanted)


def _check_treatment(context: Context, where: Loc, parts: list[Part], wanted: str | tuple[str, ...]) -> None:
    factor = str(where[-1])
    having = [part.factors[factor] for part in parts if factor in part.factors]
    if not having:
        factors = {factor for part in parts for factor in part.factors}
        context.checked.report(where, unknown("factor", factor, factors), key=True)
        return
    known = {level for levels in having for level in levels.labels}
    for level in [wanted] if isinstance(wanted, str) else wanted:
        if known and level not in known:
            context.checked.report(where, unknown(f"level of {factor}", level, known))


def _check_part(context: Context, experiment: Experiment, where: Loc, name: str) -> bool:
    if name in experiment.parts:
        return True
    context.checked.report(where, unknown("part", name, experiment.parts))
    return False
