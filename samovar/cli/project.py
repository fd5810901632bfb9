"""The files of a checkout: settings, experiments, testbeds, recipes, campaigns."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from pathlib import Path

from samovar.campaign.folder import testbeds_of
from samovar.campaign.past_campaigns import Archive
from samovar.cli.requests import Question, Study, together
from samovar.errors import DefinitionError, Problem
from samovar.experiment import (
    Asked,
    Config,
    apply_profile,
    load_config,
    load_study,
    parse_overrides,
)
from samovar.experiment import Study as DefinedStudy
from samovar.experiment.explanation.explain import Explanation, explain
from samovar.experiment.explanation.explain_keys import Subject
from samovar.experiment.keys.study_file import FOLDER as STUDIES
from samovar.experiment.keys.study_file import StudyReport, load_study_report
from samovar.experiment.nearest import nearest
from samovar.experiment.outputs import Exhibits, read_exhibits
from samovar.experiment.starter import write_starter
from samovar.experiment.yaml.tree import near, yaml_files
from samovar.plan import Site, make_plan
from samovar.plan.trial_values import explain_trial
from samovar.recipes import Catalogue


class Checkout:
    """A checkout of samovar, read and planned with; no host is touched."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.catalogue = Catalogue(root / "templates")
        self.at_work: Path | None = None  # the campaign that runs

    @cached_property
    def config(self) -> Config:
        """The controller's own settings; raises DefinitionError."""
        return load_config(near(self.root, "config"))

    @property
    def site(self) -> Site:
        """What plans are made with: this controller's settings, recipes and figures."""
        return Site(self.config, self.catalogue, self.exhibits)

    @cached_property
    def exhibits(self) -> Exhibits:
        """The figures and tables that the analysis draws."""
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
        """Find a testbed's file by name; raises DefinitionError with the nearest known one."""
        return _named(name or self.config.testbed, self.testbeds(), "testbed")

    def study(self, name: str, profile: str, testbed: str, overrides: Sequence[str] = ()) -> Study:
        """Read an experiment and its testbed and plan it; raises DefinitionError or PlanError.

        `testbed` may name several, with commas between them. `overrides` are arguments of --set, KEY=VALUE.
        """
        names = sorted({one.strip() for one in testbeds_of(testbed)})
        if testbed and not all(names):
            message = "no name before or after a comma; expected testbeds such as lab,dumbbell"
            raise DefinitionError([Problem(f"--testbed {testbed}", 0, 0, message)])
        studies = [self._study(name, profile, one, overrides) for one in names]
        return together(studies) if len(studies) > 1 else studies[0]

    def _study(self, name: str, profile: str, testbed: str, overrides: Sequence[str]) -> Study:
        path = _named(name, self.experiments(), "experiment")
        own = self._read(path, profile, testbed, overrides)
        experiment = apply_profile(own.experiment, own.profile, own.overrides)
        plan = make_plan(own.experiment, own.testbed, own.profile, own.overrides, site=self.site)
        return Study(
            path, self.testbed_path(own.testbed.name), experiment, own.testbed, plan, sources=own.sources
        )

    def _read(self, path: Path, profile: str, testbed: str, overrides: Sequence[str]) -> DefinedStudy:
        asked = Asked(profile or None, parse_overrides(overrides), self.config, self.exhibits)
        return load_study(path, self.catalogue, self.testbed_path(testbed) if testbed else None, asked)

    def new(self, name: str, base: str = "") -> Path:
        """Write a new experiment, or one that extends another; raises DefinitionError."""
        return write_starter(self.root / "templates", self.root / "experiments", name, base)

    def explain(self, question: Question) -> list[Explanation]:
        """Say where the values of a key come from, in one trial when it is given."""
        path = _named(question.experiment, self.experiments(), "experiment")
        own = self._read(path, question.profile, question.testbed, question.overrides)
        experiment = apply_profile(own.experiment, own.profile, own.overrides)
        subject = Subject(experiment, own.testbed, self.catalogue, self.config)
        if not question.trial:
            return explain(subject, question.key)
        plan = make_plan(own.experiment, own.testbed, own.profile, own.overrides, site=self.site)
        return explain_trial(subject, plan, question.key, question.trial)

    def study_report(self, name: str) -> StudyReport:
        """Read a study of several experiments, a file in experiments/studies/; raises DefinitionError."""
        paths = yaml_files(self.root / "experiments" / STUDIES)
        return load_study_report(_named(name, paths, "study"), {path.stem for path in self.experiments()})

    def campaign(self, name: str) -> Path:
        """Find a campaign: by path, as experiment/campaign, by experiment, or the latest."""
        return Archive(self.results).find(name)


def _named(name: str, paths: Sequence[Path], what: str) -> Path:
    for path in paths:
        if path.stem == name:
            return near(path.parent, name)
    known = [path.stem for path in paths]
    close = nearest(Path(name).stem, known)
    hint = f"; did you mean {close}?" if close else ";"
    folder = {"testbed": "hosts/", "study": f"experiments/{STUDIES}/"}.get(what, f"{what}s/")
    message = f"no {what} {name!r}{hint} known: " + (", ".join(known) or "none")
    raise DefinitionError([Problem(folder, 0, 0, message)])
