"""The figures and tables that an experiment may name, with their options: those that the analysis draws."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from samovar.errors import Problem
from samovar.experiment.keys import is_free
from samovar.experiment.nearest import unknown
from samovar.experiment.yaml.tree import Map, Node, Seq, Text

KINDS = ("figure", "table")
COMMON = {
    "part": "Part that is shown, or several.",
    "trial": "Id of the trial that is shown, or several.",
    "title": "Title in the report.",
}
"""Options of all figures and tables, beside factors, of which the levels that are given are shown."""
_TOLD = re.compile(r"# (?=\w)(?:Words: (?P<words>[^.]*)\.)? ?(?:Shows: (?P<shows>[^.]*)\.)?")


@dataclass(frozen=True)
class Exhibit:
    """One figure or table: what it is, its own options with the words that each takes, none for any.

    It has something to show where all metrics of one group of `shows` are measured; without a group always.
    """

    title: str = ""
    options: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    shows: tuple[tuple[str, ...], ...] = ()


Exhibits = Mapping[str, Mapping[str, Exhibit]]
"""Figures and tables by kind and name."""


def read_exhibits(folder: Path) -> Exhibits:
    """Return what a folder of R code draws: its functions figure_NAME and table_NAME.

    The first line of the comment above each is its title, its options those it reads (`options$NAME`). The
    comment's last line may tell more: `# Words: method=1|2. Shows: one_metric, another or a_third.`
    """
    texts = [file.read_text("utf-8") for file in sorted(folder.glob("*.R"))]
    found = {kind: dict(one for text in texts for one in _drawn(kind, text)) for kind in KINDS}
    return {kind: dict(sorted(names.items())) for kind, names in found.items()}


def _drawn(kind: str, text: str) -> Iterator[tuple[str, Exhibit]]:
    """Yield a file's functions of a kind."""
    pattern = re.compile(
        rf"(?P<above>(?:^#.*\n)*)^{kind}_(?P<name>\w+) <- function(?P<body>(?:\n|.)*?^}})", re.MULTILINE
    )
    for one in pattern.finditer(text):
        comment = one["above"].splitlines() or [""]
        title = re.search(r"^#' ([^@\n]*)$", one["above"], re.MULTILINE)
        words, shows = _told(comment[-1])
        read = dict.fromkeys(re.findall(r"\boptions\$(\w+)", one["body"]))
        own = {option: words.get(option, ()) for option in read if option not in COMMON and is_free(option)}
        yield one["name"].replace("_", "-"), Exhibit(title[1] if title else "", own, shows)


def _told(comment: str) -> tuple[Mapping[str, tuple[str, ...]], tuple[tuple[str, ...], ...]]:
    """Return the words of options, and groups of metrics, that a comment tells."""
    told = _TOLD.fullmatch(comment)
    if told is None:
        return {}, ()
    options = (one.strip().partition("=") for one in (told["words"] or "").split(",") if one)
    groups = (group.split(", ") for group in (told["shows"] or "").split(" or ") if group)
    return {name: tuple(words.split("|")) for name, _, words in options}, tuple(
        tuple(group) for group in groups
    )


def check_exhibits(tree: Map, known: Exhibits) -> Iterator[Problem]:
    """Yield a mistake for each figure and table of an experiment and its profiles that nothing draws."""
    profiles = tree.get("profiles")
    layers = [tree, *(profiles.values() if isinstance(profiles, Map) else ())]
    for layer in layers:
        for kind in KINDS if isinstance(layer, Map) else ():
            for entry in _entries(layer.get(f"{kind}s")):
                name = entry.get(kind) if isinstance(entry, Map) else entry
                if known.get(kind) and isinstance(name, Text) and name not in known[kind]:
                    yield name.position.problem(unknown(kind, name, known[kind]))


def _entries(listed: Node | None) -> Iterator[Node]:
    yield from listed if isinstance(listed, Seq) else ()
