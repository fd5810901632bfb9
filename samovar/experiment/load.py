"""Load experiment, testbed and configuration files: typed, resolved values, or all errors at once."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from samovar.errors import DefinitionError, Problem
from samovar.experiment.checks.check_context import Context
from samovar.experiment.checks.check_experiment import check_experiment, check_name
from samovar.experiment.checks.check_settings import check_site
from samovar.experiment.checks.check_testbed import check_testbed
from samovar.experiment.checks.validate import Checked, M, validate
from samovar.experiment.keys import Config, Experiment, Testbed
from samovar.experiment.layers.extends import Flattened, flattened
from samovar.experiment.layers.merge import complete
from samovar.experiment.layers.overrides import override_layers
from samovar.experiment.layers.precedence import SettingsByHost, resolve_settings
from samovar.experiment.layers.profiles import checked_profile
from samovar.experiment.nearest import unknown
from samovar.experiment.outputs import Exhibits, check_exhibits
from samovar.experiment.recipe_interface import RecipeCatalogue
from samovar.experiment.sources import kept_sources
from samovar.experiment.yaml.tree import Map, near, read_yaml, yaml_files
from samovar.units import quoted

CHECKED_WHERE_WRITTEN = ("expect", "figures", "tables")
"""Keys that name levels. They are checked in the layer that holds them: a profile may remove their levels."""


@dataclass(frozen=True)
class ResolvedExperiment:
    """An experiment on its testbed, ready to be planned: profile and overrides applied, settings resolved.

    `settings` holds the settings of every host by part, with the layers they come from. `files` holds what a
    campaign keeps of the YAML files, by file name.
    """

    experiment: Experiment
    testbed: Testbed
    settings: Mapping[str, SettingsByHost]
    profile: str | None = None
    overrides: Mapping[str, str] = field(default_factory=dict)
    files: Mapping[str, bytes] = field(default_factory=dict)


@dataclass(frozen=True)
class LoadOptions:
    """What an experiment is loaded with beside its files: profile, `--set`, config.yaml, known outputs.

    Figures and tables are not checked when `exhibits` is empty.
    """

    profile: str | None = None
    overrides: Mapping[str, str] = field(default_factory=dict)
    config: Config | None = None
    exhibits: Exhibits = field(default_factory=dict)


DEFAULTS = LoadOptions()


def load_experiment(
    path: Path,
    catalogue: RecipeCatalogue,
    testbed: Path | Testbed | None = None,
    options: LoadOptions = DEFAULTS,
) -> ResolvedExperiment:
    """Load an experiment and the testbed it names (a file in hosts/ beside its folder), or another testbed.

    Raises DefinitionError with every error of all files, of all profiles and of the overrides.
    """
    problems: list[Problem] = []
    flat = _flat(path, problems)
    if testbed is None and flat is not None:
        testbed = _own_testbed(path, flat.tree, problems)
    if isinstance(testbed, Path):
        checked = _checked_testbed(testbed, problems)
        usable = checked is not None and all(map(checked.intact, ("hosts", "links", "bottleneck")))
        testbed = checked.model if checked and usable else None
    experiment = None
    if flat is not None and flat.whole:
        experiment = _checked_experiment(path, flat.tree, testbed, catalogue, problems, options)
        problems += check_exhibits(flat.tree, options.exhibits)
    if testbed is not None:
        problems += check_site(testbed, options.config, catalogue)
    _raise(problems)
    if experiment is None or testbed is None or flat is None:
        raise DefinitionError([Problem(str(path), 0, 0, "cannot be read; expected an experiment")])
    resolved = resolve_experiment(experiment, testbed, options)
    return replace(resolved, files=kept_sources(flat, testbed))


def resolve_experiment(
    experiment: Experiment, testbed: Testbed, options: LoadOptions = DEFAULTS
) -> ResolvedExperiment:
    """Apply profile and overrides to an experiment and resolve the settings of each host of a testbed.

    Raises DefinitionError for an unknown profile and for values that cannot be read; checks nothing else.
    """
    applied = apply_profile(experiment, options.profile, options.overrides)
    settings = {name: resolve_settings(applied, name, testbed, options.config) for name in applied.parts}
    return ResolvedExperiment(applied, testbed, settings, options.profile, options.overrides)


def read_experiment(path: Path, overrides: Mapping[str, str] | None = None) -> Experiment:
    """Read an experiment's values alone, as a campaign keeps them under another file name.

    Names, recipes and the testbed are not checked; raises DefinitionError.
    """
    problems: list[Problem] = []
    tree, mistakes = read_yaml(path)
    flat = flattened(tree, path, problems).tree
    _raise([*mistakes, *problems])
    return _over(flat, [], overrides or {}, problems)


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


def apply_profile(
    experiment: Experiment, name: str | None, overrides: Mapping[str, str] | None = None
) -> Experiment:
    """Return the experiment with one of its profiles over it, and the overrides of --set over that.

    Raises DefinitionError when there is no such profile, and for an override that cannot be meant.
    """
    tree = experiment.written
    if name is None and not overrides:
        return experiment
    if tree is None:
        raise DefinitionError(
            [Problem(experiment.name, 0, 0, "was not read from a file; expected one that was")]
        )
    problems: list[Problem] = []
    layers = [] if name is None else [checked_profile(tree, _profile(tree, name), problems)]
    return _over(tree, layers, overrides or {}, problems)


def _over(
    tree: Map, layers: Sequence[Map], overrides: Mapping[str, str], problems: list[Problem]
) -> Experiment:
    own = override_layers([tree, *layers], overrides, problems)
    whole = complete([tree, *layers, *own], problems)
    checked = validate(Experiment, whole)
    _raise([*problems, *checked.problems])
    return _model(checked).with_source(tree, whole)


def _profile(tree: Map, name: str) -> Map:
    """Return a profile of an experiment; raises DefinitionError when there is none of that name."""
    profiles = tree.get("profiles")
    known = profiles if isinstance(profiles, Map) else Map(tree.mark)
    profile = known.get(name)
    if isinstance(profile, Map):
        return profile
    message = unknown(f"profile of {tree.get('experiment', 'the experiment')}", name, known)
    raise DefinitionError([Problem(tree.mark.file, 0, 0, message)])


def list_experiments(folder: Path) -> list[str]:
    """Return the names of the experiments in a folder, sorted."""
    return sorted(path.stem for path in yaml_files(folder))


def list_testbeds(folder: Path) -> list[str]:
    """Return the names of the testbeds in a folder, sorted."""
    return sorted(path.stem for path in yaml_files(folder))


def _flat(path: Path, problems: list[Problem]) -> Flattened | None:
    """Read an experiment's file and lay under it what it extends and uses."""
    tree = _read(path, problems)
    if tree is None:
        return None
    return flattened(tree, path, problems)


