"""Explanations as lines of text: the value that holds is marked, what it hides stands below."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from samovar.definition.explain import Explanation
from samovar.view.words import columns

HOLDS, HIDDEN, TAKEN_AWAY = "»", " ", "✗"


def explanation_lines(found: Sequence[Explanation]) -> Iterator[str]:
    """Show explanations one below the other."""
    for index, one in enumerate(found):
        if index:
            yield ""
        yield _head(one)
        yield from columns(_rows(one))


def _head(one: Explanation) -> str:
    if one.came_to:
        return f"{one.subject} = " + ", ".join(f"{where} {value}".strip() for where, value in one.came_to)
    if one.levels:
        return f"{one.subject} is a factor: {', '.join(one.levels)}"
    if one.taken_away:
        return f"{one.subject} is taken away by a later layer"
    return f"{one.subject} = {one.chain[0].value}" if one.chain else f"{one.subject} is not set"


def _rows(one: Explanation) -> Iterator[tuple[str, ...]]:
    for index, said in enumerate(one.chain):
        holds = TAKEN_AWAY if one.taken_away else HOLDS if index == 0 else HIDDEN
        yield f"  {holds} {said.value}", said.layer, said.place
