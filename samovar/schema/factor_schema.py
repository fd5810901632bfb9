"""JSON Schema of what may vary: factors by their names, their levels in every form, what settings take."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

from samovar.experiment.keys import MOST_LEVELS, notation
from samovar.schema import recipe_schema as of_recipes
from samovar.schema.distribution_schema import distribution_schema
from samovar.schema.json_schema import Json, any_of, closed, ways
from samovar.schema.model_schema import Definitions
from samovar.schema.recipe_schema import Recipes
from samovar.schema.targets import (
    BOTH_WAYS,
    HOST,
    HOST_SETTINGS,
    LABEL,
    LAW,
    SCALAR,
    WAYS,
    Target,
    targets,
)

LABEL_TEXT: Json = {
    "type": ["string", "number"],
    "pattern": r"\S",
    "description": "The level's text in tables, ids and figures.",
}
LEVELS = "A level, a list of levels, or a range."
A_LEVEL = "expected a level such as {path.rate: 10Mbit, rwnd: 2 BDP, label: home}"
VALUES: Json = {"type": "object", "minProperties": 1, "additionalProperties": SCALAR}
NUMBER: Json = {
    "type": ["number", "string"],
    "pattern": "^[0-9]",
    "errorMessage": "expected one such as 50KB",
}


def mapped(value: Json, takes: str, **more: Json) -> Json | None:
    """Return the mapping that may stand for a value; None where none may. `more` may stand in it besides."""
    if takes == HOST:
        keys = {"down": False, "up": False, **more}
        return {"type": "object", "properties": keys, "additionalProperties": value, "minProperties": 1}
    if takes in (WAYS, BOTH_WAYS):
        directed = ways(value)
        either = any_of(*({"required": [way]} for way in directed))
        needs: Json = {"required": list(directed)} if takes == BOTH_WAYS else either
        return closed({**directed, **more}, **needs)
    if takes == LAW:
        return distribution_schema(value, **more)
    return None


def spoken(value: Json, takes: str, **more: Json) -> Json:
    """Return a value or the mapping that may stand for it."""
    mapping = mapped(value, takes, **more)
    options = [] if takes == BOTH_WAYS else [value]
    return any_of(*options, *([mapping] if mapping else []))


class FactorSchema:
    """The schemas of factors and settings, over all that may be set."""

    def __init__(self, definitions: Definitions, recipes: Recipes) -> None:
        self._definitions, self._recipes = definitions, recipes
        self._targets = list(targets(definitions, recipes))

    def settings(self) -> Json:
        """Return the settings of hosts: each one value, or one for each host or role."""
        known = [one for one in self._targets if one.takes == HOST]
        return self._definitions.refer("Settings", lambda: self._keyed(known, self._spoken))

    def factors(self) -> Json:
        """Return a part's factors: names that say what they set, and free ones."""
        return self._definitions.refer("Factors", self._factors)

    def _factors(self) -> Json:
        found = self._keyed(self._targets, self._factor)
        words = "Levels that move together: a list of mappings, each {factor: value, ..., label: word}."
        free = any_of(self._linked(), self._named(), self._any_levels())
        found["patternProperties"][self._free_name()] = {**free, "description": words}
        found["additionalProperties"] = any_of(self._named(), self._any_levels())
        return found

    def said_here(self) -> Json:
        """Return what holds of factors that lie over none: a name that says nothing is not enough."""
        return self._definitions.refer("FactorsAlone", self._make_said_here)

    def _make_said_here(self) -> Json:
        known = self._keyed([one._replace(told={}) for one in self._targets], lambda _: {})
        free = {self._free_name(): any_of(self._linked(), self._named())}
        patterns = {**known["patternProperties"], **free}
        return {**known, "patternProperties": patterns, "additionalProperties": self._named()}

    def _free_name(self) -> str:
        known = "|".join(one.name for one in self._targets if "." not in one.name)
        return rf"^(?!(?:{known})$)[^.]+$"

    def _any_levels(self) -> Json:
        """Return the levels that a layer gives a factor that another layer says the rest of."""
        several = _several(any_of(SCALAR, VALUES))
        return self._definitions.refer("AnyLevels", lambda: any_of(SCALAR, several, self._range()))

    def _keyed(self, known: list[Target], make: Callable[[Target], Json]) -> Json:
        properties = {one.name: {**make(one), **one.told} for one in known if not one.pattern}
        patterns = {one.name: {**make(one), **one.told} for one in known if one.pattern}
        return closed(properties, patternProperties=patterns)

    def _spoken(self, one: Target) -> Json:
        return self._definitions.refer(_title("Value", one), lambda: spoken(one.value, one.takes))

    def _factor(self, one: Target) -> Json:
        """Return one factor by what its name sets: a level, a list, a range, or {levels: ...}."""
        return self._definitions.refer(_title("Factor", one), lambda: self._make_factor(one))

    def _make_factor(self, one: Target) -> Json:
        levels = self._levels(one)
        spec = closed({"levels": {**levels, "description": LEVELS}, "at": self._at()}, required=["levels"])
        return any_of(levels, spec, self._named())

    def _levels(self, one: Target) -> Json:
        return self._definitions.refer(_title("Levels", one), lambda: self._make_levels(one))

    def _make_levels(self, one: Target) -> Json:
        level = any_of(spoken(one.value, one.takes, label=LABEL_TEXT), self._by_another_name(one))
        plain = [] if one.takes == BOTH_WAYS else [one.value]
        spans = [] if "enum" in one.value or one.takes == BOTH_WAYS else [self._range(one)]
        return any_of(*plain, _several(level), *spans)

    def _by_another_name(self, one: Target) -> Json:
        """Return a plain value with a label of its own."""
        value = {**one.value, "description": "What the level sets."}
        keys = {"value": value, "label": LABEL_TEXT}
        return self._definitions.refer(
            _title("Labelled", one), lambda: closed(keys, required=["value", "label"])
        )

    def _linked(self) -> Json:
        return self._definitions.refer("Linked", self._make_linked)

    def _make_linked(self) -> Json:
        brief = [one._replace(told={"description": one.told["description"]}) for one in self._targets]
        level = self._keyed(brief, self._spoken)
        level["properties"]["label"] = LABEL_TEXT
        level |= {"minProperties": 1, "if": {"required": ["label"]}, "then": {"minProperties": 2}}
        level["errorMessage"] = f"{A_LEVEL}, for no factor has this name"
        spec = closed(
            {"levels": {**_several(level), "description": "Levels that move together."}, "at": self._at()},
            required=["levels"],
        )
        return any_of(_several(level), spec)

    def _range(self, one: Target | None = None) -> Json:
        """Return a range of levels; of formulas its ends can only be numbers of one name."""
        form = one.form if one else None
        if form is None:
            return self._definitions.refer("Range", lambda: _range(NUMBER))
        ends = form.base or form
        name = f"Range-of-{'computed-' if form.base else ''}{ends.name.replace(', ', '-').replace(' ', '-')}"
        return self._definitions.refer(name, lambda: _range(self._end(ends, form.base is not None)))

    def _end(self, form: notation.Form, computed: bool) -> Json:
        named = {"type": "string", "pattern": notation.counted()}
        return any_of(self._definitions.form(form), *([named] if computed else []))

    def _at(self) -> Json:
        one = self._definitions.form(notation.NAME)
        several = {"type": "array", "items": one, "minItems": 1}
        return {**any_of(one, several), "description": "Hosts or roles that the levels are for."}

    def _named(self) -> Json:
        return self._definitions.refer("NamedFactor", self._make_named)

    def _make_named(self) -> Json:
        """Return a factor that says itself what it sets: by a recipe's parameter, or by several keys."""
        names = [one.name for one in self._targets if not one.pattern]
        patterns = [{"type": "string", "pattern": one.name} for one in self._targets if one.pattern]
        keys = {"type": "array", "items": {"anyOf": [{"enum": names}, *patterns]}, "minItems": 1}
        recipe = of_recipes.choice(self._recipes, "setting")
        words = "Keys that every level sets at once, such as [traffic.there.rate, traffic.back.rate]."
        own = {
            "levels": {**self._any_levels(), "description": LEVELS},
            "sets": {**keys, "uniqueItems": True, "description": words},
            "recipe": {**recipe, "description": "Setting recipe that the levels are for."},
            "parameter": {"type": "string", "description": "Parameter of the recipe."},
            "at": self._at(),
        }
        either = {"oneOf": [{"required": ["recipe"]}, {"required": ["sets"]}]}
        rules = [either, _beside("parameter", "recipe"), *self._of_recipes(), *self._of_parameters()]
        return closed(own, required=["levels"], allOf=rules)

    def _of_recipes(self) -> Iterator[Json]:
        """Yield which parameters each recipe has."""
        for name in self._recipes.names("setting"):
            known = sorted(self._recipes.parameters("setting", name))
            needs: Json = {"properties": {"parameter": {"enum": known}}, "required": ["parameter"]}
            if name not in HOST_SETTINGS:
                yield {"if": _is(recipe=name), "then": needs}

    def _of_parameters(self) -> Iterator[Json]:
        """Yield what the levels of each parameter are."""
        for one in self._targets:
            recipe, _, parameter = one.name.partition(".")
            if one.takes == HOST and parameter and not one.pattern:
                levels = {"properties": {"levels": self._levels(one)}}
                yield {"if": _is(recipe=recipe, parameter=parameter), "then": levels}


def _title(what: str, one: Target) -> str:
    """Name what targets with the same values share, or what is one target's alone."""
    reference = str(one.value.get("$ref", "")).removeprefix("#/$defs/")
    plain = re.sub(r"[^A-Za-z0-9._-]+", "-", reference or one.name.replace(LABEL, "FLOW").replace("\\", ""))
    return f"{what}-{plain.strip('-')}-{one.takes.replace(' ', '-')}"


def _several(level: Json) -> Json:
    return {"type": "array", "items": level, "minItems": 1, "maxItems": MOST_LEVELS, "uniqueItems": True}


def _is(**values: str) -> Json:
    known = {key: {"const": value} for key, value in values.items()}
    return {"properties": known, "required": list(known)}


def _beside(key: str, other: str) -> Json:
    """Return the rule that a key needs another beside it."""
    return {"if": {"required": [key]}, "then": {"required": [other]}}


def _range(end: Json) -> Json:
    keys = {
        "from": {**end, "description": "First level, such as 50KB."},
        "to": {**end, "description": "Last level, such as 1MB."},
        "step": {**end, "description": "Distance between two levels, such as 50KB."},
    }
    return closed(keys, required=list(keys), description="Evenly spaced levels, both ends included.")
