"""What stands behind each command: finds the files, opens the testbed, hands on to the layers below."""

from __future__ import annotations

import platform
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass, field, replace
from difflib import get_close_matches
from functools import cached_property
from importlib import metadata
from pathlib import Path

from samovar import __version__, lab
from samovar.command import Catalogue
from samovar.command.privilege import Allowed
from samovar.definition import (
    Asked,
    Config,
    Experiment,
    Testbed,
    apply_profile,
    load_config,
    load_study,
    load_testbed,
    parse_overrides,
)
from samovar.definition import Study as DefinedStudy
from samovar.definition.exhibits import read_exhibits
from samovar.definition.explain import Explanation, explain
from samovar.definition.explain_keys import Subject
from samovar.definition.starter import write_starter
from samovar.definition.yamltext import near
from samovar.errors import DefinitionError, LabError, Problem, TestbedError
from samovar.events import Emit, Event
from samovar.plan import Cost, Plan, Site, estimate_cost, make_plan
from samovar.plan.alike import on_testbed
from samovar.plan.explain import explain_trial
from samovar.runner.archive import Archive
from samovar.runner.awaken import awaken
from samovar.runner.campaign import CampaignRun, Intent, Summary, settle
from samovar.runner.checkout import git_state
from samovar.runner.folder import PLAN, TESTBEDS, TOGETHER, Standing, begin_campaign, standing_of, testbeds_of
from samovar.runner.launch import Known, ask, notifying, require, runnable_together
from samovar.runner.policy import policy_of
from samovar.runner.preflight import (
    FEATURE,
    Finding,
    HostNeeds,
    examine,
    foreseen,
    host_needs,
    needs_of,
    space_here,
)
from samovar.runner.privileges import ROOT_COMMAND, ROOT_LOGIN, root_commands, sudoers_lines
from samovar.runner.recovery import Restored, Restorer, changed_campaigns
from samovar.runner.refusals import refusals
from samovar.runner.station import Crew
from samovar.testbed import HostFacts, Sessions, Target, gather_facts, machines_of
from samovar.testbed.facts import PROGRAMS, QDISCS
from samovar.testbed.power import ACTIONS

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
    others: tuple[Study, ...] = ()

    @property
    def every(self) -> tuple[Study, ...]:
        """The study on each testbed that takes part."""
        return (self, *self.others)


def together(studies: Sequence[Study]) -> Study:
    """Make one study of those of several testbeds; raises PlanError where they do not serve it alike."""
    first, names = studies[0], [study.testbed.name for study in studies]
    others = [replace(one, plan=on_testbed(first.plan, one.plan)) for one in studies[1:]]
    kept = {
        f"{TESTBEDS}/{study.testbed.name}/{name}": content
        for study in (first, *others)
        for name, content in (("testbed.yaml", study.sources["testbed.yaml"]), (PLAN, study.plan.to_json()))
    }
    plan = first.plan.model_copy(update={"testbed": TOGETHER.join(names)})
    return replace(first, plan=plan, sources={**first.sources, **kept}, others=tuple(others))


@dataclass(frozen=True)
class Question:
    """Where does a value come from: the arguments of `fab explain`."""

    experiment: str
    key: str
    trial: str = ""
    profile: str = ""
    testbed: str = ""
    overrides: Sequence[str] = ()


@dataclass(frozen=True)
class Going:
    """What is to be run: a study, what a campaign has of it, whether to run only what the testbed can.

    With `fail_fast` the first trial that fails is the last; `force` takes hosts from whoever holds them.
    """

    study: Study
    standing: Standing
    allow_partial: bool = False
    fail_fast: bool = False
    force: bool = False


