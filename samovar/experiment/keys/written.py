"""How the value of a field is written in a file, and its default so."""

from __future__ import annotations

from types import UnionType
from typing import Any, Union, get_args, get_origin

from pydantic import BaseModel
from pydantic.fields import FieldInfo
from pydantic_core import PydanticUndefined

from samovar.experiment.keys.notation import Form

NO_DEFAULT: tuple[object, ...] = (None, "", (), PydanticUndefined)


def form_of(info: FieldInfo) -> Form | None:
    """Return how the value of a field is written, when it is a text."""
    return form_in(info.annotation, info.metadata)


def form_in(annotation: Any, metadata: list[Any]) -> Form | None:
    """Return the form that an annotation or what stands beside it names."""
    own = next((one for one in metadata if isinstance(one, Form)), None)
    if own is not None or not is_union(annotation):
        nested = list(getattr(annotation, "__metadata__", ()))
        return own or next((one for one in nested if isinstance(one, Form)), None)
    options = [one for one in get_args(annotation) if one is not type(None)]
    found = (form_in(one, list(getattr(one, "__metadata__", ()))) for one in options)
    return next((one for one in found if one is not None), None)


def written_default(info: FieldInfo) -> str | None:
    """Return a field's default as a file would write it; None when there is none to write."""
    default = info.default
    if default in NO_DEFAULT or isinstance(default, BaseModel):
        return None
    form = form_of(info)
    return form.write(default) if form else str(default)


def is_union(annotation: Any) -> bool:
    """Say whether a type is one of several."""
    return get_origin(annotation) in (Union, UnionType)
