"""Read a project folder: configuration, experiments, testbeds and campaigns; and plan its experiments."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import NamedTuple

from samovar.campaign import PLAN, TESTBEDS, ResumePoint, find_campaign, find_resume_point, testbeds_of
from samovar.campaign.availability import check_recipes
from samovar.errors import DefinitionError, unknown
from samovar.experiment import (
    STUDIES,
    Config,
    Experiment,
    Explanation,
    LoadOptions,
    Outputs,
    ResolvedExperiment,
    Testbed,
    explain_key,
    keys,
    load_config,
    load_experiment,
    load_study_report,
    load_testbed,
    parse_overrides,
    project_outputs,
    yaml_tree,
)
from samovar.installation import SHIPPED, TEMPLATES
from samovar.plan import Pick, Plan, Shard, explain_trial, make_plan, on_testbed
from samovar.recipes import Catalogue


class Request(NamedTuple):
    """The experiment that a command is about, and how the command line changes it.

    `testbed` may have several names separated by commas; if it is empty, the testbed in the experiment file
    is used. `overrides` has the arguments KEY=VALUE of --set. `shard` selects a shard, such as `2/4`.
    """

    experiment: str
    profile: str = ""
    testbed: str = ""
    overrides: Sequence[str] = ()
    shard: str = ""


@dataclass(frozen=True)
class PlannedExperiment:
    """An experiment to which profile and overrides have been applied, with its plan for a testbed.

    `sources` maps file names in a campaign's folder to the content of definition files. If several testbeds
    share the campaign, `others` has the experiment as planned for each further testbed.
    """

    experiment: Experiment
    testbed: Testbed
    plan: Plan
    sources: Mapping[str, bytes] = field(default_factory=dict)
    others: tuple[PlannedExperiment, ...] = ()

    @property
    def every(self) -> tuple[PlannedExperiment, ...]:
        """The experiment as planned for each testbed of the campaign."""
        return (self, *self.others)

    @property
    def by_testbed(self) -> tuple[PlannedExperiment, ...]:
        """The experiment as planned for each testbed on which the campaign runs.

        If several testbeds share the campaign, its shards are assigned to them round-robin.
        """
        if not (self.plan.shard and self.others):
            return self.every
        return (self.every[(Shard.parse(self.plan.shard).number - 1) % len(self.every)],)


def share_between_testbeds(planned: Sequence[PlannedExperiment]) -> PlannedExperiment:
    """Combine the plans of an experiment for several testbeds into a plan that the testbeds share.

    Raises PlanError if the plans have different trials.
    """
    first, names = planned[0], [one.testbed.name for one in planned]
    others = [replace(one, plan=on_testbed(first.plan, one.plan)) for one in planned[1:]]
    copies = {
        f"{TESTBEDS}/{one.testbed.name}/{name}": content
        for one in (first, *others)
        for name, content in (("testbed.yaml", one.sources["testbed.yaml"]), (PLAN, one.plan.to_json()))
    }
    plan = first.plan.model_copy(update={"testbed": ",".join(names)})
    return replace(first, plan=plan, sources={**first.sources, **copies}, others=tuple(others))


@dataclass(frozen=True)
class RunRequest:
    """The arguments of `run`: the planned experiment, and the campaign that it resumes, if any.

    With `allow_partial`, trials that the testbed cannot run are left out. With `fail_fast`, the first failed
    trial ends the run. With `force`, leases of other campaigns are taken over.
    """

    planned: PlannedExperiment
    resume: ResumePoint
    allow_partial: bool = False
    fail_fast: bool = False
    force: bool = False


class Project:
    """The files of a project folder. Its methods read and plan; they contact no host."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.catalogue = Catalogue(*dict.fromkeys((root / "templates", TEMPLATES)))

    @cached_property
    def config(self) -> Config:
        """The values of config.yaml, or the defaults if the project has no such file.

        Raises DefinitionError.
        """
        path = yaml_tree.yaml_path(self.root, "config")
        return load_config(path) if path.exists() else Config()

    @cached_property
    def outputs(self) -> Outputs:
        """The metrics, figures and tables that the analysis offers for this project.

        Raises DefinitionError.
        """
        return project_outputs(self.root)

    @property
    def results(self) -> Path:
        """The folder that contains the folders of all campaigns."""
        return self.root / Path(self.config.results).expanduser()

    def experiments(self) -> list[Path]:
        """Return the paths of all experiment files, those of the project and the shipped ones."""
        return yaml_tree.yaml_files(self.root / "experiments")

    def testbeds(self) -> list[Path]:
        """Return the paths of all testbed files, those of the project and the shipped ones."""
        return yaml_tree.yaml_files(self.root / "hosts")

    def testbed_path(self, name: str) -> Path:
        """Return the file of a testbed; an empty name means the testbed in config.yaml.

        Raises DefinitionError.
        """
        return _find(name or self.config.testbed, self.testbeds(), "testbed", "hosts/")

    def testbed(self, name: str) -> Testbed:
        """Load a testbed; an empty name means the testbed in config.yaml. Raises DefinitionError."""
        return load_testbed(self.testbed_path(name))

    def plan(self, request: Request) -> PlannedExperiment:
        """Load and plan an experiment, and check the recipes that it uses.

        Raises DefinitionError, PlanError or RecipeError.
        """
        names = sorted({one.strip() for one in testbeds_of(request.testbed)})
        if request.testbed and not all(names):
            message = "empty name before or after a comma; write testbeds as in lab,dumbbell"
            raise DefinitionError.at(f"--testbed {request.testbed}", message)
        planned = [self._plan(self._load(request._replace(testbed=one))) for one in names]
        for one in planned:
            check_recipes(one.plan, self.catalogue)
        whole = share_between_testbeds(planned) if len(planned) > 1 else planned[0]
        if not request.shard:
            return whole
        shard = Shard.parse(request.shard)
        shard.ids(whole.plan)  # raises PlanError if there are too many shards
        every = [replace(one, plan=one.plan.model_copy(update={"shard": str(shard)})) for one in whole.every]
        return replace(every[0], others=tuple(every[1:]))

    def origin(self, path: Path) -> str:
        """Return whether a file belongs to the `project` or to `samovar`.

        Returns an empty string if the project's folder is samovar's own checkout.
        """
        if self.root == SHIPPED:
            return ""
        return "project" if path.absolute().is_relative_to(self.root) else "samovar"

    def _load(self, request: Request) -> ResolvedExperiment:
        name = request.experiment  # this may be the path of a file
        is_path = name.endswith(".yaml") and Path(name).exists()
        path = Path(name) if is_path else _find(name, self.experiments(), "experiment", "experiments/")
        testbed = self.testbed_path(request.testbed) if request.testbed else None
        overrides = parse_overrides(request.overrides)
        options = LoadOptions(request.profile or None, overrides, self.config, self.outputs)
        return load_experiment(path, self.catalogue, testbed, options)

    def _plan(self, own: ResolvedExperiment) -> PlannedExperiment:
        plan = make_plan(own, self.catalogue, self.outputs)
        return PlannedExperiment(own.experiment, own.testbed, plan, sources=own.files)

    def explain(self, request: Request, key: str, trial: str = "") -> list[Explanation]:
        """Return where a key's value comes from; with `trial`, also its value in this trial.

        `trial` is the id of a trial or the beginning of it.
        """
        own = self._load(request)
        if not trial:
            return explain_key(own, self.catalogue, key)
        return explain_trial(own, self.catalogue, self._plan(own).plan, key, trial)

    def study_report(self, name: str) -> keys.StudyReport:
        """Load the definition of a study's report, experiments/studies/NAME.yaml. Raises DefinitionError."""
        paths = yaml_tree.yaml_files(self.root / "experiments" / STUDIES)
        path = _find(name, paths, "study", f"experiments/{STUDIES}/")
        return load_study_report(path, {path.stem for path in self.experiments()})

    def campaign(self, name: str) -> Path:
        """Return the folder of a campaign by name; see find_campaign()."""
        return find_campaign(self.results, name)

    def resume_point(
        self, planned: PlannedExperiment, new: bool = False, pick: Pick | None = None
    ) -> ResumePoint:
        """Return the campaign that a plan resumes and the trials left to run; with `new`, a new campaign."""
        return find_resume_point(planned.plan, self.results, new, pick)


def _find(name: str, paths: Sequence[Path], what: str, folder: str) -> Path:
    found = next((path for path in paths if path.stem == name), None)
    if found is None:
        known = [path.stem for path in paths]
        raise DefinitionError.at(folder, unknown(what, name, known))
    return yaml_tree.yaml_path(found.parent, name)
