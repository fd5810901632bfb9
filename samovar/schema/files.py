"""JSON Schemas of testbed files and of the configuration."""

from __future__ import annotations

from samovar.definition.config import Config
from samovar.definition.fields import Strict
from samovar.definition.study import StudyReport
from samovar.definition.testbed import Testbed
from samovar.schema.factors import FactorSchema
from samovar.schema.keywords import Json
from samovar.schema.models import DRAFT, Definitions
from samovar.schema.recipes import Recipes


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
