"""What a layer takes away from those below it: `without: [parts.window, factors.mtu, traffic.late]`.

Keys are named as --set names them. What is taken away at the top is taken from the parts as well, and is
remembered as hidden, so that it can be explained.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from samovar.errors import Problem
from samovar.experiment.nearest import unknown
from samovar.experiment.yaml.tree import Map, Node, Seq

WITHOUT = "without"
NAMED: Mapping[str, str] = {"traffic": "flow", "loggers": "logger"}
"""Lists whose entries are named, and the key that names them."""
OPEN = ("factors", "settings", "profiles", "parts")
"""Mappings whose keys are names that may have dots."""
EXPECTED = "expected keys of what lies below, such as [parts.window, factors.mtu, traffic.late]"
Steps = tuple[str, ...]


def lessened(base: Map, layer: Map, problems: list[Problem]) -> Map:
    """Return what lies under a layer without the keys that the layer takes away.

    A key that is not there is reported, with the nearest that is.
    """
    given = layer.get(WITHOUT)
    names = given if isinstance(given, Seq) else [] if given is None else [given]
    for name in names:
        if not isinstance(name, str):
            problems.append(name.mark.problem(f"{WITHOUT}: {EXPECTED}"))
            continue
        less = _less(base, str(name))
        if less is None:
            known = set(_keys(base, ()))
            problems.append(name.mark.problem(unknown("key to take away", name, known, sorted(known))))
        base = less or base
    return base


def _less(base: Map, name: str) -> Map | None:
    """Return a tree without a key, at its top and in its parts; None when neither has it."""
    part, _, own = name.removeprefix("parts.").partition(".")
    parts = base.get("parts")
    if name.startswith("parts."):
        ways = [("parts", part, *way) for way in _ways(own)] if own else [("parts", part)]
    else:
        inner = list(parts) if isinstance(parts, Map) else []
        ways = [*_ways(name), *(("parts", one, *way) for one in inner for way in _ways(name))]
    found = None
    for way in ways:
        less = _dropped(found or base, way)
        found = less if isinstance(less, Map) else found
    return _without_lines_of(found, part) if found and name == f"parts.{part}" else found


def _without_lines_of(base: Map, part: str) -> Map:
    """Return a tree without the figures, tables and expectations of one part."""
    result = base.copied()
    for key in ("figures", "tables", "expect"):
        lines = base.get(key)
        if isinstance(lines, Seq):
            kept = [one for one in lines if not (isinstance(one, Map) and one.get("part") == part)]
            result[key] = Seq(kept, lines.mark)
    return result


def _ways(name: str) -> Iterator[Steps]:
    """Yield the steps that a name may mean: a key, a factor or a setting of that name."""
    first, _, rest = name.partition(".")
    if first in OPEN and rest:
        yield (first, rest)
        return
    yield from (("factors", name), ("settings", name), tuple(name.split(".")))
    if first in NAMED and rest:
        label, _, key = rest.rpartition(".")
        yield from ((first, rest), (first, label, key))


def _dropped(node: Node | None, steps: Steps) -> Node | None:
    """Return a copy without what stands at the end of some steps; None when nothing does."""
    if isinstance(node, Seq):
        return None
    if not isinstance(node, Map) or steps[0] not in node:
        return None
    result, here = node.copied(), node[steps[0]]
    if len(steps) == 1:
        del result[steps[0]]
        result.hidden[steps[0]] = (here, *node.hidden.get(steps[0], ()))
        return result
    rest = _entries_dropped(steps[0], here, steps[1:]) if isinstance(here, Seq) else _dropped(here, steps[1:])
    if rest is None:
        return None
    result[steps[0]] = rest
    return result


def _entries_dropped(group: str, entries: Seq, steps: Steps) -> Seq | None:
    """Return a list without the entry of a name, or with one that lacks a key."""
    kept: list[Node] = []
    for one in entries:
        named = isinstance(one, Map) and one.get(NAMED.get(group, "")) == steps[0]
        less = _dropped(one, steps[1:]) if named and len(steps) > 1 else None
        kept += [] if named and len(steps) == 1 else [one if less is None else less]
    return Seq(kept, entries.mark) if kept != list(entries) else None


def _keys(node: Node, way: Steps) -> Iterator[str]:
    """Name everything that could be taken away."""
    if isinstance(node, Map) and len(way) < (4 if way[:1] == ("parts",) else 2):
        for key, value in node.items():
            yield ".".join((*way, key))
            if key not in ("fragments", "profiles", "expect"):
                yield from _keys(value, (*way, key))
    elif isinstance(node, Seq) and way[-1] in NAMED:
        names = (one.get(NAMED[way[-1]]) for one in node if isinstance(one, Map))
        yield from (".".join((*way, str(name))) for name in names)
