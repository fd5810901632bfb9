"""What makes a path impossible: no bottleneck, no rate or buffer, values that need others, classes."""

from __future__ import annotations

from collections.abc import Iterator
from math import ceil
from typing import Any

from samovar.experiment.checks.check_context import Context, aqms_of, varied
from samovar.experiment.checks.check_flows import flows_by_label
from samovar.experiment.checks.check_levels import not_taken
from samovar.experiment.checks.validate import Loc
from samovar.experiment.expressions import Directional
from samovar.experiment.keys import (
    DEVICE_PARAMETERS,
    ROUTER_ONLY,
    NetworkPath,
    Part,
    PathClass,
    end_names,
    hosts_of,
    least_burst_packets,
    own_keys,
    refusal,
)
from samovar.experiment.nearest import unknown
from samovar.units import format_duration, format_share

WAYS = ("down", "up")
DELAYS = frozenset({"path.rtt", "path.delay", "path.jitter"})
LOSSES = frozenset({"path.loss", "path.loss_burst"})


def check_path(context: Context, name: str, part: Part) -> None:
    """Report what cannot be set at the bottleneck of a testbed."""
    where: Loc = ("parts", name, "path")
    touched = [target for target in varied(part) if target.startswith("path.")]
    if part.path is None and not touched:
        return
    testbed = context.testbed
    if testbed is not None and testbed.bottleneck_link is not None:
        _check_device(context, where, part)
        return
    if testbed is not None and testbed.bottleneck is None:
        message = f"testbed '{testbed.name}' has no bottleneck to set; expected none of path here"
        context.checked.report(where, message, key=True)
    written = part.path or NetworkPath()
    for key, given in (("rate", written.rate_bps), ("buffer", written.buffer)):
        if not given and context.checked.intact(*where[:2]):
            _check_given(context, where, part, key)
    for steps, message in (*_lonely(written, varied(part)), *_impossible(written, varied(part))):
        context.checked.report((*where, *steps), message)
    _check_recipes(context, where, part)
    for index, one in enumerate(written.classes):
        _check_class(context, (*where, "classes", index), part, one)


def _check_given(context: Context, where: Loc, part: Part, key: str) -> None:
    """Report a part whose path lacks a key that no factor gives it, or one of a factor's levels does not."""
    target = f"path.{key}"
    setters = [one for one in part.factors.values() if any(target in level.values for level in one.levels)]
    if not setters:
        message = f"path has no {key}; expected {key}: ... here, or a factor {target}"
        context.checked.report(where, message, key=True)
    for factor in setters:
        for index, level in enumerate(factor.levels):
            if target not in level.values:
                message = f"level '{level.label}' has no {target}, and path no {key}; expected one of them"
                context.checked.report((*where[:2], "factors", factor.name, "levels", index), message)


def _check_device(context: Context, where: Loc, part: Part) -> None:
    """Report what a device between two hosts cannot be."""
    written = part.path or NetworkPath()
    name = context.testbed.bottleneck_link if context.testbed else ""
    takes = ["rate", "rtt", "delay", "loss", "buffer", *DEVICE_PARAMETERS]
    refused = f"is a router's; the bottleneck is link '{name}', which takes {', '.join(takes)}"
    fields = {info.alias or field: field for field, info in NetworkPath.model_fields.items()}
    for key in ROUTER_ONLY:
        if fields[key] in written.model_fields_set:
            context.checked.report((*where, key), f"path.{key} {refused}", key=True)
    for factor in part.factors.values():
        for key in ROUTER_ONLY:
            if any(f"path.{key}" in level.values for level in factor.levels):
                at = (*where[:2], "factors", factor.name)
                context.checked.report(at, f"path.{key} {refused}", key=True)
    for parameter, value in written.parameters.items():
        wrong = refusal(parameter, value, DEVICE_PARAMETERS, own_keys(NetworkPath) - set(ROUTER_ONLY))
        if wrong:
            context.checked.report((*where, parameter), wrong, key=parameter not in DEVICE_PARAMETERS)


def _lonely(path: NetworkPath, varied: frozenset[str]) -> Iterator[tuple[Loc, str]]:
    """Yield the keys that say nothing without another, with what is wrong."""
    if not isinstance(path.rate_bps, Directional) and path.rate_bps and "path.rate" not in varied:
        for key, value in (("buffer", path.buffer), ("aqm", path.aqm)):
            if isinstance(value, Directional) and value.up is not None:
                both = "expected rate: {down: ..., up: ...}"
                yield (key,), f"path has {key} for the way up, which has no rate; {both}"
    delayed = path.delay_s or path.rtt_s or {"path.rtt", "path.delay"} & varied
    for key, share in (("jitter", path.jitter_s), ("reorder", path.reorder)):
        if share and not delayed:
            yield (key,), f"path has {key} but no delay, which it changes; expected rtt or delay beside it"
    if path.loss_burst_packets and not path.loss and "path.loss" not in varied:
        yield ("loss_burst",), "path has loss_burst but no loss; expected loss beside it"


