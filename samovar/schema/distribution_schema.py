"""JSON Schema of random amounts: {uniform: [4KB, 1MB]}, {exponential: 100KB, step: 1KB}."""

from __future__ import annotations

from samovar.experiment.expressions import DISTRIBUTIONS, STEP
from samovar.schema.json_schema import Json, at_least_one, at_most_one, closed


def distribution_schema(value: Json, **more: Json) -> Json:
    """Return the schema of a distribution of such values; `more` are keys that may stand beside it."""
    pair = {"type": "array", "items": value, "minItems": 2, "maxItems": 2}
    keys: dict[str, Json] = {
        name: {**(pair if name == "uniform" else value), "description": words}
        for name, words in DISTRIBUTIONS.items()
    }
    keys[STEP] = {**value, "description": "Round each draw to a multiple of this."}
    rules = [at_most_one(*DISTRIBUTIONS), at_least_one(*DISTRIBUTIONS)]
    return closed({**keys, **more}, allOf=rules, description="Drawn at random for each flow.")
