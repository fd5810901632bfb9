"""What the bottleneck recipe takes: for each way through the router its stages of delay and its queue."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from samovar.errors import RecipeError
from samovar.experiment import least_burst_packets
from samovar.plan import DirectionPlan, HostPlan, MatchPlan, PathPlan
from samovar.recipes.catalogue import Catalogue
from samovar.recipes.recipe import Recipe
from samovar.recipes.typed_values import typed
from samovar.units import ETHERNET_MTU_BYTES, format_duration, format_share

BURST_S = 0.004
ETHERNET_HEADER_BYTES = 14
"""What Linux's queue disciplines count on top of an IP packet (skb->len on an Ethernet device)."""
SMALLEST_FRAME_BYTES = 54
"""IPv4 and TCP without options or data."""
HEAD_ROOM = 2
LEAST_PACKETS = 1000
"""netem's own default (tc-netem(8))."""


@dataclass(frozen=True)
class PacketMatch:
    """Packets of one way by where they come from and go to; None matches anything."""

    source: str | None
    destination: str | None
    source_port: int | None
    destination_port: int | None


@dataclass(frozen=True)
class DelayStage:
    """What happens to packets of one way before they reach the queue: delay, loss, disorder.

    Without matches it is for every packet that no other stage of the way takes. Shares are of 0 to 1;
    `loss_states` are the chances, at each packet, that a loss burst begins and that it ends.
    """

    name: str
    matches: tuple[PacketMatch, ...]
    limit_packets: int
    delay_us: int
    jitter_us: int
    loss: float
    loss_states: tuple[float, float] | None
    reorder: float
    duplicate: float


@dataclass(frozen=True)
class PathDirection:
    """One way through the router, in the order in which a packet meets it: stages, then rate and queue."""

    name: str
    arrives: str
    leaves: str
    stages: tuple[DelayStage, ...]
    rate_bps: int | None
    burst_bytes: int
    queue: str
    queue_shown: tuple[str, ...]


def bottleneck_values(
    path: PathPlan, host: HostPlan, mtu_bytes: int | None, catalogue: Catalogue
) -> Mapping[str, object]:
    """Work out what the bottleneck recipe takes.

    Raises RecipeError for what cannot be done: a buffer in the other unit, reordering without delay.
    """
    frame_bytes = (mtu_bytes or ETHERNET_MTU_BYTES) + ETHERNET_HEADER_BYTES
    ways = (_way("down", path, frame_bytes, host, catalogue), _way("up", path, frame_bytes, host, catalogue))
    return {
        "from_interface": path.up.interface,
        "to_interface": path.down.interface,
        "ways": ways,
    }


def _way(name: str, path: PathPlan, frame_bytes: int, host: HostPlan, catalogue: Catalogue) -> PathDirection:
    plan, back = (path.down, path.up) if name == "down" else (path.up, path.down)
    queue, shown = _queue(plan, frame_bytes, host, catalogue)
    rate_bps = plan.rate_bps or 0
    return PathDirection(
        name=name,
        arrives=back.interface,
        leaves=plan.interface,
        stages=tuple(_stages(name, path, plan, back, frame_bytes)),
        rate_bps=plan.rate_bps,
        # A timer may come so late before rate is lost; while a queue stands, the bucket is empty.
        burst_bytes=max(2 * frame_bytes, round(rate_bps / 8 * BURST_S)),
        queue=queue,
        queue_shown=shown,
    )


def _stages(
    name: str, path: PathPlan, plan: DirectionPlan, back: DirectionPlan, frame_bytes: int
) -> Iterator[DelayStage]:
    room = _Room.of(plan, back, path.rtt_s, frame_bytes)
    for number, one in enumerate(path.classes, 1):
        changed = {"delay_s": one.delay_down_s if name == "down" else one.delay_up_s}
        if name == "down":
            changed["loss"] = one.loss
        matches = tuple(_match(name, match) for match in one.match)
        yield _stage(f"{name}{number}", plan.model_copy(update=changed), matches, room)
    if any((plan.delay_s, plan.jitter_s, plan.loss, plan.reorder, plan.duplicate)):
        yield _stage(name, plan, (), room)


def _match(name: str, match: MatchPlan) -> PacketMatch:
    if name == "down":
        return PacketMatch(match.from_subnet, match.to_subnet, match.from_port, match.port)
    return PacketMatch(match.to_subnet, match.from_subnet, match.port, match.from_port)


@dataclass(frozen=True)
class _Room:
    """How much can be on its way at once: what the rate carries, and a whole window that comes as one."""

    rate_bps: int
    window_packets: int

    @classmethod
    def of(cls, plan: DirectionPlan, back: DirectionPlan, rtt_s: float, frame_bytes: int) -> _Room:
        """Take the rate and buffer of the way itself, or of the way back, whose packets it then answers."""
        shaped = plan if plan.rate_bps else back
        rate_bps = shaped.rate_bps or 0
        held = shaped.buffer_packets or math.ceil((shaped.buffer_bytes or 0) / frame_bytes)
        return cls(rate_bps, held + math.ceil(rate_bps / 8 * rtt_s / frame_bytes))

    def packets(self, delay_s: float) -> int:
        """Count the smallest packets that a delay can hold at this rate, with head room."""
        moving = self.rate_bps / 8 * delay_s / SMALLEST_FRAME_BYTES
        return LEAST_PACKETS + HEAD_ROOM * (math.ceil(moving) + self.window_packets)


