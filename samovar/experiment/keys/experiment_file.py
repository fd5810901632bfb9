"""Keys of an experiment file and its parts, the bounds of the verdict, and the flows that entries make."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, PlainValidator, PrivateAttr, model_validator

from samovar.experiment.keys.factor_targets import PlainFactors
from samovar.experiment.keys.key_table import Strict, keys_of
from samovar.experiment.keys.levels import Excluded, Factors, Included, Levels, Settings
from samovar.experiment.keys.path_keys import NetworkPath
from samovar.experiment.keys.testbed_file import Testbed, hosts_of, is_plural
from samovar.experiment.keys.traffic_keys import Capture, Flow, Logger, Stop
from samovar.experiment.keys.value_types import (
    DRIFT,
    METRIC,
    WITHIN,
    Duration,
    Name,
    Number,
    Positive,
    Seed,
    Sentence,
    Share,
    Size,
    TimeOrFormula,
    Word,
    choice,
)
from samovar.experiment.yaml.tree import Map, plain

Calibrate = Annotated[Literal["auto", "on", "off"], choice("calibrate", "auto", "on", "off")]
Free = Annotated[Any, PlainValidator(plain)]


class Order(Strict):
    """The order in which the trials of a part run."""

    kind: Annotated[
        Literal["sequential", "shuffled", "blocked"], choice("order", "sequential", "shuffled", "blocked")
    ] = Field(
        "blocked",
        description="sequential: as written; shuffled: at random; blocked: at random within blocks of every "
        "treatment once.",
    )
    seed: Seed = Field(1, description="Seed of all random choices; the same seed gives the same plan.")


class PartKeys(Strict):
    """Keys of a part, which it inherits from the top level of its file."""

    factors: Factors = Field(
        default_factory=dict, description="What varies: every combination of levels runs."
    )
    exclude: tuple[Excluded, ...] = Field(
        (), description="Treatments to leave out: all that have these levels, {factor: level or list}."
    )
    include: tuple[Included, ...] = Field(
        (), description="Treatments to add: a level for every factor, which may be new."
    )
    replicates: Positive = Field(1, description="Number of trials of every treatment.")
    settings: Settings = Field(
        default_factory=dict,
        description="Settings of hosts: cc, rwnd, mtu, txd or RECIPE.PARAMETER, for all or per host.",
    )
    duration_s: TimeOrFormula | None = Field(
        None, alias="duration", description=keys_of(PlainFactors)["duration"].description
    )
    path: NetworkPath | None = Field(None, description="What the bottleneck is set to.")
    traffic: tuple[Flow, ...] = Field((), description="The flows of every trial.")
    stop: Stop | None = Field(None, description="When the traffic of a trial ends.")
    captures: tuple[Capture, ...] = Field((), description="Packet captures.")
    loggers: tuple[Logger, ...] = Field((), description="Loggers that run beside the traffic.")

    # Merged before this model reads it.
    use: Name | tuple[Name, ...] = Field(
        (), description="Fragments that this extends; later ones override earlier ones."
    )


class Part(PartKeys):
    """One matrix of the experiment, with everything that it inherits filled in."""

    title: Sentence = Field("", description="Title of the part in tables and figures.")
    traffic: tuple[Flow, ...] = Field(description="The flows of every trial.")


class Expect(Strict):
    """One line of the scorecard: the expected value of a metric, in its own unit."""

    NEEDED = (("equals", "below", "above", "between"),)
    COMPANIONS = {"within": "equals"}  # noqa: RUF012

    say: Sentence = Field(description="The expectation in words.")
    metric: Annotated[str, METRIC] = Field(description="Metric to compare; the bounds are in its unit.")
    part: Name | None = Field(None, description="Part whose trials count; by default all.")
    flow: Name | None = Field(
        None,
        description="Label of the measured flow, or of counted flows; by default the median of all flows of "
        "a trial.",
    )
    where: Mapping[Word, Levels] = Field(
        default_factory=dict, description="Levels whose trials count, {factor: level or list}."
    )
    relative_to: Mapping[Word, Word] | None = Field(
        None, description="Levels of the trials to divide by; the bounds are then ratios."
    )
    equals: Number | None = Field(None, description="Expected value.")
    within: Annotated[str, WITHIN] | None = Field(
        None, description="Tolerance around equals, such as 2% or 5."
    )
    below: Number | None = Field(None, description="Upper bound.")
    above: Number | None = Field(None, description="Lower bound.")
    between: tuple[Number, Number] | None = Field(None, description="Least and greatest value.")
    source: Sentence | None = Field(None, description="Source of the expectation.")
    differs: Sentence | None = Field(
        None, description="Why it may not hold here; the scorecard prints it if it does not."
    )

    @model_validator(mode="after")
    def _check_bounds(self) -> Expect:
        least, most = self.between or (self.above, self.below)
        equal = self.between is not None and least == most
        if least is not None and most is not None and least >= most and not equal:
            raise ValueError(
                f"no value is above {least:g} and below {most:g}; expected the lower bound first"
            )
        return self


class Thresholds(Strict):
    """Bounds of the verdict; docs/explanation/verdict.md explains each."""

    late_s: Duration = Field(
        0.2, alias="late", description="Greatest delay of a flow's start; more is suspect."
    )
    duration: Share = Field(
        0.95, description="Least share of the planned time that traffic lasts; less is invalid."
    )
    window: Share = Field(
        0.9, description="Least share of rwnd that the largest window reaches; less is suspect."
    )
    bytes_differ: Share = Field(
        0.02,
        alias="bytes",
        description="Greatest difference of a flow's bytes in a capture from its generator's count; more is "
        "invalid.",
    )
    bottleneck: Share = Field(
        0.01,
        description="Greatest difference of the bytes through the bottleneck from those captured behind it; "
        "more is suspect.",
    )
    rate: Share = Field(
        0.04,
        description="Greatest difference of the bottleneck's rate, while packets wait, from the planned one; "
        "more is suspect, three times as much invalid.",
    )
    competing: Share = Field(
        0.001,
        description="Largest share of a capture's bytes that belongs to no flow; more is suspect, ten times "
        "as much invalid.",
    )
    competing_bytes: Size = Field(
        20_000, alias="competing_least", description="Bytes of no flow that are always accepted."
    )
    cpu: Share = Field(
        0.95, description="Largest share of the traffic's time that a CPU is busy; more is suspect."
    )
    clock_step_s: Duration = Field(
        0.05,
        alias="clock_step",
        description="Largest step of a host's clock during a trial; more ends the trial at once, invalid.",
    )
    clock_drift_ppm: Annotated[float, DRIFT] = Field(
        50.0,
        alias="clock_drift",
        description="Greatest drift of a host's clock against this machine's; certainly more is suspect.",
    )
    disk_bytes: Size = Field(
        50_000_000,
        alias="disk",
        description="Least free space where a host writes its trial; less ends the trial at once, invalid.",
    )
    capture_packets: Positive = Field(
        1_000_000,
        description="Packets of each capture that are read for the verdict; a million take about a second.",
    )

    def under(self, over: Thresholds) -> Thresholds:
        """Return these bounds, overridden by those that were given to `over`."""
        given = {name: getattr(over, name) for name in over.model_fields_set}
        return self.model_copy(update=given)


def _named(kind: str) -> BeforeValidator:
    def entry(value: object) -> object:
        if isinstance(value, str):
            return {kind: str(value)}
        if not isinstance(value, dict) or not isinstance(value.get(kind), str):
            raise ValueError(f"expected a name, or a mapping with the key '{kind}'")
        return plain(value)

    return BeforeValidator(entry)


class Experiment(PartKeys):
    """One experiment file; `parts` holds every matrix complete, with top-level values filled in."""

    name: Name = Field(alias="experiment", description="Name of the experiment, the same as the file's.")
    title: Sentence = Field("", description="Title of the report.")
    source: Sentence = Field("", description="Publication that the experiment repeats or follows.")
    description: Sentence = Field("", description="Purpose of the experiment, in a paragraph.")
    testbed: Name = Field(description="Testbed that it runs on, a file in hosts/.")
    order: Order = Field(Order(), description="Order in which trials run.")
    parts: Mapping[Name, Part] = Field(
        min_length=1, description="Matrices by name; their values override those at the top level."
    )
    figures: tuple[Annotated[Mapping[str, Any], _named("figure")], ...] = Field(
        (), description="Figures of the report: names, or mappings with options."
    )
    tables: tuple[Annotated[Mapping[str, Any], _named("table")], ...] = Field(
        (), description="Tables of the report: names, or mappings with options."
    )
    expect: tuple[Expect, ...] = Field((), description="Lines of the scorecard.")
    verdict: Thresholds = Field(
        Thresholds(), description="Bounds of the verdict, over those of the configuration."
    )
    calibrate: Calibrate | None = Field(
        None, description="Whether each path is measured before its first trial; by default as configured."
    )
    profiles: Mapping[Name, Free] = Field(
        default_factory=dict,
        description="Named changes of the experiment for --profile, such as a quick run.",
    )

    # Merged into the file before this model reads it.
    extends: Name | None = Field(
        None, description="Another experiment of the folder, which this one extends."
    )
    fragments: Mapping[Name, Free] = Field(
        default_factory=dict, description="Named pieces of experiments and parts, for `use`."
    )

    _written: Map | None = PrivateAttr(None)
    _complete: Map | None = PrivateAttr(None)

    @property
    def written(self) -> Map | None:
        """Return the file's tree with its positions, merged over what it extends; profiles start from it."""
        return self._written

    @property
    def complete(self) -> Map | None:
        """Return the tree this was read from: with the profile and overrides merged, every part complete."""
        return self._complete

    def with_source(self, tree: Map, complete: Map | None = None) -> Experiment:
        """Return this experiment with the trees it was read from."""
        copy = self.model_copy()
        copy._written, copy._complete = tree, complete
        return copy


@dataclass(frozen=True)
class Member:
    """One flow of a group: its index counts from 0, its port is None when the plan chooses one."""

    label: str
    group: str
    index: int
    from_host: str
    to_host: str
    port: int | None


def number_of(flow: Flow, testbed: Testbed) -> int | None:
    """Return how many flows an entry makes; None for one flow with the entry's own label.

    Random arrivals without a count are as many as are drawn; here they count as one.
    """
    if flow.count is not None:
        return flow.count
    if flow.arrivals is not None:
        return flow.arrivals.count or 1
    plural = [end for end in (flow.from_end, flow.to_end) if is_plural(testbed, end)]
    return len(hosts_of(testbed, plural[0])) if plural else None


def members_of(flow: Flow, testbed: Testbed, number: int | None = None) -> Iterator[Member]:
    """Yield the flows that an entry makes, going round the hosts of plural roles.

    `number` is that of arrivals which were drawn. Yield nothing if an end means no host.
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
