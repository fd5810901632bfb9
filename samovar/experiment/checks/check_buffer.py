"""What makes a buffer impossible: bytes where the queue discipline counts packets, or packets for bytes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from samovar.experiment.checks.check_context import Context, aqms_of, varied
from samovar.experiment.checks.validate import Loc
from samovar.experiment.expressions import Buffer, Directional
from samovar.experiment.keys import Part

COUNTED = {"packets": ("buffer_packets", "546packets"), "bytes": ("buffer_bytes", "819KB")}


class Asked(NamedTuple):
    """A buffer that is asked for, where, and the queue disciplines that it is for, all or at least one."""

    where: Loc
    value: object
    aqms: tuple[str, ...]
    all: bool


def check_buffer(context: Context, name: str, part: Part) -> None:
    """Report buffers in a unit that their queue discipline does not count; a computed one has both units."""
    if context.device is not None:
        _check_frames(context, part, ("parts", name))
        return
    system = context.router_system()
    for asked in _asked(part, ("parts", name)) if system else ():
        for steps, value in _ways(asked.value):
            if system and isinstance(value, Buffer) and None in (value.packets, value.bytes):
                _check(context, asked, steps, value, system)


def _check_frames(context: Context, part: Part, where: Loc) -> None:
    """Report buffers in bytes of a pair of adapters, which queue frames."""
    for asked in _asked(part, where):
        for steps, value in _ways(asked.value):
            if isinstance(value, Buffer) and value.packets is None:
                link = context.testbed.bottleneck_link if context.testbed else ""
                message = f"link '{link}' queues frames; expected a buffer such as 2720packets or 1 BDP"
                context.checked.report((*asked.where, *steps), message)


def _asked(part: Part, where: Loc) -> Iterator[Asked]:
    if part.path is not None and "path.buffer" not in varied(part):
        yield Asked((*where, "path", "buffer"), part.path.buffer, aqms_of(part), True)
    for factor in part.factors.values():
        for index, level in enumerate(factor.levels):
            if "path.buffer" not in level.values:
                continue
            at = (
                *where,
                "factors",
                factor.name,
                "levels",
                index,
                *(["path.buffer"] if factor.linked else []),
            )
            yield Asked(at, level.values["path.buffer"], aqms_of(part, level), "path.aqm" in level.values)


def _ways(value: object) -> Iterator[tuple[tuple[str, ...], object]]:
    if isinstance(value, Directional):
        yield from ((("down",), value.down), (("up",), value.up))
    else:
        yield (), value


def _check(context: Context, asked: Asked, steps: tuple[str, ...], buffer: Buffer, system: str) -> None:
    unit, other = ("packets", "bytes") if buffer.packets is not None else ("bytes", "packets")
    unable = [aqm for aqm in asked.aqms if _counts(context, aqm, system, other, unit)]
    if not unable or (not asked.all and len(unable) < len(asked.aqms)):
        return
    every = sorted(context.catalogue.names("aqm", system))
    able = [name for name in every if _takes(context, name, system, unit)]
    message = f"aqm {unable[0]} counts {other}; expected a buffer such as {COUNTED[other][1]} or 1 BDP"
    accepted = f", or an aqm that counts {unit}: {', '.join(able)}" if able else ""
    context.checked.report((*asked.where, *steps), message + accepted)


def _counts(context: Context, aqm: str, system: str, one: str, other: str) -> bool:
    """Say whether a queue discipline counts one unit and not the other."""
    return _takes(context, aqm, system, one) and not _takes(context, aqm, system, other)


def _takes(context: Context, aqm: str, system: str, unit: str) -> bool:
    return COUNTED[unit][0] in (context.catalogue.parameters("aqm", aqm, system) or {})
