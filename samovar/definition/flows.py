"""The traffic of an experiment: flows, how many, when they begin and when everything ends."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated

from pydantic import BeforeValidator, Field, PlainValidator, model_validator

from samovar import units
from samovar.definition import forms
from samovar.definition.dscp import parse_dscp
from samovar.definition.fields import (
    MOST_FLOWS,
    ArrivalCount,
    DelayOrFormula,
    Duration,
    FlowCount,
    Name,
    Port,
    SizeOrFormula,
    Strict,
    TimeOrFormula,
    parse_algorithm,
    parse_delay,
    scalar,
)
from samovar.definition.formula import Formula
from samovar.definition.mistakes import Mistakes
from samovar.definition.nearest import unknown
from samovar.definition.with_parameters import WithParameters


@dataclass(frozen=True)
class Uniform:
    """A time drawn at random between two, in seconds; every time is as likely."""

    least_s: float
    most_s: float


def _time(text: str) -> float:
    return units.parse_duration(text, allow_zero=True)


def read_start(written: object) -> float | Formula | Uniform:
    """Read a start: a time, or {uniform: [0s, 5s]}; raises ValueError or a ValidationError with places."""
    if not isinstance(written, Mapping):
        return scalar(parse_delay)(written)  # type: ignore[no-any-return]
    mistakes = Mistakes()
    for key in written:
        if key != "uniform":
            mistakes.add((key,), unknown("key of a random start", key, ("uniform",)), key=True)
    mistakes.raise_any()
    bounds = written.get("uniform")
    if not isinstance(bounds, list) or len(bounds) != 2:
        raise ValueError("expected a time such as 5s, or two times such as {uniform: [0s, 5s]}")
    ends = [mistakes.within(("uniform", index), scalar(_time), one) for index, one in enumerate(bounds)]
    mistakes.raise_any()
    if ends[0] >= ends[1]:
        mistakes.add(
            ("uniform",), f"'{bounds[1]}' is not after '{bounds[0]}'; expected the earlier time first"
        )
    mistakes.raise_any()
    return Uniform(*ends)


Start = Annotated[
    float | Formula | Uniform,
    PlainValidator(read_start, json_schema_input_type=str | dict[str, tuple[str, str]]),
    forms.DELAY_OR_FORMULA,
]
Algorithm = Annotated[str, BeforeValidator(scalar(parse_algorithm)), forms.ALGORITHM]
Dscp = Annotated[int, BeforeValidator(scalar(parse_dscp)), forms.DSCP]
Frequency = Annotated[float, BeforeValidator(scalar(units.parse_frequency)), forms.FREQUENCY]


class Arrivals(Strict):
    """Flows that begin at random, as independent users begin them."""

    poisson_per_s: Frequency = Field(
        alias="poisson", description="Mean number of flows that begin in a second, such as 2/s."
    )
    until_s: Duration | None = Field(
        None, alias="until", description="Time after which none begins, such as 60s."
    )
    count: ArrivalCount | None = Field(None, description="Number of flows that begin, up to 10000.")

    @model_validator(mode="after")
    def _ends_once(self) -> Arrivals:
        if (self.until_s is None) == (self.count is None):
            what = "no end" if self.count is None else "two ends"
            raise ValueError(f"{what}; expected until or count beside poisson")
        if self.until_s is not None and self.until_s * self.poisson_per_s > MOST_FLOWS:
            many = round(self.until_s * self.poisson_per_s)
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
        description="When the flow begins after the trial, such as 5s, or {uniform: [0s, 5s]} at random.",
    )
    port: Port | None = Field(
        None, description="Port at the receiver; counted flows take the ones that follow it."
    )
    size_bytes: SizeOrFormula | None = Field(
        None, alias="size", description="Bytes to send, such as 1GB; the flow ends when they are sent."
    )
    duration_s: TimeOrFormula | None = Field(
        None, alias="duration", description="How long the flow lasts, such as 90s."
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
        ends = {"a size": self.size_bytes, "a duration": self.duration_s, "until": self.until}
        given = [name for name, value in ends.items() if value is not None]
        if len(given) > 1:
            raise ValueError(f"flow '{self.label}' has {' and '.join(given)}; expected one of them")
        if self.arrivals is not None and (
            self.count is not None or self.every_s or "start_s" in self.model_fields_set
        ):
            message = "has arrivals beside start, count or every; expected arrivals alone"
            raise ValueError(f"flow '{self.label}' {message}")
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