def _checked_experiment(
    path: Path,
    tree: Map,
    testbed: Testbed | None,
    catalogue: RecipeCatalogue,
    problems: list[Problem],
    options: LoadOptions,
) -> Experiment | None:
    """Check the experiment as written, then with each of its profiles, then with profile and overrides."""

    def checked_layers(layers: Sequence[Map]) -> Checked[Experiment]:
        before = len(problems)
        checked = validate(Experiment, complete(layers, problems))
        if len(problems) > before and checked.model is not None:  # a merge that failed may have lost traffic
            checked.left_out += [("parts", name, "traffic") for name in checked.model.parts]
        home, last = layers[0].mark.file, layers[-1]
        written = [key for key in CHECKED_WHERE_WRITTEN if last.get(key) and last[key].mark.file == home]
        check_experiment(Context(checked, testbed, catalogue, options.exhibits), written)
        return checked

    base = checked_layers([tree])
    check_name(Context(base, testbed, catalogue), path)
    problems += base.problems
    profiles = {name: checked_profile(tree, one, problems) for name, one in _profiles(tree, problems).items()}
    for over in profiles.values():
        problems += checked_layers([tree, over]).problems
    problems += _no_profile(tree, options.profile, profiles)
    if options.overrides:
        layers = [tree, *([profiles[options.profile]] if options.profile in profiles else [])]
        layers += override_layers(layers, options.overrides, problems)
        problems += checked_layers(layers).problems
    return base.model.with_source(tree, base.tree) if base.model else None


def _no_profile(tree: Map, name: str | None, known: Mapping[str, Map]) -> Iterator[Problem]:
    if name is not None and name not in known:
        what = f"profile of {tree.get('experiment', 'the experiment')}"
        yield Problem(f"--profile {name}", 0, 0, unknown(what, name, known))


def _profiles(tree: Map, problems: list[Problem]) -> dict[str, Map]:
    profiles = tree.get("profiles")
    if not isinstance(profiles, Map):
        return {}
    for name, profile in profiles.items():
        if not isinstance(profile, Map):
            given = "a list" if isinstance(profile, list) else quoted(profile) if profile else "nothing"
            message = f"{name}: expected a mapping of what the profile changes, not {given}"
            problems.append(profiles[name].mark.problem(message))
    return {name: profile for name, profile in profiles.items() if isinstance(profile, Map)}


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
    return near(folder, str(name))


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
