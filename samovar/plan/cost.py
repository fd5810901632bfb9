"""Estimate what a plan costs: trials, hours, bytes on the hosts and on the controller.

The bytes of a trial are estimated from the packets that a host sees and the rows that a logger writes. In 47
trials of the lab (a TCP flow; transfers of files with a rate limit; UDP in both directions with pings; flows
over two WLANs), the estimate was between 0.75 and 1.7 times the stored bytes.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from samovar.experiment import RecipeCatalogue
from samovar.plan.flows import air_bps, limits_of
from samovar.plan.level_precedence import parameters_of_type
from samovar.plan.model import CapturePlan, FlowPlan, LoggerPlan, Resolved
from samovar.plan.trials import TRAFFIC_AND_RECORDING
from samovar.units import ETHERNET_MTU_BYTES

if TYPE_CHECKING:
    from samovar.plan.plan import Plan

PCAP_RECORD_BYTES = 16
ETHERNET_BYTES, IP_UDP_BYTES = 14, 28
HEADERS_BYTES = 128
"""Size of a packet's headers, which compress well. The payload may be incompressible."""
SAMPLE_INTERVAL_S = 0.01  # of loggers whose recipe has no interval
SAMPLE_BYTES = 160  # one row of a sampler's CSV for one connection, before compression
LINE_BYTES: Mapping[str, int] = {"siftr": 160, "tcp-probe": 160}
"""Loggers that write a line for each packet, and the bytes of a line."""
COMPRESSION = 3.5  # by gzip, for captures cut to headers and for CSV; 2.4 to 6 were measured
TRIAL_BYTES = 90_000  # a host's share of manifest, facts, commands and logs
ACKS_PER_PACKET = 0.5
DEFAULT_RATE_BPS = 100_000_000
LEAST_OVERHEAD_S, LAB_HOST_S = 2.5, 0.8
"""Assumed overhead of a trial with few hosts, and assumed overhead per host in a lab with more hosts, which
share one processor. In labs of 17 and 26 hosts, overheads of 14 to 24 s were measured."""
ENDS = ("sender", "receiver")
"""Roles of hosts that see only their own flows. Routers and observers see all flows."""


@dataclass(frozen=True)
class StepTime:
    """The duration of a step.

    `seconds` is the median of `measured` earlier steps on a testbed, or an assumption if `measured` is 0.
    """

    seconds: float
    measured: int = 0

    def __str__(self) -> str:
        """Return the time of one step, and whether it was measured or assumed."""
        source = f"median of {self.measured} measured on this testbed"
        assumed = "assumed, none measured on this testbed yet"
        return f"{round(self.seconds, 1):g} s each ({source if self.measured else assumed})"


@dataclass(frozen=True)
class Repeats:
    """Attempts that had to be repeated in earlier campaigns.

    `attempts` is the number of repeated attempts, which took `lost_s` seconds in total. The final attempts of
    `trials` trials took `counted_s` seconds.
    """

    attempts: int = 0
    trials: int = 0
    lost_s: float = 0.0
    counted_s: float = 0.0

    @property
    def share(self) -> float:
        """The time of the attempts that were repeated, divided by the time of the final attempts."""
        return self.lost_s / self.counted_s if self.counted_s else 0.0

    def __str__(self) -> str:
        """Return the share of time that repeated attempts add, and the counts of trials and attempts."""
        attempts = self.trials + self.attempts
        return f"{self.share:.0%} more: {self.trials} earlier trials took {attempts} attempts"


@dataclass(frozen=True)
class MeasuredTimes:
    """The times that earlier campaigns on a testbed have measured; times without measurements are assumed.

    `overhead` is the time of a trial without its traffic, `boot` the time from a reboot until the host
    answers, and `path` the time to calibrate a path in both directions.
    """

    overhead: StepTime = StepTime(LEAST_OVERHEAD_S)
    boot: StepTime = StepTime(120.0)
    path: StepTime = StepTime(15.0)
    repeats: Repeats = Repeats()


