"""What a router cannot do of the paths that a plan asks of it, told by recipes: no host is asked."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Sequence
from typing import NamedTuple

from samovar.campaign.availability.findings import Finding
from samovar.errors import RecipeError
from samovar.experiment import is_whole
from samovar.plan import DirectionPlan, FlowPlan, Group, HostPlan, PathPlan, Plan, Resolved, View
from samovar.recipes import Catalogue, Header, adapter_values, bottleneck_values
from samovar.units import format_duration, parse_duration

BOTTLENECK = "bottleneck"
NANOSECOND_S = 1e-9


class Refusal(NamedTuple):
    """One thing that a router cannot do, and what would be accepted."""

    host: str
    what: str
    accepted: str


def refusals(plan: Plan, catalogue: Catalogue) -> list[Finding]:
    """List what the routers of a plan cannot do by their recipes, with the trials that ask it."""
    view: View = {"run": lambda run: run.mtu_bytes, "path": None, "hosts": _system, "flows": _durations}
    found: dict[Refusal, list[Group]] = {}
    for group in plan.groups(view):
        for refusal in _refused(group.resolved, catalogue):
            found.setdefault(refusal, []).append(group)
    return [_finding(refusal, plan, groups) for refusal, groups in found.items()]


def _system(host: HostPlan) -> str:
    return host.system


def _durations(flows: Sequence[FlowPlan]) -> Hashable:
    return tuple((flow.group, flow.generator, flow.from_host, flow.duration_s) for flow in flows)


def _finding(refusal: Refusal, plan: Plan, groups: Sequence[Group]) -> Finding:
    levels = " ".join(groups[0].levels.values())
    remedy = f"{f'e.g. {levels}; ' if levels else ''}accepted: {refusal.accepted}"
    return Finding(refusal.host, refusal.what, remedy, True, tuple(plan.trials_of(groups)))


def _refused(resolved: Resolved, catalogue: Catalogue) -> Iterator[Refusal]:
    yield from _between_seconds(resolved, catalogue)
    path = resolved.path
    host = resolved.hosts.get(path.router) if path else None
    if path is not None and host is not None:
        header = catalogue.header("setting", BOTTLENECK, host.system)
        yield from _lacking(path, host, header, catalogue)
        yield from _between_steps(path, host, header)
        yield from _raised(path.router, lambda: bottleneck_values(path, host, resolved.mtu_bytes, catalogue))
    device = path.device if path is not None else None
    if path is not None and device is not None and device.settable:
        yield from _raised(device.host, lambda: adapter_values(path, device))


def _raised(host: str, work_out: Callable[[], object]) -> Iterator[Refusal]:
    """Find what a path's values cannot be worked out for."""
    try:
        work_out()
    except RecipeError as error:
        what, _, accepted = str(error).partition("; accepted: ")
        yield Refusal(host, what, accepted or "another path")


def _between_seconds(resolved: Resolved, catalogue: Catalogue) -> Iterator[Refusal]:
    """Find durations, computed ones among them, that a generator cannot keep."""
    for flow in resolved.flows:
        step_s = catalogue.duration_step_s("generator", flow.generator, resolved.hosts[flow.from_host].system)
        if step_s and flow.duration_s is not None and not is_whole(flow.duration_s, step_s):
            lasts = format_duration(round(flow.duration_s, 9))
            what = f"flow {flow.group} lasts {lasts}, and {flow.generator} counts in steps of"
            step = format_duration(step_s)
            yield Refusal(flow.from_host, f"{what} {step}", f"a duration in whole multiples of {step}")


def _lacking(path: PathPlan, host: HostPlan, header: Header, catalogue: Catalogue) -> Iterator[Refusal]:
    for way in (path.down, path.up):
        for name in sorted(_asked(way) & set(header.lacks)):
            able = [os for os in catalogue.operating_systems() if name not in _lacks(os, catalogue)]
            accepted = f"a router with {' or '.join(able)}, or a path without" if able else "a path without"
            words = name.replace("_", " ")
            yield Refusal(path.router, f"a path of {host.system} has no {words}", accepted)


def _lacks(os: str, catalogue: Catalogue) -> tuple[str, ...]:
    return catalogue.header("setting", BOTTLENECK, os).lacks


def _asked(way: DirectionPlan) -> frozenset[str]:
    asks = {
        "jitter": way.jitter_s,
        "reorder": way.reorder,
        "duplicate": way.duplicate,
        "loss_burst": way.loss and way.loss_burst_packets,
    }
    return frozenset(name for name, value in asks.items() if value)


def _between_steps(path: PathPlan, host: HostPlan, header: Header) -> Iterator[Refusal]:
    """Find round-trip times that are no whole number of the recipe's steps."""
    if header.delay_step is None:
        return
    step_s = parse_duration(header.delay_step)
    classes = [one.delay_down_s + one.delay_up_s for one in path.classes]
    for rtt_s in dict.fromkeys([path.down.delay_s + path.up.delay_s, *classes]):
        if abs(rtt_s - round(rtt_s / step_s) * step_s) > NANOSECOND_S:
            what = f"{host.system} delays by steps of {header.delay_step}, and a round trip takes"
            accepted = f"a round-trip time in whole multiples of {header.delay_step}"
            yield Refusal(path.router, f"{what} {format_duration(round(rtt_s, 9))}", accepted)
