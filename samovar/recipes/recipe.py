"""A recipe: a Jinja2 file with a header that plan, check, docs and tests read."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Literal

from jinja2 import Template, TemplateError, TemplateSyntaxError
from jinja2.exceptions import UndefinedError

from samovar.errors import DefinitionError, Problem, RecipeError
from samovar.experiment import parse_parameter
from samovar.experiment.yaml.tree import read_text
from samovar.recipes.header import Header, read_header
from samovar.recipes.quoting import plain_environment, shell_environment

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
"""Blocks whose text is compared or becomes one value of another recipe, and so is not quoted."""


class Recipe:
    """A parsed recipe file of one kind and name."""

    def __init__(self, kind: Kind, name: str, path: Path, header: Header, text: str) -> None:
        self.kind, self.name, self.path, self.header = kind, name, path, header
        self.defaults = {
            name: parse_parameter(known, known.default)
            for name, known in header.parameters.items()
            if known.default is not None
        }
        self._quoted: Template = shell_environment(path.parents[2]).from_string(text)
        self._plain: Template = plain_environment(path.parents[2]).from_string(text)

    @property
    def blocks(self) -> frozenset[str]:
        """Name the blocks that the recipe defines."""
        return frozenset(self._quoted.blocks)

    def render(self, block: str, values: Mapping[str, object]) -> str:
        """Render one block with its values, each quoted as a shell word.

        A header's default stands for what is not given; `given` maps each parameter that has a value to it.
        Raises RecipeError when a value is missing or the block does not exist.
        """
        if block not in self.blocks:
            raise RecipeError(
                f"{self.path}: has no block {block!r}; it has: {', '.join(sorted(self.blocks))}"
            )
        template = self._plain if block in NOT_SHELL else self._quoted
        try:
            return "".join(template.blocks[block](template.new_context(self._context(values))))
        except UndefinedError as error:
            raise RecipeError(f"{self.path}: block {block}: {error.message}") from error
        except TemplateError as error:
            raise RecipeError(f"{self.path}: block {block}: {error}") from error
        except RecipeError as error:
            raise RecipeError(f"{self.path}: block {block}: {error}") from error

    def _context(self, values: Mapping[str, object]) -> dict[str, object]:
        known = {**self.defaults, **values}
        return {"given": {name: known[name] for name in self.header.parameters if name in known}, **known}


def read_recipe(kind: Kind, name: str, path: Path) -> Recipe:
    """Parse a recipe file; raises DefinitionError with all mistakes of its header, or the body's first."""
    text = read_text(path, "a recipe").replace("\r\n", "\n")
    header = read_header(path, text)
    try:
        recipe = Recipe(kind, name, path, header, text)
    except TemplateSyntaxError as error:
        raise DefinitionError([_no_template(path, text, error)]) from error
    missing = sorted(BLOCKS[kind] - recipe.blocks)
    if missing:
        blocks = " and ".join(f"{{% block {block} %}}" for block in missing)
        message = (
            f"a recipe of kind {kind} needs {blocks}; it has: {', '.join(sorted(recipe.blocks)) or 'none'}"
        )
        raise DefinitionError([Problem(str(path), 1, 1, message, text.partition("\n")[0])])
    return recipe


def _no_template(path: Path, text: str, error: TemplateSyntaxError) -> Problem:
    """Return the mistake that Jinja2 finds; it knows the line and not the column."""
    lines = text.splitlines()
    line = lines[error.lineno - 1] if error.lineno <= len(lines) else ""
    message = (error.message or "this is no Jinja2").rstrip(".")
    return Problem(str(path), error.lineno, len(line) - len(line.lstrip()) + 1, message, line)
