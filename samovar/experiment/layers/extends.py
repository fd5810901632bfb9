"""One tree of several files: an experiment over the one it extends and over the fragments it uses.

The rule is that of profiles everywhere: what stands later lies over what stands earlier, and what a layer
says at its top changes the parts below it as well. Every node keeps the place that it was written at.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import cast

from samovar.errors import Problem
from samovar.experiment.layers.fragments import Fragments, Reading
from samovar.experiment.layers.merge import overlaid
from samovar.experiment.layers.without import WITHOUT, lessened
from samovar.experiment.nearest import nearest, unknown
from samovar.experiment.yaml.tree import Map, near, yaml_files

REUSE = ("extends", "use", "fragments")
OF_A_NEW_PART = ("title", "factors", "include", "traffic", "path", "settings")
"""What makes a part one of its own: `parts: {windw: {duration: 5s}}` is a slip of the pen."""


@dataclass(frozen=True)
class Flattened:
    """One tree that needs no other file, and the files that it was made from (the experiment first).

    It is not `whole` where a file or fragment is missing: what it lacks then is no mistake of its own.
    """

    tree: Map
    sources: tuple[Path, ...]
    whole: bool = True


def flattened(tree: Map, path: Path, problems: list[Problem]) -> Flattened:
    """Return an experiment with what it extends and uses laid under it; mistakes are added to problems."""
    reading = Reading(problems, [path])
    laid = _laid(tree, path, (path.stem,), reading)
    return Flattened(_without(laid, REUSE), tuple(dict.fromkeys(reading.sources)), not reading.missing)


def _laid(tree: Map, path: Path, trail: tuple[str, ...], reading: Reading) -> Map:
    """Return a file's tree over its bases, still with all fragments that it knows."""
    base = _base(tree, path, trail, reading)
    fragments = Fragments.of(base, tree, path.parent / "fragments", reading)
    result = Map(tree.mark)
    for layer in (base, *fragments.used_by(tree), _without(fragments.expanded(tree), REUSE)):
        if layer is not None:
            _check_parts(result, layer, reading.problems)
            under = lessened(result, layer, [] if reading.missing else reading.problems)
            result = overlaid(under, layer, reading.problems) if result else _without(layer, (WITHOUT,))
    result.mark = tree.mark
    if fragments.own:
        result.put("fragments", fragments.own, tree.key_marks.get("fragments", tree.mark))
    return result


def _check_parts(base: Map, layer: Map, problems: list[Problem]) -> None:
    """Report a part that only changes something and that the base does not have, but nearly."""
    known, parts = base.get("parts"), layer.get("parts")
    if not isinstance(known, Map) or not isinstance(parts, Map):
        return
    for name, part in parts.items():
        is_new = name not in known and isinstance(part, Map)
        if is_new and not {*OF_A_NEW_PART} & {*cast(Map, part)} and nearest(name, known):
            message = f"{unknown('part', name, known)}; a new one says one of {', '.join(OF_A_NEW_PART)}"
            problems.append(parts.key_marks[name].problem(message))


def _base(tree: Map, path: Path, trail: tuple[str, ...], reading: Reading) -> Map | None:
    name = tree.get("extends")
    if name is None:
        return None
    if not isinstance(name, str):
        reading.lack(name.mark.problem("extends: expected the name of one experiment of this folder"))
        return None
    known = sorted(one.stem for one in yaml_files(path.parent) if one.stem != path.stem)
    if str(name) in trail:
        circle = " extends ".join([*trail[trail.index(str(name)) :], str(name)])
        reading.lack(name.mark.problem(f"{circle}; expected files that do not extend each other"))
    elif str(name) not in known:
        reading.lack(name.mark.problem(unknown("experiment", name, known)))
    else:
        file = near(path.parent, str(name))
        other = reading.read(file)
        return _laid(other, file, (*trail, str(name)), reading) if other is not None else None
    return None


def _without(tree: Map, keys: tuple[str, ...]) -> Map:
    result = tree.copied()
    for key in keys:
        result.pop(key, None)
        result.hidden.pop(key, None)
    return result
