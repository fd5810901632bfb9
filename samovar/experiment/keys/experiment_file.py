"""Models of experiment and study files; expand entries of `traffic` to single flows."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Annotated, Any

from pydantic import BeforeValidator, model_validator

from samovar.experiment.formula import Formula
from samovar.experiment.keys import value_types as types
from samovar.experiment.keys.factor_keys import Capture, Flow, Logger, NetworkPath, PlainFactors, Stop
from samovar.experiment.keys.key_table import SourceFile, Strict, entry, keys_of
from samovar.experiment.keys.levels import Excluded, Factors, Free, Included, Levels, Settings, Treatments
from samovar.experiment.keys.testbed_file import Testbed, hosts_of, is_plural
from samovar.experiment.keys.thresholds import Thresholds
from samovar.experiment.keys.value_types import Name, Positive, Sentence, Word, choice
from samovar.experiment.yaml_tree import plain

Calibrate = Annotated[str, choice("calibrate", "auto", "on", "off")]


class Order(Strict):
    """The order in which the trials of a part run."""

    kind: Annotated[str, choice("order", "sequential", "shuffled", "blocked")] = entry(
        "`sequential`: as in the file, a treatment's replicates in a row; `shuffled`: at random; `blocked`: "
        "in blocks with one trial of every treatment, each block shuffled.",
        "blocked",
    )
    seed: types.Seed = entry("Seed of all random choices; the same seed gives the same plan.", 1)


class PartKeys(Strict):
    """Keys of a part. At the top level of a file, they give values that every part inherits."""

    factors: Factors = entry("Factors with their levels.", {})
    exclude: tuple[Excluded, ...] = entry("Treatments to leave out.", ())
    include: tuple[Included, ...] = entry("Treatments to add; their levels may be new.", ())
    replicates: Positive = entry("Number of trials of every treatment.", 1)
    settings: Settings = entry("Settings of hosts: cc, rwnd, mtu, txd or RECIPE.PARAMETER.", {})
    duration_s: Annotated[float | Formula, types.TIME_OR_FORMULA] | None = entry(
        keys_of(PlainFactors)["duration"].description, None
    )
    path: NetworkPath | None = entry("Rate, delay, loss and queue of the bottleneck.", None)
    traffic: tuple[Flow, ...] = entry("The flows of every trial.", ())
    stop: Stop | None = entry("When the traffic of a trial ends.", None)
    captures: tuple[Capture, ...] = entry("Packet captures.", ())
    loggers: tuple[Logger, ...] = entry("Loggers that run during the traffic.", ())

    # layers/reuse.py merges the fragments before this model reads the tree.
    use: types.Names = entry("Fragments to take values from; later ones override earlier ones.", ())


class Part(PartKeys):
    """One part of the experiment, complete with the values that it inherits."""

    title: Sentence = entry("Title of the part in tables and figures.", "")
    traffic: tuple[Flow, ...] = entry("The flows of every trial.")
    include: Treatments = entry("Treatments to add; their levels may be new.", ())


class Expect(Strict):
    """One line of the scorecard: the expected value of a metric."""

    NEEDED = (("equals", "below", "above", "between"),)
    COMPANIONS = {"within": "equals"}  # noqa: RUF012

    say: Sentence = entry("The expectation in words.")
    metric: Annotated[str, types.METRIC] = entry("Metric to compare; the bounds are in its unit.")
    part: Name | None = entry("Part whose trials are compared; by default all parts.", None)
    flow: Name | None = entry(
        "Label of the flow to compare, such as bulk-2, or bulk for all flows of its `count`; by default the "
        "median of a trial's flows.",
        None,
    )
    where: Mapping[Word, Levels] = entry("Levels of the trials that are compared.", {})
    relative_to: Mapping[Word, Word] | None = entry(
        "Levels of the reference trials: the value is divided by their value, and bounds are ratios.", None
    )
    equals: types.Number | None = entry("Expected value.", None)
    within: Annotated[str, types.WITHIN] | None = entry("Tolerance around `equals`, such as 2% or 5.", None)
    below: types.Number | None = entry("Upper bound.", None)
    above: types.Number | None = entry("Lower bound.", None)
    between: tuple[types.Number, types.Number] | None = entry("Smallest and largest accepted value.", None)
    source: Sentence | None = entry("Source of the expectation.", None)
    differs: Sentence | None = entry("Why the value may differ here; printed if it does.", None)

    @model_validator(mode="after")
    def _check_bounds(self) -> Expect:
        least, most = self.between or (self.above, self.below)
        equal = self.between is not None and least == most
        if least is not None and most is not None and least >= most and not equal:
            raise ValueError(
                f"no value is above {least:g} and below {most:g}; expected the lower bound first"
            )
        return self


def _named(kind: str) -> BeforeValidator:
    def entry(value: object) -> object:
        if isinstance(value, str):
            return {kind: str(value)}
        if not isinstance(value, dict) or not isinstance(value.get(kind), str):
            raise ValueError(f"expected a name, or a mapping with the key '{kind}'")
        return plain(value)

    return BeforeValidator(entry)


class Experiment(PartKeys, SourceFile):
    """One experiment file. Each of its `parts` is complete: it contains the values of the top level."""

    name: Name = entry("Name of the experiment, equal to the name of its file.", alias="experiment")
    title: Sentence = entry("Title of the report.", "")
    source: Sentence = entry("Publication that the experiment repeats or follows.", "")
    description: Sentence = entry("Purpose of the experiment, in a paragraph.", "")
    testbed: Name = entry("Testbed that the experiment runs on, a file in hosts/.")
    order: Order = entry("Order in which trials run.", Order.model_construct())
    parts: Mapping[Name, Part] = entry("Parts by name; their keys override the top level.", min_length=1)
    figures: tuple[Annotated[Mapping[str, Any], _named("figure")], ...] = entry("Figures of the report.", ())
    tables: tuple[Annotated[Mapping[str, Any], _named("table")], ...] = entry("Tables of the report.", ())
    expect: tuple[Expect, ...] = entry("Expected results, for the scorecard.", ())
    verdict: Thresholds = entry(
        "Limits of the verdict, which override those of config.yaml.", Thresholds.model_construct()
    )
    calibrate: Calibrate | None = entry(
        "Whether to measure each path before its first trial; by default as in config.yaml.", None
    )
    profiles: Mapping[Name, Free] = entry("Profiles by name: the changes that --profile NAME applies.", {})

    # layers/reuse.py merges these before this model reads the tree.
    extends: Name | None = entry("Experiment that this one extends; its file is in the same folder.", None)
    fragments: Mapping[Name, Free] = entry("Groups of keys by name, for `use` in experiments and parts.", {})


@dataclass(frozen=True)
class Member:
    """One flow of an entry of `traffic`. `index` counts from 0. If `port` is None, the plan chooses one."""

    label: str
    group: str
    index: int
    from_host: str
    to_host: str
    port: int | None


def number_of(flow: Flow, testbed: Testbed) -> int | None:
    """Return how many numbered flows an entry expands to, or None for one flow with the entry's own label.

    The result is 1 for random arrivals without `count`; the plan determines their number.
    """
    if flow.count is not None:
        return flow.count
    if flow.arrivals is not None:
        return flow.arrivals.count or 1
    plural = [end for end in (flow.from_end, flow.to_end) if is_plural(testbed, end)]
    return len(hosts_of(testbed, plural[0])) if plural else None


def members_of(flow: Flow, testbed: Testbed, number: int | None = None) -> Iterator[Member]:
    """Yield the flows that an entry expands to.

    Successive flows use the hosts of a plural role, such as senders, in turn.
    `number` is the number of random arrivals, which number_of() cannot determine. If `from` or `to` names no
    host, nothing is yielded.
    """
    sources, sinks = hosts_of(testbed, flow.from_end), hosts_of(testbed, flow.to_end)
    counted = number if number is not None else number_of(flow, testbed)
    if not sources or not sinks:
        return
    for index in range(1 if counted is None else counted):
        yield Member(
            label=flow.label if counted is None else f"{flow.label}-{index + 1}",
            group=flow.label,
            index=index,
            from_host=sources[index % len(sources)],
            to_host=sinks[index % len(sinks)],
            port=None if flow.port is None else flow.port + index,
        )


# Study files, experiments/studies/NAME.yaml: several experiments in one report.

STUDIES = "studies"


class Section(Strict):
    """One section of the report: an experiment, or a part of one."""

    title: Sentence = entry("Heading of the section.")
    experiment: Name = entry("Experiment of the section, a file in experiments/.")
    campaign: Name | None = entry("Campaign of that experiment; by default the newest.", None)
    part: Name | None = entry(
        "Part of that experiment whose expectations, figures and tables the section shows.", None
    )
    follows: Sentence | None = entry(
        "Section of the source that this section repeats, such as section V-B.", None
    )
    text: Sentence | None = entry("Text of the section, in a paragraph.", None)
    deviation: Sentence | None = entry("How this section differs from the source.", None)
    figures: tuple[Word, ...] | None = entry(
        "Figures to show; by default the part's figures that no other section names.", None
    )
    tables: tuple[Word, ...] | None = entry(
        "Tables to show; by default the part's tables that no other section names.", None
    )


class StudyReport(Strict):
    """Several experiments in one report."""

    study: Name = entry("Name of the study, equal to the name of its file.")
    title: Sentence = entry("Title of the report.")
    source: Sentence | None = entry("Publication that the study repeats or follows.", None)
    authors: Sentence | None = entry("Authors of that publication.", None)
    description: Sentence | None = entry("Purpose of the study, in a paragraph.", None)
    sections: tuple[Section, ...] = entry("Sections of the report, in order.", min_length=1)
