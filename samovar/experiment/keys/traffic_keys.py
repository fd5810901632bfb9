"""Keys of the traffic and of its recording: flows, arrivals, stop, captures, loggers."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field, model_validator

from samovar.experiment.formula import Formula
from samovar.experiment.keys.key_table import VARIES, Strict, WithParameters
from samovar.experiment.keys.value_types import (
    ALGORITHM,
    DELAY_OR_FORMULA,
    DSCP,
    FLOW_COUNT,
    FREQUENCY_OR_FORMULA,
    MOST_FLOWS,
    NAME,
    SIZE_OR_FORMULA,
    SNAPLEN,
    TIME_OR_FORMULA,
    Interface,
    Name,
    Places,
    Port,
)
from samovar.experiment.values import Distribution

Real = float | Formula
VariedName = Annotated[str, NAME, VARIES]
VariedTime = Annotated[Real, TIME_OR_FORMULA, VARIES]
FlowCount = Annotated[int, FLOW_COUNT, VARIES]
FLOW_ENDS = ("size", "duration", "until")
"""Keys that end a flow: it has at most one of them."""


class Arrivals(Strict):
    """Flows that begin at random times, as those of independent users do."""

    EXCLUSIVE = (("until", "count"),)
    NEEDED = (("until", "count"),)

    poisson_per_s: Annotated[Real, FREQUENCY_OR_FORMULA, VARIES] = Field(
        alias="poisson",
        description="Mean number of flows that begin per second, such as 2/s or RATE / traffic.web.size.",
    )
    until_s: VariedTime | None = Field(
        None, alias="until", description="Time of the trial after which no flow begins, such as 60s."
    )
    count: FlowCount | None = Field(None, description=f"Number of flows that begin, at most {MOST_FLOWS}.")

    @model_validator(mode="after")
    def _check_number(self) -> Arrivals:
        until_s, per_s = self.until_s, self.poisson_per_s
        if isinstance(until_s, float) and isinstance(per_s, float) and until_s * per_s > MOST_FLOWS:
            number = round(until_s * per_s)
            raise ValueError(f"about {number} flows begin; expected at most {MOST_FLOWS}")
        return self


class Flow(WithParameters):
    """A flow of data from one host to another, or as many flows as `count` or `arrivals` make."""

    EXCLUSIVE = (FLOW_ENDS, ("arrivals", "count"), ("arrivals", "every"))

    label: Name = Field(alias="flow", description="Label of the flow in factors, tables and figures.")
    generator: VariedName = Field(
        description="Recipe of the traffic program; keys that are not listed here are its parameters."
    )
    from_end: VariedName = Field(
        alias="from", description="Host or role that sends; a plural role means each of its hosts."
    )
    to_end: VariedName = Field(
        alias="to", description="Host or role that receives; a plural role means each of its hosts."
    )
    start_s: Annotated[Real | Distribution, DELAY_OR_FORMULA.or_random(), VARIES] = Field(
        0.0,
        alias="start",
        description="When the flow begins in the trial, such as 5s or, at random, {uniform: [0s, 5s]}; "
        "arrivals count from it.",
    )
    port: Port | None = Field(
        None, description="Port at the receiver; counted flows use the ports that follow it."
    )
    size_bytes: Annotated[int | Formula | Distribution, SIZE_OR_FORMULA.or_random(), VARIES] | None = Field(
        None,
        alias="size",
        description="Bytes to send, such as 1GB or {exponential: 100KB}; the flow ends when they are sent.",
    )
    duration_s: Annotated[Real | Distribution, TIME_OR_FORMULA.or_random(), VARIES] | None = Field(
        None,
        alias="duration",
        description="How long the flow lasts, such as 90s or {uniform: [5s, 20s], step: 1s}.",
    )
    until: VariedName | None = Field(None, description="Label of the flow that this one ends with.")
    cc: Annotated[str, ALGORITHM, VARIES] | None = Field(
        None, description="Congestion control of this flow, if its generator can set it."
    )
    rwnd_bytes: Annotated[int | Formula, SIZE_OR_FORMULA, VARIES] | None = Field(
        None,
        alias="rwnd",
        description="Largest window that its receiver advertises to its sender, such as 200KB.",
    )
    dscp: Annotated[int, DSCP, VARIES] | None = Field(
        None, description="DiffServ code point: a name such as EF, AF11 or CS1, or 0 to 63."
    )
    count: FlowCount | None = Field(
        None, description="Number of flows, labelled FLOW-1, FLOW-2 and so on; 0 leaves the flow out."
    )
    every_s: Annotated[Real, DELAY_OR_FORMULA, VARIES] = Field(
        0.0, alias="every", description="Time between the starts of counted flows, such as 10s."
    )
    arrivals: Arrivals | None = Field(None, description="Random starts of flows FLOW-1, FLOW-2 and so on.")

    @model_validator(mode="after")
    def _check_label_and_start(self) -> Flow:
        if self.label.endswith(".arrivals"):
            raise ValueError(f"flow '{self.label}' must not end in .arrivals, which names a key")
        if self.arrivals is not None and isinstance(self.start_s, Distribution):
            raise ValueError("arrivals and a random start exclude each other; expected one of them")
        return self


class Stop(Strict):
    """When the traffic of a trial ends, even if flows still run.

    Flows without an end of their own end then.
    """

    NEEDED = (("after", "when"),)

    after_s: VariedTime | None = Field(
        None, alias="after", description="Time after the trial's start, such as 120s."
    )
    when: VariedName | None = Field(None, description="Label of the flow whose end ends the trial.")


class Capture(Strict):
    """One packet capture; without an interface, at the one that faces the traffic."""

    at: Places = Field(description="Host or role that captures, senders for all of a role, or a list.")
    interface: Interface | None = Field(
        None, description="Interface to capture at; by default the one that faces the traffic."
    )
    snaplen_bytes: Annotated[int, SNAPLEN] = Field(
        96, alias="snaplen", description="Bytes kept of every packet, 64 to 262144."
    )


class Logger(WithParameters):
    """One logger at one host."""

    logger: Name = Field(
        description="Recipe of the logger; keys that are not listed here are its parameters."
    )
    at: Places = Field(description="Host or role that logs, senders for all of a role, or a list.")
    interface: Interface | None = Field(
        None, description="Interface to watch; by default the one that faces the traffic."
    )
    interval_s: VariedTime | None = Field(
        None,
        alias="interval",
        description="Time between samples, such as 10ms; by default as the recipe says.",
    )
