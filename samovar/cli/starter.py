"""`fab new`: write an experiment file with comments, or a file that extends another experiment."""

from __future__ import annotations

import re
from pathlib import Path

from samovar.errors import DefinitionError, unknown
from samovar.experiment import value_types, yaml_tree
from samovar.installation import IN_CHECKOUT, TEMPLATES, schema_folder
from samovar.units import UnitError

RESERVED = ("latest",)
"""Names that experiments cannot have: commands read `latest` as the newest campaign."""


def write_starter(root: Path, name: str, base: str = "") -> Path:
    """Write experiments/NAME.yaml of the project at `root` from templates/starter/ and return its path.

    With `base`, the new file extends that experiment. Raises DefinitionError for a name that is invalid or in
    use, for an unknown base, and if the file cannot be written.
    """
    try:
        value_types.NAME.parse(name)
    except UnitError as error:
        raise DefinitionError.at(f"fab new {name}", str(error)) from error
    if name in RESERVED or name.endswith((".yaml", ".yml")):
        advice = "leave out the ending" if "." in name else "choose another name"
        raise DefinitionError.at(f"fab new {name}", f"'{name}' cannot be the name of an experiment; {advice}")
    folder = root / "experiments"
    path = yaml_tree.from_here(folder / f"{name}.yaml")
    known = yaml_tree.yaml_names(folder)
    if base and base not in known:
        raise DefinitionError.at(f"--from {base}", unknown("experiment", base, known))
    template = TEMPLATES / "starter" / ("extension.yaml" if base else "experiment.yaml")
    placed = {"BASE": base, "NAME": name}
    text = re.sub("BASE|NAME", lambda match: placed[match[0]], template.read_text(encoding="utf-8"))
    text = text.replace(IN_CHECKOUT, schema_folder(root))
    try:
        if not folder.exists():
            folder.mkdir()
        with path.open("x", encoding="utf-8") as file:
            file.write(text)
    except FileExistsError:
        raise DefinitionError.at(path, "exists already; choose another name") from None
    except OSError as error:
        reason = (error.strerror or "cannot be written").lower()
        raise DefinitionError.at(path, f"{reason}; the folder must be writable") from error
    return path
