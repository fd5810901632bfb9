"""What the definition needs to know of recipes; the command layer answers it from the recipe files."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol


class ParameterInfo(Protocol):
    """One parameter that a recipe takes: its type, unit and meaning, as its header says."""

    @property
    def type(self) -> str:
        """The type's name: size, rate, duration, packets, share, integer, number, switch or text."""

    @property
    def unit(self) -> str | None:
        """The unit of the value that the recipe gets; None when it has none."""

    @property
    def choices(self) -> tuple[str, ...]:
        """The texts that are accepted; none means any that is of the type."""

    @property
    def description(self) -> str:
        """One sentence for people."""


class RecipeCatalogue(Protocol):
    """The recipes known per operating system; kinds are setting, aqm, generator and logger."""

    def names(self, kind: str, os: str) -> frozenset[str]:
        """Return the names of all recipes of this kind for this system."""

    def parameters(self, kind: str, name: str, os: str) -> Mapping[str, ParameterInfo] | None:
        """Return the parameters a recipe takes; None when there is no such recipe."""

    def duration_step_s(self, kind: str, name: str, os: str) -> float | None:
        """Return what durations are whole multiples of, in seconds; None where any will do."""
