"""What editors and readers are told of the files: JSON Schemas and the reference, made from the types."""

from samovar.schema.experiment_schema import experiment_schema, fragment_schema
from samovar.schema.file_schemas import config_schema, testbed_schema
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
