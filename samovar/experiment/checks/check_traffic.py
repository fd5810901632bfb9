"""Check the traffic of a part: ends, recipes, labels, ports, durations, captures and loggers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice

from samovar.experiment.checks.check_context import Context, level_places, setters_of, texts_set, varied
from samovar.experiment.checks.validate import Loc
from samovar.experiment.keys import (
    FLOW_ENDS,
    Flow,
    Level,
    Logger,
    Member,
    Part,
    is_plural,
    members_of,
    number_of,
    own_keys,
    places_of,
    refusal,
)
from samovar.experiment.nearest import unknown
from samovar.experiment.shortest_path import shortest_path
from samovar.units import format_duration

MOST_PAIRS = 100  # pairs of hosts of one flow that are checked; more only repeat the message
GENERATOR_KEYS = ("cc", "dscp")
"""Keys of a flow that its generator must have as a parameter."""
LAST_PORT = 65535
TOLERANCE_S = 1e-6


def check_traffic(context: Context, name: str, part: Part) -> None:
    """Report what is wrong with the flows, captures and loggers of a part."""
    where: Loc = ("parts", name)
    if not part.traffic and context.checked.intact(*where, "traffic"):
        context.report((*where, "traffic"), "traffic is empty; it needs at least one flow")
    counts_vary = {f"traffic.{flow.label}.count" for flow in part.traffic} & varied(part)
    if part.traffic and not counts_vary and all(flow.count == 0 for flow in part.traffic):
        context.report((*where, "traffic", 0, "count"), "count: no flow is left; at least one must remain")
    by_label = flows_by_label(context, part)
    for index, flow in enumerate(part.traffic):
        at = (*where, "traffic", index)
        _check_ends(context, at, flow)
        for system in context.systems_of(flow.from_end, flow.to_end):
            known = context.catalogue.names("generator", system)
            context.check_name((*at, "generator"), f"generator on {system}", flow.generator, known)
        _check_parameters(context, at, part, flow)
        for key in GENERATOR_KEYS:
            _check_generator_key(context, at, part, flow, key)
        _check_count(context, at, part, flow)
        _check_varied_ends(context, where, part, flow)
        _check_end(context, at, part, flow, by_label)
        _check_durations(context, where, part, index, flow)
    _check_labels(context, where, part)
    _check_ports(context, where, part)
    _check_windows(context, where, part)
    _check_stop(context, where, part)
    _check_recorders(context, where, part)


def _check_ends(context: Context, where: Loc, flow: Flow) -> None:
    ends = {"from": flow.from_end, "to": flow.to_end}
    names = context.end_names
    known = [context.check_name((*where, key), "host or role", end, names) for key, end in ends.items()]
    if all(known):
        for message in _path_errors(context, flow):
            context.report((*where, "to"), message)


def _check_varied_ends(context: Context, where: Loc, part: Part, flow: Flow) -> None:
    """Report levels that leave a flow without a path, if one factor alone sets its ends."""
    fields = {f"traffic.{flow.label}.from": "from_end", f"traffic.{flow.label}.to": "to_end"}
    setters = setters_of(part, *fields)
    for level in setters[0].levels if len(setters) == 1 else ():
        ends = {field: str(level.texts[key]) for key, field in fields.items() if key in level.texts}
        for message in _path_errors(context, flow.model_copy(update=ends)) if ends else ():
            context.report((*where, "factors", setters[0].name), f"{level.label}: {message}", key=True)


def _path_errors(context: Context, flow: Flow) -> Iterator[str]:
    """Yield a message for pairs of ends that are one host, and one for pairs that no links connect."""
    testbed = context.testbed
    if testbed is None or not {flow.from_end, flow.to_end} <= set(context.end_names or ()):
        return
    pairs = {(one.from_host, one.to_host) for one in islice(members_of(flow, testbed), MOST_PAIRS)}
    loops = sorted(start for start, end in pairs if start == end)
    apart = sorted(one for one in pairs if one[0] != one[1] and shortest_path(testbed, *one) is None)
    if loops:
        yield f"flow '{flow.label}' goes from {_first(loops)} to itself; it needs two hosts"
    if apart:
        pair = _first([f"{start} to {end}" for start, end in apart])
        yield f"no links lead from {pair}; links and routers must connect the hosts"


def _first(names: Sequence[str]) -> str:
    """Return the first of several names, and how many more there are."""
    return names[0] + (f" (and {len(names) - 1} more)" if len(names) > 1 else "")


def _check_parameters(context: Context, where: Loc, part: Part, model: Flow | Logger) -> None:
    """Report keys that are neither the model's nor parameters of its recipe, and values that it refuses."""
    owner = f"traffic.{model.label}" if isinstance(model, Flow) else f"loggers.{model.logger}"
    for parameter, value in model.parameters.items():
        for _, known in context.recipes_of(part, owner, None):
            message = refusal(parameter, value, known, own_keys(type(model)))
            if message:
                context.report((*where, parameter), message, key=parameter not in known)
                break


