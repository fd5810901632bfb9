"""The experiment as typed, frozen values."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, PlainValidator, PrivateAttr, model_validator

from samovar.experiment.expressions.values import Directional as Directional
from samovar.experiment.expressions.values import PerHost as PerHost
from samovar.experiment.keys import notation
from samovar.experiment.keys.field_types import (
    Free,
    Interface,
    Name,
    Number,
    Places,
    Positive,
    Seed,
    Sentence,
    Snaplen,
    Strict,
    TimeOrFormula,
    Within,
    Word,
    choice,
    scalar,
)
from samovar.experiment.keys.levels import Excluded, Factors, Included, Levels, Setting
from samovar.experiment.keys.levels import Factor as Factor
from samovar.experiment.keys.levels import Level as Level
from samovar.experiment.keys.levels import SettingValue as SettingValue
from samovar.experiment.keys.path_keys import NetworkPath as NetworkPath
from samovar.experiment.keys.path_keys import PathClass as PathClass
from samovar.experiment.keys.traffic_keys import Arrivals as Arrivals
from samovar.experiment.keys.traffic_keys import Flow as Flow
from samovar.experiment.keys.traffic_keys import Logger as Logger
from samovar.experiment.keys.traffic_keys import Stop as Stop
from samovar.experiment.keys.verdict_thresholds import Calibrate as Calibrate
from samovar.experiment.keys.verdict_thresholds import Thresholds as Thresholds
from samovar.experiment.keys.with_parameters import WithParameters as WithParameters
from samovar.experiment.keys.with_parameters import own_keys as own_keys
from samovar.experiment.metrics import METRICS
from samovar.experiment.nearest import unknown
from samovar.experiment.yaml.tree import Map, plain

ORDERS = ("sequential", "shuffled", "blocked")


class Capture(Strict):
    """One packet capture; without an interface, the one that faces the traffic."""

    at: Places = Field(description="Host or role that captures, senders for all of a role, or a list.")
    interface: Interface | None = Field(
        None, description="Interface to capture at; else the one that faces traffic."
    )
    snaplen_bytes: Snaplen = Field(
        96, alias="snaplen", description="Bytes kept of every packet, 64 to 262144."
    )


class Order(Strict):
    """How the trials of a part are put in time."""

    kind: Annotated[Literal["sequential", "shuffled", "blocked"], choice("order", *ORDERS)] = Field(
        "blocked",
        description="sequential: as written; shuffled: at random; blocked: at random within blocks that hold "
        "every treatment once.",
    )
    seed: Seed = Field(1, description="Seed of every random choice; the same seed gives the same plan.")


class Part(Strict):
    """One matrix of the experiment with everything it inherits filled in."""

    title: Sentence = Field("", description="Title of the part in tables and figures.")
    factors: Factors = Field(
        default_factory=dict, description="What varies: every combination of levels is run."
    )
    exclude: tuple[Excluded, ...] = Field(
        (), description="Treatments to leave out: all that have the given levels, {factor: level or list}."
    )
    include: tuple[Included, ...] = Field(
        (), description="Treatments to add: one level for every factor, new ones among them."
    )
    replicates: Positive = Field(1, description="How often every treatment is run.")
    settings: Mapping[Word, Setting] = Field(
        default_factory=dict,
        description="What hosts are set to: cc, rwnd, mtu, txd or RECIPE.PARAMETER, for all or per host.",
    )
    duration_s: TimeOrFormula | None = Field(
        None, alias="duration", description="How long flows last that have no end of their own, such as 90s."
    )
    path: NetworkPath | None = Field(None, description="What the bottleneck is set to.")
    traffic: tuple[Flow, ...] = Field(description="The flows of every trial.")
    stop: Stop | None = Field(None, description="When the traffic of a trial ends.")
    captures: tuple[Capture, ...] = Field((), description="Packet captures.")
    loggers: tuple[Logger, ...] = Field((), description="Recorders that run beside the traffic.")

    # Laid under the part before this model sees it.
    use: Name | tuple[Name, ...] = Field(
        (), exclude=True, description="Fragments that lie under what stands here, later over earlier ones."
    )


def _metric(text: str) -> str:
    if text not in METRICS:
        raise ValueError(unknown("metric", text, METRICS))
    return text


class Expect(Strict):
    """One line of the scorecard: what a metric should be, in the metric's own unit."""

    say: Sentence = Field(description="What is expected, in words.")
    metric: Annotated[str, PlainValidator(scalar(_metric), json_schema_input_type=str), notation.METRIC] = (
        Field(description="The metric that is compared; its unit is that of the bounds.")
    )
    part: Name | None = Field(None, description="Part whose trials are taken; else all.")
    flow: Name | None = Field(
        None,
        description="Label of the flow that is measured, of a counted one or of all of them; "
        "else all flows of a trial, by their median.",
    )
    where: Mapping[Word, Levels] = Field(
        default_factory=dict, description="Levels whose trials are taken, {factor: level or list}."
    )
    relative_to: Mapping[Word, Word] | None = Field(
        None, description="Levels of other trials to divide by, so that the bounds are ratios."
    )
    equals: Number | None = Field(None, description="The value that is expected.")
    within: Within | None = Field(None, description="How far from equals it may be, such as 2% or 5.")
    below: Number | None = Field(None, description="What it must be below.")
    above: Number | None = Field(None, description="What it must be above.")
    between: tuple[Number, Number] | None = Field(None, description="The least and the most that it may be.")
    source: Sentence | None = Field(None, description="Where the expectation comes from.")
    differs: Sentence | None = Field(
        None, description="Why it may not hold here; the scorecard says it where it does not."
    )

    @model_validator(mode="after")
    def _asks_something(self) -> Expect:
        if all(bound is None for bound in (self.equals, self.below, self.above, self.between)):
            raise ValueError("the line asks for nothing; expected equals, below, above or between")
        if self.within is not None and self.equals is None:
            raise ValueError("within needs something to be near; expected equals beside it")
        least, most = self.between or (self.above, self.below)
        apart = least is None or most is None or least < most or (least == most and self.between is not None)
        if not apart:
            raise ValueError(f"nothing is above {least:g} and below {most:g}; expected the lower bound first")
        return self


