"""What hosts cannot do according to their recipes: paths of a router or adapter, durations of a generator."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Sequence
from typing import NamedTuple

from samovar.campaign.availability.findings import Finding
from samovar.errors import RecipeError
from samovar.experiment import is_whole
from samovar.plan import FlowPlan, Group, HostPlan, PathPlan, Plan, Resolved, View
from samovar.recipes import Catalogue, Header, adapter_values, bottleneck_values
from samovar.units import format_duration

BOTTLENECK = "bottleneck"
NANOSECOND_S = 1e-9


class _Unsupported(NamedTuple):
    """Something that a host cannot do, and what it can do instead."""

    host: str
    what: str
    remedy: str


def unsupported_paths(plan: Plan, catalogue: Catalogue) -> list[Finding]:
    """Return what hosts cannot do according to their recipes, with the trials that need it."""
    view: View = {
        "run": lambda run: run.mtu_bytes,
        "path": None,
        "hosts": lambda host: host.system,
        "flows": _durations,
    }
    found: dict[_Unsupported, list[Group]] = {}
    for group in plan.groups(view):
        for unsupported in _unsupported(group.resolved, catalogue):
            found.setdefault(unsupported, []).append(group)
    return [_finding(unsupported, plan, groups) for unsupported, groups in found.items()]


def _durations(flows: Sequence[FlowPlan]) -> Hashable:
    return tuple((flow.group, flow.generator, flow.from_host, flow.duration_s) for flow in flows)


def _finding(unsupported: _Unsupported, plan: Plan, groups: Sequence[Group]) -> Finding:
    levels = " ".join(groups[0].levels.values())
    remedy = f"{f'e.g. {levels}; ' if levels else ''}accepted: {unsupported.remedy}"
    return Finding(unsupported.host, unsupported.what, remedy, True, plan.trials_of(groups))


def _unsupported(resolved: Resolved, catalogue: Catalogue) -> Iterator[_Unsupported]:
    yield from _durations_between_steps(resolved, catalogue)
    path = resolved.path
    if path is None:
        return
    host, device = resolved.hosts.get(path.router), path.device
    if host is not None:
        header = catalogue.header("setting", BOTTLENECK, host.system)
        yield from _missing_impairments(path, host, header, catalogue)
        yield from _delays_between_steps(path, host, header)
        mtu_bytes = resolved.mtu_bytes
        yield from _failing(path.router, lambda: bottleneck_values(path, host, mtu_bytes, catalogue))
    if device is not None and device.settable:
        yield from _failing(device.host, lambda: adapter_values(path, device))


def _failing(host: str, compute_values: Callable[[], object]) -> Iterator[_Unsupported]:
    """Yield the error if the values of a path cannot be computed."""
    try:
        compute_values()
    except RecipeError as error:
        what, _, remedy = str(error).partition("; accepted: ")
        yield _Unsupported(host, what, remedy or "another path")


def _durations_between_steps(resolved: Resolved, catalogue: Catalogue) -> Iterator[_Unsupported]:
    """Find durations, also computed ones, that are not whole steps of a flow's generator."""
    for flow in resolved.flows:
        step_s = catalogue.duration_step_s("generator", flow.generator, resolved.hosts[flow.from_host].system)
        if step_s and flow.duration_s is not None and not is_whole(flow.duration_s, step_s):
            lasts, step = format_duration(round(flow.duration_s, 9)), format_duration(step_s)
            what = f"flow {flow.group} lasts {lasts}, but {flow.generator} counts in steps of {step}"
            yield _Unsupported(flow.from_host, what, f"a duration in whole multiples of {step}")


def _missing_impairments(
    path: PathPlan, host: HostPlan, header: Header, catalogue: Catalogue
) -> Iterator[_Unsupported]:
    """Find impairments that the bottleneck recipe of a router's operating system lacks."""
    for direction in (path.down, path.up):
        values = {
            "jitter": direction.jitter_s,
            "reorder": direction.reorder,
            "duplicate": direction.duplicate,
            "loss_burst": direction.loss and direction.loss_burst_packets,
        }
        for name in sorted(name for name, value in values.items() if value and name in header.lacks):
            able = [
                os
                for os in catalogue.operating_systems()
                if name not in catalogue.header("setting", BOTTLENECK, os).lacks
            ]
            remedy = f"a router with {' or '.join(able)}, or a path without" if able else "a path without"
            yield _Unsupported(path.router, f"{host.system} cannot simulate {name.replace('_', ' ')}", remedy)


def _delays_between_steps(path: PathPlan, host: HostPlan, header: Header) -> Iterator[_Unsupported]:
    """Find round-trip times that are not whole steps of the bottleneck recipe."""
    step_s = header.delay_step_s
    if step_s is None:
        return
    step = format_duration(step_s)
    classes = [one.delay_down_s + one.delay_up_s for one in path.classes]
    for rtt_s in dict.fromkeys([path.down.delay_s + path.up.delay_s, *classes]):
        if abs(rtt_s - round(rtt_s / step_s) * step_s) > NANOSECOND_S:
            rtt = format_duration(round(rtt_s, 9))
            what = f"{host.system} delays in steps of {step}, but a round trip takes {rtt}"
            yield _Unsupported(path.router, what, f"a round-trip time in whole multiples of {step}")
