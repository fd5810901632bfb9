"""Values that are more than one number or text, and the errors found while one is read."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from pydantic import ValidationError
from pydantic_core import InitErrorDetails

T = TypeVar("T")


@dataclass(frozen=True)
class Buffer:
    """The size of a queue, in packets or in bytes as it is written; a computed one is known in both."""

    packets: int | None
    bytes: int | None


@dataclass(frozen=True)
class Directional(Generic[T]):
    """One value for each direction of the path: `down` is bottleneck.from -> to, `up` the way back.

    None leaves a direction as it is without the value.
    """

    down: T | None = None
    up: T | None = None


@dataclass(frozen=True)
class PerHost(Generic[T]):
    """One value for each host or role that is named."""

    hosts: Mapping[str, T]


@dataclass(frozen=True)
class DistributionText:
    """A distribution as written: {uniform: (0s, 5s)}, {exponential: 100KB}."""

    keys: Mapping[str, str | tuple[str, ...]]


LevelText = str | Directional[str] | PerHost[str] | DistributionText
"""A value of a level or setting as it is written: one text, one per direction or host, a distribution."""

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
