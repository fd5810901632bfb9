"""JSON Schemas of testbed files and of the configuration."""

from __future__ import annotations

from samovar.experiment.keys import Config, Strict, StudyReport, Testbed
from samovar.schema.factor_schema import FactorSchema
from samovar.schema.json_schema import Json
from samovar.schema.model_schema import DRAFT, Definitions
from samovar.schema.recipe_schema import Recipes


def testbed_schema(recipes: Recipes) -> Json:
    """Return the schema of hosts/NAME.yaml."""
    made = _schema(Testbed, recipes)
    made["properties"]["hosts"]["minProperties"] = 1
    return made


def study_schema(recipes: Recipes) -> Json:
    """Return the schema of experiments/studies/NAME.yaml."""
    return _schema(StudyReport, recipes)


def config_schema(recipes: Recipes) -> Json:
    """Return the schema of config.yaml."""
    return _schema(Config, recipes)


def _schema(model: type[Strict], recipes: Recipes) -> Json:
    definitions = Definitions({("", "settings"): lambda definitions, _: _settings(definitions, recipes)})
    root = definitions.object(model)
    return {"$schema": DRAFT, **root, "$defs": dict(sorted(definitions.schemas.items()))}


def _settings(definitions: Definitions, recipes: Recipes) -> Json:
    if "Settings" in definitions.schemas:
        return {"$ref": "#/$defs/Settings"}
    return FactorSchema(definitions, recipes).settings()
