"""A recipe: a Jinja2 file with a typed header, rendered block by block with quoted values."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from samovar.errors import DefinitionError, Problem, RecipeError
from samovar.experiment import parse_parameter, read_text
from samovar.recipes.header import Header, read_header
from samovar.recipes.quoting import plain_environment, shell_environment
from samovar.units import UnitError

if TYPE_CHECKING:
    from jinja2 import Template, TemplateSyntaxError

Kind = Literal["setting", "aqm", "generator", "logger", "step", "fact"]

BLOCKS: Mapping[str, frozenset[str]] = {
    "setting": frozenset({"read", "set", "wanted", "restore"}),
    "aqm": frozenset({"qdisc", "shown"}),
    "generator": frozenset({"client"}),
    "logger": frozenset({"start", "ready"}),
    "step": frozenset({"script"}),
    "fact": frozenset({"command"}),
}
"""The blocks that a recipe of each kind must have; it may have more."""

NOT_SHELL = frozenset({"wanted", "qdisc", "shown"})
"""Blocks that are compared with output or become one value of another recipe, and so are not quoted."""


class Recipe:
    """A parsed recipe file of one kind and name."""

    def __init__(self, kind: Kind, name: str, path: Path, header: Header, text: str) -> None:
        self.kind, self.name, self.path, self.header = kind, name, path, header
        self.defaults = {
            name: parse_parameter(parameter, parameter.default)
            for name, parameter in header.parameters.items()
            if parameter.default is not None
        }
        self._text = text

    @cached_property
    def _quoted(self) -> Template:
        return shell_environment(self.path.parents[2]).from_string(self._text)

    @cached_property
    def _plain(self) -> Template:
        return plain_environment(self.path.parents[2]).from_string(self._text)

    def check_body(self) -> None:
        """Raise DefinitionError if the body is not Jinja2 or lacks a block that its kind must have."""
        from jinja2 import TemplateSyntaxError

        try:
            missing = sorted(BLOCKS[self.kind] - self.blocks)
        except TemplateSyntaxError as error:
            raise DefinitionError([_syntax_problem(self.path, self._text, error)]) from error
        if missing:
            blocks = " and ".join(f"{{% block {block} %}}" for block in missing)
            present = ", ".join(sorted(self.blocks)) or "none"
            message = f"a recipe of kind {self.kind} needs {blocks}; it has: {present}"
            raise DefinitionError([Problem(str(self.path), 1, 1, message, self._text.partition("\n")[0])])

    @property
    def blocks(self) -> frozenset[str]:
        """The names of the blocks that the recipe defines."""
        return frozenset(self._quoted.blocks)

    def parse_values(self, parameters: Mapping[str, str]) -> dict[str, object]:
        """Return the parameters that an experiment gives, parsed with the types of the header.

        Raises RecipeError for an unknown parameter or a value that is not of its type.
        """
        known = self.header.parameters
        try:
            return {name: parse_parameter(known[name], text) for name, text in parameters.items()}
        except KeyError as error:
            names = ", ".join(known) or "none"
            raise RecipeError(f"{self.path}: unknown parameter {error}; known: {names}") from None
        except UnitError as error:
            raise RecipeError(f"{self.path}: {error}") from error

    def render(self, block: str, values: Mapping[str, object]) -> str:
        """Return the text of one block, each value quoted as a shell word.

        Missing values are taken from the header's defaults; in the recipe, `given` maps each parameter that
        has a value to it. Raises RecipeError if a value is missing or the block does not exist.
        """
        from jinja2 import TemplateError

        if block not in self.blocks:
            raise RecipeError(f"{self.path}: no block {block!r}; it has: {', '.join(sorted(self.blocks))}")
        template = self._plain if block in NOT_SHELL else self._quoted
        known = {**self.defaults, **values}
        given = {name: known[name] for name in self.header.parameters if name in known}
        try:
            return "".join(template.blocks[block](template.new_context({"given": given, **known})))
        except (TemplateError, RecipeError) as error:
            raise RecipeError(f"{self.path}: block {block}: {error}") from error


def read_recipe(kind: Kind, name: str, path: Path) -> Recipe:
    """Return the recipe in a file.

    Raises DefinitionError with all errors of its header, or else the first one of its body.
    """
    recipe = read_unchecked(kind, name, path)
    recipe.check_body()
    return recipe


def read_unchecked(kind: Kind, name: str, path: Path) -> Recipe:
    """Return the recipe in a file without compiling its body, which takes longer than to read its header."""
    text = read_text(path, "a recipe").replace("\r\n", "\n")
    return Recipe(kind, name, path, read_header(path, text), text)


def _syntax_problem(path: Path, text: str, error: TemplateSyntaxError) -> Problem:
    """Return a syntax error of Jinja2, which reports the line but not the column."""
    lines = text.splitlines()
    line = lines[error.lineno - 1] if error.lineno <= len(lines) else ""
    message = (error.message or "this is not Jinja2").rstrip(".")
    return Problem(str(path), error.lineno, len(line) - len(line.lstrip()) + 1, message, line)
