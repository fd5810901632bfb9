"""New experiments: a commented file that plans at once, or one that extends another."""

from __future__ import annotations

from pathlib import Path

from samovar.errors import DefinitionError, Problem
from samovar.experiment.keys import Factor, is_free, parse_name
from samovar.experiment.load import read_experiment
from samovar.experiment.nearest import unknown
from samovar.experiment.yaml.tree import yaml_files, yaml_path
from samovar.units import UnitError

RESERVED = ("latest",)
"""Names that mean something else where the name of an experiment can stand."""
OFFERED = {"cc": "[cubic, newreno]", "duration": "[10s, 30s]", "rwnd": "[100KB, 1MB]"}
"""Factors to add, with levels, where the base has none by a name that says what it sets."""


def write_starter(templates: Path, experiments: Path, name: str, base: str = "") -> Path:
    """Write experiments/NAME.yaml from templates/starter/, or one that extends `base`.

    Raises DefinitionError for a name that is none or is taken, and for a base that is not there.
    """
    _check_name(name)
    path = yaml_path(experiments, name)
    known = sorted(one.stem for one in yaml_files(experiments))
    if base and base not in known:
        raise _refused(f"--from {base}", unknown("experiment", base, known))
    template = templates / "starter" / ("extension.yaml" if base else "experiment.yaml")
    text = template.read_text(encoding="utf-8")
    for word, own in {
        **_words_of(yaml_path(experiments, base) if base else None),
        "BASE": base,
        "NAME": name,
    }.items():
        text = text.replace(word, own)
    try:
        with path.open("x", encoding="utf-8") as file:
            file.write(text.replace("TITLE", f"{base}, changed"))
    except FileExistsError:
        raise _refused(str(path), "is there already; expected a name of its own") from None
    except OSError as error:
        raise _refused(
            str(path), f"{(error.strerror or 'cannot be written').lower()}; expected a folder to write in"
        ) from error
    return path


def _words_of(base: Path | None) -> dict[str, str]:
    """Return what stands for the words in capitals: names that an experiment has; raises DefinitionError."""
    if base is None:
        return {}
    name, part = next(iter(read_experiment(base).parts.items()))
    own = {"FLOW": part.traffic[0].label, "PART": name}
    factors = (factor for factor in part.factors.values() if not is_free(factor.name))
    for factor in factors:
        return {**own, "FACTOR": factor.name, "LEVELS": _levels(factor)}
    levels = [level for factor in part.factors.values() for level in factor.levels]
    varied = {target for level in levels for target in level.texts}
    key = next(key for key in OFFERED if key not in varied)
    return {**own, "FACTOR": key, "LEVELS": OFFERED[key]}


def _levels(factor: Factor) -> str:
    return f"[{', '.join(level.label for level in factor.levels[:3])}]"


def _check_name(name: str) -> None:
    try:
        parse_name(name)
    except UnitError as error:
        raise _refused(f"fab new {name}", str(error)) from error
    if name in RESERVED or name.endswith((".yaml", ".yml")):
        hint = "a name without its ending" if "." in name else "another name"
        raise _refused(f"fab new {name}", f"'{name}' cannot name an experiment; expected {hint}")


def _refused(where: str, message: str) -> DefinitionError:
    return DefinitionError([Problem(where, 0, 0, message)])