def _check_generator_key(context: Context, where: Loc, part: Part, flow: Flow, key: str) -> None:
    """Report a congestion control or DSCP that a flow's generator cannot set."""
    target = f"traffic.{flow.label}.{key}"
    if getattr(flow, key) is None and target not in varied(part):
        return
    catalogue = context.catalogue
    for name in texts_set(part, f"traffic.{flow.label}.generator", (flow.generator,)):
        for system in context.systems_of(flow.from_end):
            known = catalogue.names("generator", system)
            able = sorted(
                one for one in known if key in (catalogue.parameters("generator", one, system) or {})
            )
            if name in known and name not in able:
                instead = f"use one that does: {', '.join(able)}" if able else "no generator there does"
                per_host = "; or settings: {cc: {HOST: ...}} for all flows of a host" if key == "cc" else ""
                setters = setters_of(part, target)
                at = (*where[:2], "factors", setters[0].name) if setters else (*where, key)
                message = f"generator {name} on {system} does not take {key}; {instead}{per_host}"
                context.report(at, message, key=True)
                return


def _check_count(context: Context, where: Loc, part: Part, flow: Flow) -> None:
    testbed, varies = context.testbed, f"traffic.{flow.label}.count" in varied(part)
    plural = testbed is not None and any(is_plural(testbed, end) for end in (flow.from_end, flow.to_end))
    if flow.every_s and flow.count is None and not plural and not varies:
        message = f"flow '{flow.label}' is one flow; add count, or remove every"
        context.report((*where, "every"), message, key=True)
    if flow.arrivals is not None and not plural and varies:
        message = f"flow '{flow.label}' has arrivals; its count cannot be a factor"
        context.report((*where, "arrivals"), message, key=True)


def _check_end(context: Context, where: Loc, part: Part, flow: Flow, by_label: dict[str, Flow]) -> None:
    """Report flows that never end, or whose `until` names no flow or leads back to the flow itself."""
    if flow.until is not None:
        context.check_name((*where, "until"), "flow", flow.until, by_label)
    cycle = _until_cycle(flow, by_label)
    if cycle and flow.label == min(cycle):
        message = f"the end of flow '{flow.label}' depends on itself ({' -> '.join((*cycle, cycle[0]))})"
        context.report((*where, "until"), f"{message}; use size or duration instead")
    stops = part.stop is not None or not varied(part).isdisjoint({"stop.after", "stop.when"})
    ends = stops or has_end(part, flow) or part.duration_s is not None or "duration" in varied(part)
    if not ends and context.checked.intact():
        message = f"flow '{flow.label}' never ends; add size or duration here, or duration at the top"
        context.report(where, message)


def has_end(part: Part, flow: Flow) -> bool:
    """Return whether a flow has an end of its own, by its keys or by a level."""
    given = any(one is not None for one in (flow.size_bytes, flow.duration_s, flow.until))
    return given or bool(setters_of(part, *(f"traffic.{flow.label}.{key}" for key in FLOW_ENDS)))


def _until_cycle(flow: Flow, by_label: dict[str, Flow]) -> Sequence[str]:
    """Return the labels of a chain of `until` that leads back to a flow, or nothing."""
    chain = [flow.label]
    while flow.until is not None and flow.until in by_label:
        flow = by_label[flow.until]
        if flow.label == chain[0]:
            return chain
        if flow.label in chain:
            return ()
        chain.append(flow.label)
    return ()


