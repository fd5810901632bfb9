"""What stands at a key of a complete experiment, with all that it hides."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from samovar.experiment.layers.merge import LISTED
from samovar.experiment.yaml.tree import Map, Node, Seq, Text

WAYS = ("down", "up")


def nodes_at(node: Node | None, steps: Sequence[str]) -> list[Node]:
    """Return what every layer says at the end of some steps, the strongest first."""
    if node is None:
        return []
    if not steps or (isinstance(node, Text) and tuple(steps) == WAYS[:1]):  # a plain value is of the way down
        return [node]
    if isinstance(node, Seq):
        return [found for one in _named(node, steps[0]) for found in nodes_at(one, steps[1:])]
    if not isinstance(node, Map):
        return []
    here = [node[steps[0]]] if steps[0] in node else []
    return [
        found for one in (*here, *node.overridden.get(steps[0], ())) for found in nodes_at(one, steps[1:])
    ]


def is_taken_away(node: Node | None, steps: Sequence[str]) -> bool:
    """Say whether what held the end of some steps is there without it."""
    for step in steps[:-1]:
        if isinstance(node, Seq):
            node = next(iter(_named(node, step)), None)
        else:
            node = node.get(step) if isinstance(node, Map) else None
    return isinstance(node, Map) and steps[-1] not in node


def keys_inside(tree: Node | None, steps: Sequence[str]) -> tuple[str, ...]:
    """Return the keys that are said within what stands at the end of some steps.

    There are none in what one layer says as a whole: a text, a list whose entries have no names.
    """
    node = next(iter(nodes_at(tree, steps)), None)
    if steps[0] in LISTED and isinstance(node, Seq):
        return tuple(key for one in node if isinstance(one, Map) for key in _keys_of_entry(steps[0], one))
    if not isinstance(node, Map) or (steps[0] in LISTED and len(steps) > 2):
        return ()
    return tuple(key for own in _keys(node) for key in _with_ways(node, own))


def _keys_of_entry(group: str, entry: Map) -> Iterator[str]:
    name_key = LISTED[group][1]
    yield from (f"{entry.get(name_key, '')}.{key}" for key in _keys(entry) if key != name_key)


def _keys(node: Map) -> Iterator[str]:
    yield from dict.fromkeys((*node, *node.overridden))


def _with_ways(node: Map, key: str) -> Iterator[str]:
    value = node.get(key)
    directed = isinstance(value, Map) and value.keys() <= set(WAYS)
    yield from (f"{key}.{way}" for way in value) if directed and isinstance(value, Map) else (key,)


def _named(entries: Seq, name: str) -> list[Map]:
    maps = [one for one in entries if isinstance(one, Map)]
    return [one for one in maps if name in (one.get("flow"), one.get("logger"))]
