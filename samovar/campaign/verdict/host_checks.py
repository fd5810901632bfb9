"""Check the hosts of a trial: settings, restored state, CPUs and clocks."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from fnmatch import fnmatchcase
from statistics import median

from samovar.campaign.host_state import StateComparison, changed, compare_state
from samovar.campaign.verdict.check_result import Check, Verdict
from samovar.campaign.verdict.evidence import (
    NETWORK,
    SHAPING,
    UNKNOWN,
    UNSEEN,
    CounterSpan,
    Evidence,
    State,
    with_prefix,
)
from samovar.campaign.verdict.pcap_reader import ETHERNET_HEADER_BYTES, bytes_by_second
from samovar.campaign.verdict.traces import UNREADABLE
from samovar.plan import PathPlan

CPU, CLOCK = "cpu.", "clock"
"""The prefix of the keys of CPU counters (the CPU's number follows it), and the key of the clock readings."""
FAILURES = (f"{NETWORK}{UNKNOWN}", f"{SHAPING}{UNKNOWN}")
"""A host reports the first key if reading MTUs and routes failed. It reports the second key if listing queue
disciplines and rules failed."""
LEAST_SECONDS = 4
"""Traffic must last this many whole seconds to show whether a busy router kept the bottleneck's rate."""
OFFLOAD = "offload."
"""The prefix of the keys of offload flags in a host's state, including flags that the trial does not set."""


def check_settings(evidence: Evidence) -> Iterator[Check]:
    """Check that each setting of the trial still has the requested value after the traffic."""
    for host, state in evidence.found.items():
        for one in compare_state(evidence.scripts.wanted(host), state):
            observed = "nothing" if one.observed is None else one.observed
            yield Check(f"{one.key} after the traffic", host, one.wanted, observed, one.met)


def check_network(evidence: Evidence) -> Iterator[Check]:
    """Check that the network of each host did not change during the traffic, apart from the trial's settings.

    The network is the MTU, the offload flags, the routes, and all that shapes packets: queue disciplines,
    filters and firewall rules. On hosts whose MTU the trial does not set, MTU and routes before the traffic
    are also compared with those before the first trial of this run. If a program that reads the network
    failed and no change was found, the trial is suspect.
    """
    for host, span in evidence.counters.items():
        before, after = span.state(NETWORK)
        if not before:
            continue  # no recipe for this operating system reads the network
        wanted = {line.partition("=")[0] for line in evidence.scripts.wanted(host)}
        early, late = (with_prefix(one.get(host, {}), OFFLOAD) for one in (evidence.as_set, evidence.found))
        # Flags set by the trial itself are left out here, because they are checked as settings.
        flags = (one for one in changed(early, late) if one.key not in wanted)
        networks, shapings = _comparable(before, after, NETWORK), _comparable(*span.state(SHAPING), SHAPING)
        differences = [*changed(*networks), *flags, *changed(*shapings)]
        failures = [one[key] for one in (span.before, span.after) for key in FAILURES if key in one]
        if failures and not differences:
            observed = f"unknown: {failures[0]}"
            yield Check("network during the traffic", host, "unchanged", observed, False, "suspect")
        else:
            yield _check_unchanged("network during the traffic", host, "unchanged", differences, "invalid")
        if first := evidence.network.get(host):
            # A change that made an earlier trial invalid must not become the normal state of the next trial.
            now = {key: value for key, value in before.items() if key in first}
            differences = [*changed({key: first[key] for key in now}, now)]
            requested = "as before the first trial"
            yield _check_unchanged("network before the traffic", host, requested, differences, "suspect")


def _comparable(before: State, after: State, prefix: str) -> tuple[State, State]:
    """Return the entries of two states that can be compared.

    If one of the states could not be read completely, only entries with keys in both states can be compared,
    otherwise all entries.
    """
    failure = f"{prefix}{UNKNOWN}"
    if failure not in before and failure not in after:
        return before, after
    keys = before.keys() & after.keys() - {failure}
    return {key: before[key] for key in keys}, {key: after[key] for key in keys}


def _check_unchanged(
    name: str, host: str, requested: str, differences: Sequence[StateComparison], severity: Verdict
) -> Check:
    """Return the check that a host's network is unchanged, which fails if there are `differences`."""
    texts = (
        f"{one.key.removeprefix(NETWORK)}: {one.wanted} before, {one.observed or 'nothing'} after"
        for one in differences
    )
    return Check(name, host, requested, "; ".join(texts) or requested, not differences, severity)


def check_foreign_shaping(evidence: Evidence) -> Iterator[Check]:
    """Check that only the settings of the trial shaped packets on a host before the traffic.

    If the program that lists queue disciplines and rules failed, the trial is suspect. If the program is not
    installed, the check passes.
    """
    for host, span in evidence.counters.items():
        if span.state(NETWORK)[0]:
            owned = evidence.scripts.owned(host)
            shaping = dict(span.state(SHAPING)[0])
            failure, unseen = (shaping.pop(f"{SHAPING}{key}", "") for key in (UNKNOWN, UNSEEN))
            lines = (f"{key}={value}" for key, value in shaping.items())
            foreign = [line for line in lines if not any(fnmatchcase(line, pattern) for pattern in owned)]
            observed = "; ".join(foreign) or (
                f"unknown: {failure or unseen}" if failure or unseen else "none"
            )
            ok = not foreign and not failure
            yield Check("foreign traffic shaping", host, "none", observed, ok, "suspect")


def check_restored_states(evidence: Evidence) -> Iterator[Check]:
    """Check that each host was restored to its state before the trial. Only failed checks are yielded."""
    for host, state in evidence.restored.items():
        differences = "; ".join(map(str, changed(evidence.before[host], state)))
        if differences:
            yield Check("state after the trial", host, "as before the trial", differences, False, "suspect")


def check_cpus(evidence: Evidence) -> Iterator[Check]:
    """Check that no CPU was busy all the time, because time stamps of a busy host are late.

    A router with a busy CPU passes if it still forwarded at the rate of the bottleneck.
    """
    most = evidence.policy.thresholds.cpu
    for host, span in evidence.counters.items():
        ticks = {key.removeprefix(CPU): span.increase(key) for key in span.before if key.startswith(CPU)}
        busy_and_idle = {cpu: counted for cpu, counted in ticks.items() if len(counted) == 2}
        shares = {cpu: one[0] / sum(one) if sum(one) > 0 else 0.0 for cpu, one in busy_and_idle.items()}
        if shares:
            cpu, share = max(shares.items(), key=lambda item: item[1])
            requested, observed = f"at most {most:.0%} busy", f"CPU {cpu} {share:.1%} busy"
            ok, path = share <= most, evidence.resolved.path
            if not ok and path is not None and path.router == host:
                ok, effect = _compare_router_rate(evidence, path)
                observed += f"; {effect}"
            yield Check("CPU during the traffic", host, requested, observed, ok, "suspect")


def _compare_router_rate(evidence: Evidence, path: PathPlan) -> tuple[bool, str]:
    """Return whether the median rate downstream of a busy router equals the bottleneck's, and an explanation.

    The median is taken over the full seconds of a capture at the receiver. Samples of the router's queue are
    not used, because a busy router may miss some.
    """
    down, behind = path.down, evidence.policy.behind.get("down", frozenset())
    captures = [
        plan
        for plan in evidence.resolved.captures
        if behind & {flow.to_address for flow in evidence.resolved.flows if flow.to_host == plan.host}
    ]
    if not down.rate_bps or len(captures) != 1 or not evidence.is_ipv4:
        return False, "its effect is unknown: no capture shows all that passed the bottleneck"
    (plan,) = captures
    # The bottleneck of Linux counts the Ethernet header; dummynet of FreeBSD counts only the IP packet.
    header_bytes = 0 if evidence.resolved.hosts[path.router].os == "freebsd" else ETHERNET_HEADER_BYTES
    try:
        seconds = bytes_by_second(evidence.capture_file(plan), behind, header_bytes)
    except UNREADABLE as error:
        return False, f"its effect is unknown: {type(error).__name__}: {error}"
    if len(seconds) < LEAST_SECONDS:
        return (
            False,
            f"its effect is unknown: {len(seconds)} s of traffic, but the check needs {LEAST_SECONDS} s",
        )
    rate_bps = median(seconds) * 8
    text = f"median rate per second {rate_bps / 1e6:.4g} of {down.rate_bps / 1e6:g} Mbit/s"
    kept = abs(rate_bps / down.rate_bps - 1) <= evidence.policy.thresholds.rate
    return kept, text if kept else f"its effect is unknown: {text}; the flows may have sent less than that"


def check_clock_steps(evidence: Evidence) -> Iterator[Check]:
    """Check that no clock was set during the traffic: time of day minus uptime must stay the same."""
    most_s = evidence.policy.thresholds.clock_step_s
    for host, span in evidence.counters.items():
        step_s = _clock_step_s(span)
        if step_s is not None:
            requested, observed = f"no step above {most_s * 1e3:g} ms", f"{step_s * 1e3:+.1f} ms"
            yield Check("clock during the traffic", host, requested, observed, abs(step_s) <= most_s)


def _clock_step_s(span: CounterSpan) -> float | None:
    """Return the smallest clock step in seconds that explains the readings before and after the traffic.

    A reading has the time of day in ns, and the uptime in seconds just before and just after the time of day
    was read. The time of boot is the time of day minus the uptime, so the two uptimes give bounds of it. If
    the bounds of both readings overlap, the step is 0. Returns None if a reading is missing.
    """
    bounds = []
    for words in (span.before.get(CLOCK, "").split(), span.after.get(CLOCK, "").split()):
        if len(words) != 3:
            return None
        now_s, tick_s = int(words[0]) / 1e9, 0.01 if float(words[1]) else 0.0
        bounds.append((now_s - float(words[2]) - tick_s, now_s - float(words[1])))
    early, late = bounds
    return max(late[0] - early[1], 0.0) + min(late[1] - early[0], 0.0)


def check_clock_offsets(evidence: Evidence) -> Iterator[Check]:
    """Check that each host's clock is close to the controller's, and was not set between two readings."""
    most_s = evidence.policy.config.clock_tolerance_s
    for clock in evidence.clocks.values():
        observed = f"{clock.offset_s * 1e3:+.1f} ms ± {clock.error_s * 1e3:.1f} ms"
        observed += ", but the latest reading contradicts earlier ones" if clock.stepped else ", no step"
        ok = abs(clock.offset_s) <= most_s and not clock.stepped
        requested, tolerance = "no step, offset 0 s", f"± {most_s:g} s"
        yield Check("clock", clock.host, requested, observed, ok, "suspect", tolerance)


def check_clock_drift(evidence: Evidence) -> Iterator[Check]:
    """Check that no clock drifts faster than the limit.

    A clock passes if the bounds of its drift include a value within the limit.
    """
    most_ppm = evidence.policy.thresholds.clock_drift_ppm
    for clock in evidence.clocks.values():
        drift, requested = clock.drift, f"at most {most_ppm:g} ppm from the controller's"
        ok = drift is None or drift.least_ppm <= most_ppm
        observed = str(drift or "unknown: too few readings, or too close together")
        yield Check("clock drift", clock.host, requested, observed, ok, "suspect")
