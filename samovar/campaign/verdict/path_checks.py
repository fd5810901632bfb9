"""Check a trial's path: calibration, the bottleneck's rate and count of bytes, and unwanted drops."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from itertools import pairwise, takewhile
from math import exp, lgamma, log
from pathlib import Path

from samovar.campaign.verdict.capture_checks import FULL_FRAME_BYTES, SLACK_BYTES
from samovar.campaign.verdict.check_result import Check, graded, unreadable
from samovar.campaign.verdict.evidence import QUEUE, STAGE, Evidence
from samovar.campaign.verdict.path_measurement import DirectionMeasurement
from samovar.campaign.verdict.traces import (
    UNREADABLE,
    QueueSample,
    open_lines,
    read_frames_dropped,
    read_queue_samples,
)
from samovar.plan import DirectionPlan, PathPlan
from samovar.recipes import PathProbe, Program, loss_states

RATE_SHARE = 0.02
DELAY_SHARE, DELAY_S = 0.05, 0.001
CHANCE = 0.001
"""A path with the requested loss fails the check with this probability, because counts of losses vary."""
NEGLIGIBLE = 1e-12
"""Numbers of losses that are less likely than this are left out of a sum of probabilities."""
INVALID_TOLERANCES = 5
"""If the calibrated round-trip time or rate deviates by more than this many tolerances, no trial runs on the
path. A deviation of one to this many tolerances makes trials suspect."""
SLACK_PACKETS = SLACK_BYTES // FULL_FRAME_BYTES
BUSY_PACKETS = 2
"""A bottleneck is considered busy while its queue holds more packets than this."""
BUSY_S = 0.5
"""The rate of a bottleneck is judged only if it was busy for at least this long in total."""
INVALID_BUSY_TOLERANCES = 3
"""If the rate of a busy bottleneck deviates by more than this many tolerances, the trial is invalid. A
deviation of one to this many tolerances makes the trial suspect."""


def check_path_calibration(evidence: Evidence) -> Iterator[Check]:
    """Yield the checks of the path's calibration, which may have been made before an earlier trial."""
    yield from evidence.calibration


def check_direction(
    path: PathPlan,
    direction: DirectionPlan,
    probe: PathProbe,
    measured: DirectionMeasurement,
    *,
    fills: bool,
) -> Iterator[Check]:
    """Compare the calibration measurement of one direction with the requested path.

    The tolerances are 1 ms plus 5 % for the round-trip time, 2 % for the rate, and one packet for the buffer.
    The number of losses must be plausible for the requested loss rate. `fills` is False if the queue
    discipline drops packets before its buffer is full; then the queue may stay shorter than the buffer.
    """
    router, interface = path.router, direction.interface
    if probe.pings:
        requested, rtt_s = f"{path.rtt_s * 1e3:g} ms", measured.base_rtt_s
        if rtt_s is None:
            yield Check("base RTT", router, requested, "no answer", False)
        else:
            most_s = DELAY_S + DELAY_SHARE * path.rtt_s + path.down.jitter_s + path.up.jitter_s
            tolerances, tolerance = abs(rtt_s - path.rtt_s) / most_s, f"± {most_s * 1e3:.2g} ms"
            within = graded(tolerances, 1, INVALID_TOLERANCES)
            yield Check("base RTT", router, requested, f"{rtt_s * 1e3:.2f} ms", *within, tolerance)
    if probe.burst_packets:
        name, asked_bps, rate_bps = f"rate at {interface}", direction.rate_bps or 0, measured.rate_bps
        requested = f"{asked_bps / 1e6:g} Mbit/s"
        if rate_bps is None:
            yield Check(name, router, requested, "no packets arrived", False)
        else:
            tolerances = abs(rate_bps - asked_bps) / (RATE_SHARE * asked_bps)
            observed, within = f"{rate_bps / 1e6:.4g} Mbit/s", graded(tolerances, 1, INVALID_TOLERANCES)
            yield Check(name, router, requested, observed, *within, f"± {RATE_SHARE:.0%}")
        if fills or measured.sampled_packets is not None:  # ipfw(8) does not show the queues of fq_codel
            yield _check_buffer(path, direction, probe, measured, fills)
    if probe.paced_packets:
        states, sent = loss_states(direction.loss, direction.loss_burst_packets), measured.sent_paced
        ok = sent > 0 and plausible_losses(measured.lost, sent, direction.loss, states)
        requested, observed = f"{direction.loss:.4%}", f"{measured.lost} of {sent}" if sent else "nothing"
        yield Check(f"loss towards {interface}", router, requested, observed, ok, "suspect")


