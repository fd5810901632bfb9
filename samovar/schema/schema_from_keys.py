"""Make JSON Schemas from models of keys: an object for each model, with a property for each key.

Only keywords that drafts 7 and 2020-12 share are used, because many editors support draft 7 only.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any, get_args, get_origin

from annotated_types import MinLen

from samovar.errors import SamovarError
from samovar.experiment import keys
from samovar.experiment import value_types as types

DRAFT = "https://json-schema.org/draft/2020-12/schema"
DIRECTIONS = ("down", "up")

Json = dict[str, Any]


class SchemaError(SamovarError):
    """A schema or a reference page cannot be generated, for example because a key's type has no schema."""


def closed(properties: Mapping[str, Any], **more: Any) -> Json:
    """Return the schema of an object that has these keys and no others."""
    return {"type": "object", "properties": dict(properties), "additionalProperties": False, **more}


def any_of(*options: Json) -> Json:
    """Return a schema that accepts what any of the schemas accepts; duplicate schemas are left out."""
    unique = [one for index, one in enumerate(options) if one not in options[:index]]
    return unique[0] if len(unique) == 1 else {"anyOf": unique}


def at_most_one(*names: str) -> Json:
    """Return the rule that at most one of these keys is given."""
    pairs = [{"required": [one, other]} for index, one in enumerate(names) for other in names[index + 1 :]]
    return {"not": any_of(*pairs), "errorMessage": f"expected one of {', '.join(names)}"}


def at_least_one(*names: str) -> Json:
    """Return the rule that at least one of these keys is given."""
    return any_of(*({"required": [name]} for name in names))


def several(item: Json, **more: Any) -> Json:
    """Return the schema of a list with at least one item. `more` adds keywords such as maxItems."""
    return {"type": "array", "items": item, "minItems": 1, **more}


def directions(value: Json, **more: Json) -> Json:
    """Return the schema of {down: VALUE, up: VALUE}. `more` maps optional other keys to their schemas."""
    return closed({**dict.fromkeys(DIRECTIONS, value), **more})


def described(key: keys.Key) -> Json:
    """Return the description of a key with its default."""
    if key.default is None:
        return {"description": key.description}
    default = int(key.default) if key.default.isdecimal() else key.default
    return {"description": f"{key.description} Default: `{key.default}`.", "default": default}


def document_of(model: type[keys.Strict]) -> str:
    """Return the first paragraph of a model's docstring, on one line."""
    return " ".join((model.__doc__ or "").split("\n\n")[0].split())