def flows_by_label(context: Context, part: Part) -> dict[str, Flow]:
    """Return the flows by label; flows that are several also by the label of each of these."""
    counted = {one.label: flow for flow in part.traffic for one in _members(context, part, flow)}
    return counted | {flow.label: flow for flow in part.traffic}


def _members(context: Context, part: Part, flow: Flow) -> Iterator[Member]:
    if context.testbed is not None:
        yield from members_of(flow, context.testbed, _largest_count(context, part, flow))


def _largest_count(context: Context, part: Part, flow: Flow) -> int | None:
    """Return how many flows a flow stands for at most, levels of its count included."""
    targets = (f"traffic.{flow.label}.count", f"traffic.{flow.label}.arrivals.count")
    levels = [level for factor in part.factors.values() for level in factor.levels]
    counts = [level.values.get(target) for level in levels for target in targets]
    counts.append(number_of(flow, context.testbed) if context.testbed else flow.count)
    return max((count for count in counts if isinstance(count, int)), default=None)


def _check_durations(context: Context, where: Loc, part: Part, index: int, flow: Flow) -> None:
    """Report durations that a generator cannot keep; formulas are checked when they are evaluated."""
    system = context.system_of(flow.from_end)
    for at, value, level in _durations(part, where, index, flow) if system else ():
        for name in texts_set(part, f"traffic.{flow.label}.generator", (flow.generator,), level):
            if name not in context.catalogue.names("generator", system or ""):
                continue
            step_s = context.catalogue.duration_step_s("generator", name, system or "")
            if isinstance(value, int | float) and step_s is not None and not is_whole(value, step_s):
                step, next_s = format_duration(step_s), -(-value // step_s) * step_s
                message = (
                    f"{format_duration(value)} of flow '{flow.label}': {name} counts in steps of {step}; "
                    f"use {format_duration(next_s)}, or another multiple of {step}"
                )
                context.report(at, message)
                break


def _durations(part: Part, where: Loc, index: int, flow: Flow) -> Iterator[tuple[Loc, object, Level | None]]:
    """Yield the durations that a flow may have, with their places and the levels that give them."""
    own, levels = f"traffic.{flow.label}.duration", varied(part)
    others = {f"traffic.{flow.label}.{key}" for key in ("size", "until")}
    target = None
    if own in levels:
        target = own
    elif flow.duration_s is not None:
        yield (*where, "traffic", index, "duration"), flow.duration_s, None
    elif flow.size_bytes is None and flow.until is None and not levels & others:
        if "duration" in levels:
            target = "duration"
        else:
            yield (*where, "duration"), part.duration_s, None
    for at, level in level_places(part, where, target) if target else ():
        yield at, level.values.get(target or ""), level


def is_whole(duration_s: float, step_s: float) -> bool:
    """Return whether a duration is a whole number of steps, at least one."""
    steps = round(duration_s / step_s)
    return steps > 0 and abs(duration_s - steps * step_s) < TOLERANCE_S


def _check_labels(context: Context, where: Loc, part: Part) -> None:
    seen: dict[str, str] = {}
    for index, flow in enumerate(part.traffic):
        at = (*where, "traffic", index, "flow")
        if seen.get(flow.label) == flow.label:
            context.report(at, f"duplicate flow '{flow.label}'; each flow needs a label of its own")
            continue
        for label in {flow.label, *(member.label for member in _members(context, part, flow))}:
            owner = seen.setdefault(label, flow.label)
            if owner != flow.label:
                message = f"flow '{flow.label}' has the label '{label}' of a flow of '{owner}'; rename one"
                context.report(at, message)


def _check_ports(context: Context, where: Loc, part: Part) -> None:
    seen: dict[tuple[str, int], str] = {}
    for index, flow in enumerate(part.traffic):
        if flow.port is None:
            continue
        at = (*where, "traffic", index, "port")
        ends = [(member.to_host, member.port or 0) for member in _members(context, part, flow)]
        owners = [(end, seen.setdefault(end, flow.label)) for end in ends or [(flow.to_end, flow.port)]]
        taken = [(end, owner) for end, owner in owners if owner != flow.label]
        if taken:
            (host, port), owner = taken[0]
            context.report(at, f"port {port} at {host} is used by flow '{owner}'; choose another")
        count = _largest_count(context, part, flow) or 1
        last = flow.port + count - 1
        if last > LAST_PORT:
            message = (
                f"the ports of {count} flows from {flow.port} end at {last}; the last port is {LAST_PORT}"
            )
            context.report(at, message)


def _check_windows(context: Context, where: Loc, part: Part) -> None:
    """Report flows between the same hosts with different windows: a window is set per peer, not per flow."""
    seen: dict[tuple[str, str], int] = {}
    reported: set[int] = set()
    for index, flow in enumerate(part.traffic):
        for member in _members(context, part, flow):
            first_index = seen.setdefault((member.from_host, member.to_host), index)
            first = part.traffic[first_index]
            at, other = (index, first) if flow.rwnd_bytes is not None else (first_index, flow)
            varies = setters_of(part, f"traffic.{first.label}.rwnd", f"traffic.{flow.label}.rwnd")
            if at in reported or varies or first.rwnd_bytes == flow.rwnd_bytes:
                continue  # the plan checks which levels meet
            reported.add(at)
            has = "no rwnd" if other.rwnd_bytes is None else "another rwnd"
            message = f"flow '{other.label}' from {member.from_host} to {member.to_host} has {has}"
            message += "; both need the same, as a window is set per peer"
            context.report((*where, "traffic", at, "rwnd"), message)


def _check_stop(context: Context, where: Loc, part: Part) -> None:
    if part.stop is None or part.stop.when is None:
        return
    at, label, flows = (*where, "stop", "when"), part.stop.when, flows_by_label(context, part)
    timed = part.duration_s is not None or "duration" in varied(part)
    if context.check_name(at, "flow", label, flows) and not timed and not has_end(part, flows[label]):
        context.report(at, f"flow '{label}' has no end that could end the trial; give it size or duration")


def _check_recorders(context: Context, where: Loc, part: Part) -> None:
    """Report captures and loggers at unknown places, twice at one place, or of unknown recipes."""
    _check_twice(context, (*where, "captures"), [(one.at, one.interface or "") for one in part.captures])
    _check_twice(context, (*where, "loggers"), [(one.at, one.logger) for one in part.loggers])
    for index, capture in enumerate(part.captures):
        _check_interfaces(context, (*where, "captures", index), capture.at, capture.interface, "capture")
    for index, logger in enumerate(part.loggers):
        at = (*where, "loggers", index)
        if _check_interfaces(context, at, logger.at, logger.interface, "watch"):
            for system in context.systems_of(*logger.at):
                known = context.catalogue.names("logger", system)
                context.check_name((*at, "logger"), f"logger on {system}", logger.logger, known)
            _check_parameters(context, at, part, logger)


def _check_twice(context: Context, where: Loc, recorders: Sequence[tuple[tuple[str, ...], str]]) -> None:
    """Report captures and loggers that would write the same trace a second time."""
    seen: set[tuple[str, str]] = set()
    for index, (at, what) in enumerate(recorders):
        again: list[str] = []
        for host in places_of(context.testbed, at) if context.testbed else at:
            if (host, what) in seen:
                again.append(f"{what} at {host}" if what else host)
            seen.add((host, what))
        if again:
            context.report((*where, index), f"{_first(again)} is recorded already; remove one")


def _check_interfaces(
    context: Context, where: Loc, at: tuple[str, ...], interface: str | None, verb: str
) -> bool:
    """Check the hosts and the interface that something is recorded at; return whether all hosts exist."""
    names = context.end_names
    places = [((*where, "at", index), name) for index, name in enumerate(at)]
    known = [context.check_name(place, "host or role", name, names) for place, name in places]
    if context.testbed is None or not all(known):
        return False
    for host in places_of(context.testbed, at):
        interfaces = context.testbed.hosts[host].interfaces
        if not interfaces:
            message = f"host {host} has no testbed interface; there is no traffic to {verb}"
            context.report((*where, "at"), message)
        elif interface is not None:
            what = f"interface of {host}"
            if interface not in interfaces:
                context.report((*where, "interface"), unknown(what, interface, interfaces))
    return True
