"""What a plan costs: trials, hours, bytes on the hosts and here, reboots."""

from __future__ import annotations

from dataclasses import dataclass

from samovar.plan.model import LoggerPlan, Resolved
from samovar.plan.plan import Plan

DEFAULT_OVERHEAD_S = 2.5  # what a trial takes beyond its traffic, until it was measured on the testbed
PCAP_RECORD_BYTES = 16
SAMPLE_INTERVAL_S = 0.01
SAMPLE_BYTES = 200  # one row of a sampler's CSV, before compression
COMPRESSION = 4  # gzip of captures cut to headers and of CSV: measured between 4 and 8
ACKS_PER_PACKET = 0.5
DEFAULT_RATE_BPS = 100_000_000
DEFAULT_MTU_BYTES = 1500


@dataclass(frozen=True)
class Cost:
    """The estimate of a whole plan; bytes are uncompressed on hosts (one trial's) and compressed here."""

    trials: int
    traffic_s: float
    overhead_s: float
    host_bytes: int
    controller_bytes: int
    reboots: int = 0

    @property
    def total_s(self) -> float:
        """Return the time that the campaign takes, in seconds."""
        return self.traffic_s + self.overhead_s

    @property
    def hours(self) -> float:
        """Return the time that the campaign takes, in hours."""
        return self.total_s / 3600


def estimate_cost(plan: Plan, overhead_s: float | None = None) -> Cost:
    """Estimate a plan's cost; `overhead_s` is a trial's time beyond its traffic as measured before.

    Hosts keep one trial at a time, so their figure is the largest trial's.
    """
    per_trial = overhead_s if overhead_s is not None else DEFAULT_OVERHEAD_S
    sizes = [trace_bytes(trial.resolved) for trial in plan.trials]
    return Cost(
        trials=len(plan.trials),
        traffic_s=sum(trial.resolved.duration_s for trial in plan.trials),
        overhead_s=per_trial * len(plan.trials),
        host_bytes=max(sizes, default=0),
        controller_bytes=sum(sizes) // COMPRESSION,
    )


def trace_bytes(resolved: Resolved) -> int:
    """Estimate the bytes that one trial's captures and samplers leave on the hosts."""
    captured = sum(
        _packets(resolved) * (capture.snaplen_bytes + PCAP_RECORD_BYTES) for capture in resolved.captures
    )
    return int(captured + sum(_samples(logger, resolved) * SAMPLE_BYTES for logger in resolved.loggers))


def _packets(resolved: Resolved) -> float:
    """Estimate the packets that pass, acknowledgements included, the path being full all the time."""
    rate_bps = (resolved.path and resolved.path.down.rate_bps) or DEFAULT_RATE_BPS
    packet_bits = (resolved.mtu_bytes or DEFAULT_MTU_BYTES) * 8
    return resolved.duration_s * rate_bps / packet_bits * (1 + ACKS_PER_PACKET)


def _samples(logger: LoggerPlan, resolved: Resolved) -> float:
    return resolved.duration_s / (logger.interval_s or SAMPLE_INTERVAL_S) * max(1, len(resolved.flows))
