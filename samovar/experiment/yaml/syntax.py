"""YAML's syntax through PyYAML, untyped and bounded, with its complaints in this project's words."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

import yaml

from samovar.errors import DefinitionError
from samovar.experiment.yaml.positions import Mark, Places

DEEPEST = 40
Say = Callable[["re.Match[str]"], str]


class _BoundedLoader(yaml.BaseLoader):
    """PyYAML's untyped loader with a bound on nesting."""

    depth = 0

    def compose_node(self, parent: yaml.Node | None, index: int) -> yaml.Node | None:
        self.depth += 1
        if self.depth > DEEPEST:
            mark = self.peek_event().start_mark  # type: ignore[no-untyped-call]
            raise yaml.MarkedYAMLError(problem=f"nested deeper than {DEEPEST} levels", problem_mark=mark)
        node: yaml.Node | None = super().compose_node(parent, index)
        self.depth -= 1
        return node


def compose(content: str, places: Places) -> yaml.Node | None:
    """Parse a text; raises DefinitionError with the place of the first thing that is no YAML."""
    try:
        return _BoundedLoader(content).get_single_node()
    except yaml.MarkedYAMLError as error:
        raise DefinitionError([_place(error, places).problem(_message(error))]) from error
    except yaml.reader.ReaderError as error:
        before = content[: error.position]
        mark = places.at(before.count("\n"), error.position - (before.rfind("\n") + 1))
        message = f"a control character (U+{ord(content[error.position]):04X}); expected printable text"
        raise DefinitionError([mark.problem(message)]) from error


def _place(error: yaml.MarkedYAMLError, places: Places) -> Mark:
    opening = error.context_mark if (error.problem or "") in _AT_OPENING else None
    place = opening or error.problem_mark or error.context_mark
    return places.at(place.line, place.column) if place else places.at(0, 0)


_AT_OPENING = ("could not find expected ':'", "found unexpected end of stream")
"""Complaints whose cause stands where the thing began, not where PyYAML noticed."""

_OPEN = "close what is open"
_WORDS: Sequence[tuple[str, Say]] = (
    (r"'\\t'", lambda _: "a tab where YAML allows only spaces; indent with spaces"),
    (r"found another document", lambda _: "a second document starts here; expected one document per file"),
    (r"could not find expected ':'", lambda _: "no ': ' in this line; expected key: value"),
    (
        r"mapping values are not allowed",
        lambda _: "a ':' where no key can stand; quote a text that holds ': '",
    ),
    (
        r"(sequence entries|mapping keys) are not allowed",
        lambda m: (
            f"a '{'-' if m[1][0] == 's' else '?'} ' where no entry can begin; quote a text that holds it"
        ),
    ),
    (r"expected ',' or '(.)', but got", lambda m: f"no ',' or '{m[1]}' before this; {_OPEN}"),
    (
        r"node content, but found '<stream end>'",
        lambda _: "a '[' or '{' opens before this and never closes; close it",
    ),
    (
        r"node content, but found '(.)'",
        lambda m: f"a '{m[1]}' where a key or value should stand; expected one, or quotes around a text",
    ),
    (r"found unexpected end of stream", lambda _: "a quote opens here and never closes; expected another"),
    (r"undefined alias '(.*)'", lambda m: f"alias '*{m[1]}' has no anchor; expected '&{m[1]}' before it"),
    (r"cannot start any token", lambda _: "a text cannot begin like this in YAML; quote it"),
    (
        r"duplicate anchor '(.*)'",
        lambda m: f"anchor '&{m[1].split(chr(39))[0]}' stands here again; expected it once",
    ),
    (
        r"expected <block end>|expected '<document start>'",
        lambda _: "indented unlike its neighbours; expected the same blanks before each key",
    ),
    (r"(nested deeper than \d+ levels)", lambda m: f"{m[1]}; expected a definition, not data"),
    (r"escape", lambda _: "no escape of double quotes; write \\\\ for a \\, or take single quotes"),
    (r"(?:scanning|parsing) an? (?:alias|anchor)", lambda _: _begins("'&'", "an anchor, '*' an alias")),
    (r"tag", lambda _: _begins("'!'", "a tag")),
    (r"directive", lambda _: _begins("'%'", "a directive")),
    (r"block scalar", lambda _: _begins("'|' or '>'", "a text on the lines below")),
)


def _begins(sign: str, what: str) -> str:
    return f"{sign} begins {what} in YAML, which this is not; quote a text that begins so"


def _message(error: yaml.MarkedYAMLError) -> str:
    problem = f"{error.problem or 'cannot be read'} {error.context or ''}".rstrip()
    found = ((re.search(pattern, problem), say) for pattern, say in _WORDS)
    said = next((say(match) for match, say in found if match), f"this is no YAML: {problem}")
    opening, here = error.context_mark, error.problem_mark
    elsewhere = opening and here and opening.line != here.line and said.endswith(_OPEN)
    return f"{said}, which opens in line {opening.line + 1}" if opening and elsewhere else said
