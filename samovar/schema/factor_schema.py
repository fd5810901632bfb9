"""JSON Schema of factors and settings: every target that a level may set, and its levels in every form."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

from samovar.experiment import (
    DEVICE_PARAMETERS,
    EACH,
    MOST_LEVELS,
    MULTIPLE,
    NAME,
    ONE_DIRECTION,
    PLAIN_FACTORS,
    Arrivals,
    NetworkPath,
    ValueType,
    own_keys,
    varied_keys,
)
from samovar.schema.model_schema import (
    DIRECTIONS,
    Definitions,
    Json,
    any_of,
    closed,
    directions,
    several,
    slug,
    when,
)
from samovar.schema.recipe_schema import (
    Recipes,
    SystemParameter,
    parameter_schema,
    recipe_choice,
    union_of_parameters,
)

PLAIN, PER_HOST, PER_DIRECTION, BOTH_DIRECTIONS, RANDOM = (
    "plain",
    "per-host",
    "per-direction",
    "both",
    "random",
)
LABEL = r"[A-Za-z0-9][A-Za-z0-9._-]{0,62}"
NO_ARRIVALS = r"(?!.*\.arrivals\.[a-z]+$)"
"""Before a label, which may contain dots: the key that follows is not one of arrivals."""
SCALAR: Json = {"type": ["string", "number", "boolean"]}
LEVEL_LABEL: Json = {
    "type": ["string", "number"],
    "pattern": r"\S",
    "description": "Label of the level in tables, ids and figures.",
}


class LevelTarget(NamedTuple):
    """What a level may set: its name or a pattern of names, its values, and what may replace one value."""

    name: str
    value: Json
    forms: str
    description: Json
    type: ValueType | None = None

    @property
    def is_pattern(self) -> bool:
        """Whether `name` is a pattern."""
        return self.name.startswith("^")


def level_targets(definitions: Definitions, recipes: Recipes) -> Iterator[LevelTarget]:
    """Yield everything that a level may set, patterns after the names that they match as well."""
    yield from _keys(definitions, recipes, "")
    yield from _keys(definitions, recipes, "path")
    devices = {key: [SystemParameter("", one)] for key, one in DEVICE_PARAMETERS.items()}
    of_devices = {key: parameter_schema(definitions, one) for key, one in devices.items()}
    for key, one in {**union_of_parameters(definitions, recipes, "aqm"), **of_devices}.items():
        if key not in own_keys(NetworkPath):
            yield _parameter(f"path.{key}", one, PER_DIRECTION)
    for name, found, having in recipes.settings():
        yield _parameter(name, parameter_schema(definitions, found, having), PER_HOST)
    for logger in recipes.names("logger"):
        yield from _keys(definitions, recipes, f"loggers.{logger}")
        for key, found in recipes.parameters("logger", logger).items():
            yield _parameter(f"loggers.{logger}.{key}", parameter_schema(definitions, found), PLAIN)
    for owner in ("stop", "traffic.FLOW", "traffic.FLOW.arrivals"):
        yield from _keys(definitions, recipes, owner)
    for key, one in union_of_parameters(definitions, recipes, "generator").items():
        if key not in varied_keys("traffic.FLOW"):
            yield _parameter(rf"^traffic\.{LABEL}\.{key}$", one, PLAIN)
    words = {"description": "Parameter of the congestion control's kernel module."}
    yield LevelTarget(r"^cc\.[^.]+$", SCALAR, PER_HOST, words)


def built_in_targets(definitions: Definitions, recipes: Recipes) -> Iterator[LevelTarget]:
    """Yield the targets that are keys of the language, without the parameters of recipes."""
    for owner in ("", "path", "loggers.<logger>", "stop", "traffic.FLOW", "traffic.FLOW.arrivals"):
        yield from _keys(definitions, recipes, owner)


def _keys(definitions: Definitions, recipes: Recipes, owner: str) -> Iterator[LevelTarget]:
    """Yield the keys below an owner; `traffic.FLOW` stands for any flow, so its targets are patterns."""
    for name, key in varied_keys(owner).items():
        if key.type is None:
            continue
        is_recipe = name in ("aqm", "generator")
        value = recipe_choice(definitions, recipes, name) if is_recipe else definitions.of_type(key.type)
        target = f"{owner}.{name}" if owner else name
        if owner.startswith("traffic.FLOW"):
            dotted = owner == "traffic.FLOW" and name in own_keys(Arrivals)
            label = f"{NO_ARRIVALS}{LABEL}" if dotted else LABEL
            target = f"^{target}$".replace(".", r"\.").replace("FLOW", label)
        yield LevelTarget(target, value, _forms(key.type), {"description": key.description}, key.type)


def _forms(value_type: ValueType) -> str:
    """Return what may replace one value of a type."""
    if value_type.is_per_host:
        return PER_HOST
    if value_type.is_random:
        return RANDOM
    return {ONE_DIRECTION: PLAIN, EACH: BOTH_DIRECTIONS}.get(value_type.directions, PER_DIRECTION)


def _parameter(name: str, one: Json, forms: str) -> LevelTarget:
    """Return a recipe's parameter as a target, its description beside its values."""
    value = {key: part for key, part in one.items() if key != "description"}
    return LevelTarget(name, value, forms, {"description": one["description"]})


