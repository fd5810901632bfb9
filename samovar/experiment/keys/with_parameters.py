"""Models whose further keys are parameters of a recipe."""

from __future__ import annotations

from collections.abc import Mapping

from pydantic import Field, model_validator

from samovar.experiment.keys.field_types import Strict, Word


class WithParameters(Strict):
    """A model whose other keys are parameters of the recipe it names."""

    parameters: Mapping[str, Word] = Field(
        default_factory=dict, description="Parameters of the recipe, as texts; its header types them."
    )

    @model_validator(mode="before")
    @classmethod
    def _gather(cls, data: object) -> object:
        if not isinstance(data, dict):
            return data
        known = own_keys(cls)
        gathered: dict[str, object] = {key: value for key, value in data.items() if key in known}
        return gathered | {"parameters": {key: value for key, value in data.items() if key not in known}}


def own_keys(model: type[Strict]) -> frozenset[str]:
    """Return the keys that a model has in the file, without the parameters of recipes."""
    keys = (field.alias or name for name, field in model.model_fields.items())
    gathered = {"parameters"} if issubclass(model, WithParameters) else set()
    return frozenset(keys) - gathered
