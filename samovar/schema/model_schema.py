"""JSON Schema of models: an object for each, with a property for each key.

Only keywords that draft 7 shares with 2020-12 are used, as editors know no later ones.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, get_args, get_origin

from samovar.errors import SamovarError
from samovar.experiment import EACH, ONE_DIRECTION, Key, Strict, ValueType, bare, keys_of, type_in

DRAFT = "https://json-schema.org/draft/2020-12/schema"
WIDTH = 240
SHORT = 60
DIRECTIONS = ("down", "up")

Json = dict[str, Any]


class SchemaError(SamovarError):
    """A key whose type has no schema."""


def closed(properties: Mapping[str, Any], **more: Any) -> Json:
    """Return an object that has these keys and no others."""
    return {"type": "object", "properties": dict(properties), "additionalProperties": False, **more}


def any_of(*options: Json) -> Json:
    """Return a schema that accepts what one of several accepts, each listed once."""
    unique = [one for index, one in enumerate(options) if one not in options[:index]]
    return unique[0] if len(unique) == 1 else {"anyOf": unique}


def at_most_one(*keys: str) -> Json:
    """Return the rule that no two of these keys stand together."""
    pairs = [[one, other] for index, one in enumerate(keys) for other in keys[index + 1 :]]
    message = f"expected one of {', '.join(keys)}"
    return {"not": any_of(*({"required": pair} for pair in pairs)), "errorMessage": message}


def at_least_one(*keys: str) -> Json:
    """Return the rule that one of these keys is given."""
    return any_of(*({"required": [key]} for key in keys))


def several(item: Json, **more: Any) -> Json:
    """Return a list of one item or more."""
    return {"type": "array", "items": item, "minItems": 1, **more}


def when(condition: Mapping[str, Sequence[str]], then: Json) -> Json:
    """Return the rule that a schema holds where some keys have one of these values each."""
    wanted = {key: {"enum": list(values)} for key, values in condition.items()}
    return {"if": {"properties": wanted, "required": list(wanted)}, "then": then}


def directions(value: Json, **more: Json) -> Json:
    """Return {down: ..., up: ...} of values, one or both; `more` are keys that may stand beside them."""
    return closed({**dict.fromkeys(DIRECTIONS, value), **more}, **at_least_one(*DIRECTIONS))


def described(key: Key) -> Json:
    """Return the description of a key with its default."""
    if key.default is None:
        return {"description": key.description}
    default = int(key.default) if key.default.isdecimal() else key.default
    return {"description": f"{key.description} Default: `{key.default}`.", "default": default}


def document_of(model: type[Strict]) -> str:
    """Return the first paragraph of a model's docstring, on one line."""
    return " ".join((model.__doc__ or "").split("\n\n")[0].split())


Special = Callable[["Definitions", bool], Json]


