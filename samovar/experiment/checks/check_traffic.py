"""Check the traffic of a part, its captures and loggers, and the path that the traffic takes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import ceil, inf

from samovar.errors import unknown
from samovar.experiment import keys
from samovar.experiment.checks.part_values import PartToCheck, PartValue
from samovar.experiment.checks.validate import Loc
from samovar.experiment.logger_recipes import recorder_of
from samovar.experiment.values import Buffer, Directional
from samovar.units import format_duration, format_share

TOLERANCE_S = 1e-6
BUFFER_UNITS = {"packets": ("buffer_packets", "546packets"), "bytes": ("buffer_bytes", "819KB")}
"""For each unit of a buffer: the parameter that aqm recipes have for this unit, and an example."""


def check_traffic(part: PartToCheck) -> None:
    """Report errors in the flows, captures and loggers of a part."""
    traffic = part.model.traffic
    if not traffic and part.checked.intact("traffic"):
        part.checked.report(("traffic",), "traffic is empty; it needs at least one flow")
    counts_vary = {f"traffic.{flow.label}.count" for flow in traffic} & part.setters.keys()
    if traffic and not counts_vary and all(flow.count == 0 for flow in traffic):
        part.checked.report(("traffic", 0, "count"), "count: all flows have count 0; at least one must run")
    for index, flow in enumerate(traffic):
        at = ("traffic", index)
        _check_count(part, at, flow)
        _check_end(part, at, flow)
        _check_durations(part, flow)
    _check_recorders(part, "captures", part.model.captures)
    _check_recorders(part, "loggers", part.model.loggers)
    for logger in part.model.loggers:
        _check_intervals(part, logger)


def _check_count(part: PartToCheck, where: Loc, flow: keys.Flow) -> None:
    testbed, varies = part.testbed, f"traffic.{flow.label}.count" in part.setters
    plural = testbed is not None and any(keys.is_plural(testbed, end) for end in (flow.from_end, flow.to_end))
    if flow.every_s and flow.count is None and not plural and not varies:
        message = f"flow '{flow.label}' is a single flow; add `count`, or remove `every`"
        part.checked.report((*where, "every"), message, key=True)
    if flow.arrivals is not None and not plural and varies:
        message = f"flow '{flow.label}' has arrivals; its count cannot be a factor"
        part.checked.report((*where, "arrivals"), message, key=True)


def _check_end(part: PartToCheck, where: Loc, flow: keys.Flow) -> None:
    stops = any(map(part.values_of, ("stop.after", "stop.when", "duration")))
    if not stops and not _has_end(part, flow) and not part.checked.left_out:
        message = f"flow '{flow.label}' never ends; add `size` or `duration` here, or `duration` at the top"
        part.checked.report(where, message)


def _has_end(part: PartToCheck, flow: keys.Flow) -> bool:
    """Return whether `size`, `duration` or `until` is set for a flow, by its entry or by a level."""
    return any(part.values_of(f"traffic.{flow.label}.{key}") for key in keys.FLOW_ENDS)


def _check_durations(part: PartToCheck, flow: keys.Flow) -> None:
    """Report durations that are not a multiple of the generator's step; formulas are checked in planning."""
    owner, system = f"traffic.{flow.label}", next(iter(part.systems_of(f"traffic.{flow.label}")), "")
    durations: Sequence[PartValue] = part.values_of(f"{owner}.duration")
    if not _has_end(part, flow):
        durations = part.values_of("duration")
    for one in durations:
        for name in part.texts_of(f"{owner}.generator", one.level):
            known = name in part.catalogue.names("generator", system)
            step_s = part.catalogue.duration_step_s("generator", name, system) if known else None
            if step_s and isinstance(one.value, int | float) and not is_whole(one.value, step_s):
                message = f"flow '{flow.label}' cannot last {format_duration(one.value)}"
                advice = f"{name} needs a multiple of {format_duration(step_s)}"
                part.checked.report(one.where, f"{message}: {advice}")
                break


def is_whole(duration_s: float, step_s: float) -> bool:
    """Return whether a duration is a multiple of a step, and not zero."""
    steps = round(duration_s / step_s)
    return steps > 0 and abs(duration_s - steps * step_s) < TOLERANCE_S


