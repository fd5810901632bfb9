"""The interface through which experiments are checked against recipes; samovar.recipes implements it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol


class ParameterInfo(Protocol):
    """One parameter of a recipe: type, unit and description from its header."""

    @property
    def type(self) -> str:
        """The type's name: size, rate, duration, packets, share, integer, number, switch or text."""

    @property
    def unit(self) -> str | None:
        """The unit of the value that is passed to the recipe, None without one."""

    @property
    def choices(self) -> tuple[str, ...]:
        """The accepted texts; empty if every text of the type is."""

    @property
    def description(self) -> str:
        """One sentence for the reference."""


class RecipeCatalogue(Protocol):
    """The recipes of every operating system; kinds are setting, aqm, generator and logger."""

    def names(self, kind: str, os: str) -> frozenset[str]:
        """Return the names of the recipes of a kind for a system."""

    def parameters(self, kind: str, name: str, os: str) -> Mapping[str, ParameterInfo] | None:
        """Return the parameters of a recipe, None without such a recipe."""

    def duration_step_s(self, kind: str, name: str, os: str) -> float | None:
        """Return the step in seconds of which durations must be multiples, None if there is none."""

    def change(self, name: str, os: str) -> str:
        """Return what a change of a setting needs: none, interface-reset or reboot; none for unknown ones."""
