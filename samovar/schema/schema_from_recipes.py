"""Make JSON Schemas of those recipe parameters that an experiment may set, for all systems together."""

from __future__ import annotations

import re
from collections.abc import Collection
from functools import cached_property
from functools import partial as bound

from samovar.experiment import keys
from samovar.experiment import value_types as types
from samovar.recipes import Catalogue
from samovar.schema.schema_from_keys import Definitions, Json, any_of


class Recipes:
    """The recipes of a catalogue on several systems, with summaries if the catalogue reads recipe files."""

    def __init__(self, catalogue: keys.RecipeCatalogue, systems: tuple[str, ...]) -> None:
        self.catalogue, self.systems = catalogue, systems

    @classmethod
    def of(cls, catalogue: Catalogue) -> Recipes:
        """Collect the recipes of all systems and releases of a templates folder."""
        release = re.compile(rf"(?:{'|'.join(keys.OPERATING_SYSTEMS)})-[0-9]+")
        releases = sorted(
            {
                path.name
                for folder in catalogue.folders
                for path in folder.glob("*-*")
                if release.fullmatch(path.name)
            }
        )
        return cls(catalogue, (*catalogue.operating_systems(), *releases))

    def names(self, kind: str) -> list[str]:
        """Return the names of the recipes of a kind that at least one system has."""
        names = {name for system in self.systems for name in self.catalogue.names(kind, system)}
        return sorted(names | (self.quantities.keys() if kind == "logger" else set()))

    @cached_property
    def quantities(self) -> dict[str, dict[str, tuple[str, ...]]]:
        """Maps a quantity and a system to its loggers. Quantities that have a recipe's name are left out."""
        found: dict[str, dict[str, tuple[str, ...]]] = {}
        for system in self.systems:
            for quantity, loggers in self.catalogue.quantities(system).items():
                if quantity not in self.catalogue.names("logger", system):
                    found.setdefault(quantity, {})[system] = loggers
        return found

    def summary(self, kind: str, name: str) -> str:
        """Return the summary of a recipe, from the first system that has it; for a quantity, its loggers."""
        if kind == "logger" and name in self.quantities:
            having = {os: " or ".join(names) for os, names in self.quantities[name].items() if "-" not in os}
            return "; ".join(f"{keys.OPERATING_SYSTEMS[os].title}: {names}" for os, names in having.items())
        system = next(one for one in self.systems if name in self.catalogue.names(kind, one))
        if isinstance(self.catalogue, Catalogue):
            return self.catalogue.header(kind, name, system).summary
        return name

    def parameters(self, kind: str, name: str) -> dict[str, dict[str, keys.ParameterInfo]]:
        """Return those parameters of a recipe that an experiment may set, by name and system."""
        found: dict[str, dict[str, keys.ParameterInfo]] = {}
        quantity = self.quantities.get(name, {}) if kind == "logger" else {}
        for system in self.systems:
            for recipe in quantity.get(system, [name]):
                for parameter, info in keys.settable(self.catalogue, kind, recipe, system).items():
                    found.setdefault(parameter, {})[system] = info
        return found

    def interval(self, logger: str) -> dict[str, keys.ParameterInfo]:
        """Return the parameter of a logger recipe that the key `interval` sets, by system."""
        known = {one: self.catalogue.parameters("logger", logger, one) or {} for one in self.systems}
        return {one: found["interval_s"] for one, found in known.items() if "interval_s" in found}

    def having(self, kind: str, name: str) -> list[str]:
        """Return the operating systems that have a recipe, without their releases."""
        quantity = self.quantities.get(name, {}) if kind == "logger" else {}
        return [
            one
            for one in self.systems
            if "-" not in one and (one in quantity or name in self.catalogue.names(kind, one))
        ]


def parameter_schema(definitions: Definitions, infos: Collection[keys.ParameterInfo]) -> Json:
    """Return the schema of a parameter; it accepts every value that the recipe accepts on any system."""
    own_types = [keys.PARAMETER_TYPES.get(info.type, types.WORD) for info in infos]  # any other type is text
    values = []
    for info, own in zip(infos, own_types, strict=True):
        choices: Json = {"enum": [*info.choices, *(int(one) for one in info.choices if one.isdecimal())]}
        values.append(choices if info.choices else definitions.of_type(own))
    first = next(iter(infos))
    words = f"{first.description[:1].upper()}{first.description[1:]}."
    if not first.choices:
        words += f" Type: {own_types[0].name}."
    if first.default is not None:
        words += f" Default: `{first.default}`."
    return {**any_of(*values), "description": words}


def parameter_schemas(definitions: Definitions, recipes: Recipes, kind: str, name: str) -> Json:
    """Return the parameters of a recipe as properties, each a reference to a shared schema."""
    return {
        key: definitions.refer(f"{kind}.{name}.{key}", bound(parameter_schema, definitions, infos.values()))
        for key, infos in recipes.parameters(kind, name).items()
    }


def parameters_of_kind(definitions: Definitions, recipes: Recipes, kind: str) -> Json:
    """Return the parameters of all recipes of a kind; each accepts every value that any recipe accepts."""
    found: dict[str, dict[str, Json]] = {}
    for name in recipes.names(kind):
        for key, infos in recipes.parameters(kind, name).items():
            found.setdefault(key, {})[name] = parameter_schema(definitions, infos.values())
    made: Json = {}
    for key, schemas in sorted(found.items()):
        names: dict[str, list[str]] = {}
        for name, one in schemas.items():
            names.setdefault(one.pop("description"), []).append(name)
        words = " ".join(f"{', '.join(of)}: {words}" for words, of in names.items())
        made[key] = {**any_of(*schemas.values()), "description": words}
    return made


def recipe_choice(definitions: Definitions, recipes: Recipes, kind: str) -> Json:
    """Return a reference to the schema that lists a kind's recipes by name, with their summaries."""
    names = recipes.names(kind)
    summaries = []
    for name in names:
        having = recipes.having(kind, name)
        where = f" ({having[0]} only)" if len(having) == 1 else ""
        summaries.append(f"{recipes.summary(kind, name)}{where}")
    listed = {"enum": names, "enumDescriptions": summaries}
    return definitions.refer(kind, lambda: {"description": f"Name of the {kind} recipe.", **listed})