def _check_recorders(part: PartToCheck, key: str, recorders: Sequence[keys.Capture | keys.Logger]) -> None:
    """Report duplicate captures and loggers, hosts without interfaces, and unknown interfaces."""
    seen: set[tuple[str, str]] = set()
    for index, one in enumerate(recorders):
        where = (key, index)
        what = one.logger if isinstance(one, keys.Logger) else one.interface or ""
        hosts = keys.places_of(part.testbed, one.at) if part.testbed else ()
        again = [
            f"{what} at {host}" if what else host
            for host in hosts
            if (host, _recorder(part, one, host)) in seen
        ]
        seen |= {(host, name) for host in hosts for name in (what, _recorder(part, one, host))}
        if again:
            part.checked.report(where, f"{again[0]} is recorded already; remove one of the entries")
        for host in hosts:
            interfaces = part.testbed.hosts[host].interfaces if part.testbed else {}
            if not interfaces:
                message = f"host {host} has no testbed interface; there is no traffic to record"
                part.checked.report((*where, "at"), message)
            elif one.interface is not None and one.interface not in (*interfaces, *_queues(part, host)):
                message = unknown(f"interface of {host}", one.interface, interfaces)
                part.checked.report((*where, "interface"), message)


def _queues(part: PartToCheck, host: str) -> tuple[str, ...]:
    """Return the directions that stand for interfaces of a host: those of the bottleneck, at its router."""
    bottleneck = part.testbed.bottleneck if part.testbed else None
    return ("down", "up") if bottleneck and bottleneck.router == host else ()


def _check_intervals(part: PartToCheck, logger: keys.Logger) -> None:
    """Report intervals that are shorter than a logger's recipe accepts. Formulas are not checked."""
    for system in part.systems_of(f"loggers.{logger.logger}"):
        recipe = recorder_of(part.catalogue, logger, system) or ""
        info = (part.catalogue.parameters("logger", recipe, system) or {}).get("interval_s")
        for one in part.values_of(f"loggers.{logger.logger}.interval"):
            if info is not None and keys.below_least(info, one.value) and isinstance(one.value, float):
                message = f"interval: {format_duration(one.value)} is below {info.least}"
                advice = f"the shortest interval of {recipe} on {system}; use {info.least} or more"
                part.checked.report(one.where, f"{message}, {advice}", once=True)


def _recorder(part: PartToCheck, one: keys.Capture | keys.Logger, host: str) -> str:
    """Return the recipe that runs at a host for a logger, or the interface of a capture."""
    if isinstance(one, keys.Capture) or part.testbed is None:
        return getattr(one, "interface", None) or ""
    system = part.testbed.hosts[host].system
    return recorder_of(part.catalogue, one, system) or one.logger


# The path


def check_path(part: PartToCheck) -> None:
    """Report errors in the path of a part."""
    testbed, path = part.testbed, part.model.path or keys.NetworkPath()
    if part.model.path is None and not any(target.startswith("path.") for target in part.setters):
        return
    if part.device_link:
        _check_router_only(part, part.device_link)
    else:
        if testbed is not None and testbed.bottleneck is None:
            message = f"testbed '{testbed.name}' has no bottleneck; remove path, or choose another testbed"
            part.checked.report(("path",), message, key=True)
        for key, value in (("rate", path.rate_bps), ("buffer", path.buffer)):
            if not value and part.checked.intact():
                _check_needed(part, key)
        for key, message in _without_effect(part, path):
            part.checked.report(("path", key), message)
    for one, message in _impossible(part):
        part.checked.report(one.where, f"{one.key}: {message}")
    selectors = [(one.flow, one.from_end, one.to_end) for one in path.classes]
    for index, selector in enumerate(selectors):
        if selectors.index(selector) != index:
            message = "another class selects the same packets already; merge the two"
            part.checked.report(("path", "classes", index), message)
    for one in part.values_of("path.buffer"):
        if isinstance(one.value, Buffer):
            _check_buffer(part, one, one.value)


def _check_router_only(part: PartToCheck, link: str) -> None:
    """Report keys of the path that need a router. (The bottleneck is the device of the link `link`.)"""
    known = keys.keys_of(keys.NetworkPath)
    takes = [*(key for key in known if key not in keys.ROUTER_ONLY), *keys.DEVICE_PARAMETERS]
    refused = f"needs a router; the bottleneck is link '{link}', which takes {', '.join(takes)}"
    for key in keys.ROUTER_ONLY:
        if part.model.path and known[key].attribute in part.model.path.model_fields_set:
            part.checked.report(("path", key), f"path.{key} {refused}", key=True)
        for factor in part.setters_of(f"path.{key}"):
            part.checked.report(("factors", factor.name), f"path.{key} {refused}", key=True)


