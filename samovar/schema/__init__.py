"""Editor schemas and reference pages, generated from the key table and the recipes."""

from samovar.schema.editor_schemas import config_schema, experiment_schema, fragment_schema, testbed_schema
from samovar.schema.generated import generated, stale, write

__all__ = [
    "config_schema",
    "experiment_schema",
    "fragment_schema",
    "generated",
    "stale",
    "testbed_schema",
    "write",
]
