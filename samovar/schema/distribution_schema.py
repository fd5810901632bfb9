"""JSON Schema of laws that amounts are drawn by: {uniform: [4KB, 1MB]}, {lognormal: 20KB, sigma: 1.5}."""

from __future__ import annotations

from samovar.experiment.expressions.distribution import LAWS, PARAMETER
from samovar.experiment.keys import notation
from samovar.schema.json_schema import Json, at_least_one, at_most_one, closed

LISTED = {"uniform": {"minItems": 2, "maxItems": 2}, "choice": {"minItems": 1}}


def law(value: Json, **more: Json) -> Json:
    """Return a law whose amounts are of a value; `more` may stand in it besides."""
    keys: dict[str, Json] = {
        name: {**(_list(value, LISTED[name]) if name in LISTED else value), "description": words}
        for name, words in LAWS.items()
    }
    number = {**notation.NUMBER.schema, "exclusiveMinimum": 0}
    keys |= {one: {**number, "description": f"Of {name}."} for name, one in PARAMETER.items()}
    keys["most"] = {**value, "description": "What is drawn above this is cut to it."}
    keys["step"] = {**value, "description": "What is drawn is rounded to multiples of this."}
    together = [_both(name, one) for name, one in PARAMETER.items()]
    apart = [at_most_one(*LAWS), at_least_one(*LAWS)]
    return closed({**keys, **more}, allOf=[*apart, *together], description="Drawn at random for each flow.")


def _list(value: Json, bounds: Json) -> Json:
    return {"type": "array", "items": value, **bounds}


def _both(name: str, parameter: str) -> Json:
    """Return the rule that a law has its parameter, and no other law has it."""
    rule = {"if": {"required": [name]}, "then": {"required": [parameter]}}
    return {**rule, "else": {"not": {"required": [parameter]}}}
