"""Editor schemas and reference pages, generated from the key table and the recipes."""

from samovar.schema.reference_pages import generated as generated
from samovar.schema.reference_pages import stale as stale
from samovar.schema.reference_pages import write as write
