"""Keys of the path: what the bottleneck is set to."""

from __future__ import annotations

from typing import Annotated

from samovar.experiment.formula import Formula
from samovar.experiment.keys.key_table import ROUTER, VARIES, Strict, WithParameters, entry, keys_of
from samovar.experiment.keys.value_types import (
    BOTH_DIRECTIONS,
    BUFFER_OR_FORMULA,
    DELAY_OR_FORMULA,
    END,
    NAME,
    PACKETS_OR_FORMULA,
    PER_DIRECTION,
    RATE_OR_FORMULA,
    SHARE_OR_FORMULA,
    DelayOrFormula,
    Name,
)
from samovar.experiment.values import Buffer, Directional

Amount = int | Formula
Real = float | Formula
ShareOrFormula = Annotated[Real, SHARE_OR_FORMULA]
BothDelays = Annotated[Directional[Real], DELAY_OR_FORMULA.of(BOTH_DIRECTIONS), VARIES]
SharePerDirection = Annotated[Real | Directional[Real], SHARE_OR_FORMULA.of(PER_DIRECTION), VARIES]


class PathClass(Strict):
    """A flow or subnet with its own delay or loss, ahead of the queue that all share."""

    EXCLUSIVE = (("flow", "from"), ("flow", "to"), ("rtt", "delay"))
    NEEDED = (("flow", "from", "to"), ("rtt", "delay", "loss"))

    flow: Name | None = entry("Label of the flow; a counted flow means all of its flows.", None)
    from_end: Annotated[str, END] | None = entry("Host, role or subnet that packets come from.", None)
    to_end: Annotated[str, END] | None = entry("Host, role or subnet that packets go to.", None)
    rtt_s: DelayOrFormula | None = entry(
        "Delay of both directions, half in each, instead of the path's.", None
    )
    delay_s: BothDelays | None = entry("One-way delays, instead of the path's.", None)
    loss: ShareOrFormula | None = entry("Share of packets lost downstream, instead of the path's.", None)


class NetworkPath(WithParameters):
    """What the bottleneck is set to; None where a factor must set it.

    A plain rate, buffer, aqm, jitter or share applies downstream only; see Directional.
    """

    EXCLUSIVE = (("rtt", "delay"),)

    rate_bps: Annotated[Amount | Directional[Amount], RATE_OR_FORMULA.of(PER_DIRECTION), VARIES] | None = (
        entry(
            "Rate of the bottleneck, such as {down: 100Mbit, up: 40Mbit}; one value applies downstream.", None
        )
    )
    rtt_s: Annotated[Real, DELAY_OR_FORMULA, VARIES] = entry(
        "Delay that the router adds in both directions together, half in each, such as 40ms.", 0.0
    )
    delay_s: BothDelays | None = entry("One-way delays instead of rtt, such as {down: 30ms, up: 10ms}.", None)
    jitter_s: Annotated[Real | Directional[Real], DELAY_OR_FORMULA.of(PER_DIRECTION), VARIES, ROUTER] = entry(
        "Largest random deviation from the delay, such as 1ms; one value applies downstream.", 0.0
    )
    loss: SharePerDirection = entry("Share of packets lost at random; one value applies downstream.", 0.0)
    loss_burst_packets: (
        Annotated[Amount | Directional[Amount], PACKETS_OR_FORMULA.of(PER_DIRECTION), VARIES, ROUTER] | None
    ) = entry("Mean length of a burst of losses, such as 3packets.", None)
    reorder: Annotated[SharePerDirection, ROUTER] = entry(
        "Share of packets that overtake others; one value applies downstream.", 0.0
    )
    duplicate: Annotated[SharePerDirection, ROUTER] = entry(
        "Share of packets that arrive twice; one value applies downstream.", 0.0
    )
    aqm: Annotated[str | Directional[str], NAME.of(PER_DIRECTION), VARIES, ROUTER] = entry(
        "Queue discipline of the bottleneck; other keys of path are its parameters.", "pfifo"
    )
    buffer: (
        Annotated[
            Buffer | Formula | Directional[Buffer | Formula], BUFFER_OR_FORMULA.of(PER_DIRECTION), VARIES
        ]
        | None
    ) = entry("Size of the bottleneck's queue, such as 546packets, 819KB or 1 BDP.", None)
    classes: Annotated[tuple[PathClass, ...], ROUTER] = entry(
        "Flows and subnets with their own delay or loss, ahead of the same queue.", ()
    )


ROUTER_ONLY = tuple(name for name, key in keys_of(NetworkPath).items() if key.router_only)
"""Keys of the path that only a router supports."""


def least_burst_packets(loss: float) -> float:
    """Return the least mean length of bursts that can make a share of losses, below 1: loss / (1 - loss).

    Shorter bursts would have to begin more often than at every packet that is not lost. The result has nine
    digits, as the binary 0.9 would make a burst of 9 packets too short.
    """
    return round(loss / (1 - loss), 9)
