"""Structure of samovar/: packages are imported through their faces, and names of modules and classes are unique."""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[3]
PACKAGE = ROOT / "samovar"
FILES = {
    ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__"): path
    for path in [ROOT / "fabfile.py", *sorted(PACKAGE.rglob("*.py"))]
}
TREES = {name: ast.parse(path.read_text()) for name, path in FILES.items()}
FACES = {
    ".".join(path.parent.relative_to(ROOT).parts)
    for pattern in ("*/__init__.py", "campaign/*/__init__.py")
    for path in PACKAGE.glob(pattern)
}
"""Packages with private modules, imported through their face `__init__.py`: those of samovar and samovar.campaign."""


def exported_names(face: str) -> set[str]:
    """Return the names that a package lists in `__all__` or imports as themselves (`import X as X`)."""
    imports = [node for node in ast.walk(TREES[face]) if isinstance(node, ast.ImportFrom)]
    names = {alias.name for node in imports for alias in node.names if alias.asname == alias.name}
    for node in TREES[face].body:
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__":
            return names | set(ast.literal_eval(node.value))
    return names


def imported_modules(tree: ast.Module) -> Iterator[str]:
    """Yield the modules that a file imports; `from package import module` imports the module."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            names = exported_names(node.module) if node.module in FACES else set()
            for alias in node.names:
                module = f"{node.module}.{alias.name}"
                yield module if module in FILES and alias.name not in names else node.module


def package_of(module: str) -> str:
    """Return the innermost package with a face that contains a module; the module itself if there is none."""
    return max((face for face in FACES if f"{module}.".startswith(f"{face}.")), key=len, default=module)


def imports_past_a_face() -> set[tuple[str, str]]:
    """Return the packages that import a private module of another package, with that module."""
    return {
        (package_of(importer), module)
        for importer, tree in TREES.items()
        for module in imported_modules(tree)
        if module not in FACES
        and package_of(module) in FACES
        and not f"{importer}.".startswith(f"{package_of(module)}.")
        and not is_command(importer, module)
    }


def is_command(importer: str, module: str) -> bool:
    """Return whether a program, `fab` or `samovar`, imports its commands."""
    return importer in ("fabfile", "samovar.__main__") and module in (
        "samovar.cli.fab",
        "samovar.cli.commands",
    )


def repeated_names(names: Iterator[str]) -> set[str]:
    """Return the names that occur more than once."""
    found: dict[str, int] = defaultdict(int)
    for name in names:
        found[name] += 1
    return {name for name, number in found.items() if number > 1}


def test_a_package_is_imported_through_its_face() -> None:
    assert imports_past_a_face() == set()


def test_the_name_of_a_module_is_unique() -> None:
    assert repeated_names(path.stem for path in FILES.values() if path.stem != "__init__") == set()


def test_the_name_of_a_class_is_unique() -> None:
    nodes = (node for tree in TREES.values() for node in ast.walk(tree))
    names = (node.name for node in nodes if isinstance(node, ast.ClassDef) and node.name[0] != "_")
    assert repeated_names(names) == set()
