"""JSON Schema in a few words: closed objects, alternatives, keys that need or exclude each other."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

Json = dict[str, Any]


def closed(properties: Mapping[str, Any], **more: Any) -> Json:
    """Return an object that has these keys and no others."""
    return {"type": "object", "properties": dict(properties), "additionalProperties": False, **more}


def ways(value: Json) -> dict[str, Json]:
    """Return a value for each direction of the path, as properties."""
    words = {"down": "Of the way of the data, to the bottleneck's `to`.", "up": "Of the way back."}
    return {way: {**value, "description": text} for way, text in words.items()}


def any_of(*options: Json) -> Json:
    """Return what any of a few schemas accepts, each of them once."""
    unique = [one for index, one in enumerate(options) if one not in options[:index]]
    return unique[0] if len(unique) == 1 else {"anyOf": unique}


def at_most_one(*keys: str) -> Json:
    """Return the rule that of a few keys no two stand together."""
    pairs = [(one, other) for index, one in enumerate(keys) for other in keys[index + 1 :]]
    words = f"expected one of {', '.join(keys)}"
    return {"not": any_of(*({"required": list(pair)} for pair in pairs)), "errorMessage": words}


def at_least_one(*keys: str) -> Json:
    """Return the rule that one of a few keys must stand."""
    return any_of(*({"required": [key]} for key in keys))
