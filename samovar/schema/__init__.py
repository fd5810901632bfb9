"""Editor schemas and reference pages, generated from the key table and the recipes."""

from samovar.schema.generated_files import generated as generated
from samovar.schema.generated_files import stale as stale
from samovar.schema.generated_files import write as write