class Definitions:
    """The shared schemas of one file, collected while its schema is built.

    `special` has functions that make the schema of a key if its type alone does not determine it. Its keys
    are (model, key), or ("", key) for a key of every model.
    """

    def __init__(self, special: Mapping[tuple[str, str], Callable[[], Json]]) -> None:
        self.schemas: dict[str, Json] = {}
        self._special = special

    def refer(self, name: str, make: Callable[[], Json]) -> Json:
        """Return a reference to a shared schema. The schema is built at its first use."""
        if name not in self.schemas:
            self.schemas[name] = {}
            self.schemas[name] = make()
        return {"$ref": f"#/$defs/{name}"}

    def document(self, root: Json) -> Json:
        """Return the schema of a file, with all shared schemas."""
        return {"$schema": DRAFT, **root, "$defs": dict(sorted(self.schemas.items()))}

    def of_type(self, value_type: types.ValueType) -> Json:
        """Return a reference to the schema of a type."""
        schema, meaning = value_type.schema, value_type.meaning
        bounds = [str(schema[one]) for one in ("minimum", "maximum") if one in schema]
        words = f"{meaning[0].upper()}{meaning[1:]}, such as {value_type.examples[0]}."
        whole = {"title": value_type.name, "description": words, **schema}
        return self.refer("-".join([slug(value_type.name), *bounds]), lambda: whole)

    def object(self, model: type[keys.Strict], partial: bool = False) -> Json:
        """Return the schema of a model, which allows only its keys. `partial` makes every key optional."""
        rules = [at_most_one(*group) for group in model.EXCLUSIVE]
        rules += [
            {"if": {"required": [key]}, "then": {"required": [companion]}}
            for key, companion in model.COMPANIONS.items()
        ]
        known = keys.keys_of(model)
        made = closed(
            {name: self.property(model, key, partial) for name, key in known.items()},
            description=document_of(model),
        )
        if not partial:
            rules += [at_least_one(*group) for group in model.NEEDED]
            made["required"] = [name for name, key in known.items() if key.field.is_required()]
        return {**made, "allOf": rules} if rules else made

    def property(self, model: type[keys.Strict], key: keys.Key, partial: bool) -> Json:
        """Return the schema of one property: that of its value, with description and default."""
        special = self._special.get((model.__name__, key.name)) or self._special.get(("", key.name))
        try:
            value = special() if special else self.value(key.field.annotation, key.type, partial)
        except SchemaError as error:
            raise SchemaError(f"{model.__name__}.{key.name}: {error}") from None
        least = [one.min_length for one in key.field.metadata if isinstance(one, MinLen) and not partial]
        if least and "type" in value:
            value["minItems" if value["type"] == "array" else "minProperties"] = least[0]
        return {**value, **described(key)}

    def value(
        self, annotation: Any, value_type: types.ValueType | None = None, partial: bool = False
    ) -> Json:
        """Return the schema of an annotation. Raises SchemaError if the annotation has no ValueType."""
        here, value_type = keys.bare(annotation), value_type or keys.type_in(annotation)
        if value_type is not None:
            return self._typed(value_type, partial)
        if isinstance(here, type) and issubclass(here, keys.Strict):
            name = f"{here.__name__}{'Change' if partial else ''}"
            return self.refer(name, lambda: self.object(here, partial))
        inner, origin = [one for one in get_args(here) if one not in (type(None), Ellipsis)], get_origin(here)
        if origin is tuple:
            size = {} if get_args(here)[-1] is Ellipsis else {"minItems": len(inner), "maxItems": len(inner)}
            return {"type": "array", "items": self.value(inner[0]), **size}
        if isinstance(origin, type) and issubclass(origin, Mapping):
            names = keys.type_in(inner[0])
            if names and names.choices:
                value = {**self.value(inner[1]), "description": f"One of {', '.join(names.choices)}."}
                return closed(dict.fromkeys(names.choices, value))
            return by_name(self.value(inner[1]), names)
        if inner:
            return any_of(*map(self.value, inner))
        raise SchemaError(f"no schema for {annotation}; expected a ValueType in its metadata")

    def _typed(self, value_type: types.ValueType, partial: bool) -> Json:
        one, name = self.of_type(value_type), slug(value_type.name)
        match value_type.form:
            case types.Form.LIST:
                return any_of(one, several(one))
            case types.Form.RANDOM:
                return any_of(one, self.refer(f"random-{name}", lambda: random(one)))
            case types.Form.BOTH_DIRECTIONS:
                return {**directions(one), "required": [] if partial else list(DIRECTIONS)}
            case types.Form.PER_DIRECTION:
                return any_of(one, self.refer(f"{name}-per-direction", lambda: directions(one)))
        return one


def random(one: Json, **more: Json) -> Json:
    """Return the schema of a distribution of values. `more` maps optional other keys to their schemas."""
    pair = {"type": "array", "items": one, "minItems": 2, "maxItems": 2}
    amounts = {
        "uniform": {**pair, "description": "All values between two amounts are equally likely."},
        "exponential": {**one, "description": "Exponentially distributed with this mean."},
    }
    rules = [at_most_one("uniform", "exponential"), at_least_one("uniform", "exponential")]
    return closed({**amounts, **more}, allOf=rules, description="Drawn at random for each flow.")


def by_name(value: Json, names: types.ValueType | None = None) -> Json:
    """Return the schema of a mapping from names to values; `names` is the type of the names."""
    pattern = names.schema.get("pattern") if names else None
    limit = {"propertyNames": {"pattern": pattern}} if pattern else {}
    return {"type": "object", "additionalProperties": value, **limit}


def slug(name: str) -> str:
    """Return a name without characters that a reference must not contain."""
    return re.sub(r"[^A-Za-z0-9._-]+", "-", name.replace(", or a formula", " or formula")).strip("-")
