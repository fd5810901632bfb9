"""The path of an experiment: what the bottleneck is set to."""

from __future__ import annotations

from typing import Annotated

from pydantic import BeforeValidator, Field, model_validator

from samovar.experiment.keys import notation
from samovar.experiment.keys.field_types import (
    BothDelays,
    BufferPerDirection,
    DelayOrFormula,
    DelayPerDirection,
    Name,
    NamePerDirection,
    PacketsPerDirection,
    RatePerDirection,
    ShareOrFormula,
    SharePerDirection,
    Strict,
    parse_end,
    scalar,
)
from samovar.experiment.keys.with_parameters import WithParameters

EndOrSubnet = Annotated[str, BeforeValidator(scalar(parse_end)), notation.END]


class PathClass(Strict):
    """A flow or subnet with a delay or loss of its own, before the queue that all share."""

    flow: Name | None = Field(None, description="Label of the flow; a counted flow means all of its flows.")
    from_end: EndOrSubnet | None = Field(
        None, alias="from", description="Host, role or subnet that packets come from."
    )
    to_end: EndOrSubnet | None = Field(
        None, alias="to", description="Host, role or subnet that packets go to."
    )
    rtt_s: DelayOrFormula | None = Field(
        None,
        alias="rtt",
        description="Delay both ways together, half each way, in place of the path's, such as 40ms.",
    )
    delay_s: BothDelays | None = Field(
        None,
        alias="delay",
        description="One-way delays, in place of the path's, such as {down: 30ms, up: 10ms}.",
    )
    loss: ShareOrFormula | None = Field(
        None, description="Share of packets lost on the way down, in place of the path's, such as 1%."
    )

    @model_validator(mode="after")
    def _says_what_and_how(self) -> PathClass:
        if (self.flow is None) == (self.from_end is None and self.to_end is None):
            raise ValueError("a class is of a flow or of an address; expected flow, or from and to")
        if self.rtt_s is not None and self.delay_s is not None:
            raise ValueError("a class has an rtt and a delay; expected one of them")
        if self.rtt_s is None and self.delay_s is None and self.loss is None:
            raise ValueError("the class changes nothing; expected rtt, delay or loss")
        return self


class NetworkPath(WithParameters):
    """What the bottleneck is set to; None where a factor must say it.

    A plain rate, buffer, aqm, jitter or share holds for the way down; see Directional.
    """

    rate_bps: RatePerDirection | None = Field(
        None,
        alias="rate",
        description="Rate of the bottleneck, such as 40Mbit, or {down: 100Mbit, up: 40Mbit}; a plain one "
        "leaves the way up unshaped.",
    )
    rtt_s: DelayOrFormula = Field(
        0.0,
        alias="rtt",
        description="Delay that the router adds both ways together, half each way, such as 40ms.",
    )
    delay_s: BothDelays | None = Field(
        None, alias="delay", description="One-way delays in place of rtt, such as {down: 30ms, up: 10ms}."
    )
    jitter_s: DelayPerDirection = Field(
        0.0,
        alias="jitter",
        description="Standard deviation of the delay, such as 1ms; a plain one is of the way down.",
    )
    loss: SharePerDirection = Field(
        0.0, description="Share of packets lost at random, such as 1%; a plain one is of the way down."
    )
    loss_burst_packets: PacketsPerDirection | None = Field(
        None, alias="loss_burst", description="Mean length of a burst of losses, such as 3packets."
    )
    reorder: SharePerDirection = Field(
        0.0,
        description="Share of packets that overtake others, such as 0.1%; a plain one is of the way down.",
    )
    duplicate: SharePerDirection = Field(
        0.0, description="Share of packets that arrive twice, such as 0.01%; a plain one is of the way down."
    )
    aqm: NamePerDirection = Field(
        "pfifo", description="Queue discipline of the bottleneck; the other keys of path are its parameters."
    )
    buffer: BufferPerDirection | None = Field(
        None,
        description="Size of the bottleneck's queue in packets or bytes, such as 546packets, 819KB or 1 BDP.",
    )
    classes: tuple[PathClass, ...] = Field(
        (), description="Flows and subnets with a delay or loss of their own before the same queue."
    )

    @model_validator(mode="after")
    def _delays_once(self) -> NetworkPath:
        if self.delay_s is not None and "rtt_s" in self.model_fields_set:
            raise ValueError("has an rtt and a delay; expected one of them")
        return self


def least_burst_packets(loss: float) -> float:
    """Return the mean length from which on bursts can make a share of losses, below 1: loss / (1 - loss).

    Shorter ones would have to begin more often than at every packet that is not lost. Nine digits, as the
    binary 0.9 would make a burst of 9 packets too short.
    """
    return round(loss / (1 - loss), 9)
