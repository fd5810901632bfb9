"""`fab new`: write an experiment file with comments, or a file that extends another experiment."""

from __future__ import annotations

from pathlib import Path

from samovar.errors import DefinitionError, unknown
from samovar.experiment.keys.value_types import NAME
from samovar.experiment.yaml_tree import from_here, yaml_names
from samovar.units import UnitError

SCHEMA_FOLDER = "docs/reference/schema"
"""Folder of editor schemas that the files in templates/starter/ refer to."""
RESERVED = ("latest",)
"""Names that experiments cannot have: commands read `latest` as the newest campaign."""


def write_starter(
    templates: Path, experiments: Path, name: str, base: str = "", schema: str = SCHEMA_FOLDER
) -> Path:
    """Write experiments/NAME.yaml from templates/starter/ and return its path.

    With `base`, the new file extends that experiment. `schema` is the project's folder of editor schemas.

    Raises DefinitionError for a name that is invalid or in use, and for an unknown base.
    """
    try:
        NAME.parse(name)
    except UnitError as error:
        raise DefinitionError.at(f"fab new {name}", str(error)) from error
    if name in RESERVED or name.endswith((".yaml", ".yml")):
        advice = "leave out the ending" if "." in name else "choose another name"
        raise DefinitionError.at(f"fab new {name}", f"'{name}' cannot be the name of an experiment; {advice}")
    path = from_here(experiments / f"{name}.yaml")
    known = yaml_names(experiments)
    if base and base not in known:
        raise DefinitionError.at(f"--from {base}", unknown("experiment", base, known))
    template = templates / "starter" / ("extension.yaml" if base else "experiment.yaml")
    text = template.read_text(encoding="utf-8").replace("BASE", base).replace("NAME", name)
    text = text.replace(SCHEMA_FOLDER, schema)
    try:
        with path.open("x", encoding="utf-8") as file:
            file.write(text)
    except FileExistsError:
        raise DefinitionError.at(path, "exists already; choose another name") from None
    except OSError as error:
        reason = (error.strerror or "cannot be written").lower()
        raise DefinitionError.at(path, f"{reason}; the folder must be writable") from error
    return path
