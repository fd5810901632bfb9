"""Resolve the network path of a trial: rate, delay, loss and queue of each direction, classes of packets."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from typing import Any

from samovar.errors import PlanError
from samovar.experiment import Buffer, Directional, keys
from samovar.plan.effective_values import class_of
from samovar.plan.flows import flows_of, stream_of
from samovar.plan.level_precedence import TreatmentValues
from samovar.plan.model import ClassPlan, DevicePlan, DirectionPlan, FlowPlan, MatchPlan, PathPlan
from samovar.plan.placement import first_of_link, subnet_of
from samovar.plan.trials import DesignError

DIRECTIONS = ("down", "up")


def path_of(values: TreatmentValues) -> PathPlan | None:
    """Return the settings of the bottleneck; None if the experiment sets no path. Raises PlanError."""
    if values.context.path is None:
        return None
    testbed, bottleneck = values.testbed, values.testbed.bottleneck
    if bottleneck is None and testbed.device is None:
        raise PlanError(f"testbed {testbed.name}: has no bottleneck; add one, or remove the path")
    down = _direction(values, "down", bottleneck.to_interface if bottleneck else "")
    up = _direction(values, "up", bottleneck.from_interface if bottleneck else "")
    if bottleneck is None:  # frames queue in the adapters, which have no queue discipline
        link = {"link": testbed.bottleneck_link, "device": _device(values)}
        return PathPlan(router="", rtt_s=rtt_of(values), down=down, up=up, **link)
    if down.rate_bps is None and up.rate_bps is None:
        raise _no_queue(values)
    classes = values.part.path.classes if values.part.path else ()
    return PathPlan(
        router=bottleneck.router,
        rtt_s=rtt_of(values),
        down=down,
        up=up,
        classes=tuple(_class(values, one, down, up) for one in classes),
    )


def _device(values: TreatmentValues) -> DevicePlan:
    testbed = values.testbed
    attributes = {name: key.attribute for name, key in keys.keys_of(keys.Adapter).items()}
    parameters = values.device_parameters()
    known = {
        attributes[name]: parameters.get(name, getattr(testbed.device, attributes[name]))
        for name in keys.DEVICE_PARAMETERS
    }
    if known["drift"]:
        generator = stream_of(values, f"link {testbed.bottleneck_link}").generator()
        known["seed"] = generator.getrandbits(32)
    return DevicePlan(host=first_of_link(testbed), settable=testbed.lab is not None, **known)


def rtt_of(values: TreatmentValues) -> float:
    """Return the RTT that the path adds, in seconds."""
    return _seconds(sum(_delay_s(values, direction) for direction in DIRECTIONS))


def rtt_of_flow(path: PathPlan, flow: FlowPlan) -> float:
    """Return the RTT in seconds that the path adds to a flow: its class's, or else the path's own."""
    own = class_of(path, flow)
    return path.rtt_s if own is None else _seconds(own.delay_down_s + own.delay_up_s)


def _direction(values: TreatmentValues, direction: str, interface: str) -> DirectionPlan:
    rate_bps = values.path("rate", direction)
    shares = {key: float(values.path(key, direction) or 0.0) for key in ("loss", "reorder", "duplicate")}
    bursts = values.path("loss_burst", direction) if values.path_amount("loss", direction) else None
    return DirectionPlan(
        interface=interface,
        rate_bps=rate_bps,
        delay_s=_delay_s(values, direction),
        jitter_s=float(values.path("jitter", direction) or 0.0),
        loss_burst_packets=None if bursts is None else float(bursts),
        **shares,
        **(_queue(values, direction) if rate_bps is not None else {}),
    )


def _queue(values: TreatmentValues, direction: str) -> dict[str, Any]:
    bottleneck = values.testbed.bottleneck
    buffer: Buffer | None = values.path("buffer", direction)
    if buffer is None:
        raise _no_queue(values)
    size = {"buffer_packets": buffer.packets, "buffer_bytes": buffer.bytes}
    if bottleneck is None:
        return size  # a device has no queue discipline
    aqm = values.path_amount("aqm", direction) or "pfifo"
    return {**size, "aqm": aqm, "aqm_parameters": values.aqm_parameters(str(aqm), bottleneck.router)}


def _no_queue(values: TreatmentValues) -> DesignError:
    message = f"the path has no rate or no buffer {values.labels()}".rstrip() + "; it needs both"
    return DesignError(values.context.name, ("path",), message)


def _delay_s(values: TreatmentValues, direction: str) -> float:
    own = values.path("delay", direction)
    return float(own) if own is not None else _seconds(float(values.path("rtt") or 0.0) / 2)


def _seconds(seconds: float) -> float:
    return round(seconds, 9)


def _class(values: TreatmentValues, own: keys.PathClass, down: DirectionPlan, up: DirectionPlan) -> ClassPlan:
    loss = values.path_class(own, "loss")
    rtt_s, delay_s = values.path_class(own, "rtt"), values.path_class(own, "delay")
    if delay_s is None:
        half = None if rtt_s is None else _seconds(float(rtt_s) / 2)
        delay_s = Directional(down.delay_s, up.delay_s) if half is None else Directional(half, half)
    return ClassPlan(
        match=tuple(_matches(values, own)),
        delay_down_s=float(delay_s.down),
        delay_up_s=float(delay_s.up),
        loss=down.loss if loss is None else float(loss),
    )


def _matches(values: TreatmentValues, own: keys.PathClass) -> Iterator[MatchPlan]:
    """Yield the downstream matches of a class: pairs of a source and a destination subnet.

    For a class that names a flow, these are the subnets and the receiver's port of each of its flows.
    """
    if own.flow is None:
        ends = (own.from_end, own.to_end)
        subnets = [[None] if end is None else list(values.placement.subnets(end)) for end in ends]
        yield from (MatchPlan(from_subnet=one, to_subnet=other) for one, other in product(*subnets))
        return
    group = [flow for flow in flows_of(values) if own.flow in (flow.label, flow.group)]
    if not group:
        raise PlanError(f"path.classes: flow {own.flow}: no flow has this label; name a flow in `traffic`")
    for flow in group:
        if values.transport(flow) == "icmp":
            remedy = "give the class `from` and `to` instead of `flow`"
            raise values.flow_error(flow, f"path.classes cannot match packets without ports; {remedy}")
        route = values.placement.route(flow.from_host, flow.to_host)
        sender, receiver = subnet_of(flow.from_address), subnet_of(flow.to_address)
        if route is not None and route.directions == {"up"}:
            yield MatchPlan(from_subnet=receiver, to_subnet=sender, from_port=flow.port)
        else:
            yield MatchPlan(from_subnet=sender, to_subnet=receiver, port=flow.port)