class Definitions:
    """The shared schemas of one file, collected while its schema is built.

    `special` has the schemas of keys whose type does not define one: by model and key, or by key alone.
    """

    def __init__(self, special: Mapping[tuple[str, str], Special]) -> None:
        self.schemas: dict[str, Json] = {}
        self._special = special

    def refer(self, name: str, make: Callable[[], Json]) -> Json:
        """Return a reference to a shared schema, which is built at its first use."""
        if name not in self.schemas:
            self.schemas[name] = {}
            self.schemas[name] = make()
        return {"$ref": f"#/$defs/{name}"}

    def of_type(self, value_type: ValueType) -> Json:
        """Return a reference to a type, or the words of a type that takes a few words only."""
        if value_type.choices and "enumDescriptions" not in value_type.schema:
            return dict(value_type.schema)
        bounds = (value_type.schema.get("minimum"), value_type.schema.get("maximum"))
        limits = (
            [str(one) for one in bounds if one is not None] if value_type.name in ("integer", "bytes") else []
        )
        name = "-".join([slug(value_type.name), *limits])
        words = f"{value_type.meaning[0].upper()}{value_type.meaning[1:]}, such as {value_type.examples[0]}."
        return self.refer(name, lambda: {"title": value_type.name, "description": words, **value_type.schema})

    def model(self, model: type[Strict], partial: bool = False) -> Json:
        """Return a reference to the object of a model; one that changes another needs no key."""
        name = f"{model.__name__}{'Change' if partial else ''}"
        return self.refer(name, lambda: self.object(model, partial))

    def object(self, model: type[Strict], partial: bool = False) -> Json:
        """Return the closed object of a model."""
        required = [name for name, key in keys_of(model).items() if key.field.is_required()]
        needs: Json = {"required": required} if required and not partial else {}
        rules = self.rules(model, partial)
        return closed(
            self.properties(model, partial),
            description=document_of(model),
            **needs,
            **({"allOf": rules} if rules else {}),
        )

    def rules(self, model: type[Strict], partial: bool) -> list[Json]:
        """Return which keys of a model exclude or need each other; a change of another need not be whole."""
        rules = [at_most_one(*group) for group in model.EXCLUSIVE]
        rules += [
            {"if": {"required": [one]}, "then": {"required": [other]}}
            for one, other in model.COMPANIONS.items()
        ]
        return rules if partial else [*rules, *(at_least_one(*group) for group in model.NEEDED)]

    def properties(self, model: type[Strict], partial: bool = False) -> Json:
        """Return the properties of a model."""
        return {name: self.property(model, key, partial) for name, key in keys_of(model).items()}

    def property(self, model: type[Strict], key: Key, partial: bool) -> Json:
        """Return one property: its value, description and default."""
        special = self._special.get((model.__name__, key.name)) or self._special.get(("", key.name))
        try:
            value = special(self, partial) if special else self.value(key.field.annotation, key.type, partial)
        except SchemaError as error:
            raise SchemaError(f"{model.__name__}.{key.name}: {error}") from None
        return {**value, **described(key)}

    def value(self, annotation: Any, value_type: ValueType | None = None, partial: bool = False) -> Json:
        """Return the schema of an annotation; raises SchemaError for one without a type."""
        here, value_type = bare(annotation), value_type or type_in(annotation)
        if value_type is not None:
            return self._typed(value_type, partial)
        if isinstance(here, type) and issubclass(here, Strict):
            return self.model(here, partial)
        inner, origin = [one for one in get_args(here) if one not in (type(None), Ellipsis)], get_origin(here)
        if origin is tuple:
            size = {} if get_args(here)[-1] is Ellipsis else {"minItems": len(inner), "maxItems": len(inner)}
            return {"type": "array", "items": self.value(inner[0]), **size}
        if isinstance(origin, type) and issubclass(origin, Mapping):
            return self._mapping(*inner)
        if inner:
            return any_of(*map(self.value, inner))
        raise SchemaError(f"no schema for {annotation}; expected a ValueType in its metadata")

    def _typed(self, value_type: ValueType, partial: bool) -> Json:
        one = self.of_type(value_type)
        if value_type.is_list:
            return any_of(one, several(one))
        if value_type.is_random:
            return any_of(one, self.random(value_type))
        if value_type.directions == ONE_DIRECTION:
            return one
        if value_type.directions == EACH and not partial:
            return {**directions(one), "required": list(DIRECTIONS)}
        both = self.refer(f"{slug(value_type.name)}-per-direction", lambda: directions(one))
        return both if value_type.directions == EACH else any_of(one, both)

    def random(self, value_type: ValueType, **more: Json) -> Json:
        """Return a distribution of a type's values; `more` are keys that may stand beside it."""
        return self._random(slug(value_type.name), self.of_type(value_type), **more)

    def _random(self, name: str, one: Json, **more: Json) -> Json:
        pair = {"type": "array", "items": one, "minItems": 2, "maxItems": 2}
        keys = {
            "uniform": {**pair, "description": "Equally likely anywhere between two amounts."},
            "exponential": {**one, "description": "Exponentially distributed with this mean."},
            "step": {**one, "description": "Round each draw to a multiple of this."},
            **more,
        }
        rules = [at_most_one("uniform", "exponential"), at_least_one("uniform", "exponential")]
        made = closed(keys, allOf=rules, description="Drawn at random for each flow.")
        return self.refer(f"random-{name}{'-labelled' if more else ''}", lambda: made)

    def _mapping(self, key: Any, value: Any) -> Json:
        names = type_in(key)
        if names and names.choices:
            return closed({one: {**self.value(value), "description": f"For {one}."} for one in names.choices})
        pattern = names.schema.get("pattern") if names else None
        limit = {"propertyNames": {"pattern": pattern}} if pattern else {}
        return {"type": "object", "additionalProperties": self.value(value), **limit}


def slug(name: str) -> str:
    """Return a name as part of a reference."""
    return re.sub(r"[^A-Za-z0-9._-]+", "-", name.replace(", or a formula", " or formula")).strip("-")


def dump(value: Any, indent: int = 0, lead: int = 0) -> str:
    """Write JSON with each object or list on one line where it fits, and short entries side by side.

    Files are short and diffs readable. `lead` is the length of what precedes the value on its line.
    """
    flat = json.dumps(value, ensure_ascii=False)
    if indent + lead + len(flat) <= WIDTH or not isinstance(value, dict | list) or not value:
        return flat
    pad, end = " " * (indent + 1), " " * indent
    if isinstance(value, dict):
        names = [json.dumps(key, ensure_ascii=False) for key in value]
        entries = [
            f"{name}: {dump(one, indent + 1, len(name) + 3)}"
            for name, one in zip(names, value.values(), strict=True)
        ]
        opening, closing = "{", "}"
    else:
        entries, opening, closing = [dump(one, indent + 1) for one in value], "[", "]"
    lines: list[str] = []
    for entry in entries:
        fits = (
            lines
            and len(entry) <= SHORT
            and len(lines[-1]) <= WIDTH - len(entry) - indent - 4
            and "\n" not in lines[-1]
        )
        if fits:
            lines[-1] += f", {entry}"
        else:
            lines.append(entry)
    body = ",\n".join(pad + line for line in lines)
    return f"{opening}\n{body}\n{end}{closing}"