def assumed_overhead(lab_hosts: int) -> StepTime:
    """Return the overhead to assume for a trial in a lab with this number of hosts; 0 stands for no lab."""
    return StepTime(max(LEAST_OVERHEAD_S, LAB_HOST_S * lab_hosts))


@dataclass(frozen=True)
class Cost:
    """The estimated cost of a plan, or of its open trials.

    `host_bytes` maps hosts to the bytes that the largest trial stores there until they are collected.
    `controller_bytes` are the compressed bytes of all trials on this machine. `boots` is how often trials
    wait for hosts that reboot, multiplied by the share of trials that are open. `testbeds` is the number of
    testbeds that run trials in parallel. `paths` is the number of paths to calibrate.
    """

    trials: int
    traffic_s: float
    host_bytes: Mapping[str, int] = field(default_factory=dict)
    controller_bytes: int = 0
    boots: int = 0
    paths: int = 0
    testbeds: int = 1
    times: MeasuredTimes = MeasuredTimes()

    @property
    def repeats_s(self) -> float:
        """The expected time of repeated attempts in seconds, from the share that they took so far."""
        return self.times.repeats.share * (self.traffic_s + self.overhead_s)

    @property
    def reboot_s(self) -> float:
        """The time of all reboots, in seconds."""
        return self.boots * self.times.boot.seconds

    @property
    def path_s(self) -> float:
        """The time to calibrate all paths, in seconds."""
        return self.paths * self.times.path.seconds

    @property
    def overhead_s(self) -> float:
        """The overhead of all trials (time that is not traffic), in seconds."""
        return self.times.overhead.seconds * self.trials

    @property
    def total_s(self) -> float:
        """The time of the whole campaign, in seconds."""
        work_s = self.traffic_s + self.overhead_s + self.repeats_s
        return parallel_s(work_s, self.trials, self.testbeds) + self.reboot_s + self.path_s


def parallel_s(work_s: float, trials: int, testbeds: int, longest_s: float = 0.0) -> float:
    """Return the time in seconds for work that several testbeds share.

    Each testbed runs one trial at a time. The result is at least `longest_s`.
    """
    return max(longest_s, work_s / max(1, min(testbeds, trials)))


def estimate_cost(
    plan: Plan,
    catalogue: RecipeCatalogue,
    times: MeasuredTimes | None = None,
    only: Collection[str] | None = None,
    calibrates: bool = False,
    testbeds: int = 1,
) -> Cost:
    """Estimate the cost of a plan, or only of the trials with the ids `only`.

    If `calibrates` is true, the cost includes the time to measure each path through a router once. `testbeds`
    is the number of testbeds that share the trials; `times` are the measured times of the first testbed.
    """
    chosen = set(plan.ids) if only is None else set(only)
    trials, traffic_s, here_bytes = 0, 0.0, 0
    largest: dict[str, int] = {}
    for group in plan.groups(TRAFFIC_AND_RECORDING):
        number = sum(id_ in chosen for id_ in group.trials)
        if not number:
            continue
        trials += number
        traffic_s += number * group.resolved.duration_s
        here_bytes += number * stored_bytes(group.resolved, catalogue)
        for host, size in host_bytes(group.resolved, catalogue).items():
            largest[host] = max(size, largest.get(host, 0))
    boots = plan.changes.boots
    return Cost(
        trials=trials,
        traffic_s=traffic_s,
        host_bytes=largest,
        controller_bytes=here_bytes,
        boots=max(1, round(boots * trials / len(plan.trials))) if boots and trials else 0,
        paths=_calibrations(plan, chosen) if calibrates else 0,
        testbeds=testbeds,
        times=times or MeasuredTimes(),
    )


