"""JSON Schema of typed models: a property for each field, with its description, default and examples.

Only keywords that draft 7 shares with 2020-12 are used, as editors know no later ones; that is why objects
are closed by listing their keys again beside a condition.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Literal, get_args, get_origin

from pydantic.fields import FieldInfo

from samovar.errors import SamovarError
from samovar.experiment.keys import (
    EACH,
    ONE_HOST,
    Choice,
    Form,
    Strict,
    form_in,
    form_of,
    is_union,
    written_default,
)
from samovar.schema.json_schema import Json, any_of, closed, ways
from samovar.schema.model_rules import rules_of

DRAFT = "https://json-schema.org/draft/2020-12/schema"


class SchemaError(SamovarError):
    """A field that nothing can be told of."""


def own_fields(model: type[Strict]) -> Iterator[tuple[str, FieldInfo]]:
    """Yield the keys of a model as files write them, without what gathers parameters of recipes."""
    for name, info in model.model_fields.items():
        if name != "parameters":
            yield info.alias or name, info


def metadata_of(annotation: Any, metadata: list[Any]) -> list[Any]:
    """Return what Annotated says of a type, also of one that may be left out."""
    nested = [annotation, *get_args(annotation)] if is_union(annotation) else [annotation]
    return [*metadata, *(one for option in nested for one in getattr(option, "__metadata__", ()))]


def bare(annotation: Any) -> Any:
    """Return an annotation without Annotated and without None."""
    if hasattr(annotation, "__metadata__"):
        return bare(get_args(annotation)[0])
    if is_union(annotation):
        options = [one for one in get_args(annotation) if one is not type(None)]
        return bare(options[0]) if len(options) == 1 else annotation
    return annotation


Special = Callable[["Definitions", bool], Json]


class Definitions:
    """The schemas that others refer to, gathered while a file's schema is made.

    `special` makes the value of a field in place of its type: by model and key, or by key for all models.
    """

    def __init__(self, special: Mapping[tuple[str, str], Special]) -> None:
        self.schemas: dict[str, Json] = {}
        self._special = special

    def refer(self, name: str, make: Callable[[], Json]) -> Json:
        """Return a reference to a schema by its name; it is made when it is named first."""
        if name not in self.schemas:
            self.schemas[name] = {}
            self.schemas[name] = make()
        return {"$ref": f"#/$defs/{name}"}

    def form(self, form: Form) -> Json:
        """Return a reference to a kind of text."""
        name = form.name.replace(", or a formula", "-or-formula").replace(", ", "-").replace(" ", "-")
        bounds = (form.schema.get("minimum"), form.schema.get("maximum"))
        if form.name in ("integer", "bytes"):
            name += "".join(f"-{bound}" for bound in bounds if bound is not None)
        return self.refer(name.replace("/", "-"), lambda: {"title": form.name, **form.schema})

    def model(self, model: type[Strict], partial: bool = False) -> Json:
        """Return a reference to a model's object; a partial one lies over another and needs no key."""
        name = f"{model.__name__}{'Change' if partial else ''}"
        return self.refer(name, lambda: self.object(model, partial))

    def object(self, model: type[Strict], partial: bool = False) -> Json:
        """Return a model's object, closed."""
        required = [key for key, info in own_fields(model) if info.is_required()]
        needs = {"required": required} if required and not partial else {}
        words = " ".join((model.__doc__ or "").split("\n\n")[0].split())
        rules = rules_of(model.__name__, partial)
        more = {"allOf": rules} if rules else {}
        return closed(self.properties(model, partial), description=words, **needs, **more)

    def properties(self, model: type[Strict], partial: bool = False) -> Json:
        """Return the properties of a model's fields."""
        return {key: self.property(model, key, info, partial) for key, info in own_fields(model)}

    def property(self, model: type[Strict], key: str, info: FieldInfo, partial: bool) -> Json:
        """Return one property: its value, what it is, its default."""
        special = self._special.get((model.__name__, key)) or self._special.get(("", key))
        value = special(self, partial) if special else self._field(model, key, info, partial)
        return {**value, **told(info, None if special else form_of(info))}

    def _field(self, model: type[Strict], key: str, info: FieldInfo, partial: bool) -> Json:
        try:
            return self.value(info.annotation, list(info.metadata), partial)
        except SchemaError as error:
            message = f"{model.__name__}.{key}: {error}; expected a type with a Form"
            raise SchemaError(message) from None

    def value(self, annotation: Any, metadata: list[Any], partial: bool = False) -> Json:
        """Return the schema of values of a type; raises SchemaError for one that nothing is known of."""
        form = form_in(annotation, metadata)
        here = bare(annotation)
        many = get_origin(here) is tuple
        if form is not None and not (many and form_in(get_args(here)[0], [])):
            return any_of(self.form(form), self._list(self.form(form))) if many else self.ways(form, partial)
        if isinstance(here, type) and issubclass(here, Strict):
            return self.model(here, partial)
        known = next((one.known for one in metadata_of(annotation, metadata) if isinstance(one, Choice)), ())
        if known or get_origin(here) is Literal:
            return {"enum": list(known or get_args(here))}
        if is_union(here):
            return any_of(*(self.value(one, []) for one in get_args(here) if one is not type(None)))
        if many:
            return self._tuple(get_args(here))
        if get_origin(here) is not None and issubclass(get_origin(here), Mapping):
            return self._mapping(*get_args(here))
        raise SchemaError(f"nothing is known of {annotation}")

    def ways(self, form: Form, partial: bool = False) -> Json:
        """Return a text, or one for each direction where that may be."""
        one = self.form(form)
        if form.ways == ONE_HOST:
            return one
        each: Json = {"required": ["down", "up"]} if form.ways == EACH and not partial else {}
        both = closed(ways(one), minProperties=1, **each)
        return both if form.ways == EACH else any_of(one, both)

    def _list(self, item: Json) -> Json:
        return {"type": "array", "items": item, "minItems": 1}

    def _tuple(self, kinds: tuple[Any, ...]) -> Json:
        item = self.value(kinds[0], [])
        if kinds[-1] is Ellipsis:
            return {"type": "array", "items": item}
        return {"type": "array", "items": item, "minItems": len(kinds), "maxItems": len(kinds)}

    def _mapping(self, key: Any, value: Any) -> Json:
        here = bare(key)
        if get_origin(here) is Literal:
            return closed(
                {one: {**self.value(value, []), "description": f"Of {one}."} for one in get_args(here)}
            )
        names = form_in(key, [])
        pattern = names.schema.get("pattern") if names else None
        limit = {"propertyNames": {"pattern": pattern}} if pattern else {}
        return {"type": "object", "additionalProperties": self.value(value, []), **limit}


def told(info: FieldInfo, form: Form | None) -> Json:
    """Return what is said of a field: its description, in Markdown with its form, and its default."""
    words, default = info.description or "", written_default(info)
    more = ""
    if form is not None:
        more = f"\n\n{form.meaning[0].upper()}{form.meaning[1:]}: " + ", ".join(
            f"`{one}`" for one in form.examples
        )
    if default is not None:
        more += f"\n\nDefault: `{default}`"
    found: Json = {"description": words}
    if more:
        found["markdownDescription"] = words + more
    if default is not None:
        found["default"] = int(default) if default.isdecimal() else default
    return found
