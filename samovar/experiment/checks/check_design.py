"""Check the design of a part: factors, their levels, excluded and included treatments."""

from __future__ import annotations

from math import prod

from samovar.errors import unknown
from samovar.experiment import keys
from samovar.experiment.checks.part_values import PartToCheck
from samovar.experiment.checks.validate import Validation
from samovar.experiment.values import errors_of

MOST_TRIALS = 2_000_000


def check_size(checked: Validation[keys.Experiment], experiment: keys.Experiment) -> None:
    """Report the part at which the total number of trials first exceeds MOST_TRIALS."""
    count = 0
    for name, part in experiment.parts.items():
        treatments = prod(len(factor.levels) for factor in part.factors.values())
        count += treatments * part.replicates
        if count > MOST_TRIALS:
            key, size = "factors", f"{treatments:,} treatments"
            if treatments <= MOST_TRIALS:
                key, size = "replicates", f"{size} x {part.replicates:,} replicates"
            message = f"{size} are too many; an experiment may have at most {MOST_TRIALS:,} trials"
            checked.report(("parts", name, key), message)
            return


def check_design(part: PartToCheck) -> None:
    """Report errors in the levels of factors, factors in conflict, and errors in `exclude` and `include`."""
    for factor in part.model.factors.values():
        _check_levels(part, factor)
    _check_conflicts(part)
    _check_exclude(part)
    _check_include(part)


def _check_levels(part: PartToCheck, factor: keys.Factor) -> None:
    """Report a factor without levels, unknown hosts in `at`, and levels of the same name."""
    where = ("factors", factor.name)
    if not factor.levels and part.checked.intact(*where):
        part.checked.report(where, f"factor '{factor.name}' has no levels; give at least one")
    for index, end in enumerate(factor.at):
        part.checked.check_name((*where, "at", index), "host or role", end, part.end_names)
    seen = set[str]()
    for index, label in enumerate(factor.labels):
        if label in seen:
            message = f"{factor.name}: another level is named '{label}' already; remove one or label it"
            part.checked.report((*where, "levels", index), message)
        seen.add(label)


def _check_conflicts(part: PartToCheck) -> None:
    """Report factors that set the same key or the end of the same flow."""
    for target, factors in part.setters.items():
        for factor in factors[1:]:
            message = f"factors '{factors[0].name}' and '{factor.name}' both set {target}"
            part.checked.report(("factors", factor.name), f"{message}; remove one of them", key=True)
    for flow in part.model.traffic:
        ending = part.setters_of(*(f"traffic.{flow.label}.{key}" for key in keys.FLOW_ENDS))
        for factor in ending[1:]:
            both = f"factors '{ending[0].name}' and '{factor.name}'"
            message = f"{both} both determine when flow '{flow.label}' ends"
            advice = "remove one, or link their levels in one factor"
            part.checked.report(("factors", factor.name), f"{message}; {advice}", key=True)


def _check_exclude(part: PartToCheck) -> None:
    """Report errors in `exclude`: unknown factors or levels, and redundant lines."""
    factors, exclude = part.model.factors, part.model.exclude
    for index, line in enumerate(exclude):
        for name, labels in line.items():
            at = ("exclude", index, name)
            if not part.checked.check_name(at, "factor", name, factors, key=True):
                continue
            if part.checked.valid("factors", name):  # otherwise, a level with this label may be invalid
                for place, label in enumerate(labels):
                    part.checked.check_name((*at, place), f"level of {name}", label, factors[name].labels)
        for number, other in enumerate(exclude[:index], start=1):
            if all(name in line and set(line[name]) <= set(labels) for name, labels in other.items()):
                message = f"line {number} already excludes these treatments; remove this line"
                part.checked.report(("exclude", index), message)
                break


def _check_include(part: PartToCheck) -> None:
    factors = part.model.factors
    for index, line in enumerate(part.model.include):
        at = ("include", index)
        for name in line.keys() - factors.keys():
            part.checked.report((*at, name), unknown("factor", name, factors), key=True)
        missing = [name for name in factors if name not in line]
        if missing:
            message = f"the line has no level for {', '.join(missing)}; give one for every factor"
            part.checked.report(at, message)
        for name in factors.keys() & line.keys():
            try:
                keys.included_level(part.model, name, line[name])
            except ValueError as error:
                for steps, message, _ in errors_of(error):
                    part.checked.report((*at, name, *steps), f"{name}: {message}")