def _calibrations(plan: Plan, chosen: set[str]) -> int:
    """Return how many paths must be calibrated for the trials with the ids `chosen`.

    A path is calibrated once for each combination of its settings and the MTUs of hosts, even if several
    parts use it.
    """
    mtus = {"run": lambda run: run.mtu_bytes, "hosts": lambda host: host.mtu_bytes}
    found = set[tuple[object, ...]]()
    for group in plan.groups({"path": None, **mtus}):
        resolved = group.resolved
        if resolved.path and resolved.path.router and not chosen.isdisjoint(group.trials):
            path = json.dumps(resolved.path.as_json(), sort_keys=True)
            found.add((path, resolved.mtu_bytes, *(host.mtu_bytes for host in resolved.hosts.values())))
    return len(found)


def host_bytes(resolved: Resolved, catalogue: RecipeCatalogue) -> Mapping[str, int]:
    """Estimate the maximum number of bytes that a trial stores on each host; hosts compress only captures."""
    found: dict[str, float] = {}
    for host, captured_bytes, sampled_bytes in _recorded(resolved, catalogue, most=True):
        found[host] = found.get(host, 0) + captured_bytes + sampled_bytes
    return {host: int(size) for host, size in found.items()}


def stored_bytes(resolved: Resolved, catalogue: RecipeCatalogue) -> int:
    """Estimate the bytes of one trial on the controller: compressed captures and samples, and records."""
    stored = float(TRIAL_BYTES * len(resolved.hosts))
    for _, captured_bytes, sampled_bytes in _recorded(resolved, catalogue, most=False):
        stored += captured_bytes + sampled_bytes / COMPRESSION
    return int(stored)


def _recorded(
    resolved: Resolved, catalogue: RecipeCatalogue, most: bool
) -> Iterator[tuple[str, float, float]]:
    """Yield (host, bytes of compressed packets, bytes of samples) of each capture and logger.

    If flows offer more than the path can carry, they share its rate. With `most`, flows
    that a capture does not record are assumed to take no share of the rate.
    """
    rates_bps = _rates_bps(resolved)
    offers = [_offer(flow, resolved, rates_bps, catalogue) for flow in resolved.flows]
    room_bytes = {direction: resolved.duration_s * rate_bps / 8 for direction, rate_bps in rates_bps.items()}
    for capture in resolved.captures:
        yield capture.host, _capture_bytes(capture, resolved, offers, room_bytes, most), 0.0
    for logger in resolved.loggers:
        yield logger.host, 0.0, _sample_bytes(logger, resolved, offers, room_bytes, catalogue)


@dataclass(frozen=True)
class Offered:
    """The packets that one flow offers to its direction of the path, and the number of answers per packet.

    `ends` are the flow's sender and receiver. If it is `paced`, its rate does not depend on what the path can
    carry.
    """

    ends: tuple[str, str]
    direction: str
    packets: float
    packet_bytes: int
    answers: float
    paced: bool


