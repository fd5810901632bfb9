"""The experiment as typed, frozen values."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, PlainValidator, PrivateAttr, model_validator

from samovar.definition.fields import (
    BufferField,
    Duration,
    DurationOrZero,
    Free,
    Interface,
    Name,
    Number,
    Port,
    Positive,
    Rate,
    Seed,
    Sentence,
    Share,
    Size,
    Snaplen,
    Strict,
    Within,
    Word,
    choice,
)
from samovar.definition.metrics import METRICS
from samovar.definition.nearest import unknown
from samovar.definition.yamltext import Map, plain

ORDERS = ("sequential", "shuffled", "blocked")


class WithParameters(Strict):
    """A model whose other keys are parameters of the recipe it names."""

    parameters: Mapping[str, Word] = Field(default_factory=dict)

    @model_validator(mode="before")
    @classmethod
    def _gather(cls, data: object) -> object:
        if not isinstance(data, dict):
            return data
        known = own_keys(cls)
        gathered: dict[str, object] = {key: value for key, value in data.items() if key in known}
        return gathered | {"parameters": {key: value for key, value in data.items() if key not in known}}


def own_keys(model: type[Strict]) -> frozenset[str]:
    """Return the keys that a model has in the file, without the parameters of recipes."""
    keys = (field.alias or name for name, field in model.model_fields.items())
    return frozenset(key for key in keys if key != "parameters")


class NetworkPath(WithParameters):
    """What the bottleneck is set to; None where a factor must say it."""

    rate_bps: Rate | None = Field(None, alias="rate")
    rtt_s: DurationOrZero = Field(0.0, alias="rtt")
    loss: Share = 0.0
    aqm: Name = "pfifo"
    buffer: BufferField | None = None


class Flow(WithParameters):
    """One flow of data from one host to another."""

    label: Name = Field(alias="flow")
    generator: Name
    from_end: Name = Field(alias="from")
    to_end: Name = Field(alias="to")
    start_s: DurationOrZero = Field(0.0, alias="start")
    port: Port | None = None
    size_bytes: Size | None = Field(None, alias="size")
    duration_s: Duration | None = Field(None, alias="duration")

    @model_validator(mode="after")
    def _ends_once(self) -> Flow:
        if self.size_bytes is not None and self.duration_s is not None:
            raise ValueError(f"flow '{self.label}' has a size and a duration; expected one of them")
        return self


class Capture(Strict):
    """One packet capture; without an interface, the one that faces the traffic."""

    at: Name
    interface: Interface | None = None
    snaplen_bytes: Snaplen = Field(96, alias="snaplen")


class Logger(WithParameters):
    """One logger at one host."""

    logger: Name
    at: Name
    interface: Interface | None = None
    interval_s: Duration = Field(0.01, alias="interval")


class Order(Strict):
    """How the trials of a part are put in time."""

    kind: Annotated[Literal["sequential", "shuffled", "blocked"], choice("order", *ORDERS)] = "blocked"
    seed: Seed = 1


Factors = Mapping[Word, tuple[Word, ...]]


class Part(Strict):
    """One matrix of the experiment with everything it inherits filled in."""

    title: Sentence = ""
    factors: Factors = Field(default_factory=dict)
    replicates: Positive = 1
    duration_s: Duration | None = Field(None, alias="duration")
    path: NetworkPath | None = None
    traffic: tuple[Flow, ...]
    captures: tuple[Capture, ...] = ()
    loggers: tuple[Logger, ...] = ()


def _levels(value: object) -> str | tuple[str, ...]:
    if isinstance(value, str):
        return str(value)
    if isinstance(value, list) and value and all(isinstance(level, str) for level in value):
        return tuple(str(level) for level in value)
    raise ValueError("expected a level or a list of levels, such as cdg or [newreno, cubic]")


Levels = Annotated[str | tuple[str, ...], PlainValidator(_levels)]


def _metric(value: object) -> str:
    if not isinstance(value, str) or value not in METRICS:
        raise ValueError(unknown("metric", str(value), METRICS))
    return str(value)


class Expect(Strict):
    """One line of the scorecard: what a metric should be, in the metric's own unit."""

    say: Sentence
    metric: Annotated[str, PlainValidator(_metric)]
    part: Name | None = None
    where: Mapping[Word, Levels] = Field(default_factory=dict)
    relative_to: Mapping[Word, Word] | None = None
    equals: Number | None = None
    within: Within | None = None
    below: Number | None = None
    above: Number | None = None
    between: tuple[Number, Number] | None = None
    source: Sentence | None = None

    @model_validator(mode="after")
    def _asks_something(self) -> Expect:
        if all(bound is None for bound in (self.equals, self.below, self.above, self.between)):
            raise ValueError("the line asks for nothing; expected equals, below, above or between")
        if self.within is not None and self.equals is None:
            raise ValueError("within needs something to be near; expected equals beside it")
        return self


def _named(kind: str) -> BeforeValidator:
    def entry(value: object) -> object:
        if isinstance(value, str):
            return {kind: str(value)}
        if not isinstance(value, dict) or not isinstance(value.get(kind), str):
            raise ValueError(f"expected a name, or a mapping with the key '{kind}'")
        return plain(value)

    return BeforeValidator(entry)


class Experiment(Strict):
    """One experiment file; `parts` holds every matrix complete, top-level values filled in."""

    name: Name = Field(alias="experiment")
    title: Sentence = ""
    source: Sentence = ""
    description: Sentence = ""
    testbed: Name
    order: Order = Order()
    parts: Mapping[Name, Part] = Field(min_length=1)
    figures: tuple[Annotated[Mapping[str, Any], _named("figure")], ...] = ()
    tables: tuple[Annotated[Mapping[str, Any], _named("table")], ...] = ()
    expect: tuple[Expect, ...] = ()
    profiles: Mapping[Name, Free] = Field(default_factory=dict)

    # What the parts inherit: filled into them before this model sees it, kept to be checked where it stands.
    factors: Factors = Field(default_factory=dict, exclude=True)
    replicates: Positive = Field(1, exclude=True)
    duration_s: Duration | None = Field(None, alias="duration", exclude=True)
    path: NetworkPath | None = Field(None, exclude=True)
    traffic: tuple[Flow, ...] = Field((), exclude=True)
    captures: tuple[Capture, ...] = Field((), exclude=True)
    loggers: tuple[Logger, ...] = Field((), exclude=True)

    _written: Map | None = PrivateAttr(None)

    @property
    def written(self) -> Map | None:
        """Return the file's own tree with its places: profiles and explanations start from it."""
        return self._written

    def with_source(self, tree: Map) -> Experiment:
        """Return this experiment remembering the tree it was read from."""
        copy = self.model_copy()
        copy._written = tree
        return copy
