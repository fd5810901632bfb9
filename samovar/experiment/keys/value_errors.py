"""Mistakes within a value that one function reads: each keeps its own place below that value."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pydantic import ValidationError
from pydantic_core import InitErrorDetails

# A step that no tree has: the message is then about a key, and not led by the key's name.
_AT_KEY = ("[key]", 10**9)


class Mistakes:
    """Collects what is wrong below one value, to be raised at once."""

    def __init__(self) -> None:
        self._details: list[InitErrorDetails] = []

    def add(self, loc: tuple[int | str, ...], message: str, *, key: bool = False) -> None:
        """Note a mistake at a place below the value, or at the key that stands there."""
        place = (*loc, *_AT_KEY) if key else loc
        error: Any = ValueError(message)
        self._details.append(
            InitErrorDetails(type="value_error", loc=place, input=None, ctx={"error": error})
        )

    def within(self, loc: tuple[int | str, ...], read: Callable[..., Any], *arguments: object) -> Any:
        """Return what a reader makes of its arguments; None when it raises, which is noted below a place."""
        try:
            return read(*arguments)
        except ValidationError as error:
            for one in error.errors(include_url=False):
                self._details.append(
                    InitErrorDetails(
                        type="value_error",
                        loc=(*loc, *one["loc"]),
                        input=None,
                        ctx={"error": one.get("ctx", {}).get("error", ValueError(one["msg"]))},
                    )
                )
        except ValueError as error:
            self.add(loc, str(error))
        return None

    def raise_any(self) -> None:
        """Raise what was noted, if anything was; pydantic puts the places below the value's own."""
        if self._details:
            raise ValidationError.from_exception_data("value", self._details)