class FactorSchema:
    """Builds the schemas of factors and settings."""

    def __init__(self, definitions: Definitions, recipes: Recipes) -> None:
        self._definitions, self._recipes = definitions, recipes
        self._targets = list(level_targets(definitions, recipes))

    def settings(self) -> Json:
        """Return the settings of hosts: each one value, or one for each host or role."""
        known = [one for one in self._targets if one.forms == PER_HOST]
        return self._definitions.refer("Settings", lambda: self._keyed(known, self._value))

    def factors(self) -> Json:
        """Return the factors of a part: targets with their levels, and free names."""
        return self._definitions.refer("Factors", self._factors)

    def _factors(self) -> Json:
        found = self._keyed(self._targets, self._factor)
        words = "Levels that set several keys: a list of mappings, each {factor: value, ..., label: word}."
        free = any_of(self._linked(), self._explicit(), self._any_levels())
        found["patternProperties"][self._free_name()] = {**free, "description": words}
        found["additionalProperties"] = any_of(self._explicit(), self._any_levels())
        return found

    def complete_factors(self) -> Json:
        """Return the rule for factors that extend no others: a free name must tell what it sets."""
        return self._definitions.refer("CompleteFactors", self._complete_factors)

    def _complete_factors(self) -> Json:
        patterns = [one.name for one in self._targets if one.is_pattern]
        known = [one.name for one in self._targets if not one.is_pattern]
        names = "|".join(name.replace(".", r"\.") for name in known)
        every = "|".join([f"^(?:{names})$", *patterns])
        free = any_of(self._linked(), self._explicit())
        own = {every: True, self._free_name(): free}
        return {"patternProperties": own, "additionalProperties": self._explicit()}

    def _free_name(self) -> str:
        return rf"^(?!(?:{'|'.join(PLAIN_FACTORS)})$)[^.]+$"

    def _any_levels(self) -> Json:
        """Return the levels for a factor that another layer completes."""
        values = {"type": "object", "minProperties": 1, "additionalProperties": SCALAR}
        either = any_of(SCALAR, self._list(any_of(SCALAR, values)), self._range(None))
        words = {"description": "A level, a list of levels, or a range."}
        return self._definitions.refer("AnyLevels", lambda: {**either, **words})

    def _keyed(self, known: list[LevelTarget], make: Callable[[LevelTarget], Json]) -> Json:
        properties = {one.name: {**make(one), **one.description} for one in known if not one.is_pattern}
        patterns = {one.name: {**make(one), **one.description} for one in known if one.is_pattern}
        return closed(properties, patternProperties=patterns)

    def _plain(self, one: LevelTarget) -> Json:
        """Return one value, as a reference."""
        if "$ref" in one.value:
            return one.value
        return self._definitions.refer(
            _name("", one._replace(forms=PLAIN)), lambda: {**one.value, **one.description}
        )

    def _value(self, one: LevelTarget) -> Json:
        """Return one value, or the mapping that may replace it."""
        mapping = self._mapping(one)
        if mapping is None or one.forms == BOTH_DIRECTIONS:
            return mapping or one.value
        return self._definitions.refer(_name("value", one), lambda: any_of(self._plain(one), mapping))

    def _mapping(self, one: LevelTarget) -> Json | None:
        """Return the mapping that may replace a value, or None; it may contain the label of its level."""
        label = self._definitions.refer("label", lambda: LEVEL_LABEL)
        if one.forms == RANDOM and one.type:
            return self._definitions.random(one.type, label=label)
        if one.forms == PLAIN:
            return None
        value = self._plain(one)

        def make() -> Json:
            if one.forms == PER_HOST:
                keys = {"down": False, "up": False, "label": label}
                return {
                    "type": "object",
                    "properties": keys,
                    "additionalProperties": value,
                    "minProperties": 1,
                }
            both = {"required": list(DIRECTIONS)} if one.forms == BOTH_DIRECTIONS else {}
            return {**directions(value, label=label), **both}

        return self._definitions.refer(_name("", one), make)

    def _factor(self, one: LevelTarget) -> Json:
        """Return a factor by its target: a level, a list, a range, or {levels: ...}."""
        return self._definitions.refer(_name("factor", one), lambda: self._make_factor(one))

    def _make_factor(self, one: LevelTarget) -> Json:
        label = self._definitions.refer("label", lambda: LEVEL_LABEL)
        mapping, value = self._mapping(one), self._plain(one)
        keys = closed({"value": value, "label": label}, required=["value", "label"])
        labelled = self._definitions.refer(_name("labelled", one._replace(forms=PLAIN)), lambda: keys)
        plain = [] if one.forms == BOTH_DIRECTIONS else [value]
        ranges = [] if "enum" in one.value or one.forms == BOTH_DIRECTIONS else [self._range(one.type)]
        level = any_of(*plain, *([mapping] if mapping else []), labelled)
        whole = closed({"levels": self._factor(one), "at": self._at()}, required=["levels"])
        return any_of(*plain, self._list(level), *ranges, whole, self._explicit())

    def _list(self, level: Json) -> Json:
        return several(level, maxItems=MOST_LEVELS, uniqueItems=True)

    def _linked(self) -> Json:
        return self._definitions.refer("LinkedFactor", self._make_linked)

    def _make_linked(self) -> Json:
        level = self._keyed(self._targets, self._value)
        level["properties"]["label"] = self._definitions.refer("label", lambda: LEVEL_LABEL)
        level |= {"minProperties": 1, "if": {"required": ["label"]}, "then": {"minProperties": 2}}
        level["errorMessage"] = "expected a level such as {path.rate: 10Mbit, rwnd: 2 BDP, label: home}"
        levels = self._list(self._definitions.refer("LinkedLevel", lambda: level))
        shared = self._definitions.refer(
            "LinkedLevels", lambda: {**levels, "description": "Levels of several keys."}
        )
        return any_of(shared, closed({"levels": shared, "at": self._at()}, required=["levels"]))

    def _range(self, value_type: ValueType | None) -> Json:
        """Return a range; its ends are quantities, or multiples of a name if formulas are allowed."""
        if value_type is None:
            end: Json = {
                "type": ["number", "string"],
                "pattern": "^[0-9]",
                "description": "A quantity, such as 50KB.",
            }
        elif value_type.plain:
            multiple = self._definitions.refer("multiple", lambda: {"type": "string", "pattern": MULTIPLE})
            end = any_of(self._definitions.of_type(value_type.plain), multiple)
        else:
            end = self._definitions.of_type(value_type)
        name = f"-{slug(value_type.name)}" if value_type else ""
        shared = self._definitions.refer(f"end{name}", lambda: end) if "$ref" not in end else end
        return self._definitions.refer(f"range{name}", lambda: _range(shared))

    def _at(self) -> Json:
        one = self._definitions.of_type(NAME)
        words = {"description": "Hosts or roles that the levels are for."}
        return self._definitions.refer("at", lambda: {**any_of(one, several(one)), **words})

    def _explicit(self) -> Json:
        return self._definitions.refer("ExplicitFactor", self._make_explicit)

    def _make_explicit(self) -> Json:
        """Return a factor that names what it sets: a parameter of a recipe, or several keys."""
        names = [one.name for one in self._targets if not one.is_pattern]
        keys: dict[str, list[str]] = {}
        for one in self._targets:
            if one.is_pattern:
                prefix, _, key = one.name.rpartition(r"\.")
                keys.setdefault(prefix, []).append(key.removesuffix("$"))
        patterns = [
            {"type": "string", "pattern": rf"{prefix}\.(?:{'|'.join(every)})$"}
            for prefix, every in keys.items()
        ]
        words = "Keys that every level sets, such as [traffic.there.rate, traffic.back.rate]."
        parameters = {
            name: sorted(self._recipes.parameters("setting", name)) for name in self._recipes.names("setting")
        }
        recipes = [name for name, known in parameters.items() if known or name in PLAIN_FACTORS]
        own = {
            "levels": self._any_levels(),
            "sets": {
                **several({"anyOf": [{"enum": names}, *patterns]}, uniqueItems=True),
                "description": words,
            },
            "recipe": {"enum": recipes, "description": "Setting recipe of the levels."},
            "parameter": {"type": "string", "description": "Parameter of the recipe."},
            "at": self._at(),
        }
        rules: list[Json] = [{"oneOf": [{"required": ["recipe"]}, {"required": ["sets"]}]}]
        rules.append({"if": {"required": ["parameter"]}, "then": {"required": ["recipe"]}})
        for name, known in parameters.items():
            if known and name not in PLAIN_FACTORS:
                needed = {"properties": {"parameter": {"enum": known}}, "required": ["parameter"]}
                rules.append(when({"recipe": [name]}, needed))
        rules += self._levels_of_parameters()
        return closed(own, required=["levels"], allOf=rules)

    def _levels_of_parameters(self) -> Iterator[Json]:
        """Yield the levels that each parameter of a setting recipe takes."""
        found: dict[tuple[str, str], list[str]] = {}
        for one in self._targets:
            recipe, _, parameter = one.name.partition(".")
            if one.forms == PER_HOST and parameter and not one.is_pattern:
                found.setdefault((recipe, self._factor(one)["$ref"]), []).append(parameter)
        for (recipe, levels), parameters in found.items():
            yield when(
                {"recipe": [recipe], "parameter": parameters}, {"properties": {"levels": {"$ref": levels}}}
            )


def _name(what: str, one: LevelTarget) -> str:
    """Return the name of a shared schema: of the values' type, or of a target's own values."""
    reference = str(one.value.get("$ref", "")).removeprefix("#/$defs/")
    own = reference or slug(one.name.replace(NO_ARRIVALS, "").replace(LABEL, "FLOW").replace("\\", ""))
    return f"{what}-{own}{'' if one.forms == PLAIN else f'-{one.forms}'}".strip("-")


def _range(end: Json) -> Json:
    keys = dict.fromkeys(("from", "to", "step"), end)
    return closed(keys, required=list(keys), description="Evenly spaced levels, both ends included.")
