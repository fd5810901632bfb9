"""Editor schemas and reference pages, generated from the key table and the recipes."""

from samovar.schema.reference_pages import generated, stale, write

__all__ = ["generated", "stale", "write"]
