"""Events: how the package says what happens; the fabfile decides how a person sees it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Event:
    """One thing that happened: a name from a small vocabulary and its values."""

    name: str
    values: Mapping[str, object] = field(default_factory=dict)


Emit = Callable[[Event], None]


def silent(event: Event) -> None:
    """Take an event and show nothing: the default for library use."""
