"""The catalogue: all recipes of templates folders, found by operating system, kind and name."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from pathlib import Path

from samovar.errors import RecipeError, unknown
from samovar.experiment import ParameterInfo, keys
from samovar.recipes.header import Header
from samovar.recipes.recipe import Recipe

SUFFIX = ".sh.j2"
COMMON = "posix"
"""Folder of the recipes that all systems share. The catalogue also accepts it as the name of a system."""
DIGEST_DIGITS = 16


class Catalogue:
    """The recipes below the templates folders. Any file added there is a new recipe.

    A recipe of an earlier folder, such as a project's own, overrides one of the same name in a later folder.
    """

    def __init__(self, *folders: Path) -> None:
        self.folders = folders
        self._read = cache(lambda kind, name, os: Recipe(kind, name, self.path(kind, name, os), folders))
        self._files = cache(self._find_files)
        self._recorders = cache(self._find_recorders)

    def places(self, os: str) -> tuple[str, ...]:
        """Return the folders that serve a system such as linux or freebsd-11, most specific first.

        Folder `freebsd-11` serves release 11 and older ones; if several match, the nearest release comes
        first.
        """
        name, _, release = os.partition("-")
        system = keys.OPERATING_SYSTEMS.get(name)
        family = system.folders if system else (COMMON,) if name == COMMON else ()
        if not release.isdecimal() or not family:
            return () if release else family
        paths = (path for folder in self.folders for path in folder.glob(f"{name}-*"))
        found = {path.name.removeprefix(f"{name}-") for path in paths}
        serving = sorted(int(text) for text in found if text.isdecimal() and int(text) >= int(release))
        return (*(f"{name}-{number}" for number in serving), *family)

    def names(self, kind: str, os: str) -> frozenset[str]:
        """Return the names of all recipes of a kind for a system. Each folder is read only once."""
        return frozenset(self._files(kind, os))

    def _find_files(self, kind: str, os: str) -> Mapping[str, Path]:
        """Map the names of a kind's recipes to their files for a system.

        Recipes of more specific systems take precedence.
        """
        places = tuple(reversed(self.places(os)))
        folders = (folder / place / kind for folder in reversed(self.folders) for place in places)
        files = (file for folder in folders for file in folder.glob(f"*{SUFFIX}"))
        return {file.name.removesuffix(SUFFIX): file for file in files}

    def quantities(self, os: str) -> Mapping[str, tuple[str, ...]]:
        """Return, for each quantity, the loggers that record it on a system.

        The first logger is the default; an experiment can select another. Raises RecipeError if two loggers
        record a quantity and neither header has `alternative_to`.
        """
        return self._recorders(os)

    def _find_recorders(self, os: str) -> Mapping[str, tuple[str, ...]]:
        found: dict[str, list[tuple[str, str | None]]] = {}
        for name in sorted(self.names("logger", os)):
            header = self.header("logger", name, os)
            found.setdefault(header.records or name, []).append((name, header.alternative_to))
        for quantity, loggers in found.items():
            first = [name for name, other in loggers if other is None]
            if len(first) != 1:
                named = " and ".join(name for name, _ in loggers)
                message = f"{named} record {quantity}; all but one of them need `alternative_to`"
                raise RecipeError(f"loggers of {os}: {message}")
            loggers.sort(key=lambda logger: logger[1] is not None)
        return {quantity: tuple(name for name, _ in loggers) for quantity, loggers in sorted(found.items())}

    def operating_systems(self) -> tuple[str, ...]:
        """Return the operating systems whose hosts can be configured: those with setting recipes."""
        return tuple(os for os in keys.OPERATING_SYSTEMS if self.names("setting", os))

    def path(self, kind: str, name: str, os: str) -> Path:
        """Return the file of a recipe.

        Raises RecipeError for an unknown name; the message has the most similar known name.
        """
        files = self._files(kind, os)
        if name not in files:
            raise RecipeError(unknown(f"{kind} recipe for {os}", name, files))
        return files[name]

    def recipe(self, kind: str, name: str, os: str) -> Recipe:
        """Return a recipe after checking its body.

        Raises RecipeError for an unknown name; the message has the most similar known name. Raises
        DefinitionError for errors in the recipe.
        """
        recipe = self._read(kind, name, os)
        _ = recipe.blocks
        return recipe

    def header(self, kind: str, name: str, os: str) -> Header:
        """Return the header of a recipe. Raises RecipeError for an unknown name."""
        return self._read(kind, name, os).header

    def parameters(self, kind: str, name: str, os: str) -> Mapping[str, ParameterInfo] | None:
        """Return the parameters of a recipe, or None for an unknown recipe."""
        return self.header(kind, name, os).parameters if name in self.names(kind, os) else None

    def transport(self, generator: str, os: str) -> str:
        """Return the transport of a generator's data, tcp, udp or icmp; tcp for an unknown generator."""
        known = generator in self.names("generator", os)
        return self.header("generator", generator, os).transport if known else "tcp"

    def ports(self, generator: str, os: str) -> tuple[int, ...]:
        """Return the ports of a generator as offsets from its flow's port; () for an unknown generator."""
        known = generator in self.names("generator", os)
        return self.header("generator", generator, os).ports if known else ()

    def change(self, name: str, os: str) -> str:
        """Return what a host needs after a setting changes: none (the default), interface-reset or reboot."""
        return self.header("setting", name, os).change if name in self.names("setting", os) else "none"


def digest_recipe_files(files: Iterable[Path], folders: Sequence[Path]) -> Mapping[str, str]:
    """Map the names of recipe files, and of all files that they include, to 16 digits of their SHA-256.

    A name is a path relative to the first templates folder that has the file.
    """
    from jinja2 import Environment
    from jinja2.meta import find_referenced_templates

    relative = (file.relative_to(next(one for one in folders if file.is_relative_to(one))) for file in files)
    pending = [path.as_posix() for path in relative]
    digests: dict[str, str] = {}
    parser = Environment(autoescape=False)
    while pending:
        name = pending.pop()
        if name not in digests:
            file = next(path for folder in folders if (path := folder / name).is_file())
            text = file.read_text(encoding="utf-8")
            digests[name] = hashlib.sha256(text.encode()).hexdigest()[:DIGEST_DIGITS]
            pending += [included for included in find_referenced_templates(parser.parse(text)) if included]
    return dict(sorted(digests.items()))
