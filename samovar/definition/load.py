"""Reading definition files: every mistake of every file at once, or frozen values."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from samovar.definition.catalogue import RecipeCatalogue
from samovar.definition.check_experiment import check_experiment, check_name
from samovar.definition.check_testbed import check_testbed
from samovar.definition.config import Config
from samovar.definition.context import Context
from samovar.definition.experiment import Experiment
from samovar.definition.layers import checked_profile, complete
from samovar.definition.nearest import unknown
from samovar.definition.testbed import Testbed
from samovar.definition.validate import Checked, M, validate
from samovar.definition.yamltext import Map, read_yaml
from samovar.errors import DefinitionError, Problem


@dataclass(frozen=True)
class Study:
    """An experiment with the testbed that it runs on."""

    experiment: Experiment
    testbed: Testbed


def load_study(path: Path, catalogue: RecipeCatalogue, testbed_path: Path | None = None) -> Study:
    """Read an experiment and its testbed.

    That is the one it names, found in hosts/ beside the experiment's folder, or another one.
    Raises DefinitionError with every mistake of both files.
    """
    problems: list[Problem] = []
    tree = _read(path, problems)
    found = testbed_path or (_own_testbed(path, tree, problems) if tree is not None else None)
    testbed = _checked_testbed(found, problems) if found else None
    sound = testbed.model if testbed and testbed.intact("hosts") and testbed.intact("bottleneck") else None
    experiment = _checked_experiment(path, tree, sound, catalogue, problems) if tree is not None else None
    _raise(problems)
    if experiment is None or sound is None:
        raise DefinitionError([Problem(str(path), 0, 0, "cannot be read; expected an experiment")])
    return Study(experiment, sound)


def load_experiment(path: Path, catalogue: RecipeCatalogue, testbed: Testbed | None = None) -> Experiment:
    """Read an experiment and check it against its testbed, or the one that is given.

    Raises DefinitionError with every mistake, those of the testbed's file included.
    """
    if testbed is None:
        return load_study(path, catalogue).experiment
    problems: list[Problem] = []
    tree = _read(path, problems)
    experiment = _checked_experiment(path, tree, testbed, catalogue, problems) if tree is not None else None
    _raise(problems)
    if experiment is None:
        raise DefinitionError([Problem(str(path), 0, 0, "cannot be read; expected an experiment")])
    return experiment


def read_experiment(path: Path) -> Experiment:
    """Read an experiment's values alone, as a campaign keeps them under another file name.

    Names, recipes and the testbed are not checked; raises DefinitionError.
    """
    problems: list[Problem] = []
    tree, mistakes = read_yaml(path)
    checked = validate(Experiment, complete([tree], problems))
    _raise([*mistakes, *problems, *checked.problems])
    return _model(checked).with_source(tree)


def load_testbed(path: Path) -> Testbed:
    """Read a testbed; raises DefinitionError with every mistake."""
    problems: list[Problem] = []
    checked = _checked_testbed(path, problems)
    _raise(problems)
    if checked is None:
        raise DefinitionError([Problem(str(path), 0, 0, "cannot be read; expected a testbed")])
    return _model(checked)


def load_config(path: Path) -> Config:
    """Read the controller's configuration; raises DefinitionError with every mistake."""
    tree, mistakes = read_yaml(path)
    checked = validate(Config, tree)
    _raise([*mistakes, *checked.problems])
    return _model(checked).with_source(tree)


def apply_profile(experiment: Experiment, name: str | None) -> Experiment:
    """Return the experiment with one of its profiles over it; raises DefinitionError when there is none."""
    if name is None:
        return experiment
    tree = experiment.written
    profiles = tree.get("profiles") if tree is not None else None
    profile = profiles.get(name) if isinstance(profiles, Map) else None
    if tree is None or not isinstance(profile, Map):
        message = unknown(f"profile of {experiment.name}", name, experiment.profiles)
        raise DefinitionError([Problem(tree.mark.file if tree else experiment.name, 0, 0, message)])
    problems: list[Problem] = []
    checked = validate(Experiment, complete([tree, checked_profile(tree, profile, problems)], problems))
    _raise([*problems, *checked.problems])
    return _model(checked).with_source(tree)


def list_experiments(folder: Path) -> list[str]:
    """Return the names of the experiments in a folder, sorted."""
    return sorted(path.stem for path in folder.glob("*.yaml"))


def list_testbeds(folder: Path) -> list[str]:
    """Return the names of the testbeds in a folder, sorted."""
    return sorted(path.stem for path in folder.glob("*.yaml"))


def _checked_experiment(
    path: Path, tree: Map, testbed: Testbed | None, catalogue: RecipeCatalogue, problems: list[Problem]
) -> Experiment | None:
    """Check the experiment as written and then with each profile over it."""
    if "factors" in tree and "parts" in tree:
        message = "factors beside parts; expected them within the parts"
        problems.append(tree.key_marks["factors"].problem(message))
    base = _checked_layers([tree], testbed, catalogue, problems)
    check_name(Context(base, testbed, catalogue), path)
    problems += base.problems
    for profile in _profiles(tree, problems):
        over = checked_profile(tree, profile, problems)
        problems += _checked_layers([tree, over], testbed, catalogue, problems).problems
    return base.model.with_source(tree) if base.model else None


def _checked_layers(
    layers: Sequence[Map], testbed: Testbed | None, catalogue: RecipeCatalogue, problems: list[Problem]
) -> Checked[Experiment]:
    checked = validate(Experiment, complete(layers, problems))
    check_experiment(Context(checked, testbed, catalogue), lines=len(layers) == 1)
    return checked


def _profiles(tree: Map, problems: list[Problem]) -> list[Map]:
    profiles = tree.get("profiles")
    if not isinstance(profiles, Map):
        return []
    for name, profile in profiles.items():
        if not isinstance(profile, Map):
            message = f"{name}: expected a mapping of what the profile changes, not '{profile}'"
            problems.append(profiles[name].mark.problem(message))
    return [profile for profile in profiles.values() if isinstance(profile, Map)]


def _checked_testbed(path: Path, problems: list[Problem]) -> Checked[Testbed] | None:
    tree = _read(path, problems)
    if tree is None:
        return None
    checked = validate(Testbed, tree)
    if checked.model is not None:
        checked.model = checked.model.with_source(tree)
    check_testbed(checked, path)
    problems += checked.problems
    return checked


def _own_testbed(path: Path, tree: Map, problems: list[Problem]) -> Path | None:
    """Find the testbed that an experiment names: hosts/ stands beside experiments/."""
    name = tree.get("testbed")
    if not isinstance(name, str):
        return None
    folder = path.absolute().parent.parent / "hosts"
    known = list_testbeds(folder)
    if str(name) not in known:
        problems.append(name.mark.problem(unknown("testbed", name, known)))
        return None
    return _near(folder, str(name))


def _near(folder: Path, name: str) -> Path:
    """Name the file as briefly as the working folder allows."""
    path = folder / f"{name}.yaml"
    return path.relative_to(Path.cwd()) if path.is_relative_to(Path.cwd()) else path


def _read(path: Path, problems: list[Problem]) -> Map | None:
    try:
        tree, mistakes = read_yaml(path)
    except DefinitionError as error:
        problems += error.problems
        return None
    problems += mistakes
    return tree


def _raise(problems: Sequence[Problem]) -> None:
    unique = tuple(dict.fromkeys(problems))
    if unique:
        raise DefinitionError(unique)


def _model(checked: Checked[M]) -> M:
    if checked.model is None:
        raise DefinitionError([checked.tree.mark.problem("cannot be read; see the other mistakes")])
    return checked.model
