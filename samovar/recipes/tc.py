"""How tc(8) is told a path's values, and how it prints them back; recipes use these as filters."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Protocol

UINT32_MAX = 2**32 - 1
MIB, KIB = 1 << 20, 1 << 10
CODEL_SHIFT = 10
"""codel counts time in units of 1024 ns (include/net/codel.h)."""
PSCHED_SHIFT = 6
"""pie counts time in units of 64 ns (include/net/pkt_sched.h)."""
IN_ORDER_RATE = "100gbit"
"""With a rate, netem never lets a packet overtake another however they are delayed (sch_netem.c,
netem_enqueue); this one adds 0.1 us to a full frame."""


class DelayStage(Protocol):
    """What netem is told of the packets of one way, or of one class of them."""

    @property
    def limit_packets(self) -> int:
        """How many packets it can hold."""

    @property
    def delay_us(self) -> int:
        """The delay of each packet."""

    @property
    def jitter_us(self) -> int:
        """How far the delay is off, at most and either way."""

    @property
    def loss(self) -> float:
        """The share of packets that is lost."""

    @property
    def loss_states(self) -> tuple[float, float] | None:
        """The chances that a loss burst begins and that it ends, at each packet; None: losses are alone."""

    @property
    def reorder(self) -> float:
        """The share of packets that is not delayed, and so overtakes others."""

    @property
    def duplicate(self) -> float:
        """The share of packets that comes twice."""


def netem(stage: DelayStage) -> str:
    """Say a stage as tc's netem takes it (tc-netem(8))."""
    return " ".join(_netem(stage))


def _netem(stage: DelayStage) -> Iterator[str]:
    yield f"netem limit {stage.limit_packets} delay {stage.delay_us}us"
    if stage.jitter_us:
        yield f"{stage.jitter_us}us"
    if stage.loss_states is not None:
        begin, end = stage.loss_states
        yield f"loss gemodel {_percent(begin)} {_percent(end)}"
    elif stage.loss:
        yield f"loss random {_percent(stage.loss)}"
    if stage.duplicate:
        yield f"duplicate {_percent(stage.duplicate)}"
    if stage.reorder:
        yield f"reorder {_percent(stage.reorder)}"
    if stage.jitter_us:
        yield f"rate {IN_ORDER_RATE}"


def netem_shown(stage: DelayStage) -> str:
    """Say the same as `tc qdisc show` prints it."""
    return " ".join(_netem_shown(stage))


def _netem_shown(stage: DelayStage) -> Iterator[str]:
    yield f"netem limit {stage.limit_packets}"
    if stage.delay_us or stage.jitter_us:
        yield f"delay {tc_time(stage.delay_us / 1e6)}"
    if stage.jitter_us:
        yield tc_time(stage.jitter_us / 1e6)
    if stage.loss_states is not None:
        begin, end = stage.loss_states
        yield f"loss gemodel p {_printed(begin)} r {_printed(end)} 1-h 100% 1-k 0%"
    elif stage.loss:
        yield f"loss {_printed(stage.loss)}"
    if stage.duplicate:
        yield f"duplicate {_printed(stage.duplicate)}"
    if stage.reorder:
        yield f"reorder {_printed(stage.reorder)}"


def _percent(share: float) -> str:
    return f"{share * 100:.9f}".rstrip("0").rstrip(".") + "%"


def _printed(share: float) -> str:
    """Write a share as tc prints it: six digits of the 32 bit fraction that the kernel holds."""
    return f"{100 * round(share * UINT32_MAX) / UINT32_MAX:g}%"


def tc_rate(rate_bps: int) -> str:
    """Write a rate as tc(8) prints it back: 40Mbit, 1500Kbit, 999bit (iproute2's tc_print_rate)."""
    value, units = rate_bps, ("bit", "Kbit", "Mbit", "Gbit", "Tbit")
    for unit in units[:-1]:
        if value < 1000 or (value % 1000 and value < 1000 * 1000):
            return f"{value}{unit}"
        value //= 1000
    return f"{value}{units[-1]}"


def tc_time(seconds: float, shift: int = 0) -> str:
    """Write a time as tc prints it back, three digits, of a kernel that counts units of 2**shift ns."""
    us = (round(seconds * 1e6) * 1000 >> shift << shift) // 1000
    if us >= 1_000_000:
        return f"{us / 1e6:.3g}s"
    return f"{us / 1e3:.3g}ms" if us >= 1000 else f"{us}us"


def codel_time(seconds: float) -> str:
    """Write a time that codel holds as tc prints it."""
    return tc_time(seconds, CODEL_SHIFT)


def pie_time(seconds: float) -> str:
    """Write a time that pie holds as tc prints it."""
    return tc_time(seconds, PSCHED_SHIFT)


def tc_us(seconds: float) -> str:
    """Write a time as tc takes it."""
    return f"{round(seconds * 1e6)}us"


def tc_size(size_bytes: int) -> str:
    """Write a size as tc prints it back: 1514b, 64Kb, 32Mb (iproute2's sprint_size)."""
    if size_bytes >= MIB and abs(MIB * round(size_bytes / MIB) - size_bytes) < 1024:
        return f"{round(size_bytes / MIB)}Mb"
    if size_bytes >= KIB and abs(KIB * round(size_bytes / KIB) - size_bytes) < 16:
        return f"{round(size_bytes / KIB)}Kb"
    return f"{size_bytes}b"


class PacketMatch(Protocol):
    """Packets by where they come from and go to; None matches anything."""

    @property
    def source(self) -> str | None:
        """A subnet."""

    @property
    def destination(self) -> str | None:
        """A subnet."""

    @property
    def source_port(self) -> int | None:
        """A TCP or UDP port."""

    @property
    def destination_port(self) -> int | None:
        """A TCP or UDP port."""


def u32(match: PacketMatch) -> str:
    """Say which packets are meant as tc's u32 classifier takes it (tc-u32(8)); they have no IP options."""
    six = ":" in f"{match.source}{match.destination}"
    # Within one prio the first that was added is asked first, but one prio serves one protocol.
    head = "prio 2 protocol ipv6 u32 " if six else "prio 1 protocol ip u32 "
    return head + (" ".join(_keys("ip6" if six else "ip", match)) or "match u32 0 0")


def _keys(ip: str, match: PacketMatch) -> Iterator[str]:
    if match.source is not None:
        yield f"match {ip} src {match.source}"
    if match.destination is not None:
        yield f"match {ip} dst {match.destination}"
    if match.source_port is not None:
        yield f"match {ip} sport {match.source_port} 0xffff"
    if match.destination_port is not None:
        yield f"match {ip} dport {match.destination_port} 0xffff"


FILTERS: Mapping[str, Callable[..., Any]] = {
    "netem": netem,
    "netem_shown": netem_shown,
    "u32": u32,
    "tc_rate": tc_rate,
    "tc_time": tc_time,
    "tc_us": tc_us,
    "tc_size": tc_size,
    "codel_time": codel_time,
    "pie_time": pie_time,
}
