"""Check the path of a part: bottleneck, rate, delay, losses, buffers and their units, classes of flows."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from math import ceil
from typing import Any

from samovar.experiment.checks.check_context import (
    Context,
    Parameters,
    aqms_of,
    level_places,
    setters_of,
    varied,
)
from samovar.experiment.checks.check_traffic import flows_by_label
from samovar.experiment.checks.validate import Loc
from samovar.experiment.keys import (
    DEVICE_PARAMETERS,
    ROUTER_ONLY,
    NetworkPath,
    Part,
    PathClass,
    keys_of,
    least_burst_packets,
    own_keys,
    refusal,
)
from samovar.experiment.nearest import unknown
from samovar.experiment.values import Buffer, Directional
from samovar.units import format_duration, format_share

DIRECTIONS = ("down", "up")
DELAYS = frozenset({"path.rtt", "path.delay", "path.jitter"})
LOSSES = frozenset({"path.loss", "path.loss_burst"})
BUFFER_UNITS = {"packets": ("buffer_packets", "546packets"), "bytes": ("buffer_bytes", "819KB")}
"""The parameter of a queue discipline that takes a buffer in this unit, and an example."""


def check_path(context: Context, name: str, part: Part) -> None:
    """Report what is wrong with the path of a part."""
    where: Loc = ("parts", name, "path")
    if part.path is None and not any(target.startswith("path.") for target in varied(part)):
        return
    testbed = context.testbed
    if testbed is not None and testbed.bottleneck_link is not None:
        _check_device_path(context, where, part, testbed.bottleneck_link)
        return
    if testbed is not None and testbed.bottleneck is None:
        message = f"testbed '{testbed.name}' has no bottleneck; remove path, or choose another testbed"
        context.report(where, message, key=True)
    path = part.path or NetworkPath()
    for key, value in (("rate", path.rate_bps), ("buffer", path.buffer)):
        if not value and context.checked.intact(*where[:2]):
            _check_needed(context, where, part, key)
    for loc, message in (*_without_effect(path, varied(part)), *_impossible(path, varied(part))):
        context.report((*where, *loc), message)
    _check_aqms(context, where, part)
    for index, one in enumerate(path.classes):
        _check_class(context, (*where, "classes", index), part, one)
    if context.router_system is not None:
        _check_buffers(context, where, part, context.router_system)


def _check_device_path(context: Context, where: Loc, part: Part, link: str) -> None:
    """Report what the device of a link, which is the bottleneck, cannot do; it queues frames."""
    path = part.path or NetworkPath()
    known = keys_of(NetworkPath)
    takes = [*(key for key in known if key not in ROUTER_ONLY), *DEVICE_PARAMETERS]
    refused = f"needs a router; the bottleneck is link '{link}', which takes {', '.join(takes)}"
    for key in ROUTER_ONLY:
        if keys_of(NetworkPath)[key].attribute in path.model_fields_set:
            context.report((*where, key), f"path.{key} {refused}", key=True)
        for factor in setters_of(part, f"path.{key}"):
            context.report((*where[:2], "factors", factor.name), f"path.{key} {refused}", key=True)
    for parameter, value in path.parameters.items():
        keys = own_keys(NetworkPath) - set(ROUTER_ONLY)
        error = refusal(parameter, value, DEVICE_PARAMETERS, keys)
        if error:
            context.report((*where, parameter), error, key=parameter not in DEVICE_PARAMETERS)
    for at, size, _, _ in _buffers(part, where):
        for steps, buffer in _by_direction(size):
            if isinstance(buffer, Buffer) and buffer.packets is None:
                message = f"link '{link}' queues frames; give the buffer as 2720packets or 1 BDP"
                context.report((*at, *steps), message)


def _check_needed(context: Context, where: Loc, part: Part, key: str) -> None:
    """Report a key of the path that neither the path nor every level of a factor gives."""
    target = f"path.{key}"
    setters = setters_of(part, target)
    if not setters:
        message = f"path has no {key}; add {key}: ... here, or a factor {target}"
        context.report(where, message, key=True)
    for factor in setters:
        for index, level in enumerate(factor.levels):
            if target not in level.texts:
                message = f"level '{level.label}' has no {target}, and path no {key}; add one of them"
                context.report((*where[:2], "factors", factor.name, "levels", index), message)


def _without_effect(path: NetworkPath, varied: frozenset[str]) -> Iterator[tuple[Loc, str]]:
    """Yield the keys that have no effect without another key, with messages."""
    if not isinstance(path.rate_bps, Directional) and path.rate_bps and "path.rate" not in varied:
        for key, value in (("buffer", path.buffer), ("aqm", path.aqm)):
            if isinstance(value, Directional) and value.up is not None:
                yield (key,), f"path has no rate upstream for this {key}; add rate: {{down: ..., up: ...}}"
    delayed = path.delay_s or path.rtt_s or {"path.rtt", "path.delay"} & varied
    for key, share in (("jitter", path.jitter_s), ("reorder", path.reorder)):
        if share and not delayed:
            yield (key,), f"path has {key} but no delay that it could change; add rtt or delay"
    if path.loss_burst_packets and not path.loss and "path.loss" not in varied:
        yield ("loss_burst",), "path has loss_burst but no loss; add loss"


def _impossible(path: NetworkPath, varied: frozenset[str]) -> Iterator[tuple[Loc, str]]:
    """Yield numbers that cannot be combined; the plan checks those that vary or are formulas."""
    for direction in DIRECTIONS:
        delay, jitter = _delay(path, direction), _in_direction(path.jitter_s, direction)
        if not DELAYS & varied and _are_numbers(delay, jitter) and jitter > (delay or jitter):
            more = f"{format_duration(jitter)} is more than the one-way delay, {format_duration(delay)}"
            yield _steps("jitter", path.jitter_s, direction), f"jitter: {more}; it must not exceed the delay"
        loss, burst = _in_direction(path.loss, direction), _in_direction(path.loss_burst_packets, direction)
        if "path.loss" not in varied and loss == 1:
            yield _steps("loss", path.loss, direction), "loss: 100% lets nothing through; use less"
        elif not LOSSES & varied and _are_numbers(loss, burst) and loss < 1:
            least = least_burst_packets(loss)
            if burst < least:
                message = f"{format_share(loss)} of loss cannot occur in bursts of {burst}packets"
                steps = _steps("loss_burst", path.loss_burst_packets, direction)
                yield steps, f"loss_burst: {message}; use {ceil(least)}packets or more"


def _delay(path: NetworkPath, direction: str) -> Any:
    if path.delay_s is not None:
        return getattr(path.delay_s, direction)
    return path.rtt_s / 2 if isinstance(path.rtt_s, float) else path.rtt_s


def _in_direction(value: Any, direction: str) -> Any:
    """Return the value for a direction; a plain value is for downstream."""
    if isinstance(value, Directional):
        return getattr(value, direction)
    return value if direction == "down" else None


def _are_numbers(*values: object) -> bool:
    return all(isinstance(value, int | float) for value in values)


def _steps(key: str, value: object, direction: str) -> Loc:
    return (key, direction) if isinstance(value, Directional) else (key,)


def _by_direction(value: object) -> Iterator[tuple[Loc, object]]:
    if isinstance(value, Directional):
        yield from ((("down",), value.down), (("up",), value.up))
    else:
        yield (), value


def _check_aqms(context: Context, where: Loc, part: Part) -> None:
    """Report unknown queue disciplines, and parameters that they do not take."""
    system = context.router_system
    if system is None:
        return
    known = context.catalogue.names("aqm", system)
    for name in aqms_of(part):
        if name not in known:
            context.report(_aqm_place(where, part, name), unknown(f"aqm on {system}", name, known))
    recipes = dict(context.recipes_of(part, "path", None))
    for parameter, value in (part.path.parameters if part.path else {}).items():
        refusals = (refusal(parameter, value, takes, own_keys(NetworkPath)) for takes in recipes.values())
        message = not_taken("path", parameter, recipes) or next((one for one in refusals if one), None)
        if message:
            of_key = any(parameter not in takes for takes in recipes.values())
            context.report((*where, parameter), message, key=of_key)


def not_taken(owner: str, parameter: str, recipes: Mapping[str, Parameters]) -> str | None:
    """Return the message for a parameter that one of the recipes that it is passed to takes, another not."""
    lacking = [name for name, known in recipes.items() if parameter not in known]
    having = [name for name, known in recipes.items() if parameter in known]
    if not lacking or not having:
        return None
    key = "aqm" if owner == "path" else "generator"
    together = f"{{{owner}.{key}: {having[0]}, {owner}.{parameter}: ...}}"
    return f"{lacking[0]} does not take {parameter}, {having[0]} does; set both in one level, {together}"


def _aqm_place(where: Loc, part: Part, aqm: str) -> Loc:
    """Return where a queue discipline is named: at a level, or in the path."""
    written = part.path.aqm if part.path else None
    for at, value in [
        *((at, level.texts["path.aqm"]) for at, level in level_places(part, where[:2], "path.aqm")),
        ((*where, "aqm"), written),
    ]:
        for steps, name in _by_direction(value):
            if name == aqm:
                return (*at, *steps)
    return (*where, "aqm")


def _check_class(context: Context, where: Loc, part: Part, one: PathClass) -> None:
    """Report a class for unknown flows or hosts, and one for the same packets as another class."""
    if one.flow is not None:
        context.check_name((*where, "flow"), "flow", one.flow, flows_by_label(context, part))
    classes = part.path.classes if part.path else ()
    selectors = [(other.flow, other.from_end, other.to_end) for other in classes]
    if selectors.index((one.flow, one.from_end, one.to_end)) != where[-1]:
        context.report(where, "another class is for the same packets already; merge them")
    for key, end in (("from", one.from_end), ("to", one.to_end)):
        if end is not None and "/" not in end and ":" not in end:
            context.check_name((*where, key), "host or role", end, context.end_names)


def _buffers(part: Part, where: Loc) -> Iterator[tuple[Loc, object, tuple[str, ...], bool]]:
    """Yield each buffer: place, value, queue disciplines, and whether all or at least one must take it."""
    if part.path is not None and "path.buffer" not in varied(part):
        yield (*where, "buffer"), part.path.buffer, aqms_of(part), True
    for at, level in level_places(part, where[:2], "path.buffer"):
        yield at, level.values.get("path.buffer"), aqms_of(part, level), "path.aqm" in level.texts


def _check_buffers(context: Context, where: Loc, part: Part, system: str) -> None:
    """Report buffers in a unit that their queue discipline does not take; formulas give both units."""
    takes = {
        aqm: context.catalogue.parameters("aqm", aqm, system) or {}
        for aqm in context.catalogue.names("aqm", system)
    }
    for at, value, aqms, for_all in _buffers(part, where):
        for steps, buffer in _by_direction(value):
            if not isinstance(buffer, Buffer) or None not in (buffer.packets, buffer.bytes):
                continue
            unit, other = ("packets", "bytes") if buffer.packets is not None else ("bytes", "packets")
            (needed, _), (instead, example) = BUFFER_UNITS[unit], BUFFER_UNITS[other]
            unable = [one for one in aqms if instead in takes.get(one, {}) and needed not in takes[one]]
            if not unable or (not for_all and len(unable) < len(aqms)):
                continue
            able = sorted(name for name, parameters in takes.items() if needed in parameters)
            message = f"aqm {unable[0]} counts {other}; give the buffer as {example} or 1 BDP"
            use = f", or use an aqm that counts {unit}: {', '.join(able)}" if able else ""
            context.report((*at, *steps), message + use)