def _offer(
    flow: FlowPlan, resolved: Resolved, rates_bps: Mapping[str, float], catalogue: RecipeCatalogue
) -> Offered:
    """Estimate the packets of a flow from its rate or interval, its size, or the rate of the path."""
    sender, direction = resolved.hosts[flow.from_host], resolved.direction_of(flow)
    ends = flow.from_host, flow.to_host
    mtu_bytes = resolved.mtu_bytes or ETHERNET_MTU_BYTES
    left_s = max(0.0, resolved.duration_s - flow.start_s)
    active_s = left_s if flow.duration_s is None else min(flow.duration_s, left_s)
    limits = limits_of(flow, sender.system, sender.settings, catalogue)
    rate_bps, payload_bytes = limits.rate_bps, (limits.length_bytes or 0) + IP_UDP_BYTES
    if rate_bps is None and limits.interval_s:  # pings: a packet each interval, in fragments if too long
        packets = max(1, -(-payload_bytes // mtu_bytes)) * active_s / limits.interval_s
        return Offered(ends, direction, packets, min(mtu_bytes, payload_bytes), 1.0, True)
    packet_bytes, answers = mtu_bytes, ACKS_PER_PACKET
    if catalogue.transport(flow.generator, sender.system) == "udp":  # without answers
        packet_bytes, answers = min(mtu_bytes, payload_bytes) if limits.length_bytes else mtu_bytes, 0.0
    offered_bytes = (rate_bps or rates_bps[direction]) * active_s / 8
    if flow.size_bytes is not None:
        offered_bytes = min(offered_bytes, flow.size_bytes)
    packets = offered_bytes / packet_bytes
    return Offered(ends, direction, packets, packet_bytes, answers, rate_bps is not None)


def _rates_bps(resolved: Resolved) -> Mapping[str, float]:
    """Return the lowest rate of each direction in bit/s, of the path and of the WLANs that all flows use.

    A direction without a rate has the rate of the opposite direction, or DEFAULT_RATE_BPS.
    """
    path, mtu_bytes = resolved.path, resolved.mtu_bytes or ETHERNET_MTU_BYTES
    down_bps, up_bps = (path.down.rate_bps, path.up.rate_bps) if path else (None, None)
    on_air_bps = [
        air_bps(wlan.standard, wlan.rate_bps, mtu_bytes)
        for host in resolved.hosts.values()
        for wlan in host.wlans
        if not any({flow.from_host, flow.to_host}.isdisjoint(wlan.hosts) for flow in resolved.flows)
    ]
    return {
        "down": min([down_bps or up_bps or DEFAULT_RATE_BPS, *on_air_bps]),
        "up": min([up_bps or down_bps or DEFAULT_RATE_BPS, *on_air_bps]),
    }


def _carried_shares(offers: Sequence[Offered], room_bytes: Mapping[str, float]) -> Mapping[str, float]:
    """Return for each direction the share of the offered bytes that the path can carry."""
    shares: dict[str, float] = {}
    for direction, room in room_bytes.items():
        wanted_bytes = sum(one.packets * one.packet_bytes for one in offers if one.direction == direction)
        shares[direction] = min(1.0, room / wanted_bytes) if wanted_bytes else 0.0
    return shares


def _capture_bytes(
    capture: CapturePlan,
    resolved: Resolved,
    offers: Sequence[Offered],
    room_bytes: Mapping[str, float],
    most: bool,
) -> float:
    end = resolved.hosts[capture.host].role in ENDS
    seen = [one for one in offers if capture.host in one.ends or not end]
    shares = _carried_shares(seen if most else offers, room_bytes)
    total = 0.0
    for one in seen:
        share = 1.0 if one.paced and one.ends[0] == capture.host else shares[one.direction]
        answered = one.answers * _record_bytes(capture, HEADERS_BYTES)
        total += one.packets * share * (_record_bytes(capture, one.packet_bytes) + answered)
    return total


def _record_bytes(capture: CapturePlan, packet_bytes: int) -> float:
    """Return the bytes that one packet adds to a capture; only headers are compressed."""
    bytes_ = min(capture.snaplen_bytes, packet_bytes + ETHERNET_BYTES)
    headers = min(bytes_, HEADERS_BYTES)
    return (headers + PCAP_RECORD_BYTES) / COMPRESSION + (bytes_ - headers)


def _sample_bytes(
    logger: LoggerPlan,
    resolved: Resolved,
    offers: Sequence[Offered],
    room_bytes: Mapping[str, float],
    catalogue: RecipeCatalogue,
) -> float:
    """Estimate the uncompressed bytes of a logger: a line for each packet, or a row for each sample."""
    near = [one for one in offers if logger.host in one.ends]
    if logger.logger in LINE_BYTES:
        shares = _carried_shares(near, room_bytes)
        packets = sum(one.packets * shares[one.direction] * (1 + one.answers) for one in near)
        return packets * LINE_BYTES[logger.logger]
    declared = catalogue.parameters("logger", logger.logger, resolved.hosts[logger.host].system) or {}
    usual_s = parameters_of_type("duration", declared, {}).get("interval_s", SAMPLE_INTERVAL_S)
    samples = resolved.duration_s / (logger.interval_s or usual_s)
    return samples * max(1, len(near)) * SAMPLE_BYTES