def _named(kind: str) -> BeforeValidator:
    def entry(value: object) -> object:
        if isinstance(value, str):
            return {kind: str(value)}
        if not isinstance(value, dict) or not isinstance(value.get(kind), str):
            raise ValueError(f"expected a name, or a mapping with the key '{kind}'")
        return plain(value)

    return BeforeValidator(entry)


def _of_part(field: str) -> str | None:
    return Part.model_fields[field].description


class Experiment(Strict):
    """One experiment file; `parts` holds every matrix complete, top-level values filled in."""

    name: Name = Field(alias="experiment", description="Name of the experiment, the same as the file's.")
    title: Sentence = Field("", description="Title of the report.")
    source: Sentence = Field("", description="What the study repeats or follows.")
    description: Sentence = Field("", description="What is studied, in a paragraph.")
    testbed: Name = Field(description="Testbed that it runs on, a file in hosts/.")
    order: Order = Field(Order(), description="How trials are put in time.")
    parts: Mapping[Name, Part] = Field(
        min_length=1, description="Matrices with values of their own over those at the top level."
    )
    figures: tuple[Annotated[Mapping[str, Any], _named("figure")], ...] = Field(
        (), description="Figures of the report: names, or mappings with their options."
    )
    tables: tuple[Annotated[Mapping[str, Any], _named("table")], ...] = Field(
        (), description="Tables of the report: names, or mappings with their options."
    )
    expect: tuple[Expect, ...] = Field((), description="Lines of the scorecard.")
    verdict: Thresholds = Field(
        Thresholds(), description="When a trial is suspect or invalid, over the configuration's."
    )
    calibrate: Calibrate | None = Field(
        None, description="Whether each path is measured before its first trial; else as configured."
    )
    profiles: Mapping[Name, Free] = Field(
        default_factory=dict, description="Named changes, such as a quick run, that lie over the experiment."
    )

    # Laid under the file before this model sees it.
    extends: Name | None = Field(
        None, exclude=True, description="Another experiment of the folder, over which this one lies."
    )
    fragments: Mapping[Name, Free] = Field(
        default_factory=dict, exclude=True, description="Named pieces of experiments and parts, for use."
    )
    use: Name | tuple[Name, ...] = Field((), exclude=True, description=_of_part("use"))

    # What the parts inherit: filled into them before this model sees it, kept to be checked where it stands.
    factors: Factors = Field(default_factory=dict, exclude=True, description=_of_part("factors"))
    exclude: tuple[Excluded, ...] = Field((), exclude=True, description=_of_part("exclude"))
    include: tuple[Included, ...] = Field((), exclude=True, description=_of_part("include"))
    replicates: Positive = Field(1, exclude=True, description=_of_part("replicates"))
    settings: Mapping[Word, Setting] = Field(
        default_factory=dict, exclude=True, description=_of_part("settings")
    )
    duration_s: TimeOrFormula | None = Field(
        None, alias="duration", exclude=True, description=_of_part("duration_s")
    )
    path: NetworkPath | None = Field(None, exclude=True, description=_of_part("path"))
    traffic: tuple[Flow, ...] = Field((), exclude=True, description=_of_part("traffic"))
    stop: Stop | None = Field(None, exclude=True, description=_of_part("stop"))
    captures: tuple[Capture, ...] = Field((), exclude=True, description=_of_part("captures"))
    loggers: tuple[Logger, ...] = Field((), exclude=True, description=_of_part("loggers"))

    _written: Map | None = PrivateAttr(None)
    _complete: Map | None = PrivateAttr(None)

    @property
    def written(self) -> Map | None:
        """Return the file's tree with its places, what it reuses laid under it: profiles start from it."""
        return self._written

    @property
    def complete(self) -> Map | None:
        """Return the tree this was read from: profile and overrides laid over it, every part filled in."""
        return self._complete

    def with_source(self, tree: Map, complete: Map | None = None) -> Experiment:
        """Return this experiment remembering the trees it was read from."""
        copy = self.model_copy()
        copy._written, copy._complete = tree, complete
        return copy
