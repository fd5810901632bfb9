"""Keys of the path: what the bottleneck is set to."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from samovar.experiment.formula import Formula
from samovar.experiment.keys.key_table import ROUTER, VARIES, Strict, WithParameters, keys_of
from samovar.experiment.keys.value_types import (
    BUFFER_OR_FORMULA,
    DELAY_OR_FORMULA,
    END,
    NAME,
    PACKETS_OR_FORMULA,
    RATE_OR_FORMULA,
    SHARE_OR_FORMULA,
    DelayOrFormula,
    Name,
)
from samovar.experiment.values import Buffer, Directional

Amount = int | Formula
Real = float | Formula
ShareOrFormula = Annotated[Real, SHARE_OR_FORMULA]
BothDelays = Annotated[Directional[Real], DELAY_OR_FORMULA.per_direction(required=True), VARIES]
SharePerDirection = Annotated[Real | Directional[Real], SHARE_OR_FORMULA.per_direction(), VARIES]


class PathClass(Strict):
    """A flow or subnet with its own delay or loss, ahead of the queue that all share."""

    EXCLUSIVE = (("flow", "from"), ("flow", "to"), ("rtt", "delay"))
    NEEDED = (("flow", "from", "to"), ("rtt", "delay", "loss"))

    flow: Name | None = Field(None, description="Label of the flow; a counted flow means all of its flows.")
    from_end: Annotated[str, END] | None = Field(
        None, alias="from", description="Host, role or subnet that packets come from."
    )
    to_end: Annotated[str, END] | None = Field(
        None, alias="to", description="Host, role or subnet that packets go to."
    )
    rtt_s: DelayOrFormula | None = Field(
        None,
        alias="rtt",
        description="Delay of both directions together, half in each, instead of the path's, such as 40ms.",
    )
    delay_s: BothDelays | None = Field(
        None,
        alias="delay",
        description="One-way delays instead of the path's, such as {down: 30ms, up: 10ms}.",
    )
    loss: ShareOrFormula | None = Field(
        None, description="Share of packets lost downstream, instead of the path's, such as 1%."
    )


class NetworkPath(WithParameters):
    """What the bottleneck is set to; None where a factor must set it.

    A plain rate, buffer, aqm, jitter or share applies downstream only; see Directional.
    """

    EXCLUSIVE = (("rtt", "delay"),)

    rate_bps: Annotated[Amount | Directional[Amount], RATE_OR_FORMULA.per_direction(), VARIES] | None = Field(
        None,
        alias="rate",
        description="Rate of the bottleneck, such as 40Mbit or {down: 100Mbit, up: 40Mbit}; a plain rate "
        "leaves upstream unshaped.",
    )
    rtt_s: Annotated[Real, DELAY_OR_FORMULA, VARIES] = Field(
        0.0,
        alias="rtt",
        description="Delay that the router adds in both directions together, half in each, such as 40ms.",
    )
    delay_s: BothDelays | None = Field(
        None, alias="delay", description="One-way delays instead of rtt, such as {down: 30ms, up: 10ms}."
    )
    jitter_s: Annotated[Real | Directional[Real], DELAY_OR_FORMULA.per_direction(), VARIES, ROUTER] = Field(
        0.0,
        alias="jitter",
        description="Largest random deviation from the delay, such as 1ms; a plain one applies downstream.",
    )
    loss: SharePerDirection = Field(
        0.0, description="Share of packets lost at random, such as 1%; a plain one applies downstream."
    )
    loss_burst_packets: (
        Annotated[Amount | Directional[Amount], PACKETS_OR_FORMULA.per_direction(), VARIES, ROUTER] | None
    ) = Field(None, alias="loss_burst", description="Mean length of a burst of losses, such as 3packets.")
    reorder: Annotated[SharePerDirection, ROUTER] = Field(
        0.0,
        description="Share of packets that overtake others, such as 0.1%; a plain one applies downstream.",
    )
    duplicate: Annotated[SharePerDirection, ROUTER] = Field(
        0.0, description="Share of packets that arrive twice, such as 0.01%; a plain one applies downstream."
    )
    aqm: Annotated[str | Directional[str], NAME.per_direction(), VARIES, ROUTER] = Field(
        "pfifo", description="Queue discipline of the bottleneck; other keys of path are its parameters."
    )
    buffer: (
        Annotated[Buffer | Formula | Directional[Buffer | Formula], BUFFER_OR_FORMULA.per_direction(), VARIES]
        | None
    ) = Field(
        None,
        description="Size of the bottleneck's queue in packets or bytes, such as 546packets, 819KB or 1 BDP.",
    )
    classes: Annotated[tuple[PathClass, ...], ROUTER] = Field(
        (), description="Flows and subnets with their own delay or loss, ahead of the same queue."
    )


ROUTER_ONLY = tuple(name for name, key in keys_of(NetworkPath).items() if key.router_only)
"""Keys of the path that only a router supports."""


def least_burst_packets(loss: float) -> float:
    """Return the least mean length of bursts that can make a share of losses, below 1: loss / (1 - loss).

    Shorter bursts would have to begin more often than at every packet that is not lost. The result has nine
    digits, as the binary 0.9 would make a burst of 9 packets too short.
    """
    return round(loss / (1 - loss), 9)
