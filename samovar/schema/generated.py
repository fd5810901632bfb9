"""Generate the schemas of editors and the tables of the reference, and find those that are not current."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from samovar.events import JOURNAL_EVENTS, events_page, line_schema
from samovar.experiment import project_outputs
from samovar.recipes import Catalogue
from samovar.schema.editor_schemas import (
    config_schema,
    experiment_schema,
    fragment_schema,
    study_schema,
    testbed_schema,
)
from samovar.schema.model_schema import DRAFT, Json, dump
from samovar.schema.recipe_schema import Recipes
from samovar.schema.reference_pages import BLOCK, ROOTS, Page

REFERENCE = Path("docs") / "reference"
FOLDER = REFERENCE / "schema"
EVENTS = REFERENCE / "events.md"


def schemas(root: Path, recipes: Recipes) -> Mapping[str, Json]:
    """Return the schemas of a checkout, by kind of file."""
    return {
        "experiment": experiment_schema(recipes, project_outputs(root)),
        "fragment": fragment_schema(),
        "testbed": testbed_schema(),
        "study": study_schema(),
        "config": config_schema(),
        "journal": {"$schema": DRAFT, **line_schema("journal", JOURNAL_EVENTS)},
    }


def generated(root: Path) -> dict[Path, str]:
    """Return the text of each generated file of a checkout, by its path."""
    recipes = Recipes.of(Catalogue(root / "templates"))
    texts = {FOLDER / f"{name}.json": f"{dump(schema)}\n" for name, schema in schemas(root, recipes).items()}
    return texts | {EVENTS: events_page()} | pages(root, recipes)


def pages(root: Path, recipes: Recipes) -> dict[Path, str]:
    """Return the reference pages with generated blocks, by path."""
    found = {path.relative_to(root): path.read_text("utf-8") for path in (root / REFERENCE).glob("*.md")}
    outputs = project_outputs(root)
    return {
        path: Page(text, ROOTS.get(path.stem), recipes, outputs).written()
        for path, text in sorted(found.items())
        if BLOCK.search(text)
    }


def stale(root: Path) -> list[Path]:
    """Return the generated files that are missing or not current."""
    return [path for path, text in generated(root).items() if _current(root / path) != text]


def write(root: Path) -> list[Path]:
    """Write the generated files that are not current; return their paths."""
    made = generated(root)
    changed = [path for path, text in made.items() if _current(root / path) != text]
    for path in changed:
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(made[path], encoding="utf-8")
    return changed


def _current(path: Path) -> str | None:
    return path.read_text(encoding="utf-8") if path.is_file() else None
