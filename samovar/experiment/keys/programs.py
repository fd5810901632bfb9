"""Programs of the user's with their arguments, as a definition file writes them."""

from __future__ import annotations

import shlex

from samovar.units import UnitError


def parse_program(written: object, expected: str) -> tuple[str, ...]:
    """Return a program and its arguments from a list of words, or from one text as a shell would split it.

    Raises UnitError, whose message ends with what was `expected`.
    """
    if isinstance(written, str):
        try:
            words = shlex.split(written)
        except ValueError as error:
            raise UnitError(f"{str(error).lower()}; {expected}") from None
    elif isinstance(written, list | tuple) and all(isinstance(word, str) for word in written):
        words = [str(word) for word in written]
    else:
        raise UnitError(expected)
    if not words or not words[0]:
        raise UnitError(f"is empty; {expected}")
    return tuple(words)
