"""Generate editor schemas and reference pages from the key table and the recipes."""

from samovar.schema.generated_files import stale as stale
from samovar.schema.generated_files import write as write
