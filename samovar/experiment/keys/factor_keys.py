"""Declare the keys of host settings, path, traffic, captures and loggers; those with VARIES can be factors.

The levels of such a factor have the type of the key.
"""

from __future__ import annotations

from typing import Annotated

from pydantic import model_validator

from samovar.experiment.formula import Formula
from samovar.experiment.keys import value_types as types
from samovar.experiment.keys.key_table import ROUTER, VARIES, Strict, WithParameters, entry, keys_of
from samovar.experiment.keys.value_types import PER_DIRECTION, Interface, Name, Names, Places, Port
from samovar.experiment.values import Buffer, Directional, Distribution

Amount = int | Formula
Amounts = Amount | Directional[Amount]
Real = float | Formula
Reals = Real | Directional[Real]
Buffers = Buffer | Formula | Directional[Buffer | Formula]
BothDelays = Annotated[Directional[Real], types.DELAY_OR_FORMULA.of(types.BOTH_DIRECTIONS), VARIES]
SharePerDirection = Annotated[Reals, types.SHARE_OR_FORMULA.of(PER_DIRECTION), VARIES]
VariedName = Annotated[str, types.NAME, VARIES]
VariedTime = Annotated[Real, types.TIME_OR_FORMULA, VARIES]
FlowCount = Annotated[int, types.FLOW_COUNT, VARIES]
FLOW_ENDS = ("size", "duration", "until")
"""Keys that determine when a flow ends. A flow may have at most one of them."""
HOSTS_TO_RECORD = "Where to record: hosts or roles, such as senders."
INTERFACE_TO_RECORD = (
    "Interface, by default the one that faces the traffic. At the bottleneck's router, `down` (the default "
    "there) or `up` is the interface with the queue of that direction."
)


class PlainFactors(Strict):
    """Factors with a one-word name: `duration`, and the host settings whose recipes have the same name."""

    cc: Annotated[str, types.ALGORITHM.of(types.PER_HOST), VARIES] = entry(
        "Congestion control of sending hosts."
    )
    rwnd: Annotated[int | Formula, types.SIZE_OR_FORMULA.of(types.PER_HOST), VARIES] = entry(
        "Largest window that receiving hosts advertise."
    )
    mtu: Annotated[int, types.MTU.of(types.PER_HOST), VARIES] = entry("MTU in bytes of testbed interfaces.")
    txd: Annotated[int, types.DESCRIPTORS.of(types.PER_HOST), VARIES] = entry(
        "Number of transmit descriptors of sending hosts."
    )
    duration: Annotated[float | Formula, types.TIME_OR_FORMULA, VARIES] = entry(
        "Duration of flows that have no end of their own."
    )


class PathClass(Strict):
    """A flow or subnet with a delay or loss of its own, applied before the shared queue."""

    EXCLUSIVE = (("flow", "from"), ("flow", "to"), ("rtt", "delay"))
    NEEDED = (("flow", "from", "to"), ("rtt", "delay", "loss"))

    name: Name | None = entry("Name of the class in factors; by default the label of its flow.", None)
    flow: Name | None = entry("Label of a flow, or of an entry with `count` for all its flows.", None)
    from_end: Annotated[str, types.END] | None = entry("Source of the packets.", None)
    to_end: Annotated[str, types.END] | None = entry("Destination of the packets.", None)
    rtt_s: Annotated[Real, types.DELAY_OR_FORMULA, VARIES] | None = entry(
        "Delay of the round trip, half in each direction, instead of the path's.", None
    )
    delay_s: BothDelays | None = entry("One-way delays, instead of the path's.", None)
    loss: Annotated[Real, types.SHARE_OR_FORMULA, VARIES] | None = entry(
        "Share of packets lost downstream, instead of the path's.", None
    )

    @property
    def label(self) -> str | None:
        """The name of the class in factors such as path.classes.NAME.loss."""
        return self.name or self.flow


class NetworkPath(WithParameters):
    """Rate, delay, loss and queue of the bottleneck.

    A value is None if a factor must set it. A single rate, jitter or share applies downstream only. A single
    buffer or aqm applies upstream too if a rate is set there. A single loss_burst applies to both directions.
    """

    EXCLUSIVE = (("rtt", "delay"),)

    rate_bps: Annotated[Amounts, types.RATE_OR_FORMULA.of(PER_DIRECTION), VARIES] | None = entry(
        "Rate of the bottleneck, counting whole Ethernet frames.", None
    )
    rtt_s: Annotated[Real, types.DELAY_OR_FORMULA, VARIES] = entry(
        "Delay that the router adds to the round trip, half in each direction.", 0.0
    )
    delay_s: BothDelays | None = entry("One-way delays, instead of `rtt`.", None)
    jitter_s: Annotated[Reals, types.DELAY_OR_FORMULA.of(PER_DIRECTION), VARIES, ROUTER] = entry(
        "Largest random deviation from the delay.", 0.0
    )
    loss: SharePerDirection = entry("Share of packets lost at random.", 0.0)
    loss_burst_packets: Annotated[
        Amounts | None, types.PACKETS_OR_FORMULA.of(PER_DIRECTION), VARIES, ROUTER
    ] = entry("Mean length of a burst of losses.", None)
    reorder: Annotated[SharePerDirection, ROUTER] = entry("Share of packets that overtake others.", 0.0)
    duplicate: Annotated[SharePerDirection, ROUTER] = entry("Share of packets that arrive twice.", 0.0)
    aqm: Annotated[str | Directional[str], types.NAME.of(PER_DIRECTION), VARIES, ROUTER] = entry(
        "Queue discipline; its parameters are further keys of `path`.", "pfifo"
    )
    buffer: Annotated[Buffers | None, types.BUFFER_OR_FORMULA.of(PER_DIRECTION), VARIES] = entry(
        "Size of the bottleneck's queue, such as 546packets, 819KB or 1 BDP.", None
    )
    classes: Annotated[tuple[PathClass, ...], ROUTER] = entry(
        "Flows and subnets with a delay or loss of their own.", ()
    )