def _check_needed(part: PartToCheck, key: str) -> None:
    """Report a missing key of the path, unless every level of a factor sets it."""
    target = f"path.{key}"
    setters = part.setters_of(target)
    if not setters:
        message = f"path has no {key}; add {key}: ... here, or a factor {target}"
        part.checked.report(("path",), message, key=True)
    for factor in setters:
        for index, level in enumerate(factor.levels):
            if target not in level.texts:
                message = f"level '{level.label}' has no {target}, and path has no {key}; add one of them"
                part.checked.report(("factors", factor.name, "levels", index), message)


def _without_effect(part: PartToCheck, path: keys.NetworkPath) -> Iterator[tuple[str, str]]:
    """Yield each key of the path that has no effect because another key is missing, with a message."""
    if not isinstance(path.rate_bps, Directional) and path.rate_bps and "path.rate" not in part.setters:
        for key, value in (("buffer", path.buffer), ("aqm", path.aqm)):
            if isinstance(value, Directional) and value.up is not None:
                yield key, f"path has no rate upstream for this {key}; add rate: {{down: ..., up: ...}}"
    delayed = path.delay_s or path.rtt_s or {"path.rtt", "path.delay"} & part.setters.keys()
    for key, share in (("jitter", path.jitter_s), ("reorder", path.reorder)):
        if share and not delayed:
            yield key, f"path has {key} but no delay that it could change; add rtt or delay"
    if path.loss_burst_packets and not path.loss and "path.loss" not in part.setters:
        yield "loss_burst", "path has loss_burst but no loss; add loss"


def _impossible(part: PartToCheck) -> Iterator[tuple[PartValue, str]]:
    """Yield the fixed values of the path that are impossible together, each with a message.

    Values from levels and formulas are checked when the experiment is planned.
    """
    delay_varies = {"path.rtt", "path.delay"} & part.setters.keys()
    for direction in ("down", "up"):
        fixed = {
            key: one
            for key in ("rtt", "delay", "jitter", "loss", "loss_burst")
            for one in part.values_of(f"path.{key}")
            if one.level is None and (key == "rtt" or (one.step or "down") == direction)
        }
        numbers = {key: one.value for key, one in fixed.items() if isinstance(one.value, int | float)}
        delay_s, jitter_s = numbers.get("delay", numbers.get("rtt", 0) / 2), numbers.get("jitter", 0)
        if 0 < delay_s < jitter_s and not delay_varies:
            more = f"{format_duration(jitter_s)} is more than the one-way delay, {format_duration(delay_s)}"
            yield fixed["jitter"], f"{more}; it must not exceed the delay"
        loss, burst = numbers.get("loss", 0), numbers.get("loss_burst", inf)
        if loss == 1:
            yield fixed["loss"], "100% lets nothing through; use less"
        elif burst < keys.least_burst_packets(loss):
            message = f"{format_share(loss)} of loss cannot occur in bursts of {burst}packets"
            yield fixed["loss_burst"], f"{message}; use {ceil(keys.least_burst_packets(loss))}packets or more"


def _check_buffer(part: PartToCheck, one: PartValue, buffer: Buffer) -> None:
    """Report a buffer in a unit that its queue discipline does not accept.

    A buffer from a formula is known in both units, so it is accepted.
    """
    if None not in (buffer.packets, buffer.bytes):
        return
    if part.device_link:
        if buffer.packets is None:
            message = f"link '{part.device_link}' queues frames; give the buffer as 2720packets or 1 BDP"
            part.checked.report(one.where, message)
        return
    takes = {
        aqm: part.catalogue.parameters("aqm", aqm, system) or {}
        for system in part.systems_of("path")
        for aqm in part.catalogue.names("aqm", system)
    }
    unit, other = ("packets", "bytes") if buffer.packets is not None else ("bytes", "packets")
    (needed, _), (instead, example) = BUFFER_UNITS[unit], BUFFER_UNITS[other]
    aqms = part.texts_of("path.aqm", one.level)
    unable = [aqm for aqm in aqms if instead in takes.get(aqm, {}) and needed not in takes[aqm]]
    with_all = one.level is None or "path.aqm" in one.level.texts  # the aqm of another level may accept it
    if unable and (with_all or len(unable) == len(aqms)):
        able = sorted(name for name, parameters in takes.items() if needed in parameters)
        message = f"aqm {unable[0]} counts {other}; give the buffer as {example} or 1 BDP"
        use = f", or use an aqm that counts {unit}: {', '.join(able)}" if able else ""
        part.checked.report(one.where, message + use)
