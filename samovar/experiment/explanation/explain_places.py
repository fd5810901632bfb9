"""Which layer a place in a file belongs to: a profile, a part, a fragment, an experiment that is extended."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import yaml

from samovar.errors import DefinitionError
from samovar.experiment.yaml.syntax import Position
from samovar.experiment.yaml.tree import Map, Node, Seq, plain, read_yaml

NAMED = {"profiles": "profile", "parts": "part", "fragments": "fragment"}


class LayerNames:
    """Names the layers of places, reading each file once more as it was written."""

    def __init__(self) -> None:
        self._known: dict[str, dict[str, str]] = {}

    def of(self, position: Position) -> str:
        """Name the layer that a place belongs to."""
        return self.of_place(str(position), position.file)

    def of_place(self, place: str, file: str = "") -> str:
        """Name the layer of a place that is given as text, FILE:LINE:COLUMN."""
        if place.startswith("--set "):
            return "--set"
        name = file or place.rsplit(":", 2)[0]
        if name not in self._known:
            self._known[name] = _layers_of(Path(name))
        return self._known[name].get(place, "experiment")


def _layers_of(path: Path) -> dict[str, str]:
    try:
        tree, _ = read_yaml(path)
    except DefinitionError:
        return {}
    whole = f"experiment {tree['experiment']}" if "experiment" in tree else f"fragment {path.stem}"
    return {str(position): layer for position, layer in _places(tree, (), whole)}


def _places(node: Node, steps: tuple[str, ...], layer: str) -> Iterator[tuple[Position, str]]:
    yield node.position, layer
    if isinstance(node, Map):
        for key, value in node.items():
            yield from _places(value, (*steps, key), _layer_at(steps, key, layer))
    elif isinstance(node, Seq):
        for one in node:
            yield from _places(one, (*steps, "-"), layer)


def _layer_at(steps: tuple[str, ...], key: str, layer: str) -> str:
    """Name the layer of what stands at a key: profile quick, part window of profile quick, ..."""
    if len(steps) not in (1, 3) or steps[-1] not in NAMED:
        return layer
    own = f"{NAMED[steps[-1]]} {key}"
    return own if len(steps) == 1 else f"{own} of {layer}"


def flow_text(node: Node) -> str:
    """Write a node in one line, as it could stand in a file."""
    if isinstance(node, str):
        return str(node)
    dumped = yaml.safe_dump(
        plain(node), default_flow_style=True, sort_keys=False, width=10**6, allow_unicode=True
    )
    return dumped.strip().replace("'", "")
