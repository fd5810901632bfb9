"""The figures and tables that an experiment may name: those that the analysis draws."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path

from samovar.definition.nearest import unknown
from samovar.definition.yamltext import Map, Node, Seq, Text
from samovar.errors import Problem

KINDS = ("figure", "table")
Exhibits = Mapping[str, Collection[str]]


def read_exhibits(folder: Path) -> Exhibits:
    """Return the names of figures and tables by kind: R functions figure_NAME and table_NAME of a folder."""
    texts = [file.read_text("utf-8") for file in sorted(folder.glob("*.R"))]
    found = {kind: re.compile(rf"^{kind}_(\w+) <- function", re.MULTILINE) for kind in KINDS}
    return {
        kind: {name.replace("_", "-") for text in texts for name in pattern.findall(text)}
        for kind, pattern in found.items()
    }


def check_exhibits(tree: Map, known: Exhibits) -> Iterator[Problem]:
    """Yield a mistake for each figure and table of an experiment and its profiles that nothing draws."""
    profiles = tree.get("profiles")
    layers = [tree, *(profiles.values() if isinstance(profiles, Map) else ())]
    for layer in (one for one in layers if isinstance(one, Map)):
        for kind in KINDS:
            for name in _named(layer.get(f"{kind}s"), kind):
                if known.get(kind) and name not in known[kind]:
                    yield name.mark.problem(unknown(kind, name, known[kind]))


def _named(entries: Node | None, kind: str) -> Iterator[Text]:
    for entry in entries if isinstance(entries, Seq) else ():
        name = entry.get(kind) if isinstance(entry, Map) else entry
        if isinstance(name, Text):
            yield name
