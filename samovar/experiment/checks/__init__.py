"""Validation of experiment and testbed files beyond the type of each value."""

from __future__ import annotations

from collections.abc import Collection

from samovar.experiment.checks.check_design import check_design, check_size
from samovar.experiment.checks.check_outputs import OutputChecks
from samovar.experiment.checks.check_traffic import check_path, check_traffic
from samovar.experiment.checks.check_values import check_values
from samovar.experiment.checks.part_values import PartToCheck
from samovar.experiment.checks.validate import Validation
from samovar.experiment.keys import Experiment, RecipeCatalogue, Testbed
from samovar.experiment.outputs import Outputs


def check_experiment(
    checked: Validation[Experiment],
    testbed: Testbed | None,
    catalogue: RecipeCatalogue,
    outputs: Outputs,
    keys: Collection[str],
) -> None:
    """Check an experiment against its testbed (None when unknown), the recipes and the known outputs.

    `keys` are those of expect, figures and tables to be checked.
    """
    if checked.model is None:
        return
    for name, model in checked.model.parts.items():
        part = PartToCheck(checked.below("parts", name), testbed, catalogue, model)
        check_values(part)
        check_design(part)
        check_path(part)
        check_traffic(part)
    check_size(checked, checked.model)
    OutputChecks(checked, checked.model, outputs).run(keys)
