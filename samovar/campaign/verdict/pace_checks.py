"""Compare each flow with the pace of its generator: rate, evenness and pauses."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import accumulate, pairwise
from statistics import median
from typing import NamedTuple

from samovar.campaign.verdict.capture_checks import block_bytes, data_streams, streams_from
from samovar.campaign.verdict.check_result import Check, graded
from samovar.campaign.verdict.evidence import Evidence
from samovar.campaign.verdict.pcap_reader import CaptureSummary, SentPackets, read_sent_packets
from samovar.campaign.verdict.traces import UNREADABLE
from samovar.errors import RecipeError
from samovar.plan import FlowPlan
from samovar.recipes import FlowEnds, Pace

FAR = 3
"""If the mean rate of a flow deviates by more than this many tolerances, the trial is invalid. A second is
uneven if its rate deviates from the mean rate by more than this many tolerances."""
UNEVEN = 0.1
"""The share of a flow's seconds that may be uneven; one second is always allowed."""
LARGEST_BLOCK_BYTES = 131_072
"""The largest block that a TCP generator (iperf, iperf3) writes by default. The last block may exceed the
limit of a flow."""


class Sending(NamedTuple):
    """The packets that one endpoint of a flow sent: their times `t_s` since the first one, and `amounts`.

    The amount of a packet is its size in bits, or 1 if the rate is in packets per second. `life_s` is the
    time in seconds during which the flow should have sent.
    """

    t_s: list[float]
    amounts: list[int]
    life_s: float

    @property
    def mean(self) -> float:
        """The mean rate in bits or packets per second."""
        return sum(self.amounts) / self.life_s


def check_offered_rates(evidence: Evidence) -> Iterator[Check]:
    """Compare what every started flow sent with the `pace` in the recipe of its generator.

    For a TCP flow, the rate is only an upper bound, because congestion control may make the flow send less.
    """
    for ends in evidence.started_flows:
        host, is_tcp = ends.flow.from_host, ends.recipe.header.transport == "tcp"
        name = f"rate sent in flow {ends.flow.label}"
        try:
            paces = evidence.scripts.paces(ends)
        except RecipeError as error:
            yield Check(name, host, "the pace in its generator's recipe", str(error), False, "suspect")
            continue
        if not paces and not is_tcp:
            why = f"unknown: generator {ends.flow.generator} does not state the pace of its packets"
            yield Check(name, host, "unknown", why, True)
        for pace in paces:
            yield from _limited(evidence, ends, pace) if is_tcp else _paced(evidence, ends, pace)


def _limited(evidence: Evidence, ends: FlowEnds, pace: Pace) -> Iterator[Check]:
    """Check that a TCP flow sent at most as many bytes as the rate limit of its generator allows."""
    flow, share = ends.flow, evidence.policy.thresholds.offered
    name, requested = f"rate sent in flow {flow.label}", f"at most {_text(pace, pace.per_s)}"
    counted, captures = evidence.counted_bytes(ends), evidence.captures_at(flow.from_host, whole=True)
    if flow.duration_s is None or ends.name("client") in evidence.halted:
        observed = "unknown: the flow has no duration, or was stopped early"
        yield Check(name, flow.from_host, requested, observed, True)
    elif counted is None and not captures:
        observed = f"unknown: {flow.from_host} was not captured, and the generator printed no count"
        yield Check(name, flow.from_host, requested, observed, True)
    else:
        by_capture = (sum(s.payload_bytes for s in data_streams(one, ends)) for one in captures)
        sent_bytes = counted.sent_bytes if counted is not None else max(by_capture)
        block_bits = 8 * max(LARGEST_BLOCK_BYTES, block_bytes(ends))
        observed = _text(pace, 8 * sent_bytes / flow.duration_s)
        excess = (8 * sent_bytes - block_bits) / flow.duration_s / pace.per_s - 1
        tolerance = f"+ {share:.1%} plus one block"
        yield Check(name, flow.from_host, requested, observed, *graded(excess, share, FAR), tolerance)


def _paced(evidence: Evidence, ends: FlowEnds, pace: Pace) -> Iterator[Check]:
    """Check mean rate, evenness and pauses of one endpoint's packets, from a capture at this endpoint.

    If a device or queue may hold the sender back, only an upper bound of the rate is checked. Without a
    capture, only the mean rate is checked, from the generator's own byte count.
    """
    flow, limits = ends.flow, evidence.policy.thresholds
    host = flow.from_host if pace.end == "from" else flow.to_host
    back = "" if pace.end == "from" else " in answer"
    name, requested = f"rate sent in flow {flow.label}{back}", _text(pace, pace.per_s)
    sending = _captured(evidence, ends, pace, host)
    if sending is None:
        yield _by_count(evidence, ends, pace, name, host, requested)
        return
    share, observed = limits.offered, _text(pace, sending.mean)
    deviation = sending.mean / pace.per_s - 1
    holder = _holder(evidence, host)
    if holder:
        within, observed = graded(deviation, share, FAR), f"{observed}; {holder}"
        yield Check(name, host, f"at most {requested}", observed, *within, f"+ {share:.1%}")
        return
    packet = max(sending.amounts) / sending.life_s / pace.per_s
    within = graded(abs(deviation) - packet, share, FAR)
    yield Check(name, host, requested, observed, *within, f"± {share:.1%} plus one packet")
    if sending.life_s >= 2:
        yield _check_evenness(sending, f"even seconds of flow {flow.label}{back}", host, share)
    packet_s = sum(sending.amounts) / len(sending.amounts) / pace.per_s
    pause_s = max(late - early for early, late in pairwise([*sending.t_s, sending.life_s]))
    name, most_s = f"longest pause of flow {flow.label}{back}", packet_s + limits.stall_s
    ok = pause_s <= most_s
    yield Check(name, host, f"at most {most_s:.3g} s", f"{pause_s:.3g} s", ok, "suspect")