def _impossible(path: NetworkPath, varied: frozenset[str]) -> Iterator[tuple[Loc, str]]:
    """Yield the places of numbers that cannot be together; the plan tells of what varies or is computed."""
    for way in WAYS:
        if not DELAYS & varied:
            yield from _beyond_delay(path, way)
        loss = _of_way(path.loss, way)
        if "path.loss" not in varied and loss == 1:
            yield _steps("loss", path.loss, way), "loss: 100% lets nothing through; expected less"
        elif not LOSSES & varied and _are_numbers(loss):
            yield from _short_bursts(path, way, loss)


def _beyond_delay(path: NetworkPath, way: str) -> Iterator[tuple[Loc, str]]:
    delay, jitter = _delay(path, way), _of_way(path.jitter_s, way)
    if _are_numbers(delay, jitter) and jitter > (delay or jitter):
        message = f"{format_duration(jitter)} is more than the delay, {format_duration(delay)} each way"
        yield _steps("jitter", path.jitter_s, way), f"jitter: {message}; expected at most the delay"


def _short_bursts(path: NetworkPath, way: str, loss: float) -> Iterator[tuple[Loc, str]]:
    burst = _of_way(path.loss_burst_packets, way)
    if loss < 1 and _are_numbers(burst) and burst < (least := least_burst_packets(loss)):
        message = f"{format_share(loss)} of loss cannot come in bursts of {burst}packets"
        expected = f"expected {ceil(least)}packets or more"
        yield _steps("loss_burst", path.loss_burst_packets, way), f"loss_burst: {message}; {expected}"


def _delay(path: NetworkPath, way: str) -> Any:
    if path.delay_s is not None:
        return getattr(path.delay_s, way)
    return path.rtt_s / 2 if isinstance(path.rtt_s, float) else path.rtt_s


def _of_way(value: Any, way: str) -> Any:
    """Return what holds for a direction: a plain value is that of the way down."""
    if isinstance(value, Directional):
        return getattr(value, way)
    return value if way == "down" else None


def _are_numbers(*values: object) -> bool:
    return all(isinstance(value, int | float) for value in values)


def _steps(key: str, value: object, way: str) -> Loc:
    return (key, way) if isinstance(value, Directional) else (key,)


def _check_recipes(context: Context, where: Loc, part: Part) -> None:
    system = context.router_system()
    if system is None:
        return
    known = context.catalogue.names("aqm", system)
    for name in aqms_of(part):
        if name not in known:
            message = unknown(f"aqm on {system}", name, known)
            context.checked.report(_place_of(where, part, name), message)
    takers = dict(context.takers(part, "path", None))
    for parameter, value in (part.path.parameters if part.path else {}).items():
        refusals = (refusal(parameter, value, takes, own_keys(NetworkPath)) for takes in takers.values())
        wrong = not_taken("path", parameter, takers) or next((one for one in refusals if one), None)
        if wrong:
            of_key = any(parameter not in takes for takes in takers.values())
            context.checked.report((*where, parameter), wrong, key=of_key)


def _place_of(where: Loc, part: Part, aqm: str) -> Loc:
    """Return where a queue discipline stands: at the level that names it, or in the path."""
    for factor in part.factors.values():
        for index, level in enumerate(factor.levels):
            value = level.values.get("path.aqm")
            at = (
                *where[:2],
                "factors",
                factor.name,
                "levels",
                index,
                *(["path.aqm"] if factor.linked else []),
            )
            if isinstance(value, Directional) and aqm in (value.down, value.up):
                return (*at, "down" if value.down == aqm else "up")
            if value == aqm:
                return at
    written = part.path.aqm if part.path else None
    way = ["down" if written.down == aqm else "up"] if isinstance(written, Directional) else []
    return (*where, "aqm", *way)


def _check_class(context: Context, where: Loc, part: Part, one: PathClass) -> None:
    labels = flows_by_label(context, part)
    if one.flow is not None and one.flow not in labels:
        context.checked.report((*where, "flow"), unknown("flow", one.flow, labels))
    match = (one.flow, one.from_end, one.to_end)
    first = next(
        index
        for index, other in enumerate(part.path.classes if part.path else ())
        if (other.flow, other.from_end, other.to_end) == match
    )
    if first != where[-1]:
        context.checked.report(where, "a class for the same packets stands here again; expected it once")
    for key, end in (("from", one.from_end), ("to", one.to_end)):
        if context.testbed is None or end is None or "/" in end or ":" in end:
            continue
        if not hosts_of(context.testbed, end):
            known = end_names(context.testbed)
            context.checked.report((*where, key), unknown("host or role", end, known))
