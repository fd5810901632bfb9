"""The table of keys: type, default and description of each key, and whether levels of factors may set it.

The pydantic models are the table: each key is declared once, as a field such as
`rate_bps: Annotated[int, RATE, VARIES] = entry("Rate of the bottleneck.")`. Factors, `--set`, explanations,
editor schemas and reference pages are derived from the fields.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from types import UnionType
from typing import Any, ClassVar, Self, Union, get_args, get_origin

from pydantic import BaseModel, ConfigDict, Field, PrivateAttr, model_validator
from pydantic.fields import FieldInfo
from pydantic_core import PydanticUndefined

from samovar.experiment.keys.value_types import ValueType, Word
from samovar.experiment.yaml_tree import Map

VARIES = "varies"
"""Marks the field of a key that can be a factor."""
ROUTER = "router"
"""Marks the field of a path key that needs a router as bottleneck, not a device such as an adapter."""


def entry(description: str, default: Any = PydanticUndefined, **options: Any) -> Any:
    """Return the field of a key with its description and default. Without a default, the key is required.

    If the default is a model, make it with `model_construct`. (Otherwise, pydantic would build validators
    whenever a command starts.)
    """
    return Field(default, description=description, **options)


def key_name(attribute: str) -> str:
    """Return an attribute's name as a key in files: `rate` for `rate_bps`, `from` for `from_end`."""
    return re.sub(r"(?:_per_s|_s|_bps|_bytes|_packets|_ppm|_end)$", "", attribute)


class Strict(BaseModel):
    """The base class of all models of keys: instances are immutable, and unknown keys are errors."""

    model_config = ConfigDict(frozen=True, extra="forbid", defer_build=True, alias_generator=key_name)
    EXCLUSIVE: ClassVar[tuple[tuple[str, ...], ...]] = ()
    """Groups of keys of which at most one may be given."""
    NEEDED: ClassVar[tuple[tuple[str, ...], ...]] = ()
    """Groups of keys of which at least one must be given."""
    COMPANIONS: ClassVar[Mapping[str, str]] = {}
    """Keys that need another key beside them."""

    @model_validator(mode="after")
    def _check_groups(self) -> Self:
        fields = type(self).model_fields
        given = {fields[attribute].alias or key_name(attribute) for attribute in self.model_fields_set}
        for group in self.EXCLUSIVE:
            found = [f"`{key}`" for key in group if key in given]
            if len(found) > 1:
                raise ValueError(f"{' and '.join(found)} exclude each other; expected one of them")
        for group in self.NEEDED:
            if not given.intersection(group):
                *first, last = (f"`{key}`" for key in group)
                raise ValueError(f"expected the key {', '.join(first)} or {last}")
        for key, companion in self.COMPANIONS.items():
            if key in given and companion not in given:
                raise ValueError(f"`{key}` needs `{companion}` beside it")
        return self

    def value(self, key: str) -> Any:
        """Return the value of the key that has this name in files."""
        return getattr(self, keys_of(type(self))[key].attribute)

    def under(self, over: Self) -> Self:
        """Return this model, overridden by the keys that `over` sets."""
        return self.model_copy(update={name: getattr(over, name) for name in over.model_fields_set})


class SourceFile(Strict):
    """A model of a whole file that keeps the tree from which it was read."""

    _tree: Map | None = PrivateAttr(None)

    @property
    def tree(self) -> Map | None:
        """The file's tree with its positions; None if the model was not read from a file.

        The tree of an experiment has base, fragments, profile and --set merged, and all its parts are
        complete.
        """
        return self._tree

    def with_tree(self, tree: Map) -> Self:
        """Return a copy of this model whose property `tree` returns this tree."""
        copy = self.model_copy()
        copy._tree = tree
        return copy


class WithParameters(Strict):
    """A model that names a recipe. Keys that the model does not declare are the recipe's parameters."""

    parameters: Mapping[str, Word] = entry(
        "Parameters of the recipe as text; the recipe's header has their types.", {}
    )

    @model_validator(mode="before")
    @classmethod
    def _gather(cls, data: object) -> object:
        if not isinstance(data, dict):
            return data
        known = keys_of(cls)
        own: dict[str, object] = {key: value for key, value in data.items() if key in known}
        return own | {"parameters": {key: value for key, value in data.items() if key not in known}}


@dataclass(frozen=True)
class Key:
    """One key of a model: its name in files, the attribute that holds its value, and its field."""

    name: str
    attribute: str
    field: FieldInfo
    type: ValueType | None
    varies: bool
    router_only: bool

    @property
    def description(self) -> str:
        """The sentence that describes the key in the reference."""
        return self.field.description or ""

    @property
    def default(self) -> str | None:
        """The default as text in a file, such as 10s; None if the key has no default or an empty one."""
        default = self.field.default
        if default in (None, "", (), {}, PydanticUndefined) or isinstance(default, BaseModel):
            return None
        if isinstance(default, tuple):
            return f"[{', '.join(default)}]"
        return self.type.write(default) if self.type else str(default)


@cache
def keys_of(model: type[Strict]) -> Mapping[str, Key]:
    """Return the keys of a model by their names in files, without the parameters of recipes."""
    found = {}
    fields = model.model_fields
    own = [attribute for attribute in fields if attribute in model.__annotations__]
    for attribute in dict.fromkeys([*own, *fields]):  # inherited keys come last
        field = fields[attribute]
        if attribute == "parameters" and issubclass(model, WithParameters):
            continue
        name, metadata = field.alias or key_name(attribute), [*field.metadata, *metadata_of(field.annotation)]
        value_type = next((one for one in metadata if isinstance(one, ValueType)), None)
        found[name] = Key(name, attribute, field, value_type, VARIES in metadata, ROUTER in metadata)
    return found


def metadata_of(annotation: Any) -> list[Any]:
    """Return the metadata of an annotation, including those of X in `X | None`."""
    options = (annotation, *(get_args(annotation) if is_union(annotation) else ()))
    return [one for option in options for one in getattr(option, "__metadata__", ())]


def is_union(annotation: Any) -> bool:
    """Return whether an annotation is a union of types."""
    return get_origin(annotation) in (Union, UnionType)


def type_in(annotation: Any) -> ValueType | None:
    """Return the ValueType in the metadata of an annotation, or None."""
    return next((one for one in metadata_of(annotation) if isinstance(one, ValueType)), None)


def bare(annotation: Any) -> Any:
    """Return the plain type of an annotation: X for Annotated[X, …] and for `X | None`."""
    if hasattr(annotation, "__metadata__"):
        return bare(get_args(annotation)[0])
    if is_union(annotation):
        options = [one for one in get_args(annotation) if one is not type(None)]
        return bare(options[0]) if len(options) == 1 else annotation
    return annotation
