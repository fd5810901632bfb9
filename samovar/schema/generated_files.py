"""Write the generated files (editor schemas, reference pages), and find outdated ones."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from samovar.events import JOURNAL_EVENTS, line_schema
from samovar.experiment import Outputs, keys, project_outputs
from samovar.installation import SHIPPED, TEMPLATES, schema_folder
from samovar.recipes import Catalogue
from samovar.schema.editor_schemas import ExperimentSchema, model_document
from samovar.schema.reference_pages import ROOTS, Page
from samovar.schema.schema_from_keys import DRAFT, Json
from samovar.schema.schema_from_recipes import Recipes

REFERENCE = Path("docs") / "reference"
WIDTH = 200


def schemas(recipes: Recipes, outputs: Outputs) -> Mapping[str, Json]:
    """Return the schema for each kind of file."""
    return {
        "experiment": ExperimentSchema(recipes, outputs).document(),
        "fragment": {"$schema": DRAFT, "$ref": "experiment.json#/$defs/Fragment"},
        "testbed": model_document(keys.Testbed),
        "study": model_document(keys.StudyReport),
        "config": model_document(keys.Config),
        "journal": {"$schema": DRAFT, **line_schema("journal", JOURNAL_EVENTS)},
    }


def compact(value: Any, indent: str = "\n") -> str:
    """Return JSON with as much on each line as fits into WIDTH, to keep the files short."""
    flat = json.dumps(value, ensure_ascii=False)
    if len(indent + flat) <= WIDTH or not isinstance(value, dict | list):
        return flat
    indent += " "
    if isinstance(value, list):
        return "[" + f",{indent}".join(compact(one, indent) for one in value) + "]"
    entries = (f"{json.dumps(key)}: {compact(one, indent)}" for key, one in value.items())
    return "{" + f",{indent}".join(entries) + "}"


def generated(root: Path) -> dict[Path, str]:
    """Return the text of each generated file of a checkout or project, by its path."""
    catalogue = Catalogue(*dict.fromkeys((root / "templates", TEMPLATES)))
    recipes, outputs = Recipes.of(catalogue), project_outputs(root)
    folder = Path(schema_folder(root))
    texts = {
        folder / f"{name}.json": compact(schema) + "\n" for name, schema in schemas(recipes, outputs).items()
    }
    if root != SHIPPED:
        return texts
    for path in sorted((root / REFERENCE).glob("*.md")):
        page = Page(path.read_text("utf-8"), ROOTS.get(path.stem), recipes, outputs)
        texts[path.relative_to(root)] = page.written()  # the same text if it has no generated blocks
    return texts


def stale(root: Path) -> dict[Path, str]:
    """Return the generated files that are missing or outdated, by path, with their new text."""
    return {
        path: text
        for path, text in generated(root).items()
        if not (root / path).is_file() or (root / path).read_text("utf-8") != text
    }


def write(root: Path) -> list[Path]:
    """Write the missing and outdated generated files; return their paths."""
    changed = stale(root)
    for path, text in changed.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(text, encoding="utf-8")
    return list(changed)
