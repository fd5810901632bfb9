"""The files that are made from the types and recipes, and whether those that stand are current."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

from samovar.campaign.journal import journal_schema
from samovar.events import events_page
from samovar.experiment.outputs import read_exhibits
from samovar.recipes import Catalogue
from samovar.schema.experiment_schema import experiment_schema, fragment_schema
from samovar.schema.file_schemas import config_schema, study_schema, testbed_schema
from samovar.schema.json_schema import Json
from samovar.schema.model_schema import DRAFT
from samovar.schema.recipe_schema import Recipes
from samovar.schema.reference_pages import BLOCK, ROOTS, Page

REFERENCE = Path("docs") / "reference"
FOLDER = REFERENCE / "schema"
EVENTS = REFERENCE / "events.md"


def schemas(root: Path, recipes: Recipes) -> Mapping[str, Json]:
    """Return the schema of each kind of file of a checkout."""
    return {
        "experiment": experiment_schema(recipes, read_exhibits(root / "analysis" / "R")),
        "fragment": fragment_schema(),
        "testbed": testbed_schema(recipes),
        "study": study_schema(recipes),
        "config": config_schema(recipes),
        "journal": {"$schema": DRAFT, **journal_schema()},
    }


def generated(root: Path) -> dict[Path, str]:
    """Return what each generated file of a checkout should hold, by its path there."""
    recipes = Recipes.of(Catalogue(root / "templates"))
    texts = {FOLDER / f"{name}.json": _text(schema) for name, schema in schemas(root, recipes).items()}
    return texts | {EVENTS: events_page()} | pages(root, recipes)


def pages(root: Path, recipes: Recipes) -> dict[Path, str]:
    """Return the pages of the reference that hold generated blocks, each as it should be."""
    found = {path.relative_to(root): path.read_text("utf-8") for path in (root / REFERENCE).glob("*.md")}
    exhibits = read_exhibits(root / "analysis" / "R")
    return {
        path: Page(text, ROOTS.get(path.stem), recipes, exhibits).written()
        for path, text in sorted(found.items())
        if BLOCK.search(text)
    }


def stale(root: Path) -> list[Path]:
    """Name the generated files that are missing or not current."""
    return [path for path, text in generated(root).items() if _standing(root / path) != text]


def write(root: Path) -> list[Path]:
    """Make the generated files current; name those that changed."""
    made = generated(root)
    changed = [path for path, text in made.items() if _standing(root / path) != text]
    for path in changed:
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(made[path], encoding="utf-8")
    return changed


def _standing(path: Path) -> str | None:
    return path.read_text(encoding="utf-8") if path.is_file() else None


def _text(schema: Json) -> str:
    return json.dumps(schema, indent=1, ensure_ascii=False) + "\n"
