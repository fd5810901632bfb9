"""The traffic of an experiment: flows, how many, when they begin and when everything ends."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any

from pydantic import BeforeValidator, Field, PlainValidator, model_validator

from samovar.experiment.expressions.distribution import Distribution, read_distribution
from samovar.experiment.expressions.formula import Formula
from samovar.experiment.keys import notation
from samovar.experiment.keys.dscp import parse_dscp
from samovar.experiment.keys.field_types import (
    MOST_FLOWS,
    DelayOrFormula,
    FlowCount,
    FrequencyOrFormula,
    Interface,
    Name,
    Places,
    Port,
    SizeOrFormula,
    Strict,
    TimeOrFormula,
    parse_algorithm,
    parse_delay,
    parse_duration,
    parse_size,
    scalar,
)
from samovar.experiment.keys.with_parameters import WithParameters

Written = str | dict[str, str | list[str]]


def or_random(parse: Callable[[str], Any]) -> Callable[[object], Any]:
    """Wrap a parser of text so that a distribution is read too: {uniform: [0s, 5s]}."""

    def validate(value: object) -> Any:
        return read_distribution(value, parse) if isinstance(value, dict) else scalar(parse)(value)

    return validate


Start = Annotated[
    float | Formula | Distribution,
    PlainValidator(or_random(parse_delay), json_schema_input_type=Written),
    notation.DELAY_OR_FORMULA,
]
FlowSize = Annotated[
    int | Formula | Distribution,
    PlainValidator(or_random(parse_size), json_schema_input_type=Written),
    notation.SIZE_OR_FORMULA,
]
FlowDuration = Annotated[
    float | Formula | Distribution,
    PlainValidator(or_random(parse_duration), json_schema_input_type=Written),
    notation.TIME_OR_FORMULA,
]
Algorithm = Annotated[str, BeforeValidator(scalar(parse_algorithm)), notation.ALGORITHM]
Dscp = Annotated[int, BeforeValidator(scalar(parse_dscp)), notation.DSCP]


class Arrivals(Strict):
    """Flows that begin at random times, as those of independent users do."""

    poisson_per_s: FrequencyOrFormula = Field(
        alias="poisson",
        description="Mean number of flows that begin per second, such as 2/s or RATE / traffic.web.size.",
    )
    until_s: TimeOrFormula | None = Field(
        None, alias="until", description="Time after the trial's start after which none begins, such as 60s."
    )
    count: FlowCount | None = Field(None, description="Number of flows that begin, up to 10000.")

    @model_validator(mode="after")
    def _ends_once(self) -> Arrivals:
        if (self.until_s is None) == (self.count is None):
            both = "" if self.count is None else ", not both"
            raise ValueError(f"expected until or count beside poisson{both}")
        until_s, per_s = self.until_s, self.poisson_per_s
        if isinstance(until_s, float) and isinstance(per_s, float) and until_s * per_s > MOST_FLOWS:
            many = round(until_s * per_s)
            raise ValueError(f"about {many} flows begin; expected at most {MOST_FLOWS}")
        return self


class Flow(WithParameters):
    """One flow of data from one host to another, or as many as `count` or `arrivals` say."""

    label: Name = Field(alias="flow", description="Label of the flow in factors, tables and figures.")
    generator: Name = Field(
        description="Recipe of the traffic program; keys that no flow has are its parameters."
    )
    from_end: Name = Field(
        alias="from", description="Host or role that sends; a plural role means each of its hosts."
    )
    to_end: Name = Field(
        alias="to", description="Host or role that receives; a plural role means each of its hosts."
    )
    start_s: Start = Field(
        0.0,
        alias="start",
        description="When the flow begins after the trial, such as 5s, or {uniform: [0s, 5s]} at random; "
        "arrivals count from it.",
    )
    port: Port | None = Field(
        None, description="Port at the receiver; counted flows take the ones that follow it."
    )
    size_bytes: FlowSize | None = Field(
        None,
        alias="size",
        description="Bytes to send, such as 1GB or {exponential: 100KB}; the flow ends when they are sent.",
    )
    duration_s: FlowDuration | None = Field(
        None,
        alias="duration",
        description="How long the flow lasts, such as 90s or {uniform: [5s, 20s], step: 1s}.",
    )
    until: Name | None = Field(None, description="Label of the flow that this one ends with.")
    cc: Algorithm | None = Field(
        None, description="Congestion control of this flow, where its generator can set it."
    )
    rwnd_bytes: SizeOrFormula | None = Field(
        None,
        alias="rwnd",
        description="Largest window that its receiver announces to its sender, such as 200KB.",
    )
    dscp: Dscp | None = Field(
        None, description="DiffServ code point: a name such as EF, AF11 or CS1, or 0 to 63."
    )
    count: FlowCount | None = Field(
        None, description="Number of flows, labelled FLOW-1, FLOW-2 and so on; 0 leaves the flow out."
    )
    every_s: DelayOrFormula = Field(
        0.0, alias="every", description="Time between the starts of counted flows, such as 10s."
    )
    arrivals: Arrivals | None = Field(None, description="Random starts of flows FLOW-1, FLOW-2 and so on.")

    @model_validator(mode="after")
    def _ends_once(self) -> Flow:
        if self.label.endswith(".arrivals"):
            raise ValueError(f"flow '{self.label}' must not end in .arrivals, which names a key")
        ends = {"a size": self.size_bytes, "a duration": self.duration_s, "until": self.until}
        given = [name for name, value in ends.items() if value is not None]
        if len(given) > 1:
            raise ValueError(f"flow '{self.label}' has {' and '.join(given)}; expected one of them")
        drawn = isinstance(self.start_s, Distribution)
        if self.arrivals is not None and (self.count is not None or self.every_s or drawn):
            beside = "a random start" if drawn else "count or every"
            raise ValueError(f"flow '{self.label}' has arrivals beside {beside}; expected arrivals alone")
        return self


class Stop(Strict):
    """When a trial's traffic ends, complete, whatever still runs.

    Flows without an end of their own end then.
    """

    after_s: TimeOrFormula | None = Field(
        None, alias="after", description="Time after the trial's start, such as 120s."
    )
    when: Name | None = Field(None, description="Label of the flow whose end ends the trial.")

    @model_validator(mode="after")
    def _stops(self) -> Stop:
        if self.after_s is None and self.when is None:
            raise ValueError("says nothing; expected after, when or both")
        return self


class Logger(WithParameters):
    """One logger at one host."""

    logger: Name = Field(description="Recipe of the logger; keys that no logger has are its parameters.")
    at: Places = Field(description="Host or role that logs, senders for all of a role, or a list.")
    interface: Interface | None = Field(
        None, description="Interface to watch; else the one that faces traffic."
    )
    interval_s: TimeOrFormula | None = Field(
        None, alias="interval", description="Time between samples, such as 10ms; else as its recipe says."
    )
