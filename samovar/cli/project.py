"""A project folder: its experiments, testbeds, recipes and configuration, its plans and campaigns."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from pathlib import Path

from samovar.campaign import Archive, ResumePoint, changed_recipes, find_resume_point, testbeds_of
from samovar.cli.requests import ExplainRequest, PlannedExperiment, share_between_testbeds
from samovar.errors import DefinitionError, Problem
from samovar.experiment import (
    STUDIES,
    Config,
    Explainer,
    Explanation,
    LoadOptions,
    ResolvedExperiment,
    StudyReport,
    load_config,
    load_experiment,
    load_study_report,
    nearest,
    parse_overrides,
    write_starter,
    yaml_files,
    yaml_path,
)
from samovar.experiment.outputs import Exhibits, read_exhibits
from samovar.plan import Plan, Site, explain_trial, make_plan
from samovar.recipes import Catalogue


class Project:
    """The files of a project folder; reads and plans, contacts no host."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.catalogue = Catalogue(root / "templates")

    @cached_property
    def config(self) -> Config:
        """The values of config.yaml; raises DefinitionError."""
        return load_config(yaml_path(self.root, "config"))

    @cached_property
    def exhibits(self) -> Exhibits:
        """The figures and tables that the analysis can make."""
        return read_exhibits(self.root / "analysis" / "R")

    @property
    def results(self) -> Path:
        """The folder of all campaigns."""
        return self.root / self.config.results

    def experiments(self) -> list[Path]:
        """Return the experiment files."""
        return yaml_files(self.root / "experiments")

    def testbeds(self) -> list[Path]:
        """Return the testbed files."""
        return yaml_files(self.root / "hosts")

    def testbed_path(self, name: str) -> Path:
        """Return the file of a testbed, of the configured one if `name` is empty; raises DefinitionError."""
        return _find(name or self.config.testbed, self.testbeds(), "testbed", "hosts/")

    def _experiment_path(self, name: str) -> Path:
        return _find(name, self.experiments(), "experiment", "experiments/")

    def new_experiment(self, name: str, base: str = "") -> Path:
        """Write a starter experiment, or one that extends `base`; raises DefinitionError."""
        return write_starter(self.root / "templates", self.root / "experiments", name, base)

    def plan(
        self, name: str, profile: str = "", testbed: str = "", overrides: Sequence[str] = ()
    ) -> PlannedExperiment:
        """Load and plan an experiment; raises DefinitionError or PlanError.

        `testbed` may be several names with commas between them. `overrides` are the arguments of --set,
        KEY=VALUE.
        """
        names = sorted({one.strip() for one in testbeds_of(testbed)})
        if testbed and not all(names):
            message = "empty name before or after a comma; write testbeds as in lab,dumbbell"
            raise DefinitionError([Problem(f"--testbed {testbed}", 0, 0, message)])
        planned = [self._plan(self._load(name, profile, one, overrides)) for one in names]
        return share_between_testbeds(planned) if len(planned) > 1 else planned[0]

    def _load(self, name: str, profile: str, testbed: str, overrides: Sequence[str]) -> ResolvedExperiment:
        options = LoadOptions(profile or None, parse_overrides(overrides), self.config, self.exhibits)
        testbed_path = self.testbed_path(testbed) if testbed else None
        return load_experiment(self._experiment_path(name), self.catalogue, testbed_path, options)

    def _plan(self, own: ResolvedExperiment) -> PlannedExperiment:
        return PlannedExperiment(own.experiment, own.testbed, self._make_plan(own), sources=own.files)

    def _make_plan(self, own: ResolvedExperiment) -> Plan:
        return make_plan(own, site=Site(self.catalogue, self.exhibits))

    def explain(self, request: ExplainRequest) -> list[Explanation]:
        """Return the sources of a key's value, in one trial if the request names one."""
        own = self._load(request.experiment, request.profile, request.testbed, request.overrides)
        explainer = Explainer(own.experiment, own.testbed, self.catalogue, self.config)
        if not request.trial:
            return explainer.explain(request.key)
        return explain_trial(explainer, self._make_plan(own), request.key, request.trial)

    def study_report(self, name: str) -> StudyReport:
        """Load experiments/studies/NAME.yaml, a report of several experiments; raises DefinitionError."""
        paths = yaml_files(self.root / "experiments" / STUDIES)
        path = _find(name, paths, "study", f"experiments/{STUDIES}/")
        return load_study_report(path, {path.stem for path in self.experiments()})

    def campaign(self, name: str) -> Path:
        """Return a campaign's folder by path, experiment/campaign or experiment; the latest if empty."""
        return Archive(self.results).find(name)

    def resume_point(self, planned: PlannedExperiment, new: bool = False) -> ResumePoint:
        """Return the campaign that a plan resumes and what it lacks; `new` starts another campaign."""
        return find_resume_point(planned.plan, self.results, new)

    def changed_recipes(self, planned: PlannedExperiment, resume: ResumePoint) -> Sequence[str]:
        """Return the recipe files that have changed since the campaign's existing results were measured."""
        return changed_recipes(planned.plan, resume, self.catalogue)


def _find(name: str, paths: Sequence[Path], what: str, folder: str) -> Path:
    for path in paths:
        if path.stem == name:
            return yaml_path(path.parent, name)
    known = [path.stem for path in paths]
    close = nearest(Path(name).stem, known)
    hint = f"; did you mean {close}?" if close else ";"
    message = f"no {what} {name!r}{hint} known: " + (", ".join(known) or "none")
    raise DefinitionError([Problem(folder, 0, 0, message)])
