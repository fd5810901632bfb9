"""What makes a part's traffic, captures and loggers impossible on a testbed with these recipes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice

from samovar.experiment.checks.check_context import Context, chosen, varied
from samovar.experiment.checks.check_flows import check_flows
from samovar.experiment.checks.validate import Loc
from samovar.experiment.keys import (
    Flow,
    Logger,
    Part,
    Testbed,
    end_names,
    hosts_of,
    is_plural,
    members_of,
    own_keys,
    places_of,
    refusal,
)
from samovar.experiment.nearest import unknown
from samovar.experiment.shortest_path import shortest_path

MOST_PAIRS = 100  # pairs of hosts of one line that are looked at; more only repeat them
HANDED = ("cc", "dscp")  # keys of a flow that its generator must take


def check_traffic(context: Context, name: str, part: Part) -> None:
    """Report what cannot run: ends, ports, recipes, interfaces."""
    where: Loc = ("parts", name)
    if not part.traffic and context.checked.intact(*where, "traffic"):
        context.checked.report((*where, "traffic"), "traffic is empty; expected at least one flow")
    if part.traffic and not any(flow.count != 0 or _counts(part, flow) for flow in part.traffic):
        message = "count: no flow is left; expected one flow at least"
        context.checked.report((*where, "traffic", 0, "count"), message)
    for index, flow in enumerate(part.traffic):
        _check_flow(context, (*where, "traffic", index), part, flow)
        _check_varied_ends(context, where, part, flow)
    check_flows(context, name, part)
    _check_twice(context, (*where, "captures"), [(one.at, one.interface or "") for one in part.captures])
    _check_twice(context, (*where, "loggers"), [(one.at, one.logger) for one in part.loggers])
    for index, capture in enumerate(part.captures):
        _check_places(context, (*where, "captures", index), capture.at, capture.interface, "captured")
    for index, logger in enumerate(part.loggers):
        at = (*where, "loggers", index)
        if _check_places(context, at, logger.at, logger.interface, "watched"):
            _check_recipe(context, (*at, "logger"), "logger", logger.logger, logger.at)
            _check_parameters(context, at, part, logger)


def _counts(part: Part, flow: Flow) -> bool:
    return f"traffic.{flow.label}.count" in varied(part)


def _check_flow(context: Context, where: Loc, part: Part, flow: Flow) -> None:
    ends = {"from": flow.from_end, "to": flow.to_end}
    known = [_check_host(context, (*where, key), end, plural=True) for key, end in ends.items()]
    if all(known):
        _check_connected(context, where, flow)
    for system in _systems(context, ends.values()):
        _check_generator(context, (*where, "generator"), flow.generator, system)
    _check_parameters(context, where, part, flow)
    for key in HANDED:
        _check_handed(context, where, part, flow, key)
    _check_number(context, where, part, flow)


def _check_number(context: Context, where: Loc, part: Part, flow: Flow) -> None:
    plural = context.testbed is not None and any(
        is_plural(context.testbed, end) for end in (flow.from_end, flow.to_end)
    )
    counted = flow.count is not None or plural or _counts(part, flow)
    if flow.every_s and not counted:
        message = f"flow '{flow.label}' is one flow; expected count beside every"
        context.checked.report((*where, "every"), message, key=True)
    if flow.arrivals is not None and plural is False and _counts(part, flow):
        message = f"flow '{flow.label}' has arrivals; expected no factor for its count"
        context.checked.report((*where, "arrivals"), message, key=True)


def _systems(context: Context, ends: Iterable[str]) -> list[str]:
    testbed = context.testbed
    hosts = [host for end in ends for host in hosts_of(testbed, end)] if testbed else []
    return list(dict.fromkeys(testbed.hosts[host].system for host in hosts)) if testbed else []


def _check_generator(context: Context, where: Loc, name: str, system: str) -> None:
    known = context.catalogue.names("generator", system)
    if name not in known:
        context.checked.report(where, unknown(f"generator on {system}", name, known))


def _check_handed(context: Context, where: Loc, part: Part, flow: Flow, key: str) -> None:
    """Report a congestion control or code point that a flow's generator cannot set."""
    target = f"traffic.{flow.label}.{key}"
    if getattr(flow, key) is None and target not in varied(part):
        return
    for name in chosen(part, f"traffic.{flow.label}.generator", (flow.generator,)):
        for system in _systems(context, [flow.from_end]):
            takers = _takers(context, key, system)
            if name in context.catalogue.names("generator", system) and name not in takers:
                message = f"generator {name} on {system} takes no {key}; {_instead(key, takers)}"
                place = _place_of(where, part, target, key)
                context.checked.report(place, message, key=True)
                return


def _takers(context: Context, parameter: str, system: str) -> list[str]:
    """Return the generators of a system that take a parameter."""
    known = context.catalogue.names("generator", system)
    return sorted(
        one for one in known if parameter in (context.catalogue.parameters("generator", one, system) or {})
    )


