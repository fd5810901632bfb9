"""A study: several experiments told as one report, in its order. experiments/studies/NAME.yaml."""

from __future__ import annotations

from pydantic import Field

from samovar.experiment.keys.field_types import Name, Sentence, Strict, Word

STUDIES = "studies"


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
