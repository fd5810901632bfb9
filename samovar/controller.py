"""What stands behind each command: finds the files, opens the testbed, hands on to the layers below."""

from __future__ import annotations

import platform
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from difflib import get_close_matches
from functools import cached_property
from importlib import metadata
from pathlib import Path
from statistics import median

from samovar import __version__, lab
from samovar.command import Catalogue
from samovar.definition import (
    Asked,
    Config,
    Experiment,
    Testbed,
    apply_profile,
    load_config,
    load_study,
    parse_overrides,
)
from samovar.definition import Study as DefinedStudy
from samovar.definition.explain import Explanation, explain
from samovar.definition.explain_keys import Subject
from samovar.definition.starter import write_starter
from samovar.definition.yamltext import near
from samovar.errors import CampaignError, DefinitionError, LabError, Problem, TestbedError
from samovar.events import Emit
from samovar.journal import NAME as JOURNAL
from samovar.journal import fold, read_journal
from samovar.plan import Plan, Site, make_plan
from samovar.plan.explain import explain_trial
from samovar.runner.campaign import LATEST, CampaignRun, Summary, open_campaign, read_plan
from samovar.runner.preflight import Finding, examine, host_needs, needs_of
from samovar.testbed import HostFacts, Sessions, Target, gather_facts
from samovar.testbed.facts import PROGRAMS, QDISCS

REQUIREMENTS = ("fabric", "paramiko", "Jinja2", "PyYAML", "pydantic", "rich", "typst")


@dataclass(frozen=True)
class Study:
    """An experiment as it was asked for, on its testbed, planned."""

    path: Path
    testbed_path: Path
    experiment: Experiment
    testbed: Testbed
    plan: Plan
    sources: Mapping[str, bytes] = field(default_factory=dict)


@dataclass(frozen=True)
class Question:
    """Where does a value come from: the arguments of `fab explain`."""

    experiment: str
    key: str
    trial: str = ""
    profile: str = ""
    testbed: str = ""
    overrides: Sequence[str] = ()


