"""Keys of a study file, experiments/studies/NAME.yaml: several experiments in one report."""

from __future__ import annotations

from samovar.experiment.keys.key_table import Strict, entry
from samovar.experiment.keys.value_types import Name, Sentence, Word

STUDIES = "studies"


class Section(Strict):
    """One section of the report: an experiment, or a part of one."""

    title: Sentence = entry("Heading of the section.")
    experiment: Name = entry("Experiment of the section, a file in experiments/.")
    campaign: Name | None = entry("Campaign of that experiment; by default its newest.", None)
    follows: Sentence | None = entry("Section of the source that it repeats, such as section V-B.", None)
    text: Sentence | None = entry("What was done, and what it shows, in a paragraph.", None)
    deviation: Sentence | None = entry("How it differs from the source.", None)
    figures: tuple[Word, ...] | None = entry(
        "Figures to print here; by default all that no section names.", None
    )
    tables: tuple[Word, ...] | None = entry(
        "Tables to print here; by default all that no section names.", None
    )


class StudyReport(Strict):
    """Several experiments in one report."""

    study: Name = entry("Name of the study, the same as the file's.")
    title: Sentence = entry("Title of the report.")
    source: Sentence | None = entry("Publication that the study repeats or follows.", None)
    authors: Sentence | None = entry("Authors of that publication.", None)
    description: Sentence | None = entry("Purpose of the study, in a paragraph.", None)
    sections: tuple[Section, ...] = entry("Sections of the report, in order.", min_length=1)
