"""Load experiment, testbed, configuration and study files; report the errors of all files at once."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import yaml

from samovar.errors import DefinitionError, Problem, unknown
from samovar.experiment.checks.check_outputs import OutputChecks
from samovar.experiment.checks.check_part import check_part, check_size
from samovar.experiment.checks.check_testbed import check_testbed
from samovar.experiment.checks.check_values import check_site, check_values
from samovar.experiment.checks.part_values import PartToCheck
from samovar.experiment.checks.validate import M, Validation, validate
from samovar.experiment.keys import Config, Expect, Experiment, RecipeCatalogue, StudyReport, Testbed
from samovar.experiment.layers.host_settings import SettingsByHost, resolve_settings, settings_by_host
from samovar.experiment.layers.merge import merge_layers
from samovar.experiment.layers.overrides import override_layers
from samovar.experiment.layers.reuse import MergedExperiment, merge_reused, read_or_report, read_profiles
from samovar.experiment.outputs import Outputs, package_outputs
from samovar.experiment.yaml_tree import Map, plain, read_yaml, yaml_names, yaml_path
from samovar.installation import SHIPPED

ORIGINALS = "definition"
"""Folder in a campaign for unchanged copies of the experiment's file and of the files that it reuses."""
CHECKED_WHERE_WRITTEN = ("expect", "figures", "tables")
"""Keys whose entries name levels of factors. The entries are checked only with the layer that contains them,
because another layer, such as a profile, may remove these levels."""


@dataclass(frozen=True)
class ResolvedExperiment:
    """An experiment on its testbed, ready to be planned: profile and overrides applied, settings resolved.

    `settings` maps each part to the settings of every host and the layers from which they come. `files` are
    the YAML files that a campaign stores, by name.
    """

    experiment: Experiment
    testbed: Testbed
    settings: Mapping[str, SettingsByHost]
    profile: str | None = None
    overrides: Mapping[str, str] = field(default_factory=dict)
    files: Mapping[str, bytes] = field(default_factory=dict)


@dataclass(frozen=True)
class LoadOptions:
    """Options for loading an experiment: profile, `--set`, config.yaml, known outputs.

    If `outputs` is None, the known metrics, figures and tables are those of the R package.
    """

    profile: str | None = None
    overrides: Mapping[str, str] = field(default_factory=dict)
    config: Config | None = None
    outputs: Outputs | None = None


DEFAULTS = LoadOptions()


def load_experiment(
    path: Path,
    catalogue: RecipeCatalogue,
    testbed: Path | Testbed | None = None,
    options: LoadOptions = DEFAULTS,
) -> ResolvedExperiment:
    """Load an experiment with `testbed` if given, otherwise with the testbed that the experiment names.

    The testbed that an experiment names is a file in hosts/, beside the experiment's folder.
    Raises DefinitionError with the errors of all files, of all profiles and of the overrides.
    """
    problems: list[Problem] = []
    tree = read_or_report(path, problems)
    merged = merge_reused(tree, path, problems) if tree is not None else None
    if testbed is None and merged is not None:
        testbed = _own_testbed(path, merged.tree, problems)
    if isinstance(testbed, Path):
        testbed = _usable_testbed(testbed, problems)
    experiment = None
    if merged is not None and merged.complete:
        experiment = _check_experiment_file(path, merged.tree, testbed, catalogue, problems, options)
    if testbed is not None:
        problems += check_site(testbed, options.config, catalogue)
    if problems or experiment is None or testbed is None or merged is None:  # None only if there are problems
        raise DefinitionError(tuple(dict.fromkeys(problems)))
    return replace(resolve_experiment(experiment, testbed, options), files=campaign_files(merged, testbed))


def resolve_experiment(
    applied: Experiment, testbed: Testbed, options: LoadOptions = DEFAULTS
) -> ResolvedExperiment:
    """Resolve the host settings of an experiment that already contains the profile and overrides.

    Raises DefinitionError for a setting that cannot be read. Nothing else is checked.
    """
    settings = {name: resolve_settings(applied, name, testbed, options.config) for name in applied.parts}
    return ResolvedExperiment(applied, testbed, settings, options.profile, options.overrides)


def read_expectations(path: Path) -> tuple[Expect, ...]:
    """Return the expected results in the experiment.yaml of a campaign. Raises DefinitionError.

    Errors in other keys are ignored, as an experiment of an earlier release may have keys that no longer
    exist.
    """
    tree, problems = read_yaml(path)
    checked = validate(Experiment, merge_layers([merge_reused(tree, path, problems).tree], problems))
    if checked.model is None or not checked.intact("expect"):
        raise DefinitionError([*problems, *checked.problems])
    return checked.model.expect


def load_testbed(path: Path) -> Testbed:
    """Load a testbed; raises DefinitionError with every error."""
    tree, problems = read_yaml(path)
    return _valid(_check_testbed(path, tree), problems)


def load_config(path: Path) -> Config:
    """Load the configuration of the controller, config.yaml; raises DefinitionError with every error."""
    tree, problems = read_yaml(path, may_be_empty=True)
    return _valid(validate(Config, tree), problems).with_tree(tree)


def load_study_report(path: Path, experiments: Collection[str]) -> StudyReport:
    """Load experiments/studies/NAME.yaml. Raises DefinitionError.

    `experiments` are the names of experiments that the study's sections may use.
    """
    tree, problems = read_yaml(path)
    checked = validate(StudyReport, tree)
    _check_file_name(checked, "study", path)
    sections = checked.model.sections if checked.model and checked.intact("sections") else ()
    for index, section in enumerate(sections):
        checked.check_name(("sections", index, "experiment"), "experiment", section.experiment, experiments)
    return _valid(checked, problems)


