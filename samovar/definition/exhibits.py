"""The figures and tables that an experiment may name, with their options: those that the analysis draws."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from samovar.definition.factor_levels import is_free
from samovar.definition.nearest import unknown
from samovar.definition.yamltext import Map, Node, Seq, Text
from samovar.errors import Problem

KINDS = ("figure", "table")
COMMON = {
    "part": "Part that is shown.",
    "trial": "Id of the trial that is shown.",
    "title": "Title in the report.",
}
"""Options of all figures and tables, beside factors, of which the levels that are given are shown."""


@dataclass(frozen=True)
class Exhibit:
    """One figure or table: what it shows, and the options that are its own."""

    title: str
    options: tuple[str, ...] = ()


Exhibits = Mapping[str, Mapping[str, Exhibit]]
"""Figures and tables by kind and name."""


def read_exhibits(folder: Path) -> Exhibits:
    """Return what a folder of R code draws: its functions figure_NAME and table_NAME."""
    texts = [file.read_text("utf-8") for file in sorted(folder.glob("*.R"))]
    found = {kind: dict(one for text in texts for one in _drawn(kind, text)) for kind in KINDS}
    return {kind: dict(sorted(names.items())) for kind, names in found.items()}


def _drawn(kind: str, text: str) -> Iterator[tuple[str, Exhibit]]:
    """Yield a file's functions of a kind; their options are those that they read, options$NAME."""
    pattern = re.compile(
        rf"(?:^#' (?P<title>[^@\n]*)\n(?:^#.*\n)*)?^{kind}_(?P<name>\w+) <- function(?P<body>(?:\n|.)*?^}})",
        re.MULTILINE,
    )
    for one in pattern.finditer(text):
        read = dict.fromkeys(re.findall(r"\boptions\$(\w+)", one["body"]))
        own = tuple(option for option in read if option not in COMMON and is_free(option))
        yield one["name"].replace("_", "-"), Exhibit(one["title"] or "", own)


def check_exhibits(tree: Map, known: Exhibits) -> Iterator[Problem]:
    """Yield a mistake for each figure and table of an experiment and its profiles that nothing draws.

    So for each option that one does not have; a factor of the experiment is an option of all.
    """
    profiles = tree.get("profiles")
    layers = [tree, *(profiles.values() if isinstance(profiles, Map) else ())]
    maps = [one for one in layers if isinstance(one, Map)]
    factors = {factor for layer in maps for factor in _factors(layer)}
    for layer in maps:
        for kind in KINDS:
            for entry in _entries(layer.get(f"{kind}s")):
                yield from _of_entry(kind, entry, known.get(kind, {}), factors)


def _of_entry(kind: str, entry: Node, known: Mapping[str, Exhibit], factors: set[str]) -> Iterator[Problem]:
    name = entry.get(kind) if isinstance(entry, Map) else entry
    if not known or not isinstance(name, Text):
        return
    if name not in known:
        yield name.mark.problem(unknown(kind, name, known))
    elif isinstance(entry, Map):
        options = {*COMMON, *known[name].options, *factors}
        for key in [key for key in entry if key not in (kind, *options)]:
            yield entry.key_marks[key].problem(unknown(f"option of {name}", key, options))


def _entries(listed: Node | None) -> Iterator[Node]:
    yield from listed if isinstance(listed, Seq) else ()


def _factors(layer: Map) -> Iterator[str]:
    """Yield the factors of a layer and of its parts."""
    parts = layer.get("parts")
    for holder in (layer, *(parts.values() if isinstance(parts, Map) else ())):
        factors = holder.get("factors") if isinstance(holder, Map) else None
        yield from factors if isinstance(factors, Map) else ()