class Controller:
    """This checkout of samovar with its files."""

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

        `testbed` may name several, with commas between them. `overrides` are arguments of --set, KEY=VALUE.
        """
        names = sorted({one.strip() for one in testbeds_of(testbed)})
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
        exhibits = read_exhibits(self.root / "analysis" / "R")
        asked = Asked(profile or None, parse_overrides(overrides), self.config, exhibits)
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
        self._require_devices(testbed)
        needs = needs_of(plan, self.catalogue) if plan else lab_default_needs()
        return lab.up(testbed, self.lab_folder(testbed.name), lab.Needs(*needs), emit)

    @contextmanager
    def opened(self, study: Study, emit: Emit) -> Iterator[Sessions]:
        """Connect to every host of a study's testbed; a lab that this has to start is stopped again."""
        with self._started(study, emit) as sessions, sessions:
            yield sessions

    @contextmanager
    def _started(self, study: Study, emit: Emit) -> Iterator[Sessions]:
        """Make the sessions of a study's testbed, not yet open; a lab that this starts is stopped again."""
        testbed, folder = study.testbed, self.lab_folder(study.testbed.name)
        starts = testbed.lab is not None and lab.read_access(folder) is None
        try:
            if starts:
                self.lab_up(testbed, study.plan, emit)
            with closing(self.sessions(testbed)) as sessions:
                yield sessions
        finally:
            if starts:
                lab.down(folder, emit)

    def sessions(self, testbed: Testbed) -> Sessions:
        """Make the sessions of a testbed's hosts, not yet open. Raises LabError for a lab that is down."""
        if testbed.lab is None:
            return Sessions(self._targets(testbed, None))
        self._require_devices(testbed)
        access = lab.read_access(self.lab_folder(testbed.name))
        if access is None:
            raise LabError(
                f"lab {testbed.name} is not running; `fab lab.up --testbed {testbed.name}` starts it"
            )
        return Sessions(self._targets(testbed, access), lab.dial(access))

    def _require_devices(self, testbed: Testbed) -> None:
        """Refuse a lab that has links which no lab can be, naming the testbeds whose lab runs."""
        if lab.lacking(testbed):
            lab.require_devices(testbed, [load_testbed(path) for path in self.testbeds()])

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
                keepalive_s=self.config.ssh.keepalive_s,
                hint="is the lab up? `fab lab.up`" if access else "",
            )

    def power(self, host: str, action: str, testbed: str = "") -> str:
        """Switch a host of a testbed, or ask whether it is on; raises DefinitionError or TestbedError."""
        machines = machines_of(load_testbed(self.testbed_path(testbed)))
        if host not in machines:
            raise TestbedError(f"{host}: no such host; accepted: {', '.join(machines)}")
        if action not in ACTIONS:
            raise TestbedError(f"power {action}: not known; accepted: {', '.join(ACTIONS)}")
        return machines[host].switch(action)

    def cost(self, study: Study, standing: Standing | None = None) -> Cost:
        """Estimate what a plan costs, or what is still to run of it."""
        only = standing.comparison.runs.keys() if standing else None
        return estimate_cost(study.plan, Archive(self.results).known(study.testbed.name), only)

    def facts(
        self, sessions: Sessions, plan: Plan, hosts: Iterable[str] | None = None
    ) -> Mapping[str, HostFacts]:
        """Ask every host, or some, what it is and has, of what the plan needs and beyond."""
        needs = host_needs(plan, self.catalogue)
        programs = {program for need in needs.values() for program in need.names("program")}
        qdiscs = {name for need in needs.values() for name in need.names(FEATURE)}
        systems = {name: host.system for name, host in plan.trials[0].resolved.hosts.items()}
        commands = _as_root(plan, needs, sessions)
        return sessions.map(
            lambda session: gather_facts(
                session,
                self.catalogue,
                systems[session.host],
                {*PROGRAMS, *programs},
                {*QDISCS, *qdiscs},
                commands[session.host],
            ),
            hosts,
        )

    def sudoers(self, study: Study) -> Iterator[str]:
        """Write what sudoers(5) takes on each host of a testbed for an experiment; asks the hosts."""
        needs = host_needs(study.plan, self.catalogue)
        with self.sessions(study.testbed) as sessions:
            facts = self.facts(sessions, study.plan)
            commands = _as_root(study.plan, needs, sessions)
        only_root = {host: need.names(ROOT_LOGIN) for host, need in needs.items()}
        return sudoers_lines(commands, only_root, facts)

    def foresee(self, study: Study) -> tuple[Sequence[Finding], str]:
        """Tell without asking the testbed what of a plan it cannot run, and what was looked at instead.

        Raises RecipeError for a recipe that is not there, and LabError where no lab could be started.
        """
        needs = needs_of(study.plan, self.catalogue)
        if study.testbed.lab is None:
            return refusals(study.plan, self.catalogue), "only its recipes were looked at"
        lacking = lab.foresee(study.testbed.lab.kernel, lab.Needs(*needs))
        looked = "only its recipes and the kernel's modules were looked at"
        return [*refusals(study.plan, self.catalogue), *foreseen(study.plan, self.catalogue, lacking)], looked

    def examine(self, study: Study, facts: Mapping[str, HostFacts], cost: Cost) -> Sequence[Finding]:
        """Compare what a plan needs with what the hosts and this machine have."""
        policy = policy_of(study.experiment, study.testbed, self.config, {})
        clock_s = self.config.clock_tolerance_s
        found = examine(study.plan, self.catalogue, facts, clock_s, policy.calibrate)
        return [*self.space(cost), *refusals(study.plan, self.catalogue), *found]

    def space(self, cost: Cost) -> Sequence[Finding]:
        """Compare what trials will leave in the results folder with its disk."""
        return tuple(space_here(cost, self.results))

    def standing(self, study: Study, new: bool = False) -> Standing:
        """Set a study's plan against the campaign that it goes on in; `new` begins another."""
        return standing_of(study.plan, self.results, new)

    def settle(self, study: Study, folder: Path) -> Summary:
        """Take a plan of which everything is there as the campaign's; no host is touched."""
        return settle(folder, study.plan, study.sources)

    def run(self, going: Going, emit: Emit) -> Summary:
        """Run what is still open of a study's campaign, beginning one if there is none.

        Hosts that do not answer cost the trials that need them. Raises TestbedError when no trial can run
        without them, or a host lacks what the plan needs; nothing has been changed on any host then.
        """
        studies = going.study.every
        with ExitStack() as stack:
            opened = [stack.enter_context(self._started(study, emit)) for study in studies]
            known = [self._ask(study, one, emit) for study, one in zip(studies, opened, strict=True)]
            require([study.plan for study in studies], known, going.fail_fast)
            intent = self._intent(going, opened, known)
            folder = self.at_work = self._folder(going, emit)
            notifier = stack.enter_context(notifying(self.config.notify, folder, emit))
            run = CampaignRun(folder, intent, opened[0], self.catalogue, notifier)
            summary = run.run(self._provenances(studies, known))
            notifier.end(summary.done, summary.asked, len(summary.failed))
            return summary

    def _ask(self, study: Study, sessions: Sessions, emit: Emit) -> Known:
        awaken(sessions, machines_of(study.testbed), emit)
        return ask(sessions, lambda hosts: self.facts(sessions, study.plan, hosts))

    def _intent(self, going: Going, opened: Sequence[Sessions], known: Sequence[Known]) -> Intent:
        studies = going.study.every
        cost = self.cost(going.study, going.standing)
        findings = [self.examine(study, one.facts, cost) for study, one in zip(studies, known, strict=True)]
        blocked = runnable_together(going.study.plan, findings, going.allow_partial)
        each = zip(studies, opened, known, blocked, strict=True)
        crews = [self._crew(study, sessions, one, lacking) for study, sessions, one, lacking in each]
        return Intent(
            going.study.plan,
            going.study.sources,
            blocked=blocked[0],
            machines=crews[0].machines,
            policy=crews[0].policy,
            gone=known[0].gone,
            fail_fast=going.fail_fast,
            others=tuple(crews[1:]),
            force=going.force,
        )

    def _crew(
        self, study: Study, sessions: Sessions, known: Known, blocked: Mapping[str, Sequence[str]]
    ) -> Crew:
        policy = policy_of(study.experiment, study.testbed, self.config, known.boots)
        machines = machines_of(study.testbed)
        return Crew(study.testbed.name, study.plan, sessions, blocked, machines, policy, known.gone)

    def _folder(self, going: Going, emit: Emit) -> Path:
        """Find the campaign that is gone on with, or begin one."""
        folder = going.standing.folder
        if folder is None:
            return begin_campaign(going.study.plan, self.results, going.study.sources, emit)
        emit(Event("campaign-resumed", {"folder": str(folder)}))
        return folder

    def restore(self, testbed: Testbed, emit: Emit, force: bool = False) -> Restored:
        """Put every host of a testbed back as the journals of its campaigns say that it was.

        With `force` hosts are taken from whoever holds them.

        Touches no host when no journal names one. Raises LabError for a lab that is down.
        """
        folders = changed_campaigns(self.results, testbed.name)
        if not folders:
            return Restored()
        sessions = self.sessions(testbed)
        try:  # each host is connected to by itself: one that is away keeps no other from being restored
            machines = machines_of(testbed)
            restorer = Restorer(testbed.name, sessions, self.catalogue, machines, emit, force)
            return restorer.run(folders)
        finally:
            sessions.close()

    def _provenances(self, studies: Sequence[Study], known: Sequence[Known]) -> Mapping[str, object]:
        """Say with what a campaign is made; of further testbeds, what they are."""
        first, *others = [self.provenance(s, one.facts) for s, one in zip(studies, known, strict=True)]
        told = {str(one["testbed"]): {key: one[key] for key in ("lab", "hosts")} for one in others}
        return {**first, "others": told} if told else first

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
            "git": git_state(self.root),
            "testbed": study.testbed.name,
            "lab": {"kernel": access.kernel} if access else None,
            "hosts": {host: fact.as_json() for host, fact in facts.items()},
        }

    def campaign(self, name: str) -> Path:
        """Find a campaign: by path, as experiment/campaign, by experiment, or the latest."""
        return Archive(self.results).find(name)


def _as_root(plan: Plan, needs: Mapping[str, HostNeeds], sessions: Sessions) -> dict[str, list[Allowed]]:
    """List for each host what the user who logs in there must be able to do as root."""
    hosts = plan.trials[0].resolved.hosts
    return {
        name: root_commands(
            needs[name].names(ROOT_COMMAND), hosts[name].interfaces, sessions[name].target.user
        )
        for name in sessions.hosts
        if name in needs
    }


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
