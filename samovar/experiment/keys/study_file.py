"""Keys of a study file, experiments/studies/NAME.yaml: several experiments in one report."""

from __future__ import annotations

from pydantic import Field

from samovar.experiment.keys.key_table import Strict
from samovar.experiment.keys.value_types import Name, Sentence, Word

STUDIES = "studies"


class Section(Strict):
    """One section of the report: an experiment, or a part of one."""

    title: Sentence = Field(description="Heading of the section.")
    experiment: Name = Field(description="Experiment of the section, a file in experiments/.")
    campaign: Name | None = Field(None, description="Campaign of that experiment; by default its newest.")
    follows: Sentence | None = Field(
        None, description="Section of the source that it repeats, such as section V-B."
    )
    text: Sentence | None = Field(None, description="What was done, and what it shows, in a paragraph.")
    deviation: Sentence | None = Field(None, description="How it differs from the source.")
    figures: tuple[Word, ...] | None = Field(
        None, description="Figures of the campaign to print here; by default all that no section names."
    )
    tables: tuple[Word, ...] | None = Field(
        None, description="Tables of the campaign to print here; by default all that no section names."
    )


class StudyReport(Strict):
    """Several experiments in one report."""

    study: Name = Field(description="Name of the study, the same as the file's.")
    title: Sentence = Field(description="Title of the report.")
    source: Sentence | None = Field(None, description="Publication that the study repeats or follows.")
    authors: Sentence | None = Field(None, description="Authors of that publication.")
    description: Sentence | None = Field(None, description="Purpose of the study, in a paragraph.")
    sections: tuple[Section, ...] = Field(min_length=1, description="Sections of the report, in order.")
