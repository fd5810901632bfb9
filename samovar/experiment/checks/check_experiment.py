"""What makes an experiment impossible although every value is sound: parts, expectations."""

from __future__ import annotations

from collections.abc import Collection
from math import prod
from pathlib import Path

from samovar.experiment.checks.check_buffer import check_buffer
from samovar.experiment.checks.check_context import Context
from samovar.experiment.checks.check_factors import check_factors
from samovar.experiment.checks.check_formulas import check_formulas
from samovar.experiment.checks.check_grain import check_grain
from samovar.experiment.checks.check_lines import check_lines
from samovar.experiment.checks.check_path import check_path
from samovar.experiment.checks.check_settings import check_settings
from samovar.experiment.checks.check_traffic import check_traffic
from samovar.experiment.keys import Experiment
from samovar.experiment.yaml.tree import Map

MOST_TRIALS = 2_000_000  # a million take seconds and most of a gigabyte


def check_experiment(context: Context, said: Collection[str]) -> None:
    """Report what cannot be in a complete experiment; `said` names what of expect, figures, tables to check.

    A profile may leave out levels that these speak of: those have no data then.
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
    if context.checked.intact("parts"):
        check_lines(context, experiment, said)


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
