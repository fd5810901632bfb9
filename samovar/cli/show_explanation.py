"""Explanations as lines of text: the value that holds is marked, what it hides stands below."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from samovar.cli.wording import columns
from samovar.experiment.explanation.explain import Explanation

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
        return f"{one.subject} = {_came_to(one)}"
    subject = f"{one.subject}{one.at}"
    if one.levels:
        return f"{subject} is a factor: {', '.join(one.levels)}"
    if one.taken_away:
        return f"{subject} is taken away by a later layer"
    if one.inside:
        return f"{subject}, key by key"
    return f"{subject} = {one.chain[0].value}" if one.chain else f"{subject} is not set"


def _came_to(one: Explanation) -> str:
    """Write what a value came to in a trial; hosts at which it is the same are named together."""
    if not one.hosts:
        return ", ".join(f"{where} {value}".strip() for where, value in one.came_to)
    places: dict[str, list[str]] = {}
    for where, value in one.came_to:
        places.setdefault(value, []).append(where)
    return "; ".join(f"{value} at {', '.join(hosts)}" for value, hosts in places.items())


def _rows(one: Explanation, key: str = "") -> Iterator[tuple[str, ...]]:
    for own, inner in one.inside:
        yield from _rows(inner, f"{own}: ")
    for index, said in enumerate(one.chain):
        holds = TAKEN_AWAY if one.taken_away else HOLDS if index == 0 and not one.inside else HIDDEN
        yield f"  {holds} {key}{said.value}", said.layer, said.place