def _check_evenness(sending: Sending, name: str, host: str, share: float) -> Check:
    """Check that in nearly all seconds a flow sent at about its mean rate."""
    seconds = int(sending.life_s)
    amounts = [0] * seconds
    for t_s, amount in zip(sending.t_s, sending.amounts, strict=True):
        if t_s < seconds:
            amounts[int(t_s)] += amount
    most = FAR * share * sending.mean + max(sending.amounts)
    even = sum(abs(amount - sending.mean) <= most for amount in amounts)
    least = seconds - max(1, int(UNEVEN * seconds))
    tolerance = f"{FAR * share:.1%} plus one packet"
    requested = f"at least {least} of {seconds} seconds with a rate within {tolerance} of the mean"
    return Check(name, host, requested, str(even), even >= least, "suspect")


def _text(pace: Pace, per_s: float) -> str:
    return f"{per_s / 1e6:.4g} Mbit/s" if pace.in_bits else f"{per_s:.4g} packets/s"


def _holder(evidence: Evidence, host: str) -> str:
    """Return the reason why a host may send less than its generators request; empty if none is known."""
    path, settings = evidence.resolved.path, evidence.resolved.hosts[host].settings
    if path is not None and path.device is not None and path.device.flow_control:
        return "flow control of the adapters may hold the sender back"
    if path is not None and path.router == host:
        return "the bottleneck's queue is at the sender"
    if settings.get("pause", {}).get("rx") == "on":
        return "PAUSE frames may hold the sender back"
    return "the setting `shaper` limits the sender" if "shaper" in settings else ""


def _by_count(evidence: Evidence, ends: FlowEnds, pace: Pace, name: str, host: str, requested: str) -> Check:
    """Return the check of a flow's mean rate, computed from the bytes that its generator counted.

    Without a usable count, the check passes with an explanation.
    """
    flow, share = ends.flow, evidence.policy.thresholds.offered
    is_counted = pace.in_bits and pace.end == "from" and ends in evidence.completed_flows
    counted = evidence.counted_bytes(ends) if is_counted else None
    if counted is None or flow.duration_s is None:
        return Check(name, host, requested, f"unknown: {host} has no capture of this flow", True)
    mean = 8 * counted.sent_bytes / flow.duration_s
    observed = f"{_text(pace, mean)} by the generator's count"
    within = graded(abs(mean / pace.per_s - 1), share, FAR)
    return Check(name, host, requested, observed, *within, f"± {share:.1%}")


def _captured(evidence: Evidence, ends: FlowEnds, pace: Pace, host: str) -> Sending | None:
    """Return the packets that one endpoint of a flow sent; None if no capture at this endpoint shows them."""
    flow = ends.flow
    address = flow.from_address if pace.end == "from" else flow.to_address
    same = (one for one in evidence.started_flows if one.recipe.header.transport == "icmp")
    pairs = [{one.flow.from_address, one.flow.to_address} for one in same]
    if pairs.count({flow.from_address, flow.to_address}) > 1 and ends.recipe.header.transport == "icmp":
        return None  # echo requests have no ports, so two flows cannot be distinguished
    captures = [(plan, one) for plan, one in evidence.captures if plan.host == host and not one.error]
    sendings: list[tuple[SentPackets, CaptureSummary]] = []
    for plan, capture in captures if evidence.is_ipv4 else ():
        wanted = {id(stream) for stream in streams_from(address, capture, ends)}
        keys = {key for key, stream in capture.streams.items() if id(stream) in wanted}
        try:
            sent = read_sent_packets(evidence.capture_file(plan), keys, capture.packets)
        except UNREADABLE:
            continue  # check_captures_complete() reports it
        sendings.append((sent, capture))
    if not sendings:
        return None
    sent, capture = max(sendings, key=lambda one: len(one[0].t_ns))
    lasts = pace.end == "from" and capture.whole and not capture.torn and ends in evidence.completed_flows
    return _sending(sent, pace, flow, lasts)


def _sending(sent: SentPackets, pace: Pace, flow: FlowPlan, lasts: bool) -> Sending | None:
    """Return the packets that a flow sent during its lifetime; None if they are too few for a rate.

    The lifetime begins with the first packet of at least half the median size; shorter packets before it
    belong to a handshake. If `lasts` is True, the lifetime is the whole requested duration, even if the flow
    stopped sending earlier. If `lasts` is False, the lifetime ends with the last packet. In a flow with a
    requested size, the last packet is the one that completes this size; packets after it only announce the
    end.
    """
    size_bytes = flow.size_bytes
    duration_s = flow.duration_s if size_bytes is None else None
    if not sent.t_ns:
        return Sending([0.0], [0], duration_s) if lasts and duration_s else None
    usual = median(sent.payload_bytes)
    first = next(n for n, payload in enumerate(sent.payload_bytes) if 2 * payload >= usual)
    t_s = [(t_ns - sent.t_ns[first]) / 1e9 for t_ns in sent.t_ns[first:]]
    payloads = list(sent.payload_bytes[first:])
    if size_bytes is not None:
        whole = next((n for n, size in enumerate(accumulate(payloads), 1) if size >= size_bytes), len(t_s))
        t_s, payloads = t_s[:whole], payloads[:whole]
    last_s = t_s[-1]
    life_s = duration_s if duration_s is not None and (lasts or last_s > duration_s) else last_s
    amounts = [8 * payload if pace.in_bits else 1 for payload in payloads]
    inside = sum(one < life_s for one in t_s)
    return Sending(t_s[:inside], amounts[:inside], life_s) if inside else None
