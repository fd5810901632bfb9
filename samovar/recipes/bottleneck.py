"""Compute the values of the setting recipes that shape the path: `bottleneck` (router), `adapter` (lab)."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from samovar.errors import RecipeError
from samovar.plan import DevicePlan, DirectionPlan, HostPlan, MatchPlan, PathPlan, Resolved, subnet_of
from samovar.recipes.catalogue import Catalogue
from samovar.recipes.lab_devices import ADAPTER_RANGES, device_values
from samovar.recipes.recipe_filters import DelayStage
from samovar.units import ETHERNET_MTU_BYTES, format_duration, format_rate, format_share

BURST_S = 0.004
"""The token bucket holds what the shaped rate sends in this time, so that a late timer does not lower the
rate."""
ETHERNET_HEADER_BYTES = 14
"""Bytes that Linux's queue disciplines count in addition to an IP packet (skb->len on an Ethernet device)."""
SMALLEST_FRAME_BYTES = 54
"""Headers of Ethernet, IPv4 and TCP, without options or data."""
HEAD_ROOM = 2
LEAST_PACKETS = 1000
"""netem's own default limit (tc-netem(8))."""
PORT_RATES_BPS = (100_000_000, 1_000_000_000, 10_000_000_000, 100_000_000_000)
"""Rates of Ethernet. An adapter's port runs at the lowest of them that is at least its medium's rate."""


@dataclass(frozen=True)
class PathDirection:
    """One direction through the router. Packets pass the delay stages first, then the rate and its queue."""

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
    """Return the values of setting `bottleneck` for the router of a path.

    Raises RecipeError for an impossible path, such as one with reordering but no delay, or with a buffer in a
    unit that the AQM does not accept.
    """
    frame_bytes = (mtu_bytes or ETHERNET_MTU_BYTES) + ETHERNET_HEADER_BYTES
    return {
        "directions": tuple(_direction(name, path, frame_bytes, host, catalogue) for name in ("down", "up"))
    }


def match_servers(path: PathPlan, resolved: Resolved, catalogue: Catalogue) -> PathPlan:
    """Return a path whose classes match the ports of their flows at the ends where the generators listen.

    In the plan, each flow's receiver has the port. A flow whose generator may use any port is matched by its
    addresses only.
    """

    def at_server(match: MatchPlan) -> MatchPlan:
        ends = {match.from_subnet, match.to_subnet}
        for flow in resolved.flows:
            own = {subnet_of(flow.from_address), subnet_of(flow.to_address)}
            if ends == own and flow.port in (match.port, match.from_port):
                system = resolved.hosts[flow.from_host].system
                header = catalogue.header("generator", flow.generator, system)
                if not header.ports:
                    return match.model_copy(update={"port": None, "from_port": None})
                if header.listens == "from":
                    return match.model_copy(update={"port": match.from_port, "from_port": match.port})
        return match

    classes = (one.model_copy(update={"match": tuple(map(at_server, one.match))}) for one in path.classes)
    return path.model_copy(update={"classes": tuple(classes)})


def _direction(
    name: str, path: PathPlan, frame_bytes: int, host: HostPlan, catalogue: Catalogue
) -> PathDirection:
    plan, back = (path.down, path.up) if name == "down" else (path.up, path.down)
    queue, shown = _queue(plan, frame_bytes, host, catalogue)
    return PathDirection(
        name=name,
        arrives=back.interface,
        leaves=plan.interface,
        stages=tuple(_stages(name, path, plan, back, frame_bytes)),
        rate_bps=plan.rate_bps,
        burst_bytes=max(2 * frame_bytes, round((plan.rate_bps or 0) / 8 * BURST_S)),
        queue=queue,
        queue_shown=shown,
    )


def _stages(
    name: str, path: PathPlan, plan: DirectionPlan, back: DirectionPlan, frame_bytes: int
) -> Iterator[DelayStage]:
    """Yield a delay stage for each class, and one for all other packets if the path delays or drops them."""
    # A direction without a rate carries the answers to the packets of the other direction.
    shaped = plan if plan.rate_bps else back
    rate_bps = shaped.rate_bps or 0
    queued = shaped.buffer_packets or math.ceil((shaped.buffer_bytes or 0) / frame_bytes)
    window_packets = queued + math.ceil(rate_bps / 8 * path.rtt_s / frame_bytes)

    def stage(label: str, delay_s: float, loss: float, matches: tuple[MatchPlan, ...] = ()) -> DelayStage:
        if loss >= 1:
            raise RecipeError(f"path: {label}: a loss of 100% lets nothing through", "less than 100%")
        if plan.jitter_s > delay_s:
            jitter, delay = format_duration(plan.jitter_s), format_duration(delay_s)
            what = f"jitter {jitter} is more than the delay, {delay}"
            raise RecipeError(f"path: {label}: {what}", "at most the delay")
        if plan.reorder and not delay_s:
            what = "reorder without a delay, but packets can only overtake delayed packets"
            raise RecipeError(f"path: {label}: {what}", "a delay")
        # Room for all packets that can arrive during the delay, even if all have the smallest size, and for a
        # whole window in addition.
        moving = math.ceil(rate_bps / 8 * (delay_s + plan.jitter_s) / SMALLEST_FRAME_BYTES)
        return DelayStage(
            name=label,
            matches=matches,
            limit_packets=LEAST_PACKETS + HEAD_ROOM * (moving + window_packets),
            delay_us=round(delay_s * 1e6),
            jitter_us=round(plan.jitter_s * 1e6),
            loss=loss,
            loss_states=loss_states(loss, plan.loss_burst_packets),
            reorder=plan.reorder,
            duplicate=plan.duplicate,
        )

    for number, one in enumerate(path.classes, 1):
        if name == "down":
            yield stage(f"{name}{number}", one.delay_down_s, one.loss, one.match)
        else:
            answers = tuple(
                MatchPlan(
                    from_subnet=match.to_subnet,
                    to_subnet=match.from_subnet,
                    from_port=match.port,
                    port=match.from_port,
                )
                for match in one.match
            )
            yield stage(f"{name}{number}", one.delay_up_s, plan.loss, answers)
    if any((plan.delay_s, plan.jitter_s, plan.loss, plan.reorder, plan.duplicate)):
        yield stage(name, plan.delay_s, plan.loss)