def _check_buffer(
    path: PathPlan, direction: DirectionPlan, probe: PathProbe, measured: DirectionMeasurement, fills: bool
) -> Check:
    """Compare the longest measured queue with the size of the buffer.

    Samples of the queue may miss its maximum, but never exceed the buffer. The number of packets in flight is
    derived from delays, so it may exceed the buffer.
    """
    in_packets = direction.buffer_packets is not None
    asked = (direction.buffer_packets if in_packets else direction.buffer_bytes) or 0
    unit, one = ("packets", 1) if in_packets else ("B", probe.frame_bytes)
    found: dict[str, int] = {}
    sampled = measured.sampled_packets if in_packets else measured.sampled_bytes
    if sampled is not None:
        found["sampled"] = sampled
    if measured.in_flight_packets is not None and not direction.jitter_s and not direction.reorder:
        found["in flight"] = measured.in_flight_packets * one
    name, requested = f"buffer at {direction.interface}", f"{'' if fills else 'at most '}{asked} {unit}"
    if not found:
        return Check(name, path.router, requested, "nothing", False, "suspect")
    most = found.get("sampled", max(found.values()))
    ok = most <= asked + one and (max(found.values()) >= asked - one or not fills)
    observed = ", ".join(f"{size} {unit} {how}" for how, size in found.items())
    return Check(name, path.router, requested, observed, ok, "suspect", "± 1 packet")


def check_delay_drops(evidence: Evidence) -> Iterator[Check]:
    """Check that the delay stages dropped only as many packets as the requested loss rate explains."""
    path = evidence.resolved.path
    span = evidence.counters.get(path.router) if path is not None else None
    if path is None or span is None or path.classes:
        return
    for name, direction in (("down", path.down), ("up", path.up)):
        counted = span.queue(f"{STAGE}{name}")
        if counted is None:
            continue
        offered = counted.sent_packets + counted.drops
        label, observed = f"drops in the delay stage {name}", f"{counted.drops} of {offered}"
        if not direction.loss:
            yield Check(label, path.router, "0", observed, counted.drops == 0)
        else:
            states = loss_states(direction.loss, direction.loss_burst_packets)
            ok = counted.drops <= direction.loss * offered
            ok = ok or plausible_losses(counted.drops, offered, direction.loss, states)
            yield Check(label, path.router, f"{direction.loss:.4%} at random", observed, ok, "suspect")


