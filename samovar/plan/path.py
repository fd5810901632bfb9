"""The path of a trial: both directions of the bottleneck, and the classes before its queue."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from typing import Any

from samovar.errors import PlanError
from samovar.experiment import DEVICE_PARAMETERS, Adapter, Buffer, PathClass, parse_parameter
from samovar.plan.flows import Traffic
from samovar.plan.laid import Laid
from samovar.plan.model import ClassPlan, DevicePlan, DirectionPlan, MatchPlan, PathPlan
from samovar.plan.places import first_of_link, subnet_of
from samovar.plan.random_draws import Draw

WAYS = ("down", "up")


def path_of(laid: Laid, traffic: Traffic) -> PathPlan | None:
    """Return what the bottleneck is set to; None where nothing is said of it. Raises PlanError."""
    if not laid.has_path:
        return None
    if laid.places.testbed.device is not None:
        return _of_device(laid, traffic, laid.places.testbed.device)
    bottleneck = laid.places.testbed.bottleneck
    if bottleneck is None:
        message = "has no bottleneck to set a path at; expected one, or no path"
        raise PlanError(f"testbed {laid.places.testbed.name}: {message}")
    interfaces = {"down": bottleneck.to_interface, "up": bottleneck.from_interface}
    ways = {way: _direction(laid, way, interfaces[way]) for way in WAYS}
    if all(way.rate_bps is None for way in ways.values()):
        raise PlanError("path: has no rate or no buffer; expected both, as values or factors")
    rtt_s = rtt_of(laid)
    classes = laid.part.path.classes if laid.part.path else ()
    return PathPlan(
        router=bottleneck.router,
        rtt_s=rtt_s,
        down=ways["down"],
        up=ways["up"],
        classes=tuple(_class(laid, traffic, one, ways) for one in classes),
    )


def _of_device(laid: Laid, traffic: Traffic, adapter: Adapter) -> PathPlan:
    """Return the path through a pair of adapters; a queue of frames in either of them, and no discipline."""
    return PathPlan(
        router="",
        link=laid.places.testbed.bottleneck_link,
        rtt_s=rtt_of(laid),
        down=_direction(laid, "down", ""),
        up=_direction(laid, "up", ""),
        device=_device(laid, traffic, adapter),
    )


def _device(laid: Laid, traffic: Traffic, adapter: Adapter) -> DevicePlan:
    testbed = laid.places.testbed
    known = {key: getattr(adapter, key) for key in DEVICE_PARAMETERS}
    own = {
        key: parse_parameter(DEVICE_PARAMETERS[key], text) for key, text in laid.device_parameters().items()
    }
    device = DevicePlan.model_validate(
        {"host": first_of_link(testbed), "settable": testbed.lab is not None, **known, **own}
    )
    if not device.drift:
        return device
    draw = Draw(traffic.seed, laid.name, f"link {testbed.bottleneck_link}", laid.reader.replicate)
    return device.model_copy(update={"seed": draw.numbers().getrandbits(32)})


def rtt_of(laid: Laid) -> float:
    """Return the RTT that the path adds, in seconds."""
    return _seconds(sum(_delay_s(laid, way) for way in WAYS))


def rate_of(laid: Laid, way: str) -> int | None:
    """Return the rate of a direction, in bit/s; None where it is not shaped."""
    rate_bps: int | None = _computed(laid, "rate", way)
    return rate_bps


def _direction(laid: Laid, way: str, interface: str) -> DirectionPlan:
    rate_bps = rate_of(laid, way)
    return DirectionPlan(
        interface=interface,
        rate_bps=rate_bps,
        delay_s=_delay_s(laid, way),
        jitter_s=float(_computed(laid, "jitter", way) or 0.0),
        loss=float(_computed(laid, "loss", way) or 0.0),
        loss_burst_packets=_burst(laid, way),
        reorder=float(_computed(laid, "reorder", way) or 0.0),
        duplicate=float(_computed(laid, "duplicate", way) or 0.0),
        **(_queue(laid, way) if rate_bps is not None else {}),
    )


def _queue(laid: Laid, way: str) -> dict[str, Any]:
    buffer: Buffer | None = _computed(laid, "buffer", way)
    if buffer is None:
        raise PlanError("path: has no rate or no buffer; expected both, as values or factors")
    if laid.places.testbed.device is not None:
        return {"buffer_packets": buffer.packets, "buffer_bytes": buffer.bytes}
    return {
        "aqm": laid.of_path("aqm", way) or "pfifo",
        "buffer_packets": buffer.packets,
        "buffer_bytes": buffer.bytes,
        "aqm_parameters": laid.aqm_parameters(),
    }


def _burst(laid: Laid, way: str) -> float | None:
    packets = _computed(laid, "loss_burst", way) if laid.of_path("loss", way) else None
    return None if packets is None else float(packets)


def _delay_s(laid: Laid, way: str) -> float:
    own = laid.delay(way)
    if own is not None:
        return float(laid.computed(own, f"path.delay.{way}"))
    return _seconds(float(laid.computed(laid.rtt(), "path.rtt")) / 2)


def _computed(laid: Laid, key: str, way: str) -> Any:
    return laid.computed(laid.of_path(key, way), f"path.{key}.{way}")


def _seconds(seconds: float) -> float:
    return round(seconds, 9)


def _class(laid: Laid, traffic: Traffic, asked: PathClass, ways: dict[str, DirectionPlan]) -> ClassPlan:
    delays_s = {way: _class_delay_s(laid, asked, way, ways[way].delay_s) for way in WAYS}
    loss = laid.computed(asked.loss, "path.classes: loss")
    return ClassPlan(
        match=tuple(_matches(laid, traffic, asked)),
        delay_down_s=delays_s["down"],
        delay_up_s=delays_s["up"],
        loss=ways["down"].loss if loss is None else float(loss),
    )


def _class_delay_s(laid: Laid, asked: PathClass, way: str, path_s: float) -> float:
    if asked.delay_s is not None:
        return float(laid.computed(getattr(asked.delay_s, way), f"path.classes: delay.{way}"))
    if asked.rtt_s is not None:
        return _seconds(float(laid.computed(asked.rtt_s, "path.classes: rtt")) / 2)
    return path_s


def _matches(laid: Laid, traffic: Traffic, asked: PathClass) -> Iterator[MatchPlan]:
    """Yield what a class matches on its way down: where from, where to, the port of the flow's receiver."""
    if asked.flow is None:
        ends = (asked.from_end, asked.to_end)
        sides = [[None] if end is None else list(laid.places.subnets(end)) for end in ends]
        yield from (MatchPlan(from_subnet=one, to_subnet=other) for one, other in product(*sides))
        return
    group = [flow for flow in traffic.flows() if asked.flow in (flow.label, flow.group)]
    if not group:
        raise PlanError(f"path.classes: flow {asked.flow}: there is none of that label; expected one")
    for flow in group:
        route = laid.places.route(flow.from_host, flow.to_host)
        sender, receiver = subnet_of(flow.from_address), subnet_of(flow.to_address)
        if route is not None and route.goes_up and not route.crosses_bottleneck:
            yield MatchPlan(from_subnet=receiver, to_subnet=sender, from_port=flow.port)
        else:
            yield MatchPlan(from_subnet=sender, to_subnet=receiver, port=flow.port)
