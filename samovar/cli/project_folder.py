"""Find, list and create project folders.

This module imports nothing slow, because shell completion uses it.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from samovar.errors import ProjectError
from samovar.installation import IN_CHECKOUT, IN_PROJECT, SHIPPED, TEMPLATES, shipped_beside


def find_project(folder: Path) -> Path:
    """Return the project folder: `folder` itself, or the nearest one above it. Raises ProjectError."""
    try:
        start = folder.absolute()
    except FileNotFoundError:
        raise ProjectError("the current folder has been deleted; change to a project's folder") from None
    if not start.is_dir():
        raise ProjectError(f"{folder}: not a folder; --project takes the folder of a project")
    for one in (start, *start.parents):
        if (one / "experiments").is_dir() or (one / "config.yaml").is_file():
            return one
    raise ProjectError(
        f"{start}: not in a project: neither this folder nor one above has experiments/ or config.yaml; "
        "`samovar init FOLDER` makes a project"
    )


def names(root: Path, folder: str) -> Iterator[str]:
    """Yield the names, without .yaml, of the files in a folder of the project, including shipped files."""
    folders = (root / folder, *shipped_beside(root / folder))
    yield from sorted({path.stem for one in folders for path in one.glob("*.yaml")})


def make_project(folder: Path) -> list[Path]:
    """Write a new project's files and return their paths. Raises ProjectError if a file exists already."""
    root = folder.absolute()
    texts = {
        "experiments/first.yaml": (TEMPLATES / "starter" / "experiment.yaml").read_text("utf-8"),
        "hosts/lab.yaml": (SHIPPED / "hosts" / "lab.yaml").read_text("utf-8"),
        "config.yaml": (SHIPPED / "config.yaml").read_text("utf-8"),
        "fabfile.py": (SHIPPED / "fabfile.py").read_text("utf-8"),
        ".gitignore": f"results/\n.lab/\n{IN_PROJECT}/\n",
    }
    existing = [name for name in texts if (root / name).exists() and name != ".gitignore"]
    if existing:
        raise ProjectError(f"{folder}: {existing[0]} exists already; choose a folder that is not a project")
    if (root / ".gitignore").exists():
        del texts[".gitignore"]
    written = []
    for name, text in texts.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("x", encoding="utf-8") as file:
            file.write(text.replace(IN_CHECKOUT, IN_PROJECT).replace("NAME", "first"))
        written.append(folder / name)
    return written
