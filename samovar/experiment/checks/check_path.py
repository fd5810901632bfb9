"""Check the path of a part: bottleneck, rate, delay, losses, buffers and their units, classes of flows."""

from __future__ import annotations

from collections.abc import Iterator
from math import ceil

from samovar.experiment.checks.check_context import PartInContext, PartValue, setters_of
from samovar.experiment.keys import DEVICE_PARAMETERS, ROUTER_ONLY, NetworkPath, keys_of, least_burst_packets
from samovar.experiment.values import Buffer, Directional
from samovar.units import format_duration, format_share

BUFFER_UNITS = {"packets": ("buffer_packets", "546packets"), "bytes": ("buffer_bytes", "819KB")}
"""The parameter of a queue discipline that takes a buffer in this unit, and an example."""


def check_path(part: PartInContext) -> None:
    """Report what is wrong with the path of a part."""
    testbed, path = part.testbed, part.model.path or NetworkPath()
    if part.model.path is None and not any(target.startswith("path.") for target in part.varied):
        return
    if part.device_link:
        _check_router_only(part, part.device_link)
    else:
        if testbed is not None and testbed.bottleneck is None:
            message = f"testbed '{testbed.name}' has no bottleneck; remove path, or choose another testbed"
            part.report(("path",), message, key=True)
        for key, value in (("rate", path.rate_bps), ("buffer", path.buffer)):
            if not value and part.intact():
                _check_needed(part, key)
        for key, message in _without_effect(part, path):
            part.report(("path", key), message)
    for one, message in _impossible(part):
        part.report(one.where, f"{one.key}: {message}")
    selectors = [(one.flow, one.from_end, one.to_end) for one in path.classes]
    for index, selector in enumerate(selectors):
        if selectors.index(selector) != index:
            message = "another class is for the same packets already; merge them"
            part.report(("path", "classes", index), message)
    for one in part.values_of("path.buffer"):
        if isinstance(one.value, Buffer):
            _check_buffer(part, one, one.value)


def _check_router_only(part: PartInContext, link: str) -> None:
    """Report keys of the path that the device of a link, which is the bottleneck, does not have."""
    known = keys_of(NetworkPath)
    takes = [*(key for key in known if key not in ROUTER_ONLY), *DEVICE_PARAMETERS]
    refused = f"needs a router; the bottleneck is link '{link}', which takes {', '.join(takes)}"
    for key in ROUTER_ONLY:
        if part.model.path and known[key].attribute in part.model.path.model_fields_set:
            part.report(("path", key), f"path.{key} {refused}", key=True)
        for factor in setters_of(part.model, f"path.{key}"):
            part.report(("factors", factor.name), f"path.{key} {refused}", key=True)


def _check_needed(part: PartInContext, key: str) -> None:
    """Report a key of the path that neither the path nor every level of a factor gives."""
    target = f"path.{key}"
    setters = setters_of(part.model, target)
    if not setters:
        message = f"path has no {key}; add {key}: ... here, or a factor {target}"
        part.report(("path",), message, key=True)
    for factor in setters:
        for index, level in enumerate(factor.levels):
            if target not in level.texts:
                message = f"level '{level.label}' has no {target}, and path no {key}; add one of them"
                part.report(("factors", factor.name, "levels", index), message)


def _without_effect(part: PartInContext, path: NetworkPath) -> Iterator[tuple[str, str]]:
    """Yield the keys that have no effect without another key, with messages."""
    if not isinstance(path.rate_bps, Directional) and path.rate_bps and "path.rate" not in part.varied:
        for key, value in (("buffer", path.buffer), ("aqm", path.aqm)):
            if isinstance(value, Directional) and value.up is not None:
                yield key, f"path has no rate upstream for this {key}; add rate: {{down: ..., up: ...}}"
    delayed = path.delay_s or path.rtt_s or {"path.rtt", "path.delay"} & part.varied
    for key, share in (("jitter", path.jitter_s), ("reorder", path.reorder)):
        if share and not delayed:
            yield key, f"path has {key} but no delay that it could change; add rtt or delay"
    if path.loss_burst_packets and not path.loss and "path.loss" not in part.varied:
        yield "loss_burst", "path has loss_burst but no loss; add loss"


def _impossible(part: PartInContext) -> Iterator[tuple[PartValue, str]]:
    """Yield numbers that cannot be combined; the plan checks those that vary or are formulas."""
    for direction in ("down", "up"):
        numbers: dict[str, tuple[PartValue, float]] = {}
        for key in ("rtt", "delay", "jitter", "loss", "loss_burst"):
            for one in part.values_of(f"path.{key}"):
                of_direction = key == "rtt" or (one.step or "down") == direction
                if of_direction and one.level is None and isinstance(one.value, int | float):
                    numbers[key] = one, one.value
        if "delay" not in numbers and "rtt" in numbers and "path.delay" not in part.varied:
            numbers["delay"] = numbers["rtt"][0], numbers["rtt"][1] / 2
        if numbers.keys() >= {"delay", "jitter"} and "path.rtt" not in part.varied:
            (_, delay_s), (one, jitter_s) = numbers["delay"], numbers["jitter"]
            if 0 < delay_s < jitter_s:
                more = f"{format_duration(jitter_s)} is more than the one-way delay"
                yield one, f"{more}, {format_duration(delay_s)}; it must not exceed the delay"
        if "loss" not in numbers:
            continue
        one, loss = numbers["loss"]
        if loss == 1:
            yield one, "100% lets nothing through; use less"
        elif "loss_burst" in numbers:
            one, burst = numbers["loss_burst"]
            least = least_burst_packets(loss)
            if burst < least:
                message = f"{format_share(loss)} of loss cannot occur in bursts of {burst}packets"
                yield one, f"{message}; use {ceil(least)}packets or more"


def _check_buffer(part: PartInContext, one: PartValue, buffer: Buffer) -> None:
    """Report a buffer in a unit that its queue discipline does not take; formulas give both units."""
    if None not in (buffer.packets, buffer.bytes):
        return
    if part.device_link:
        if buffer.packets is None:
            message = f"link '{part.device_link}' queues frames; give the buffer as 2720packets or 1 BDP"
            part.report(one.where, message)
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
    with_all = one.level is None or "path.aqm" in one.level.texts  # else other levels may have those that can
    if unable and (with_all or len(unable) == len(aqms)):
        able = sorted(name for name, parameters in takes.items() if needed in parameters)
        message = f"aqm {unable[0]} counts {other}; give the buffer as {example} or 1 BDP"
        use = f", or use an aqm that counts {unit}: {', '.join(able)}" if able else ""
        part.report(one.where, message + use)