def check_bottleneck_bytes(evidence: Evidence) -> Iterator[Check]:
    """Compare the counter of the bottleneck's queue in each direction with captures downstream of the queue.

    Bytes are compared, or packets if an access point of a lab's WLAN is downstream, because the WLAN's logger
    does not count the bytes of dropped frames. The check is skipped if offloads are on, because a queue
    counts a super-packet as one packet. Captures may contain more packets than the queue's
    counter, because packets that are still queued when the counter is read arrive later.
    """
    resolved, path, share = evidence.resolved, evidence.resolved.path, evidence.policy.thresholds.bottleneck
    span = evidence.counters.get(path.router) if path is not None else None
    if path is None or span is None or not evidence.is_ipv4 or evidence.uses_offloads:
        return
    ends = [(flow.from_host, flow.from_address) for flow in resolved.flows]
    ends += [(flow.to_host, flow.to_address) for flow in resolved.flows]
    for name in ("down", "up"):
        counted, behind = span.queue(f"{QUEUE}{name}"), evidence.policy.behind.get(name, frozenset())
        hosts = dict.fromkeys(host for host, address in ends if address in behind)
        captures = [evidence.captures_at(host, whole=True) for host in hosts]
        if counted is None or not captures or not all(captures):
            continue
        arrived = [
            stream
            for at_host in captures
            for capture in at_host
            for stream in capture
            if stream.destination in behind and stream.source not in behind
        ]
        dropped: list[int] = []
        for host, trace in _access_points(evidence, hosts):
            try:
                with open_lines(trace) as file:
                    dropped.append(read_frames_dropped(file, host))
            except UNREADABLE as error:
                yield unreadable(trace, host, error)
                return
        unit, sent, slack = "B", counted.sent_bytes, SLACK_BYTES
        if dropped:
            unit, sent, slack = "packets", counted.sent_packets, SLACK_PACKETS
        captured = sum(stream.packets if dropped else stream.frame_bytes for stream in arrived)
        requested = f"{captured} {unit} captured downstream"
        requested += f", {sum(dropped)} dropped by access points" if dropped else ""
        observed = f"{sent} {unit} sent by the queue"
        if counted.waiting_packets:
            observed += f", in which {counted.waiting_packets} packets still waited"
        missing, most = sent - captured - sum(dropped), share * sent + slack
        ok = missing <= most and (missing >= -most or counted.waiting_packets > 0)
        label = f"{'packets' if dropped else 'bytes'} through the bottleneck, {name}"
        yield Check(label, path.router, requested, observed, ok, "suspect", f"± {share:.1%}")


def _access_points(evidence: Evidence, receivers: Collection[str]) -> Iterator[tuple[str, Path]]:
    """Yield the access points that send frames to receivers, each with the trace of its WLAN."""
    for host, program in evidence.programs("logger", "air"):
        for wlan in evidence.resolved.hosts[host].wlans:
            if wlan.link == program.parameters["link"] and set(receivers) & {*wlan.hosts} - {host}:
                yield host, evidence.trace(program)


def check_queue_samples(evidence: Evidence) -> Iterator[Check]:
    """Check the samples of the logger `queue`: the rate of the bottleneck, and the gaps between samples."""
    path = evidence.resolved.path
    for host, program in evidence.programs("logger", "queue"):
        of_router = (path.down, path.up) if path is not None and path.router == host else ()
        trace = evidence.trace(program)
        try:
            with open_lines(trace) as file:
                samples = list(read_queue_samples(file, program.interface or ""))
        except UNREADABLE as error:
            yield unreadable(trace, host, error)
            continue
        for direction in of_router:
            if direction.interface == program.interface and direction.rate_bps:
                yield _check_rate(evidence, host, direction, direction.rate_bps, samples)
        if samples:
            yield _check_gaps(evidence, host, program, samples)


def _check_gaps(evidence: Evidence, host: str, program: Program, samples: Sequence[QueueSample]) -> Check:
    """Check that no two successive samples of a queue are far apart, because such gaps show in figures.

    The end of the traffic counts as a sample, because a sampler may hang without exiting.
    """
    most_s, interval_s = evidence.policy.thresholds.gap_s, program.values.get("interval_s")
    if isinstance(interval_s, float):
        most_s = max(most_s, 3 * interval_s)
    times_ns = [sample.t_ns for sample in samples]
    if (over_s := evidence.earliest_end_s(host)) is not None:
        times_ns.append(round(over_s * 1e9))
    gap_s = max((late - early for early, late in pairwise(times_ns)), default=0) / 1e9
    name = f"longest gap in the samples of the queue at {program.interface}"
    return Check(name, host, f"at most {most_s:g} s", f"{gap_s:.2f} s", gap_s <= most_s, "suspect")


