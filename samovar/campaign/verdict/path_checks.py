"""Check a calibrated path: round-trip time, rate, buffer and losses of each direction."""

from __future__ import annotations

from collections.abc import Iterator
from math import exp, lgamma, log

from samovar.campaign.verdict.check_result import Check, Verdict
from samovar.campaign.verdict.evidence import Evidence
from samovar.campaign.verdict.path_measurement import DirectionMeasurement
from samovar.plan import DirectionPlan, PathPlan
from samovar.recipes import PathProbe, loss_states

RATE_SHARE = 0.02
DELAY_SHARE, DELAY_S = 0.05, 0.001
CHANCE = 0.001
"""The chance that a path with the requested loss fails the check: counts of losses vary."""
INVALID_TOLERANCES = 5
"""A round-trip time or rate that is off by more tolerances lets no trial run; up to that it is suspect."""


def check_path_calibration(evidence: Evidence) -> Iterator[Check]:
    """Yield the checks that were made when the path of the trial was calibrated."""
    yield from evidence.calibration


def check_direction(
    path: PathPlan,
    direction: DirectionPlan,
    probe: PathProbe,
    measured: DirectionMeasurement,
    *,
    fills: bool,
) -> Iterator[Check]:
    """Compare the measurement of one direction with what was requested.

    Tolerances: round-trip time 1 ms and 5 %, rate 2 %, buffer one packet, losses as chance allows.
    `fills` is False for a queue discipline that drops early, which may hold less than its buffer.
    """
    if probe.pings:
        yield _check_rtt(path, measured)
    if probe.burst_packets:
        yield _check_rate(path, direction, measured.rate_bps)
        if fills or measured.sampled_packets is not None:  # ipfw(8) does not show the queues of fq_codel
            yield _check_buffer(path, direction, probe, measured, fills)
    if measured.sent_paced:
        states = loss_states(direction.loss, direction.loss_burst_packets)
        ok = plausible_losses(measured.lost, measured.sent_paced, direction.loss, states)
        requested, observed = f"{direction.loss:.4%}", f"{measured.lost} of {measured.sent_paced}"
        yield Check(f"loss towards {direction.interface}", path.router, requested, observed, ok, "suspect")


def _severity(tolerances: float) -> Verdict:
    return "invalid" if tolerances > INVALID_TOLERANCES else "suspect"


def _check_rtt(path: PathPlan, measured: DirectionMeasurement) -> Check:
    name, requested = "base RTT", f"{path.rtt_s * 1e3:g} ms"
    if measured.base_rtt_s is None:
        return Check(name, path.router, requested, "no answer", False)
    most_s = DELAY_S + DELAY_SHARE * path.rtt_s + path.down.jitter_s + path.up.jitter_s
    off = abs(measured.base_rtt_s - path.rtt_s) / most_s
    observed = f"{measured.base_rtt_s * 1e3:.2f} ms"
    return Check(name, path.router, requested, observed, off <= 1, _severity(off), f"± {most_s * 1e3:.2g} ms")


def _check_rate(path: PathPlan, direction: DirectionPlan, rate_bps: float | None) -> Check:
    asked = direction.rate_bps or 0
    name, requested = f"rate at {direction.interface}", f"{asked / 1e6:g} Mbit/s"
    if rate_bps is None:
        return Check(name, path.router, requested, "no packets arrived", False)
    off = abs(rate_bps - asked) / (RATE_SHARE * asked)
    observed = f"{rate_bps / 1e6:.4g} Mbit/s"
    return Check(name, path.router, requested, observed, off <= 1, _severity(off), f"± {RATE_SHARE:.0%}")


def _check_buffer(
    path: PathPlan, direction: DirectionPlan, probe: PathProbe, measured: DirectionMeasurement, fills: bool
) -> Check:
    """Compare the longest queue: samples may miss it but never exceed it, packets in flight may exceed it."""
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


def plausible_losses(lost: int, sent: int, share: float, states: tuple[float, float] | None = None) -> bool:
    """Return whether so many losses lie within the 99.9 % interval of the binomial distribution.

    Losses in bursts vary more. They count as so many fewer packets as the variance of a Gilbert chain is
    larger, (1 + s) / (1 - s) with s = 1 - p - r; `states` is (p, r).
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

    chances = [chance(k) for k in range(sent + 1)]
    return min(sum(chances[: lost + 1]), sum(chances[lost:])) > CHANCE / 2
