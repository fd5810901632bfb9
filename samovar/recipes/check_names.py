"""Find undefined names and missing included files in the body of a recipe, before it is rendered."""

from __future__ import annotations

from collections.abc import Generator, Iterator, Mapping
from typing import TYPE_CHECKING, NamedTuple

from samovar.errors import unknown

if TYPE_CHECKING:  # takes long to import
    from jinja2 import Environment, nodes

PROGRAM = frozenset({"name", "output", "limit_s", "addresses", "system", "offered"})
FLOW = frozenset({"from_address", "to_address", "port", "duration_s", "size_bytes", "cc", "dscp"})
VALUES: Mapping[str, frozenset[str]] = {
    "setting": frozenset({"interfaces"}),
    "aqm": frozenset({"rate_bps", "frame_bytes"}),
    "generator": PROGRAM | FLOW,
    "logger": PROGRAM | {"interface", "ports"},
}
"""The names that recipes of each kind can use, besides `given` and their own parameters."""
STATE_BLOCKS = frozenset({"set", "restore"})
"""The blocks of a setting that get `was`, the state before the trial."""
MARKS = ("{{", "{%", "{#")


class Mistake(NamedTuple):
    """A mistake in a recipe, or in the file that `included` names. `word` is the wrong name, if any."""

    line: int
    message: str
    word: str = ""
    included: str = ""


def check_names(
    tree: nodes.Template, environment: Environment, kind: str, parameters: frozenset[str]
) -> Iterator[Mistake]:
    """Yield the mistakes in a parsed recipe.

    Each block is checked separately, because it is rendered separately.
    """
    from jinja2 import nodes

    for one in tree.find_all((nodes.Filter, nodes.Test)):
        what, names = ("filter", environment.filters), ("test", environment.tests)
        word, known = what if isinstance(one, nodes.Filter) else names
        if one.name not in known:
            yield Mistake(one.lineno, unknown(word, one.name, known), one.name)
            return  # such a recipe cannot be compiled
    own = VALUES.get(kind, frozenset()) | parameters | {"given"}
    for block in tree.find_all(nodes.Block):
        state = {"was"} if kind == "setting" and block.name in STATE_BLOCKS else set[str]()
        stored = yield from _undefined(block, environment, own | state, f"name in block {block.name}")
        for include in block.find_all(nodes.Include):
            if isinstance(include.template, nodes.Const):
                yield from _included(include, include.template.value, environment, own | state | stored)


def _included(
    include: nodes.Include, name: str, environment: Environment, known: frozenset[str]
) -> Iterator[Mistake]:
    from jinja2 import TemplateNotFound, TemplateSyntaxError

    assert environment.loader
    try:
        text = environment.loader.get_source(environment, name)[0]
        if any(mark in text for mark in MARKS):
            for one in _undefined(environment.parse(text), environment, known, "name"):
                yield one._replace(included=name)
    except TemplateNotFound:
        yield Mistake(include.lineno, f"no file '{name}' below the folders of recipes", name)
    except TemplateSyntaxError as error:
        yield Mistake(error.lineno, str(error.message).rstrip("."), included=name)


def _undefined(
    node: nodes.Node, environment: Environment, known: frozenset[str], what: str
) -> Generator[Mistake, None, frozenset[str]]:
    """Yield a mistake for each name that nothing defines; return the names that the recipe defines.

    If a name is used outside the loop that defines it, this error is found only when the recipe is rendered.
    """
    from jinja2 import meta, nodes

    names = list(node.find_all(nodes.Name))
    stored = frozenset(one.name for one in names if one.ctx != "load")
    if {one.name for one in names if one.ctx == "load"} - known - stored:  # most recipes use no such name
        own = node if isinstance(node, nodes.Template) else nodes.Template([node], lineno=1)
        own.set_environment(environment)
        for name in sorted(meta.find_undeclared_variables(own) - known - environment.globals.keys()):
            line = min(one.lineno for one in names if (one.name, one.ctx) == (name, "load"))
            yield Mistake(line, unknown(what, name, known), name)
    return stored
