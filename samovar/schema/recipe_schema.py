"""What recipes say of themselves: their names by kind, and their parameters with those of all systems."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from samovar.experiment import ParameterInfo, RecipeCatalogue
from samovar.experiment.keys import Form, notation, settable
from samovar.recipes import FAMILY, Catalogue
from samovar.schema.json_schema import Json, any_of
from samovar.schema.model_schema import Definitions

OF_TYPE = {
    "size": notation.SIZE_OR_FORMULA,
    "rate": notation.RATE_OR_FORMULA,
    "duration": notation.DELAY_OR_FORMULA,
    "packets": notation.PACKETS_OR_FORMULA,
    "share": notation.SHARE_OR_FORMULA,
    "integer": notation.INTEGER,
    "number": notation.NUMBER,
    "switch": notation.SWITCH,
}
"""How the values of parameters are written, by the type that a recipe's header names."""


class Taken(NamedTuple):
    """A parameter of a recipe on one system."""

    system: str
    info: ParameterInfo


class Recipes:
    """The recipes of one catalogue on every system that is named.

    Where the catalogue is that of the recipe files, it also says what each recipe is for.
    """

    def __init__(self, catalogue: RecipeCatalogue, systems: tuple[str, ...]) -> None:
        self.catalogue, self.systems = catalogue, systems

    @classmethod
    def of(cls, catalogue: Catalogue) -> Recipes:
        """Gather the recipes of all systems and releases that a templates folder has."""
        releases = sorted(path.name for path in catalogue.folder.iterdir() if _is_release(path.name))
        return cls(catalogue, (*catalogue.operating_systems(), *releases))

    def names(self, kind: str) -> list[str]:
        """Name the recipes of a kind that any system has."""
        return sorted({name for system in self.systems for name in self.catalogue.names(kind, system)})

    def summary(self, kind: str, name: str) -> str:
        """Return what a recipe says of itself on the first system that has it."""
        system = next(one for one in self.systems if name in self.catalogue.names(kind, one))
        known = isinstance(self.catalogue, Catalogue)
        return self.catalogue.header(kind, name, system).summary if known else name  # type: ignore[attr-defined]

    def parameters(self, kind: str, name: str) -> dict[str, list[Taken]]:
        """Return what an experiment may give a recipe, with each system's word on it."""
        found: dict[str, list[Taken]] = {}
        for system in self.systems:
            takes = settable(self.catalogue, kind, name, system)
            header = self.catalogue.parameters(kind, name, system) or {}
            for parameter in takes:
                found.setdefault(parameter, []).append(Taken(system, header[parameter]))
        return found

    def having(self, kind: str, name: str) -> list[str]:
        """Name the operating systems that have a recipe, without their releases."""
        return [one for one in self.systems if "-" not in one and name in self.catalogue.names(kind, one)]


def _is_release(name: str) -> bool:
    return bool(re.fullmatch(rf"(?:{'|'.join(FAMILY)})-[0-9]+", name))


def value(definitions: Definitions, info: ParameterInfo) -> Json:
    """Return the schema of a parameter's texts."""
    if info.choices:
        numbers = [int(one) for one in info.choices if one.isdecimal()]
        return {"enum": [*info.choices, *numbers]}
    return definitions.form(form(info))


def form(info: ParameterInfo) -> Form:
    """Return how a parameter's value is written; of types that are the recipe's own it is any text."""
    return OF_TYPE.get(info.type, notation.WORD)


def parameter(definitions: Definitions, taken: list[Taken], having: Sequence[str] = ()) -> Json:
    """Return a parameter as a property: what any of the systems takes, and what it means."""
    first = taken[0].info
    on = [one.system for one in taken if one.system in having]
    where = f" ({on[0]} only)" if len(on) == 1 and len(having) > 1 else ""
    words = f"{first.description[:1].upper()}{first.description[1:]}{where}."
    own = getattr(first, "default", None)
    default = f"\n\nDefault: `{own}`" if own is not None else ""
    unit = f"\n\nThe recipe gets it in {first.unit}." if first.unit else ""
    kind = ", ".join(f"`{one}`" for one in first.choices) or form(first).meaning
    values = any_of(*(value(definitions, one.info) for one in taken))
    return {**values, "description": words, "markdownDescription": f"{words}\n\nOne of {kind}{unit}{default}"
            if first.choices else f"{words}\n\n{kind[0].upper()}{kind[1:]}.{unit}{default}"}  # fmt: skip


def parameters(definitions: Definitions, recipes: Recipes, kind: str, name: str) -> Json:
    """Return the parameters of a recipe as properties."""
    known = recipes.parameters(kind, name)
    having = recipes.having(kind, name)
    return {key: parameter(definitions, taken, having) for key, taken in known.items()}


def union(definitions: Definitions, recipes: Recipes, kind: str) -> Json:
    """Return the parameters that any recipe of a kind takes, as properties."""
    found: dict[str, list[tuple[str, Json]]] = {}
    for name in recipes.names(kind):
        for key, one in parameters(definitions, recipes, kind, name).items():
            found.setdefault(key, []).append((name, one))
    return {key: _joined(taken) for key, taken in sorted(found.items())}


def _joined(taken: list[tuple[str, Json]]) -> Json:
    values = any_of(*({key: value for key, value in one.items() if not key.endswith("escription")}
                      for _, one in taken))  # fmt: skip
    words = "\n\n".join(f"Of {name}: {one['description']}" for name, one in taken)
    return {**values, "description": words}


def choice(recipes: Recipes, kind: str) -> Json:
    """Return the names of a kind's recipes, with the summary of each."""
    names = recipes.names(kind)
    return {"enum": names, "enumDescriptions": [_summary(recipes, kind, name) for name in names]}


def _summary(recipes: Recipes, kind: str, name: str) -> str:
    having = recipes.having(kind, name)
    only = f" ({having[0]} only)" if len(having) == 1 else ""
    return f"{recipes.summary(kind, name)}{only}"


def setting_keys(recipes: Recipes) -> Iterator[tuple[str, list[Taken]]]:
    """Yield RECIPE.PARAMETER of every setting, with each system's word on it."""
    for name in recipes.names("setting"):
        for key, taken in recipes.parameters("setting", name).items():
            yield f"{name}.{key}", taken