def loss_states(loss: float, burst_packets: float | None) -> tuple[float, float] | None:
    """Return the probabilities, at each packet, that a loss burst begins and that it ends.

    `loss` is the share of lost packets, `burst_packets` the mean length of a burst (None: no bursts). The
    Gilbert model enters the bad state with probability p and leaves it with probability r. Every packet in
    the bad state is lost, so a burst lasts 1/r packets on average, and p/(p+r) of all packets are lost
    (netem's gemodel; S. Salsano, F. Ludovici, A. Ordine, Definition of a general and intuitive loss model for
    packet networks, 2009). Raises RecipeError if no p and r give this mean burst length and loss.
    """
    if not loss or burst_packets is None:
        return None
    # At least one packet is delivered between two bursts. Rounding makes the result for a
    # loss of 0.9 exactly 9, although 0.9 has no exact binary representation.
    least = max(1.0, round(loss / (1 - loss), 9)) if loss < 1 else math.inf
    if burst_packets < least:
        what = f"{format_share(loss)} loss cannot come in bursts of {burst_packets:g} packets"
        raise RecipeError(f"path: {what}", f"{least:.3g} packets or more")
    end = 1 / burst_packets
    return min(end * loss / (1 - loss), 1.0), end


def _queue(
    plan: DirectionPlan, frame_bytes: int, host: HostPlan, catalogue: Catalogue
) -> tuple[str, tuple[str, ...]]:
    """Return arguments that set the queue discipline, and lines that its state must then show.

    Without a rate, the arguments and the lines are empty.
    """
    if plan.rate_bps is None:
        return "", ()
    if plan.aqm is None:
        raise RecipeError("path: a rate without an aqm", "an aqm such as pfifo")
    recipe = catalogue.recipe("aqm", plan.aqm, host.system)
    buffers = {"buffer_packets": plan.buffer_packets, "buffer_bytes": plan.buffer_bytes}
    given = {key: value for key, value in buffers.items() if value is not None}
    if given and not given.keys() & recipe.header.parameters.keys():
        unit, other = ("packets", "bytes") if "buffer_packets" in given else ("bytes", "packets")
        raise RecipeError(f"path: aqm {plan.aqm} counts {other}, not {unit}", f"a buffer in {other}")
    values: dict[str, object] = {
        "rate_bps": plan.rate_bps,
        "frame_bytes": frame_bytes,
        **given,
        **recipe.parse_values(plan.aqm_parameters),
    }
    shown = recipe.render("shown", values).splitlines()
    return recipe.render("qdisc", values).strip(), tuple(line.strip() for line in shown if line.strip())


def adapter_values(path: PathPlan, device: DevicePlan) -> Mapping[str, object]:
    """Return the values of setting `adapter`.

    Raises RecipeError for a value that an adapter cannot have.
    """
    directions = {"down": path.down, "up": path.up}
    fastest_bps = max(plan.rate_bps for plan in directions.values() if plan.rate_bps)
    if fastest_bps > PORT_RATES_BPS[-1]:
        rate, most = format_rate(fastest_bps), format_rate(PORT_RATES_BPS[-1])
        raise RecipeError(f"path: rate {rate} is too fast for link '{path.link}'", f"at most {most}")
    if any(plan.buffer_packets is None for plan in directions.values()):
        raise RecipeError(f"path: link '{path.link}' queues frames", "a buffer in packets")
    numbers = {
        **{f"rate_{name}_bps": plan.rate_bps for name, plan in directions.items()},
        **{f"buffer_{name}_frames": plan.buffer_packets for name, plan in directions.items()},
        **{f"delay_{name}_ns": round(plan.delay_s * 1e9) for name, plan in directions.items()},
        **{f"loss_{name}": plan.loss for name, plan in directions.items()},
        "simplex": int(device.medium == "simplex"),
        "flow_control": int(device.flow_control),
        "pause_quanta": device.pause_quanta,
        "drift": device.drift,
        "seed": device.seed or 1,
        "link_bps": next(rate_bps for rate_bps in PORT_RATES_BPS if rate_bps >= fastest_bps),
    }
    costs_s = {"access_ns": device.access_s, "burst_ns": device.burst_s}
    numbers |= {key: round(value * 1e9) for key, value in costs_s.items() if value is not None}
    return device_values(path.link, numbers, ADAPTER_RANGES)