def _check_rate(
    evidence: Evidence, router: str, direction: DirectionPlan, asked_bps: int, samples: Sequence[QueueSample]
) -> Check:
    """Compare a bottleneck's requested rate with the rate measured while packets waited in its queue.

    The rate is measured between two successive samples if the queue cannot have been empty in between. This
    is certain if sending the backlogs of both samples at the requested rate takes at least the time between
    these samples. If too few pairs of samples qualify, or if reading a sample takes so long that the rate is
    too uncertain, the check passes with the rate reported as unknown.
    """
    pairs = [
        (early, late)
        for early, late in pairwise(samples)
        if min(early.backlog_packets, late.backlog_packets) > BUSY_PACKETS
    ]
    # If sending both backlogs takes less time than passed between the samples, the queue may have been empty.
    busy = [
        (early, late)
        for early, late in pairs
        if (early.backlog_bytes + late.backlog_bytes) * 8e9 >= asked_bps * (late.t_ns - early.t_ns)
    ]
    known_s, busy_s = (sum(late.t_ns - early.t_ns for early, late in some) / 1e9 for some in (pairs, busy))
    sent_bytes = sum(late.sent_bytes - early.sent_bytes for early, late in busy)
    name = f"rate at {direction.interface} while packets wait"
    share, requested = evidence.policy.thresholds.rate, f"{asked_bps / 1e6:g} Mbit/s"
    uncertain_s = _uncertain_s(samples, busy)
    unknown = ""
    if known_s < BUSY_S:
        unknown = f"packets waited for {known_s:.1f} s, but the check needs {BUSY_S:g} s"
    elif busy_s < BUSY_S:
        unknown = f"the queue is known to have been busy for {busy_s:.1f} s, but the check needs {BUSY_S:g} s"
    elif uncertain_s > share * busy_s:
        unknown = f"packets waited for {busy_s:.1f} s, uncertain by {uncertain_s:.2f} s"
    if unknown:
        return Check(name, router, requested, f"unknown: {unknown}", True, "suspect", f"± {share:.1%}")
    rate_bps = sent_bytes * 8 / busy_s
    within = graded(abs(rate_bps / asked_bps - 1), share, INVALID_BUSY_TOLERANCES)
    observed = f"{rate_bps / 1e6:.4g} Mbit/s over {busy_s:.1f} s"
    return Check(name, router, requested, observed, *within, f"± {share:.1%}")


def _uncertain_s(samples: Sequence[QueueSample], pairs: Sequence[tuple[QueueSample, QueueSample]]) -> float:
    """Return the uncertainty of the total time between the samples of all pairs, in seconds.

    A sample whose `is_instant` is False was read at some time between its time stamp and the time stamp of
    the next sample. If two pairs share a sample, its error cancels. So only the first and the last sample of
    a sequence of adjacent pairs matter.
    """
    took_ns = {early: late.t_ns - early.t_ns for early, late in pairwise(samples) if not early.is_instant}
    starts, ends = {early for early, _ in pairs}, {late for _, late in pairs}
    errors = [sum(took_ns.get(one, 0) for one in some) for some in (starts - ends, ends - starts)]
    return max(errors) / 1e9


def plausible_losses(lost: int, sent: int, share: float, states: tuple[float, float] | None = None) -> bool:
    """Return whether a number of lost packets lies within the 99.9 % interval of the binomial distribution.

    `share` is the requested loss rate. For losses in bursts, `states` has the transition probabilities (p, r)
    of a Gilbert chain. The variance of the number of losses then exceeds the binomial variance by the factor
    (1 + s) / (1 - s) with s = 1 - p - r, so `lost` and `sent` are divided by this factor.
    """
    if states is not None:
        memory = 1 - sum(states)
        factor = max(1.0, (1 + memory) / (1 - memory))
        lost, sent = round(lost / factor), round(sent / factor)
    if share in (0.0, 1.0):
        return lost == sent * share

    def chance(k: int) -> float:
        ways = lgamma(sent + 1) - lgamma(k + 1) - lgamma(sent - k + 1)
        return exp(ways + k * log(share) + (sent - k) * log(1 - share))

    outward = range(lost, sent + 1) if lost > sent * share else range(lost, -1, -1)
    return sum(takewhile(lambda one: one > NEGLIGIBLE, map(chance, outward))) > CHANCE / 2
