"""What a plan costs: trials, hours, bytes on the hosts and here."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from statistics import fmean

from samovar.plan.groups import RECORDED, Kinds
from samovar.plan.model import CapturePlan, LoggerPlan, Resolved
from samovar.plan.plan import Plan
from samovar.units import ETHERNET_MTU_BYTES

PCAP_RECORD_BYTES = 16
SAMPLE_INTERVAL_S = 0.01
SAMPLE_BYTES = 200  # one row of a sampler's CSV, before compression
COMPRESSION = 4  # gzip of captures cut to headers and of CSV: measured between 4 and 8
ACKS_PER_PACKET = 0.5
DEFAULT_RATE_BPS = 100_000_000


@dataclass(frozen=True)
class Overhead:
    """What a trial takes beyond its traffic: the median over so many that were measured, or assumed."""

    seconds: float = 2.5
    measured: int = 0

    def __str__(self) -> str:
        """Say it, and where it is from."""
        source = "assumed, none measured on this testbed yet"
        if self.measured:
            source = f"median of {self.measured} measured on this testbed"
        return f"{self.seconds:.1f} s a trial ({source})"


@dataclass(frozen=True)
class BootTime:
    """How long a reboot takes, until the host answers: the median of those measured, or assumed."""

    seconds: float = 120.0
    measured: int = 0

    def __str__(self) -> str:
        """Say it, and where it is from."""
        source = "assumed, none measured on this testbed yet"
        if self.measured:
            source = f"median of {self.measured} measured on this testbed"
        return f"{self.seconds:.0f} s each ({source})"


@dataclass(frozen=True)
class Known:
    """What earlier campaigns on a testbed have shown of its times."""

    overhead: Overhead = field(default_factory=Overhead)
    boot: BootTime = field(default_factory=BootTime)


@dataclass(frozen=True)
class Cost:
    """The estimate of a plan or of what is left of it.

    `host_bytes` are, by host, what the largest trial leaves there until it is collected: one at a time.
    `controller_bytes` are all trials' as they are kept here, compressed. `boots` is how often hosts that
    reboot are waited for; of a plan of which some is left it is their share of the trials. Of `testbeds` that
    share the trials, each orders its own reboots.
    """

    trials: int
    traffic_s: float
    overhead: Overhead = field(default_factory=Overhead)
    host_bytes: Mapping[str, int] = field(default_factory=dict)
    controller_bytes: int = 0
    boots: int = 0
    boot: BootTime = field(default_factory=BootTime)
    testbeds: int = 1

    @property
    def reboot_s(self) -> float:
        """Return the time that hosts take to reboot, in seconds."""
        return self.boots * self.boot.seconds

    @property
    def overhead_s(self) -> float:
        """Return the time of all trials that is not traffic, in seconds."""
        return self.overhead.seconds * self.trials

    @property
    def total_s(self) -> float:
        """Return the time that the campaign takes, in seconds."""
        return shared_out_s(self.traffic_s + self.overhead_s, self.trials, self.testbeds) + self.reboot_s

    @property
    def hours(self) -> float:
        """Return the time that the campaign takes, in hours."""
        return self.total_s / 3600


def shared_out_s(work_s: float, trials: int, testbeds: int, longest_s: float = 0.0) -> float:
    """Return how long so much work takes in seconds, each trial whole on one testbed at a time."""
    return max(longest_s, work_s / max(1, min(testbeds, trials)))


def shared(costs: Sequence[Cost]) -> Cost:
    """Return the cost of trials that testbeds share, each as slow as they are on average."""
    seconds = fmean(cost.overhead.seconds for cost in costs)
    overhead = Overhead(seconds, sum(cost.overhead.measured for cost in costs))
    return replace(costs[0], overhead=overhead, testbeds=len(costs))


def estimate_cost(plan: Plan, known: Known | None = None, only: Collection[str] | None = None) -> Cost:
    """Estimate a plan's cost, or that of some of its trials; what is `known` was measured before."""
    known = known or Known()
    kinds = Kinds(plan.table, RECORDED)
    trials, traffic_s, here_bytes = 0, 0.0, 0
    largest: dict[str, int] = {}
    for kind, number in sorted(kinds.trials(only).items()):
        resolved = kinds.resolved(kind)
        trials += number
        traffic_s += number * resolved.duration_s
        here_bytes += number * kept_bytes(resolved)
        for host, size in host_bytes(resolved).items():
            largest[host] = max(size, largest.get(host, 0))
    boots = _boots(plan.changes.boots, trials, len(plan.trials))
    return Cost(trials, traffic_s, known.overhead, largest, here_bytes, boots, known.boot)


def _boots(boots: int, trials: int, every: int) -> int:
    """Return the share of the reboots that some of the trials take, one at least where any is to come."""
    return max(1, round(boots * trials / every)) if boots and trials else 0


def host_bytes(resolved: Resolved) -> Mapping[str, int]:
    """Estimate what one trial leaves on each host: captures compressed as they are written, samples not."""
    found: dict[str, float] = {}
    for capture in resolved.captures:
        found[capture.host] = found.get(capture.host, 0) + _captured(capture, resolved) / COMPRESSION
    for logger in resolved.loggers:
        found[logger.host] = found.get(logger.host, 0) + _sampled(logger, resolved)
    return {host: int(size) for host, size in found.items()}


def kept_bytes(resolved: Resolved) -> int:
    """Estimate what is kept of one trial here: captures and samples, all compressed."""
    captured = sum(_captured(capture, resolved) for capture in resolved.captures)
    return int((captured + sum(_sampled(logger, resolved) for logger in resolved.loggers)) / COMPRESSION)


def _captured(capture: CapturePlan, resolved: Resolved) -> float:
    return _packets(resolved) * (capture.snaplen_bytes + PCAP_RECORD_BYTES)


def _sampled(logger: LoggerPlan, resolved: Resolved) -> float:
    samples = resolved.duration_s / (logger.interval_s or SAMPLE_INTERVAL_S)
    return samples * max(1, len(resolved.flows)) * SAMPLE_BYTES


def _packets(resolved: Resolved) -> float:
    """Estimate the packets that pass, acknowledgements included, the path being full all the time."""
    path = resolved.path
    rates = [way.rate_bps for way in (path.down, path.up) if way.rate_bps] if path else []
    packet_bits = (resolved.mtu_bytes or ETHERNET_MTU_BYTES) * 8
    return resolved.duration_s * max(rates, default=DEFAULT_RATE_BPS) / packet_bits * (1 + ACKS_PER_PACKET)
