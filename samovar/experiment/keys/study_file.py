"""A study: several experiments told as one report, in its order. experiments/studies/NAME.yaml."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from pathlib import Path

from pydantic import Field

from samovar.errors import DefinitionError, Problem
from samovar.experiment.checks.validate import Checked, validate
from samovar.experiment.keys.field_types import Name, Sentence, Strict, Word
from samovar.experiment.nearest import unknown
from samovar.experiment.yaml.tree import Map, read_yaml

FOLDER = "studies"


class Section(Strict):
    """One section of the report: what an experiment showed, or a part of it."""

    title: Sentence = Field(description="Heading of the section.")
    experiment: Name = Field(description="Experiment that it rests on, a file in experiments/.")
    campaign: Name | None = Field(None, description="Campaign of that experiment; else its newest.")
    follows: Sentence | None = Field(None, description="What of the source it repeats, such as section V-B.")
    text: Sentence | None = Field(None, description="What was done, and what to see in it, in a paragraph.")
    deviation: Sentence | None = Field(None, description="Where it was done otherwise than in the source.")
    figures: tuple[Word, ...] | None = Field(
        None, description="Names of the campaign's figures that stand here; else all that no section names."
    )
    tables: tuple[Word, ...] | None = Field(
        None, description="Names of the campaign's tables that stand here; else all that no section names."
    )


class StudyReport(Strict):
    """Several experiments, reported as one."""

    study: Name = Field(description="Name of the study, the same as the file's.")
    title: Sentence = Field(description="Title of the report.")
    source: Sentence | None = Field(None, description="Publication that the study repeats or follows.")
    authors: Sentence | None = Field(None, description="Authors of that publication.")
    description: Sentence | None = Field(None, description="What is studied, in a paragraph.")
    sections: tuple[Section, ...] = Field(min_length=1, description="Sections of the report, in its order.")


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
    checked: Checked[StudyReport], tree: Map, name: str, experiments: Collection[str]
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


def _at(checked: Checked[StudyReport], loc: tuple[int | str, ...], message: str) -> Problem:
    before = len(checked.problems)
    checked.report(loc, message)
    return checked.problems.pop(before)
