"""Load a study report: several experiments reported as one."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from pathlib import Path

from samovar.errors import DefinitionError, Problem
from samovar.experiment.checks.validate import Validation, validate
from samovar.experiment.keys import StudyReport
from samovar.experiment.nearest import unknown
from samovar.experiment.yaml.tree import Map, read_yaml


def load_study_report(path: Path, experiments: Collection[str]) -> StudyReport:
    """Read a study; `experiments` are the names there are. Raises DefinitionError with every mistake."""
    tree, mistakes = read_yaml(path)
    checked = validate(StudyReport, tree)
    problems = [*mistakes, *checked.problems, *_checks(checked, tree, path.stem, experiments)]
    if problems:
        raise DefinitionError(problems)
    if checked.model is None:
        raise DefinitionError([Problem(str(path), 0, 0, "cannot be read; expected a study")])
    return checked.model


def _checks(
    checked: Validation[StudyReport], tree: Map, name: str, experiments: Collection[str]
) -> Iterator[Problem]:
    model = checked.model
    if model is None:
        return
    if "study" in tree and model.study != name:
        yield _at(
            checked, ("study",), f"study: '{model.study}' in a file named {name}.yaml; expected '{name}'"
        )
    if not checked.intact("sections"):
        return
    for index, section in enumerate(model.sections):
        if section.experiment not in experiments:
            message = unknown("experiment", section.experiment, experiments)
            yield _at(checked, ("sections", index, "experiment"), message)


def _at(checked: Validation[StudyReport], loc: tuple[int | str, ...], message: str) -> Problem:
    before = len(checked.problems)
    checked.report(loc, message)
    return checked.problems.pop(before)