ROUTER_ONLY = tuple(name for name, key in keys_of(NetworkPath).items() if key.router_only)
"""Keys of the path that only a router supports."""


class Arrivals(Strict):
    """Flows that begin at random times, like the flows of independent users."""

    EXCLUSIVE = (("until", "count"),)
    NEEDED = (("until", "count"),)

    poisson_per_s: Annotated[Real, types.FREQUENCY_OR_FORMULA, VARIES] = entry(
        "Mean number of flows that begin per second, such as 2/s or RATE / traffic.web.size."
    )
    until_s: VariedTime | None = entry("Time after which no flow begins.", None)
    count: FlowCount | None = entry(f"Number of flows that begin, at most {types.MOST_FLOWS}.", None)


class Flow(WithParameters):
    """A flow of data from one host to another, or several such flows (see `count` and `arrivals`)."""

    EXCLUSIVE = (FLOW_ENDS, ("arrivals", "count"), ("arrivals", "every"))

    label: Name = entry("Label of the flow in factors, tables and figures.", alias="flow")
    generator: VariedName = entry(
        "Recipe of the traffic program; its parameters are further keys of the flow."
    )
    from_end: VariedName = entry("Host that sends, or a role such as senders.")
    to_end: VariedName = entry("Host that receives, or a role such as receivers.")
    start_s: Annotated[Real | Distribution, types.DELAY_OR_FORMULA.of(types.RANDOM), VARIES] = entry(
        "Time from the trial's start to the flow's start.",
        0.0,
    )
    port: Port | None = entry(
        "Port at the receiver, by default the next free one from 5001 up; with `count`, the first of "
        "consecutive ports.",
        None,
    )
    size_bytes: Annotated[Amount | Distribution | None, types.SIZE_OR_FORMULA.of(types.RANDOM), VARIES] = (
        entry("Bytes to send; the flow ends when they are sent.", None)
    )
    duration_s: Annotated[Real | Distribution, types.TIME_OR_FORMULA.of(types.RANDOM), VARIES] | None = entry(
        "How long the flow lasts.", None
    )
    until: VariedName | None = entry("Label of another flow; this flow ends when that flow ends.", None)
    cc: Annotated[str, types.ALGORITHM, VARIES] | None = entry(
        "Congestion control, if the generator can set it.", None
    )
    rwnd_bytes: Annotated[Amount, types.SIZE_OR_FORMULA, VARIES] | None = entry(
        "Largest receive window that the receiver advertises.", None
    )
    dscp: Annotated[int, types.DSCP, VARIES] | None = entry(
        "DiffServ code point, such as EF, AF11 or 46.", None
    )
    count: FlowCount | None = entry(
        "Number of flows, labelled FLOW-1, FLOW-2 …; 0 leaves the flow out.", None
    )
    every_s: Annotated[Real, types.DELAY_OR_FORMULA, VARIES] = entry(
        "Time between the starts of the flows, if `count` makes several.", 0.0
    )
    arrivals: Arrivals | None = entry("Flows, labelled FLOW-1, FLOW-2 …, that begin at random times.", None)

    @model_validator(mode="after")
    def _check_label(self) -> Flow:
        if self.label.endswith(".arrivals"):
            raise ValueError(f"label '{self.label}' must not end in .arrivals, the name of a key")
        return self


class Stop(Strict):
    """When the traffic of a trial ends, even if flows still run.

    With `stop`, a flow needs no end of its own.
    """

    NEEDED = (("after", "when"),)

    after_s: VariedTime | None = entry("Time from the trial's start to the end of all traffic.", None)
    when: VariedName | None = entry("Label of a flow; all traffic ends when this flow ends.", None)


class Capture(Strict):
    """One entry of `captures`: packet captures at one or more hosts."""

    at: Places = entry(HOSTS_TO_RECORD)
    interface: Interface | None = entry(INTERFACE_TO_RECORD, None)
    snaplen_bytes: Annotated[int, types.SNAPLEN] = entry("Bytes recorded of each packet.", 96)


class Logger(WithParameters):
    """One entry of `loggers`: a logger at one or more hosts."""

    logger: Name = entry("Quantity to record, or a recipe; its parameters are further keys.")
    at: Places = entry(HOSTS_TO_RECORD)
    interface: Interface | None = entry(INTERFACE_TO_RECORD, None)
    interval_s: VariedTime | None = entry("Time between samples; by default the recipe's interval.", None)
    prefer: Names = entry("Recipes to prefer on hosts where several recipes record the quantity.", ())