def _stage(name: str, plan: DirectionPlan, matches: tuple[PacketMatch, ...], room: _Room) -> DelayStage:
    _refuse_disorder(name, plan)
    return DelayStage(
        name=name,
        matches=matches,
        limit_packets=room.packets(plan.delay_s + plan.jitter_s),
        delay_us=round(plan.delay_s * 1e6),
        jitter_us=round(plan.jitter_s * 1e6),
        loss=plan.loss,
        loss_states=loss_states(plan.loss, plan.loss_burst_packets),
        reorder=plan.reorder,
        duplicate=plan.duplicate,
    )


def _refuse_disorder(name: str, plan: DirectionPlan) -> None:
    if plan.jitter_s > plan.delay_s:
        what = (
            f"jitter {format_duration(plan.jitter_s)} is more than the delay, {format_duration(plan.delay_s)}"
        )
        raise RecipeError(f"path: {name}: {what}; accepted: at most the delay")
    if plan.reorder and not plan.delay_s:
        what = "reorder lets packets overtake those that are delayed, and none is"
        raise RecipeError(f"path: {name}: {what}; accepted: a delay beside it")


def loss_states(loss: float, burst_packets: float | None) -> tuple[float, float] | None:
    """Turn a share of losses in bursts of a mean length into the chances that a burst begins and ends.

    That is the Gilbert model: every packet of the bad state is lost, so a burst lasts 1/r packets on average
    and p/(p+r) of all packets are lost, with p to enter and r to leave it (netem's gemodel; S. Salsano,
    F. Ludovici, A. Ordine, Definition of a general and intuitive loss model for packet networks, 2009).
    None without bursts. Raises RecipeError for a length that gives no such chances.
    """
    if not loss or burst_packets is None:
        return None
    if burst_packets < 1 or loss >= 1:
        what = f"a loss burst of {burst_packets:g} packets at {format_share(loss)} loss"
        raise RecipeError(f"path: {what}; accepted: 1 packet or more, at less than 100 %")
    least = least_burst_packets(loss)
    if burst_packets < least:
        what = f"{format_share(loss)} loss cannot come in bursts of {burst_packets:g} packets"
        raise RecipeError(f"path: {what}; accepted: {least:.3g} packets or more")
    end = 1 / burst_packets
    return min(end * loss / (1 - loss), 1.0), end


def _queue(
    plan: DirectionPlan, frame_bytes: int, host: HostPlan, catalogue: Catalogue
) -> tuple[str, tuple[str, ...]]:
    """Say the queue discipline as it is set and as it is shown; nothing where no rate is set."""
    if plan.rate_bps is None:
        return "", ()
    if plan.aqm is None:
        raise RecipeError("path: a rate without an aqm; expected one such as pfifo")
    recipe = catalogue.recipe("aqm", plan.aqm, host.system)
    buffer = _buffer(plan, recipe, host, catalogue)
    given: dict[str, object] = {"rate_bps": plan.rate_bps, "frame_bytes": frame_bytes, **buffer}
    given |= typed(recipe, plan.aqm_parameters)
    shown = recipe.render("shown", given).splitlines()
    return recipe.render("qdisc", given).strip(), tuple(line.strip() for line in shown if line.strip())


def _buffer(
    plan: DirectionPlan, recipe: Recipe, host: HostPlan, catalogue: Catalogue
) -> Mapping[str, object]:
    """Give the buffer in the unit in which it was asked for; refuse it where the other is counted."""
    known = recipe.header.parameters
    buffers = {"buffer_packets": plan.buffer_packets, "buffer_bytes": plan.buffer_bytes}
    given = {key: value for key, value in buffers.items() if value is not None}
    wrong = [key for key in given if key not in known]
    if wrong and not (given.keys() & known.keys()):
        unit, other = ("packets", "bytes") if wrong[0] == "buffer_packets" else ("bytes", "packets")
        able = ", ".join(_that_hold(wrong[0], host, catalogue))
        accepted = f"a buffer in {other}, or an aqm that counts {unit}: {able or 'none is known'}"
        raise RecipeError(f"path: aqm {plan.aqm}: holds {other}, not {unit}; accepted: {accepted}")
    return {key: value for key, value in given.items() if key in known}


def _that_hold(parameter: str, host: HostPlan, catalogue: Catalogue) -> Iterator[str]:
    for name in sorted(catalogue.names("aqm", host.system)):
        if parameter in catalogue.header("aqm", name, host.system).parameters:
            yield name
