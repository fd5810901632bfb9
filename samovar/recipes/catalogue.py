"""All recipes of a templates folder, found by system, kind and name."""

from __future__ import annotations

from collections.abc import Mapping
from difflib import get_close_matches
from functools import cache
from pathlib import Path
from typing import cast

from samovar.errors import RecipeError
from samovar.recipes.header import Header, Parameter
from samovar.recipes.recipe import BLOCKS, Kind, Recipe, read_recipe
from samovar.units import parse_duration

FAMILY: Mapping[str, tuple[str, ...]] = {
    "linux": ("linux", "posix", "common"),
    "freebsd": ("freebsd", "posix", "common"),
    "posix": ("posix", "common"),
}
"""Where recipes of an operating system are looked for, most specific first, after those of its releases."""

SUFFIX = ".sh.j2"


class Catalogue:
    """The recipes below one templates folder; a file added there is a recipe known."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._find = cache(self._read)

    def places(self, os: str) -> tuple[str, ...]:
        """Name the folders that serve a system, such as linux or freebsd-11, most specific first.

        `freebsd-11` holds what release 11 and older ones need; of several the nearest comes first.
        """
        name, _, release = os.partition("-")
        family = FAMILY.get(name, ())
        if not release.isdecimal() or not family:
            return () if release else family
        return (*self._releases(name, int(release)), *family)

    def _releases(self, name: str, release: int) -> tuple[str, ...]:
        found = (path.name.removeprefix(f"{name}-") for path in self.folder.glob(f"{name}-*"))
        serving = sorted(int(text) for text in found if text.isdecimal() and int(text) >= release)
        return tuple(f"{name}-{number}" for number in serving)

    def names(self, kind: str, os: str) -> frozenset[str]:
        """Name every recipe of a kind that serves a system."""
        folders = (self.folder / place / kind for place in self.places(os))
        return frozenset(
            path.name.removesuffix(SUFFIX) for folder in folders for path in folder.glob(f"*{SUFFIX}")
        )

    def operating_systems(self) -> tuple[str, ...]:
        """Name the operating systems whose hosts can be set, which takes setting recipes."""
        return tuple(os for os in FAMILY if self.names("setting", os))

    def recipe(self, kind: str, name: str, os: str) -> Recipe:
        """Find one recipe; raises RecipeError naming the nearest known one."""
        return self._find(kind, name, os)

    def header(self, kind: str, name: str, os: str) -> Header:
        """Read the header of one recipe; raises RecipeError when there is none."""
        return self.recipe(kind, name, os).header

    def parameters(self, kind: str, name: str, os: str) -> Mapping[str, Parameter] | None:
        """Describe the parameters of a recipe, or None when there is no such recipe."""
        if name not in self.names(kind, os):
            return None
        return self.header(kind, name, os).parameters

    def duration_step_s(self, kind: str, name: str, os: str) -> float | None:
        """Return what durations that a recipe is given are whole multiples of, in seconds; None for any."""
        step = self.header(kind, name, os).duration_step
        return parse_duration(step) if step else None

    def _read(self, kind: str, name: str, os: str) -> Recipe:
        if kind not in BLOCKS:
            raise RecipeError(f"no recipe kind {kind!r}; known: {', '.join(BLOCKS)}")
        known = self.names(kind, os)
        if name in known:
            for place in self.places(os):
                path = self.folder / place / kind / (name + SUFFIX)
                if path.is_file():
                    return read_recipe(cast(Kind, kind), name, path)
        near = get_close_matches(name, sorted(known), n=1)
        hint = f"; did you mean {near[0]!r}?" if near else ";"
        raise RecipeError(
            f"no {kind} recipe {name!r} for {os}{hint} known: {', '.join(sorted(known)) or 'none'}"
        )
