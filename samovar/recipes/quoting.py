"""Shell quoting: the one place where values become shell text, and the Jinja2 environment that applies it."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from samovar.errors import RecipeError
from samovar.recipes import recipe_filters

if TYPE_CHECKING:
    from jinja2 import Environment


class Raw(str):
    """Text that a recipe marks as shell text with ``| raw``."""


def quote(value: object) -> str:
    """Return one ``{{ value }}`` as a single shell word.

    Raises RecipeError for a value that cannot be a word: None (a parameter without a value), a NUL byte or a
    line break.
    """
    if isinstance(value, Raw):
        return str(value)
    if value is None:
        raise RecipeError("a recipe prints a parameter without a value; give it a default in the header")
    if isinstance(value, bool):
        return "1" if value else "0"
    text = f"{value:.9f}".rstrip("0").rstrip(".") if isinstance(value, float) else str(value)
    if any(c in text for c in "\0\n\r"):
        raise RecipeError(f"{text!r} cannot be a shell word: it must not contain line breaks or NUL bytes")
    return shlex.quote(text)


def literal(text: str) -> Raw:
    """Quote a text of the recipe itself, such as a program of several lines, as one shell word."""
    return Raw(shlex.quote(text))


def plain(value: object) -> str:
    """Return a value without quotes, for a block that no shell reads.

    Raises RecipeError for a value that quote() would refuse.
    """
    quote(value)
    return str(value)


def shell_environment(folders: Sequence[Path] = (), finalize: Callable[[object], str] = quote) -> Environment:
    """Return a Jinja2 environment that quotes every value and refuses undefined values.

    Recipes include programs in other languages from the first of `folders` that has the file.
    """
    from jinja2 import Environment, FileSystemLoader, StrictUndefined  # slow to import, and not always needed

    environment = Environment(
        loader=FileSystemLoader(folders) if folders else None,
        finalize=finalize,
        undefined=StrictUndefined,
        autoescape=False,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    environment.filters.update(recipe_filters.FILTERS, raw=Raw, literal=literal)
    return environment
