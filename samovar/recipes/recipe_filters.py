"""Jinja2 filters of recipes: format values as ip(8), tc(8) and ipfw(8) accept them and as they print them.

A setting recipe compares a tool's output with the value that was set, so each value has two forms: the form
that the tool accepts, and the form that it prints after the kernel has rounded the value.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from samovar.plan import MatchPlan

UINT32_MAX = 2**32 - 1
MIB, KIB = 1 << 20, 1 << 10
CODEL_SHIFT = 10
"""codel counts time in units of 1024 ns (include/net/codel.h)."""
PSCHED_SHIFT = 6
"""pie counts time in units of 64 ns (include/net/pkt_sched.h)."""
IN_ORDER_RATE = "100gbit"
"""With a rate, netem never lets a packet overtake another, whatever their delays (sch_netem.c,
netem_enqueue); this rate adds 0.1 us to a full frame."""
RED_SCALE = 1 << 16
"""dummynet stores the probabilities of RED in units of 1/65536 (SCALE_RED of sys/netinet/ip_dummynet.h)."""
PIE_SCALE = 1 << 13
"""dummynet stores the weights of PIE in units of 1/8192 (PIE_SCALE of sys/netpfil/ipfw/dn_aqm_pie.h)."""


@dataclass(frozen=True)
class DelayStage:
    """Delay and impairments of one direction, applied to packets before they reach the bottleneck queue.

    A stage without matches applies to every packet that no other stage of the direction matches.
    Probabilities are between 0 and 1. `loss_states` holds the probabilities, at each packet, that a loss
    burst begins and that it ends; None makes losses independent.
    """

    name: str
    matches: tuple[MatchPlan, ...]
    limit_packets: int
    delay_us: int
    jitter_us: int
    loss: float
    loss_states: tuple[float, float] | None
    reorder: float
    duplicate: float


def netem(stage: DelayStage, shown: bool = False) -> str:
    """Return the arguments of tc's netem for a stage (tc-netem(8)).

    If `shown` is true, the arguments are in the form in which tc prints them.
    """
    share = _percent_shown if shown else _percent
    time = tc_time if shown else tc_us
    words = [f"netem limit {stage.limit_packets}"]
    if stage.delay_us or stage.jitter_us or not shown:
        words.append(f"delay {time(stage.delay_us / 1e6)}")
    if stage.jitter_us:
        words.append(time(stage.jitter_us / 1e6))
    if stage.loss_states is not None:
        begin, end = map(share, stage.loss_states)
        states = f"p {begin} r {end} 1-h 100% 1-k 0%" if shown else f"{begin} {end}"
        words.append(f"loss gemodel {states}")
    elif stage.loss:
        words.append(f"loss {'' if shown else 'random '}{share(stage.loss)}")
    if stage.duplicate:
        words.append(f"duplicate {share(stage.duplicate)}")
    if stage.reorder:
        words.append(f"reorder {share(stage.reorder)}")
    if stage.jitter_us and not shown:
        words.append(f"rate {IN_ORDER_RATE}")
    return " ".join(words)


def _percent(share: float) -> str:
    return f"{share * 100:.9f}".rstrip("0").rstrip(".") + "%"


def _percent_shown(share: float) -> str:
    """Return a probability as tc prints it: six digits of the 32-bit fraction that the kernel stores."""
    return f"{100 * round(share * UINT32_MAX) / UINT32_MAX:g}%"


def tc_rate(rate_bps: int) -> str:
    """Return a rate as tc(8) prints it: 40Mbit, 1500Kbit, 992bit (iproute2's tc_print_rate).

    The kernel counts rates in whole bytes per second.
    """
    value, units = rate_bps // 8 * 8, ("bit", "Kbit", "Mbit", "Gbit", "Tbit")
    for unit in units[:-1]:
        if value < 1000 or (value % 1000 and value < 1000 * 1000):
            return f"{value}{unit}"
        value //= 1000
    return f"{value}{units[-1]}"


def tc_time(seconds: float, shift: int = 0) -> str:
    """Return a time as tc prints it, with three digits; the kernel counts units of 2**shift ns."""
    us = (round(seconds * 1e6) * 1000 >> shift << shift) // 1000
    if us >= 1_000_000:
        return f"{us / 1e6:.3g}s"
    return f"{us / 1e3:.3g}ms" if us >= 1000 else f"{us}us"


def tc_us(seconds: float) -> str:
    """Return a time in the form that tc accepts: 5000us."""
    return f"{round(seconds * 1e6)}us"


def tc_size(size_bytes: int) -> str:
    """Return a size as tc prints it: 1514b, 64Kb, 32Mb (iproute2's sprint_size)."""
    if size_bytes >= MIB and abs(MIB * round(size_bytes / MIB) - size_bytes) < 1024:
        return f"{round(size_bytes / MIB)}Mb"
    if size_bytes >= KIB and abs(KIB * round(size_bytes / KIB) - size_bytes) < 16:
        return f"{round(size_bytes / KIB)}Kb"
    return f"{size_bytes}b"


def u32(match: MatchPlan) -> str:
    """Return the arguments of tc's u32 classifier for a match (tc-u32(8)).

    Ports are matched only in packets without IP options.
    """
    # Filters of one prio are tried in the order in which they were added; one prio serves one protocol only.
    six = ":" in f"{match.from_subnet}{match.to_subnet}"
    ip, head = ("ip6", "prio 2 protocol ipv6 u32 ") if six else ("ip", "prio 1 protocol ip u32 ")
    subnets = {"src": match.from_subnet, "dst": match.to_subnet}
    ports = {"sport": match.from_port, "dport": match.port}
    keys = [f"match {ip} {key} {subnet}" for key, subnet in subnets.items() if subnet is not None]
    keys += [f"match {ip} {key} {port} 0xffff" for key, port in ports.items() if port is not None]
    return head + (" ".join(keys) or "match u32 0 0")


def window_floor(size_bytes: int) -> int:
    """Round a receive window down to a multiple of 2**scale, where scale is the window scale that it needs.

    Linux rounds the advertised window *up* to a multiple of 2**scale (tcp_output.c, __tcp_select_window),
    with scale = ilog2(window) - 15; a clamp that is such a multiple is never exceeded on the wire.
    """
    scale = max(0, size_bytes.bit_length() - 16)
    return size_bytes >> scale << scale


def dn_us(seconds: float) -> str:
    """Return a time in the form that ipfw(8) accepts: 500us or 5ms."""
    us = round(seconds * 1e6)
    return f"{us}us" if us % 1000 else f"{us // 1000}ms"


def dn_time(seconds: float) -> str:
    """Return a time as ipfw prints it: 500us, 2.5ms, and a second as 1fs (us_to_time() of its dummynet.c)."""
    us = round(seconds * 1e6)
    if us < 1000:
        return f"{us}us" if us else "0"
    return f"{us / 1000:g}ms" if us < 1_000_000 else f"{us / 1e6:g}fs"


def dn_red(share: float) -> str:
    """Return a probability or weight of RED as ipfw prints it."""
    return f"{int(share * RED_SCALE) / RED_SCALE:.6f}"


def dn_pie(weight: float) -> str:
    """Return a weight of PIE as ipfw prints it."""
    return f"{int(weight * PIE_SCALE) / PIE_SCALE:g}"


def dn_rate(rate_bps: int) -> int:
    """Round a rate in bit/s to the precision of ipfw's output: three decimals of Mbit/s or Kbit/s."""
    step = 1000 if rate_bps >= 1_000_000 else 1
    return round(rate_bps / step) * step


def dn_after_queue_ms(stages: Sequence[DelayStage]) -> int:
    """Return how many ms of a direction's delay dummynet applies after the queue, 0 or 1.

    The result is 1 if every packet is delayed by at least 1 ms. If packets are reordered, the delay must be
    at least 2 ms, because a stage before the queue must still delay the packets that others overtake.
    """
    least_us = 2000 if any(stage.reorder for stage in stages) else 1000
    every_packet = any(not stage.matches for stage in stages)
    return int(every_packet and all(stage.delay_us >= least_us for stage in stages))


_OF_TC = (netem, u32, tc_rate, tc_time, tc_us, tc_size)
_OF_IPFW = (dn_us, dn_time, dn_red, dn_pie, dn_rate, dn_after_queue_ms)
FILTERS: Mapping[str, Callable[..., Any]] = {
    **{function.__name__: function for function in (*_OF_TC, *_OF_IPFW, window_floor)},
    "codel_time": partial(tc_time, shift=CODEL_SHIFT),
    "pie_time": partial(tc_time, shift=PSCHED_SHIFT),
}
