"""The one place where values become shell text."""

from __future__ import annotations

import shlex
from collections.abc import Callable
from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from samovar.errors import RecipeError
from samovar.recipes import dummynet, tc


class Raw(str):
    """Text that a recipe's author marked as shell text with ``| raw``."""


def quote(value: object) -> str:
    """Render one ``{{ value }}`` as a single shell word.

    Raises RecipeError for what cannot be one: None (a value that was not given), a NUL byte or a line break.
    """
    if isinstance(value, Raw):
        return str(value)
    if value is None:
        raise RecipeError(
            "a recipe printed a value that is not set; give it a default in the recipe's header"
        )
    if isinstance(value, bool):
        return "1" if value else "0"
    text = f"{value:.9f}".rstrip("0").rstrip(".") if isinstance(value, float) else str(value)
    if any(c in text for c in "\0\n\r"):
        raise RecipeError(
            f"the value {text!r} cannot be a shell word; accepted: text without line breaks or NUL"
        )
    return shlex.quote(text)


def literal(text: str) -> Raw:
    """Quote a text of a recipe's own, a program of several lines, as one shell word."""
    return Raw(shlex.quote(text))


def window_floor(size_bytes: int) -> int:
    """Round a window down to what the TCP window scale it needs can express.

    Linux rounds the advertised window *up* to a multiple of 2**scale (tcp_output.c, __tcp_select_window),
    with scale = ilog2(window) - 15; a clamp that is on that grid is therefore never exceeded on the wire.
    """
    scale = max(0, size_bytes.bit_length() - 16)
    return size_bytes >> scale << scale


def plain(value: object) -> str:
    """Render a value of a block that no shell reads; still one line and never unset."""
    quote(value)
    return str(value)


def shell_environment(folder: Path | None = None) -> Environment:
    """Make a Jinja2 environment that quotes every value and refuses undefined ones.

    `folder` is where files are that a recipe includes: programs in other languages.
    """
    return _environment(quote, folder)


def plain_environment(folder: Path | None = None) -> Environment:
    """Make a Jinja2 environment for blocks that are compared, not run."""
    return _environment(plain, folder)


def _environment(finalize: Callable[[object], str], folder: Path | None) -> Environment:
    environment = Environment(
        loader=FileSystemLoader(folder) if folder else None,
        finalize=finalize,
        undefined=StrictUndefined,
        autoescape=False,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    environment.filters.update({**tc.FILTERS, **dummynet.FILTERS})
    environment.filters["raw"] = Raw
    environment.filters["literal"] = literal
    environment.filters["window_floor"] = window_floor
    return environment
