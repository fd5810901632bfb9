"""What a supervisor would say of a plan: it can run, but may not show what was meant."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from samovar.definition.experiment import Experiment
from samovar.definition.testbed import Testbed
from samovar.plan.model import Resolved, Trial
from samovar.plan.places import route_of
from samovar.units import format_bytes, format_duration

FEWEST_RTTS = 20
FEWEST_REPLICATES = 3  # for a 95 % interval of the median
DEFAULT_MTU_BYTES = 1500
LARGEST_WINDOW_BYTES = 1_073_725_440  # 65535 << 14, RFC 7323 section 2.3
HEADERS_BYTES = 40  # IPv4 and TCP without options


def warnings_of(experiment: Experiment, testbed: Testbed, trials: Iterable[Trial]) -> tuple[str, ...]:
    """Return the warnings of a whole plan, each once, in a stable order."""
    by_treatment = {(trial.part, tuple(trial.treatment.items())): trial for trial in trials}
    found = [*_replicates(experiment), *_beside_bottleneck(experiment, testbed)]
    for trial in by_treatment.values():
        found += [f"{_name(trial)}: {warning}" for warning in _of_resolved(trial.resolved)]
    return tuple(sorted(set(found)))


def _name(trial: Trial) -> str:
    levels = " ".join(trial.treatment.values())
    return f"{trial.part} {levels}".rstrip()


def _replicates(experiment: Experiment) -> Iterator[str]:
    for name, part in experiment.parts.items():
        if part.replicates < FEWEST_REPLICATES:
            replicates = "1 replicate" if part.replicates == 1 else f"{part.replicates} replicates"
            yield f"{name}: {replicates}; an interval needs at least {FEWEST_REPLICATES}"


def _beside_bottleneck(experiment: Experiment, testbed: Testbed) -> Iterator[str]:
    for name, part in experiment.parts.items():
        for flow in part.traffic:
            if part.path is not None and not route_of(testbed, flow).crosses_bottleneck:
                yield f"{name}: flow '{flow.label}' does not pass the bottleneck's queue"


def _of_resolved(resolved: Resolved) -> Iterator[str]:
    mtu_bytes = resolved.mtu_bytes or DEFAULT_MTU_BYTES
    mss_bytes = mtu_bytes - HEADERS_BYTES
    for host in resolved.hosts.values():
        if host.rwnd_bytes is not None and host.rwnd_bytes > LARGEST_WINDOW_BYTES:
            largest = format_bytes(LARGEST_WINDOW_BYTES, 4)
            yield f"rwnd {format_bytes(host.rwnd_bytes)} is beyond TCP's largest window, {largest}"
        if host.rwnd_bytes is not None and host.rwnd_bytes < 2 * mss_bytes:
            yield f"rwnd {format_bytes(host.rwnd_bytes)} is below two segments of {mss_bytes} bytes"
    yield from _of_path(resolved, mtu_bytes)


def _of_path(resolved: Resolved, mtu_bytes: int) -> Iterator[str]:
    path = resolved.path
    if path is None:
        return
    queue = path.down
    buffer_bytes = queue.buffer_bytes or (queue.buffer_packets or 0) * mtu_bytes
    if queue.buffer_bytes is not None and queue.buffer_bytes < mtu_bytes + 14:
        yield f"buffer {format_bytes(queue.buffer_bytes)} is below one frame of {mtu_bytes + 14} bytes"
    full_rtt_s = path.rtt_s + (buffer_bytes * 8 / queue.rate_bps if queue.rate_bps else 0)
    for flow in resolved.flows:
        if flow.duration_s is not None and flow.duration_s < FEWEST_RTTS * full_rtt_s:
            rtts = f"{FEWEST_RTTS} RTTs at a full buffer ({format_duration(round(full_rtt_s, 3))} each)"
            yield f"flow '{flow.label}' lasts {format_duration(flow.duration_s)}, less than {rtts}"
