"""Read one recipe, a Jinja2 file with a typed header, and render its blocks with quoted values."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import cache, cached_property
from pathlib import Path

from samovar.errors import DefinitionError, Problem, RecipeError, unknown
from samovar.experiment import keys, yaml_tree
from samovar.recipes.check_names import Mistake, check_names
from samovar.recipes.header import read_header
from samovar.recipes.quoting import plain, quote, shell_environment
from samovar.units import UnitError

BLOCKS: Mapping[str, frozenset[str]] = {
    "setting": frozenset({"read", "set", "wanted", "restore"}),
    "aqm": frozenset({"qdisc", "shown"}),
    "generator": frozenset({"client"}),
    "logger": frozenset({"start", "ready"}),
    "step": frozenset({"script"}),
    "fact": frozenset({"command"}),
}
"""The blocks that a recipe of each kind must have; it may have more."""

NOT_SHELL = frozenset({"wanted", "owned", "qdisc", "shown", "pace"})
"""Blocks whose values are not quoted. No shell runs them: they are compared with output, or used in another
recipe."""


class Recipe:
    """A recipe. Raises DefinitionError with all errors of its header; the body is compiled on first use."""

    def __init__(self, kind: str, name: str, path: Path, folders: Sequence[Path] = ()) -> None:
        self.kind, self.name, self.path = kind, name, path
        self._folders = tuple(folders) or (path.parents[2],)  # with the files that recipes include
        self._text = text = yaml_tree.read_text(path, "a recipe").replace("\r\n", "\n")
        self._compiled = cache(lambda quoting: shell_environment(self._folders, quoting).from_string(text))
        self.header = read_header(path, text)
        self.defaults = {
            name: keys.parse_parameter(parameter, parameter.default)
            for name, parameter in self.header.parameters.items()
            if parameter.default is not None
        }

    @cached_property
    def blocks(self) -> frozenset[str]:
        """The names of the blocks that the recipe defines, from its parsed but not compiled body.

        Raises DefinitionError if the body is not Jinja2, lacks a required block, or uses an undefined name.
        """
        from jinja2 import TemplateSyntaxError, nodes

        environment = shell_environment(self._folders)
        try:
            tree = environment.parse(self._text)
        except TemplateSyntaxError as error:
            message = (error.message or "this is not Jinja2").rstrip(".")
            raise self._problem(message, error.lineno) from error
        found = frozenset(block.name for block in tree.find_all(nodes.Block))
        missing = sorted(BLOCKS[self.kind] - found)
        if missing:
            blocks = " and ".join(f"{{% block {block} %}}" for block in missing)
            present = ", ".join(sorted(found)) or "none"
            raise self._problem(f"a recipe of kind {self.kind} needs {blocks}; it has: {present}", 1)
        mistakes = check_names(tree, environment, self.kind, frozenset(self.header.parameters))
        problems = [problem for one in mistakes for problem in self._problem_of(one).problems]
        if problems:
            raise DefinitionError(problems)
        return found

    def _problem_of(self, mistake: Mistake) -> DefinitionError:
        if not mistake.included:
            return self._problem(mistake.message, mistake.line, mistake.word)
        file = next(path for folder in self._folders if (path := folder / mistake.included).is_file())
        return DefinitionError([Problem(str(file), mistake.line, 1, mistake.message)])

    def _problem(self, message: str, number: int, word: str = "") -> DefinitionError:
        """Return an error in a line.

        Jinja2 reports no column, so the error is placed at `word` if the line contains it, otherwise at the
        first character that is not blank.
        """
        lines = self._text.splitlines()
        line = lines[number - 1] if number <= len(lines) else ""
        found = re.search(rf"\b{re.escape(word)}\b", line) if word else None
        column = (found.start() if found else len(line) - len(line.lstrip())) + 1
        return DefinitionError([Problem(str(self.path), number, column, message, line)])

    def parse_values(self, parameters: Mapping[str, str]) -> dict[str, object]:
        """Return the parameters that an experiment gives, parsed with the types of the header.

        Raises RecipeError for an unknown parameter or a value of the wrong type.
        """
        known = self.header.parameters
        try:
            return {name: keys.parse_parameter(known[name], text) for name, text in parameters.items()}
        except KeyError as error:
            raise RecipeError(f"{self.path}: {unknown('parameter', error.args[0], known)}") from None
        except UnitError as error:
            raise RecipeError(f"{self.path}: {error}") from error

    def render(self, block: str, values: Mapping[str, object]) -> str:
        """Return the text of one block, each value quoted as a shell word.

        Missing values are taken from the header's defaults. In the recipe, `given` is a mapping of all
        parameters that have a value. Raises RecipeError if a value is missing or the block does not exist.
        """
        from jinja2 import TemplateError

        if block not in self.blocks:
            raise RecipeError(f"{self.path}: no block {block!r}; it has: {', '.join(sorted(self.blocks))}")
        known = {**self.defaults, **values}
        given = {name: known[name] for name in self.header.parameters if name in known}
        try:
            template = self._compiled(plain if block in NOT_SHELL else quote)
            return "".join(template.blocks[block](template.new_context({"given": given, **known})))
        except (TemplateError, RecipeError, TypeError, ValueError, ArithmeticError, LookupError) as error:
            raise RecipeError(f"{self.path}: block {block}: {error}") from error
