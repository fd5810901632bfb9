"""Find what routers, lab devices and generators do not support: paths, WLAN settings, flow durations."""

from __future__ import annotations

from collections.abc import Iterator

from samovar.campaign.availability.findings import Finding
from samovar.errors import RecipeError
from samovar.plan import Group, HostPlan, PathPlan, Plan, Resolved, View
from samovar.recipes import (
    WLAN_RECIPES,
    Catalogue,
    Header,
    adapter_values,
    air_values,
    bottleneck_values,
)
from samovar.units import format_duration

BOTTLENECK = "bottleneck"
NANOSECOND_S = 1e-9
TOLERANCE_S = 1e-6
Refusal = tuple[str, str, str]
"""A host, what it does not support, and what it supports instead."""


def unsupported_paths(plan: Plan, catalogue: Catalogue) -> list[Finding]:
    """Return a finding for each path or duration that a recipe does not support, with its trials."""
    view: View = {
        "run": lambda run: run.mtu_bytes,
        "path": None,
        "hosts": lambda host: (host.system, host.wlans, host.mtu_bytes, *_settings_of_radio(host)),
        "flows": lambda flows: tuple(
            (flow.group, flow.generator, flow.from_host, flow.duration_s) for flow in flows
        ),
    }
    found: dict[Refusal, list[Group]] = {}
    for group in plan.groups(view):
        for refusal in _refusals(group.resolved, catalogue):
            found.setdefault(refusal, []).append(group)
    findings = []
    for (host, what, accepted), groups in found.items():
        example = " ".join(groups[0].levels.values())
        remedy = f"{f'e.g. {example}; ' if example else ''}accepted: {accepted}"
        findings.append(Finding(host, what, remedy, True, plan.trials_of(groups)))
    return findings


def _settings_of_radio(host: HostPlan) -> Iterator[tuple[str, str, str]]:
    for recipe in WLAN_RECIPES:
        yield from ((recipe, key, value) for key, value in host.settings.get(recipe, {}).items())


def _refusals(resolved: Resolved, catalogue: Catalogue) -> Iterator[Refusal]:
    """Yield each duration or path of a trial that a generator, the router or an adapter does not support."""
    yield from _durations_between_steps(resolved, catalogue)
    yield from _radios(resolved, catalogue)
    path = resolved.path
    if path is None:
        return
    host, device = resolved.hosts.get(path.router), path.device
    if host is not None:
        header = catalogue.header("setting", BOTTLENECK, host.system)
        yield from _missing_impairments(path, host, header, catalogue)
        yield from _delays_between_steps(path, host, header)
        try:
            bottleneck_values(path, host, resolved.mtu_bytes, catalogue)
        except RecipeError as error:
            yield path.router, error.what, error.accepted or "another path"
    if device is not None and device.settable:
        try:
            adapter_values(path, device)
        except RecipeError as error:
            yield device.host, error.what, error.accepted or "another path"


def _radios(resolved: Resolved, catalogue: Catalogue) -> Iterator[Refusal]:
    """Yield settings that the simulated WLAN does not support, and settings `air` if no WLAN is simulated."""
    if not any(host.wlans for host in resolved.hosts.values()):
        for name, host in resolved.hosts.items():
            if "air" in host.settings:
                what = "settings `air`, but the testbed has no simulated WLAN"
                yield name, what, "a lab with a link that has the key `wlan`"
    for name, host in resolved.hosts.items():
        for wlan in host.wlans:
            try:
                air_values(wlan, resolved.hosts, catalogue)
            except RecipeError as error:
                yield name, error.what, error.accepted


def _durations_between_steps(resolved: Resolved, catalogue: Catalogue) -> Iterator[Refusal]:
    """Yield the flow durations that are not whole multiples of the time step of the flow's generator."""
    for flow in resolved.flows:
        system = resolved.hosts[flow.from_host].system
        step_s = catalogue.header("generator", flow.generator, system).duration_step_s
        if step_s and flow.duration_s is not None and not _is_whole(flow.duration_s, step_s):
            lasts, step = format_duration(round(flow.duration_s, 9)), format_duration(step_s)
            what = f"flow {flow.group} lasts {lasts}, but {flow.generator} counts in steps of {step}"
            yield flow.from_host, what, f"a duration in whole multiples of {step}"


def _is_whole(duration_s: float, step_s: float) -> bool:
    """Return whether a duration is a multiple of a step, and not zero."""
    steps = round(duration_s / step_s)
    return steps > 0 and abs(duration_s - steps * step_s) < TOLERANCE_S


def _missing_impairments(
    path: PathPlan, host: HostPlan, header: Header, catalogue: Catalogue
) -> Iterator[Refusal]:
    """Yield the impairments of a path that the router's bottleneck recipe cannot simulate."""
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
            other_router = f"a router with {' or '.join(able)}, or " if able else ""
            remedy = f"{other_router}a path without `{name}`"
            yield path.router, f"{host.system} cannot simulate {name.replace('_', ' ')}", remedy


def _delays_between_steps(path: PathPlan, host: HostPlan, header: Header) -> Iterator[Refusal]:
    """Yield the round-trip times that are not whole multiples of the router's delay step."""
    step_s = header.delay_step_s
    if step_s is None:
        return
    step = format_duration(step_s)
    classes = [one.delay_down_s + one.delay_up_s for one in path.classes]
    for rtt_s in dict.fromkeys([path.down.delay_s + path.up.delay_s, *classes]):
        if abs(rtt_s - round(rtt_s / step_s) * step_s) > NANOSECOND_S:
            rtt = format_duration(round(rtt_s, 9))
            what = f"{host.system} delays in steps of {step}, but a round trip takes {rtt}"
            yield path.router, what, f"a round-trip time in whole multiples of {step}"