class Controller:
    """This checkout of samovar with its files."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.catalogue = Catalogue(root / "templates")

    @cached_property
    def config(self) -> Config:
        """The controller's own settings; raises DefinitionError."""
        return load_config(near(self.root, "config"))

    @property
    def site(self) -> Site:
        """What plans are made with: this controller's settings and recipes."""
        return Site(self.config, self.catalogue)

    @property
    def results(self) -> Path:
        """The folder of all campaigns."""
        return self.root / self.config.results

    def experiments(self) -> list[Path]:
        """Return the experiment files."""
        return sorted((self.root / "experiments").glob("*.yaml"))

    def testbeds(self) -> list[Path]:
        """Return the testbed files."""
        return sorted((self.root / "hosts").glob("*.yaml"))

    def testbed_path(self, name: str) -> Path:
        """Find a testbed's file by name; raises DefinitionError with the nearest known one."""
        return _named(name or self.config.testbed, self.testbeds(), "testbed")

    def study(self, name: str, profile: str, testbed: str, overrides: Sequence[str] = ()) -> Study:
        """Read an experiment and its testbed and plan it; raises DefinitionError or PlanError.

        `overrides` are arguments of --set, KEY=VALUE.
        """
        path = _named(name, self.experiments(), "experiment")
        own = self._read(path, profile, testbed, overrides)
        experiment = apply_profile(own.experiment, own.profile, own.overrides)
        plan = make_plan(own.experiment, own.testbed, own.profile, own.overrides, site=self.site)
        return Study(
            path, self.testbed_path(own.testbed.name), experiment, own.testbed, plan, sources=own.sources
        )

    def _read(self, path: Path, profile: str, testbed: str, overrides: Sequence[str]) -> DefinedStudy:
        asked = Asked(profile or None, parse_overrides(overrides), self.config)
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

    def lab_folder(self, testbed: str) -> Path:
        """Name the folder that a lab keeps its state in."""
        return self.root / ".lab" / testbed

    def lab_up(self, testbed: Testbed, plan: Plan | None, emit: Emit) -> lab.Access:
        """Start a testbed's lab; the plan says what its kernel must offer."""
        needs = needs_of(plan, self.catalogue) if plan else lab_default_needs()
        return lab.up(testbed, self.lab_folder(testbed.name), lab.Needs(*needs), emit)

    @contextmanager
    def opened(self, study: Study, emit: Emit) -> Iterator[Sessions]:
        """Connect to every host of a study's testbed; a lab that this has to start is stopped again."""
        testbed, folder = study.testbed, self.lab_folder(study.testbed.name)
        starts = testbed.lab is not None and lab.read_access(folder) is None
        try:
            if starts:
                self.lab_up(testbed, study.plan, emit)
            with self.sessions(testbed) as sessions:
                yield sessions
        finally:
            if starts:
                lab.down(folder, emit)

    def sessions(self, testbed: Testbed) -> Sessions:
        """Make the sessions of a testbed's hosts, not yet open. Raises LabError for a lab that is down."""
        if testbed.lab is None:
            return Sessions(self._targets(testbed, None))
        access = lab.read_access(self.lab_folder(testbed.name))
        if access is None:
            raise LabError(
                f"lab {testbed.name} is not running; `fab lab.up --testbed {testbed.name}` starts it"
            )
        return Sessions(self._targets(testbed, access), lab.dial(access))

    def _targets(self, testbed: Testbed, access: lab.Access | None) -> Iterator[Target]:
        for name, host in testbed.hosts.items():
            ssh = testbed.ssh_of(name)
            key, known_hosts = (access.key, access.known_hosts) if access else (ssh.key, ssh.known_hosts)
            yield Target(
                host=name,
                address=host.address,
                port=ssh.port,
                user=ssh.user,
                key=Path(key).expanduser() if key else None,
                known_hosts=Path(known_hosts).expanduser() if known_hosts else None,
                connect_timeout_s=self.config.ssh.connect_timeout_s,
                hint="is the lab up? `fab lab.up`" if access else "",
            )

    def measured_overhead_s(self, testbed: str) -> float | None:
        """Return what a trial cost beyond its traffic on a testbed: the median over the latest campaigns."""
        found: list[float] = []
        for plan in self._plans()[-4:]:
            journal = plan.with_name(JOURNAL)
            if journal.is_file() and read_plan(plan.parent).testbed == testbed:
                trials = fold(read_journal(journal)).standing("completed")
                found += [trial.overhead_s for trial in trials if trial.overhead_s is not None]
        return median(found) if found else None

    def _plans(self) -> list[Path]:
        """Return the plans of all campaigns, the newest last; the `latest` links count once."""
        found = {plan.resolve() for plan in self.results.glob("*/*/plan.json")}
        return sorted(found, key=lambda plan: plan.stat().st_mtime)

    def facts(self, sessions: Sessions, plan: Plan) -> Mapping[str, HostFacts]:
        """Ask every host what it is and has, of what the plan needs and beyond."""
        needs = host_needs(plan, self.catalogue)
        programs = {program for need in needs.values() for program in need.programs}
        _, qdiscs = needs_of(plan, self.catalogue)
        systems = {name: host.system for trial in plan.trials for name, host in trial.resolved.hosts.items()}
        return sessions.map(
            lambda session: gather_facts(
                session,
                self.catalogue,
                systems[session.host],
                {*PROGRAMS, *programs},
                {*QDISCS, *qdiscs},
            )
        )

    def examine(self, study: Study, facts: Mapping[str, HostFacts]) -> Sequence[Finding]:
        """Compare what a plan needs with what the hosts have."""
        return examine(study.plan, self.catalogue, facts, self.config.clock_tolerance_s)

    def run(self, study: Study, sessions: Sessions, facts: Mapping[str, HostFacts], emit: Emit) -> Summary:
        """Run what is still open of a study's campaign, beginning one if there is none.

        Raises TestbedError when a host lacks what the plan needs; nothing has been changed on any host then.
        """
        stops = [str(finding) for finding in self.examine(study, facts) if finding.stops]
        if stops:
            raise TestbedError(
                f"{study.plan.testbed} cannot run {study.plan.experiment}:\n" + "\n".join(stops)
            )
        folder = open_campaign(study.plan, self.results, study.sources, emit)
        run = CampaignRun(folder, sessions, self.catalogue, emit)
        return run.run(self.provenance(study, facts))

    def provenance(self, study: Study, facts: Mapping[str, HostFacts]) -> Mapping[str, object]:
        """Say with what a campaign is made: versions, hosts, the state of this checkout."""
        access = lab.read_access(self.lab_folder(study.testbed.name)) if study.testbed.lab else None
        return {
            "controller": {
                "samovar": __version__,
                "python": platform.python_version(),
                "kernel": platform.release(),
                "packages": {name: metadata.version(name) for name in REQUIREMENTS},
            },
            "git": self._git(),
            "testbed": study.testbed.name,
            "lab": {"kernel": access.kernel} if access else None,
            "hosts": {host: fact.as_json() for host, fact in facts.items()},
        }

    def _git(self) -> Mapping[str, object]:
        revision = self._git_says("rev-parse", "HEAD")
        return (
            {"revision": revision, "modified": bool(self._git_says("status", "--porcelain"))}
            if revision
            else {}
        )

    def _git_says(self, *words: str) -> str:
        done = subprocess.run(
            ["git", "-C", str(self.root), *words], capture_output=True, text=True, check=False
        )
        return done.stdout.strip() if done.returncode == 0 else ""

    def campaign(self, name: str) -> Path:
        """Find a campaign: by path, as experiment/campaign, by experiment, or the latest."""
        home = self.results / name
        if (Path(name) / "plan.json").is_file() and name:
            return Path(name).resolve()
        if name and (home / "plan.json").is_file():
            return home.resolve()
        if name and (home / LATEST / "plan.json").is_file():
            return (home / LATEST).resolve()
        plans = self._plans()
        if name or not plans:
            known = sorted({f"{plan.parent.parent.name}/{plan.parent.resolve().name}" for plan in plans})
            listed = ", ".join(known[-8:]) or "none yet; `fab run EXPERIMENT` makes one"
            raise CampaignError(f"no campaign {name!r} in {self.results}; known: {listed}")
        return plans[-1].parent.resolve()


def lab_default_needs() -> tuple[frozenset[str], frozenset[str]]:
    """Name what a lab that is started for no experiment in particular should offer."""
    return frozenset({"cdg"}), frozenset({"netem"})


def _named(name: str, paths: Sequence[Path], what: str) -> Path:
    for path in paths:
        if path.stem == name:
            return near(path.parent, name)
    known = [path.stem for path in paths]
    close = get_close_matches(name, known, n=1)
    hint = f"; did you mean {close[0]}?" if close else ";"
    folder = f"{'hosts' if what == 'testbed' else what + 's'}/"
    message = f"no {what} {name!r}{hint} known: " + (", ".join(known) or "none")
    raise DefinitionError([Problem(folder, 0, 0, message)])