def _instead(key: str, takers: Sequence[str]) -> str:
    those = f"expected one that does: {', '.join(takers)}" if takers else "no generator there does"
    per_host = "settings: {cc: {HOST: ...}} for all flows of a host" if key == "cc" else ""
    return those + (f"; or {per_host}" if per_host else "")


def _place_of(where: Loc, part: Part, target: str, key: str) -> Loc:
    """Return where a flow's key stands: in the flow, or as a factor."""
    setters = [one for one in part.factors.values() if any(target in level.texts for level in one.levels)]
    return (*where[:2], "factors", setters[0].name) if setters else (*where, key)


def _check_connected(context: Context, where: Loc, flow: Flow) -> None:
    for message in _unconnected(context, flow):
        context.checked.report((*where, "to"), message)


def _check_varied_ends(context: Context, where: Loc, part: Part, flow: Flow) -> None:
    """Report levels of the one factor that moves a flow's ends which leave it without a way."""
    targets = {f"traffic.{flow.label}.from": "from_end", f"traffic.{flow.label}.to": "to_end"}
    movers = [f for f in part.factors.values() if any(targets.keys() & one.texts.keys() for one in f.levels)]
    for level in movers[0].levels if len(movers) == 1 else ():
        given = {targets[one]: str(level.texts[one]) for one in level.texts if one in targets}
        for message in _unconnected(context, flow.model_copy(update=given)) if given else ():
            told = f"{level.label}: {message}"
            context.checked.report((*where, "factors", movers[0].name), told, key=True)


def _unconnected(context: Context, flow: Flow) -> Iterator[str]:
    """Say which hosts a flow is to connect that are one, or that no links connect."""
    testbed = context.testbed
    if testbed is None or not {flow.from_end, flow.to_end} <= set(end_names(testbed)):
        return
    pairs = {(one.from_host, one.to_host) for one in islice(members_of(flow, testbed), MOST_PAIRS)}
    loops = sorted(start for start, end in pairs if start == end)
    apart = sorted(one for one in pairs if one[0] != one[1] and shortest_path(testbed, *one) is None)
    if loops:
        yield f"flow '{flow.label}' goes from {_first(loops)} to itself; expected two hosts"
    if apart:
        ways = _first([f"{start} to {end}" for start, end in apart])
        yield f"no links lead from {ways}; expected hosts that links and routers connect"


def _first(names: Sequence[str]) -> str:
    """Name the first of several; what they have in common is told once."""
    return names[0] + (f" (and {len(names) - 1} more)" if len(names) > 1 else "")


def _check_host(context: Context, where: Loc, name: str, *, plural: bool = False) -> bool:
    testbed = context.testbed
    if testbed is None:
        return False
    known = end_names(testbed) if plural else list(testbed.names())
    if name not in known:
        context.checked.report(where, unknown("host or role", name, known))
    return name in known


def _check_twice(context: Context, where: Loc, places: Sequence[tuple[tuple[str, ...], str]]) -> None:
    """Report what would write the same trace a second time."""
    seen: set[tuple[str, str]] = set()
    for index, (at, what) in enumerate(places):
        again: list[str] = []
        for host in places_of(context.testbed, at) if context.testbed else at:
            if (host, what) in seen:
                again.append(f"{what} at {host}" if what else host)
            seen.add((host, what))
        if again:
            context.checked.report((*where, index), f"{_first(again)} stands here again; expected it once")


def _check_places(
    context: Context, where: Loc, at: tuple[str, ...], interface: str | None, what: str
) -> bool:
    """Check every place that something is recorded at; say whether all of them are there."""
    known = [_check_host(context, (*where, "at", n), name, plural=True) for n, name in enumerate(at)]
    if context.testbed is None or not all(known):
        return False
    for host in places_of(context.testbed, at):
        _check_place(context, where, context.testbed, host, interface, what)
    return True


def _check_place(
    context: Context, where: Loc, testbed: Testbed, host: str, interface: str | None, what: str
) -> None:
    interfaces = testbed.hosts[host].interfaces
    if not interfaces:
        message = f"host {host} has no testbed interface; expected one where traffic can be {what}"
        context.checked.report((*where, "at"), message)
    elif interface is not None and interface not in interfaces:
        context.checked.report((*where, "interface"), unknown(f"interface of {host}", interface, interfaces))


def _check_recipe(context: Context, where: Loc, kind: str, name: str, at: tuple[str, ...]) -> None:
    for system in context.systems_at(at):
        known = context.catalogue.names(kind, system)
        if name not in known:
            context.checked.report(where, unknown(f"{kind} on {system}", name, known))


def _check_parameters(context: Context, where: Loc, part: Part, model: Flow | Logger) -> None:
    """Report keys that are neither the model's nor parameters of its recipe, and parameters' values."""
    owner = f"traffic.{model.label}" if isinstance(model, Flow) else f"loggers.{model.logger}"
    for parameter, value in model.parameters.items():
        for _, known in context.takers(part, owner, None):
            message = refusal(parameter, value, known, own_keys(type(model)))
            if message:
                context.checked.report((*where, parameter), message, key=parameter not in known)
                break