def campaign_files(merged: MergedExperiment, testbed: Testbed) -> dict[str, bytes]:
    """Return the definition files that a campaign stores, as a mapping from file name to content.

    experiment.yaml can be loaded with testbed.yaml and without other files: if the experiment reuses files,
    experiment.yaml has the merged tree, and definition/ has the original files.
    """
    own = merged.sources[0]
    files = {"experiment.yaml": own.read_bytes()}
    if testbed.tree is not None:
        files["testbed.yaml"] = Path(testbed.tree.position.file).read_bytes()
    if len(merged.sources) > 1:
        homes = (own.absolute().parent, SHIPPED / "experiments")
        names = {}
        for source, path in ((one, one.absolute()) for one in merged.sources):
            home = next((folder for folder in homes if path.is_relative_to(folder)), path.parent)
            names[source] = path.relative_to(home).as_posix()
        tree = settings_by_host(merged.tree, testbed)
        body = yaml.safe_dump(plain(tree), sort_keys=False, allow_unicode=True, width=110)
        header = f"# Made of {', '.join(names.values())}, see {ORIGINALS}/.\n"
        files["experiment.yaml"] = (header + body).encode()
        files |= {f"{ORIGINALS}/{name}": source.read_bytes() for source, name in names.items()}
    return files


def _check_experiment_file(
    path: Path,
    tree: Map,
    testbed: Testbed | None,
    catalogue: RecipeCatalogue,
    problems: list[Problem],
    options: LoadOptions,
) -> Experiment | None:
    """Check an experiment without a profile, and with each of its profiles.

    Return the experiment with the profile and overrides (--set) of `options` applied; None if it is invalid.
    """
    outputs = options.outputs or package_outputs()
    profiles = read_profiles(tree, problems)
    chosen = options.profile if options.profile in profiles else None
    if options.profile is not None and chosen is None:
        what = f"profile of {tree.get('experiment', 'the experiment')}"
        message = unknown(what, options.profile, profiles)
        problems.append(Problem(f"--profile {options.profile}", 0, 0, message))
    variants = {None: [tree]} | {name: [tree, profile] for name, profile in profiles.items()}
    if options.overrides:
        merged = merge_layers(variants[chosen], [])
        overridden = override_layers(merged, options.overrides, problems)
        variants["--set"], chosen = [*variants[chosen], *overridden], "--set"
    applied = None
    for name, layers in variants.items():
        before = len(problems)
        checked = validate(Experiment, merge_layers(layers, problems))
        if checked.model is not None:
            if len(problems) > before:  # problems of a merge may have removed flows
                checked.left_out += [("parts", part, "traffic") for part in checked.model.parts]
            written = [
                key
                for key in CHECKED_WHERE_WRITTEN
                if layers[-1].get(key) and layers[-1][key].position.file == tree.position.file
            ]
            for part_name, model in checked.model.parts.items():
                part = PartToCheck(checked.below("parts", part_name), testbed, catalogue, model)
                check_values(part)
                check_part(part)
            check_size(checked, checked.model)
            OutputChecks(checked, checked.model, outputs).run(written)
        if name is None:
            _check_file_name(checked, "experiment", path)
        problems += checked.problems
        if name == chosen and checked.model is not None:
            applied = checked.model.with_tree(checked.tree)
    return applied


def _check_file_name(checked: Validation[M], key: str, path: Path) -> None:
    """Report an experiment, testbed or study whose name differs from the name of its file."""
    name = checked.tree.get(key)
    if checked.model is not None and checked.intact(key) and name is not None and name != path.stem:
        remedy = f"write `{key}: {path.stem}`, or rename the file"
        checked.report((key,), f"{key} '{name}' is in the file {path.name}; {remedy}")


def _check_testbed(path: Path, tree: Map) -> Validation[Testbed]:
    checked = validate(Testbed, tree)
    if checked.model is not None:
        checked.model = checked.model.with_tree(tree)
        _check_file_name(checked, "testbed", path)
        check_testbed(checked, checked.model)
    return checked


def _usable_testbed(path: Path, problems: list[Problem]) -> Testbed | None:
    """Return a testbed to check experiments with, or None if its hosts, links or bottleneck are invalid."""
    tree = read_or_report(path, problems)
    if tree is None:
        return None
    checked = _check_testbed(path, tree)
    problems += checked.problems
    return checked.model if all(map(checked.intact, ("hosts", "links", "bottleneck"))) else None


def _own_testbed(path: Path, tree: Map, problems: list[Problem]) -> Path | None:
    """Return the path of the testbed that an experiment names. Report an unknown one and return None."""
    name = tree.get("testbed")
    if not isinstance(name, str):
        return None
    folder = path.absolute().parent.parent / "hosts"
    known = yaml_names(folder)
    if str(name) not in known:
        problems.append(name.position.problem(unknown("testbed", name, known)))
        return None
    return yaml_path(folder, str(name))


def _valid(checked: Validation[M], problems: Sequence[Problem]) -> M:
    """Return the validated model.

    Raises DefinitionError for the given problems and for those that the validation found.
    """
    every = tuple(dict.fromkeys([*problems, *checked.problems]))
    if every or checked.model is None:  # None only if there are problems
        raise DefinitionError(every)
    return checked.model
