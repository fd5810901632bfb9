"""A campaign at work: the loop over what the plan asks for and the journal lacks."""

from __future__ import annotations

import time
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from threading import Lock

from samovar.atomic_files import write_json
from samovar.campaign.availability.disk_space import Storage
from samovar.campaign.availability.leases import LeaseRequest, Leases
from samovar.campaign.availability.quarantine import needs_by_trial
from samovar.campaign.collection import digests
from samovar.campaign.context import CampaignContext, Note
from samovar.campaign.folder import point_latest, read_plan, replacement_of, standings, testbeds_of
from samovar.campaign.interrupts import TestbedJob, run_in_threads
from samovar.campaign.journal import NAME as JOURNAL
from samovar.campaign.journal import CampaignState, Journal, fold, is_open
from samovar.campaign.policy import AS_ALWAYS, Policy
from samovar.campaign.testbed_runner import TestbedRunner, TestbedSetup
from samovar.campaign.trial_queue import TrialQueue
from samovar.errors import CampaignError
from samovar.events import Emit, Event
from samovar.hosts import Machine, Sessions
from samovar.plan import Plan
from samovar.plan.diff import Comparison, compare
from samovar.recipes import Catalogue

OWN_FILES = (
    *("plan.json", "provenance.json", "*.yaml", "definition/**/*"),
    *("testbeds/**/*", "plans/**/*", "calibration/*"),
)
"""What a campaign has beside its trials and keeps as it is, so that the journal has checksums of it."""


@dataclass(frozen=True)
class Summary:
    """What a campaign has come to: trials that failed or cannot run, hosts not used any more, with reasons.

    `stopped` says what ended the last run before its time.
    """

    folder: Path
    asked: int
    done: int
    failed: Mapping[str, tuple[str, ...]]
    blocked: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    quarantined: Mapping[str, str] = field(default_factory=dict)
    stopped: str = ""

    @property
    def whole(self) -> bool:
        """Whether every trial of the plan is there that the testbed can run."""
        return not self.failed


def settle(folder: Path, plan: Plan, sources: Mapping[str, bytes]) -> Summary:
    """Take a plan that asks for nothing new as the campaign's, touching no host; return where it stands."""
    with Journal(folder / JOURNAL) as journal:
        state = fold(journal.entries)
        if take(folder, plan, sources, _noting(journal), state):
            journal.append("files-recorded", round(time.time(), 6), files=digests(folder, *OWN_FILES))
            journal.append("campaign-finished", round(time.time(), 6), completed=len(plan.trials), failed=[])
    point_latest(folder)
    return summarise(folder, plan, state)


def take(folder: Path, plan: Plan, sources: Mapping[str, bytes], note: Note, state: CampaignState) -> bool:
    """Make a plan and its definition files the campaign's and say in the journal what that changes.

    The earlier files are kept beside. Returns whether there was anything to change.
    """
    replacement = replacement_of(folder, plan, sources)
    if replacement is None:
        return False
    comparison = compare(plan, read_plan(folder), standings(state))
    replacement.keep()
    note("plan-changed", kept=replacement.kept, **_told(comparison))
    replacement.write()
    return True


def _told(comparison: Comparison) -> Mapping[str, object]:
    stale = [{"changes": one.changes, "results": one.results} for one in comparison.stale]
    return {
        "stands": len(comparison.stands),
        "runs": comparison.counts,
        "stale": stale,
        "orphans": comparison.orphans,
    }


def _noting(journal: Journal) -> Note:
    def note(event: str, **values: object) -> None:
        journal.append(event, round(time.time(), 6), **values)

    return note


@dataclass(frozen=True)
class Intent:
    """What a controller is asked to run: a plan, the files that define it, and what the testbed cannot do.

    `sources` are by the name that they get in the campaign; `blocked` says why not, by trial. `machines` tell
    how hosts boot and are switched, `policy` by what trials are judged, `gone` which hosts cannot be used.
    With `fail_fast` the first trial that fails is the last. `others` are further testbeds that take part.
    With `force` hosts are taken from whoever holds them.
    """

    plan: Plan
    sources: Mapping[str, bytes]
    blocked: Mapping[str, Sequence[str]] = field(default_factory=dict)
    machines: Mapping[str, Machine] = field(default_factory=dict)
    policy: Policy = AS_ALWAYS
    gone: Mapping[str, str] = field(default_factory=dict)
    fail_fast: bool = False
    others: tuple[TestbedSetup, ...] = ()
    force: bool = False

    def crews(self, sessions: Sessions) -> tuple[TestbedSetup, ...]:
        """Return the testbeds that take part; `sessions` are the first one's."""
        own = (sessions, self.blocked, self.machines, self.policy, self.gone)
        return (TestbedSetup(testbeds_of(self.plan.testbed)[0], self.plan, *own), *self.others)

    @property
    def unserved(self) -> Mapping[str, Sequence[str]]:
        """Say of each trial that no testbed can run why not."""
        every = (self.blocked, *(crew.blocked for crew in self.others))
        ids = set(self.blocked).intersection(*every)
        return {id_: [why for blocked in every for why in blocked[id_]] for id_ in self.blocked if id_ in ids}


class CampaignRun:
    """One controller at work on one campaign."""

    def __init__(
        self, folder: Path, intent: Intent, sessions: Sessions, catalogue: Catalogue, emit: Emit
    ) -> None:
        self.folder, self.emit = folder, emit
        self.plan, self.intent = intent.plan, intent
        self._sessions, self._catalogue = sessions, catalogue
        self._storage = Storage()
        self._showing = Lock()

    def run(self, provenance: Mapping[str, object]) -> Summary:
        """Take the plan as the campaign's, and run every trial that is still open, each on its own merits.

        Raises KeyboardInterrupt again after the running trial was broken off, restored and written down, and
        CampaignError when nothing can be written to the folder.
        """
        try:
            with Journal(self.folder / JOURNAL) as journal, self._held(journal):
                self._storage.hold(self.folder)
                return self._run(journal, provenance)
        except OSError as error:
            raise CampaignError(f"{self.folder}: cannot be written: {error}") from error
        finally:
            self._storage.release()

    @contextmanager
    def _held(self, journal: Journal) -> Iterator[None]:
        """Hold every host for this campaign; those that are still changed in the end see to themselves."""
        crews = self.intent.crews(self._sessions)
        with ExitStack() as held:
            for crew in crews:
                claimant = LeaseRequest(self.folder, crew.testbed, force=self.intent.force)
                leases = Leases(crew.sessions, claimant, _noting(journal), self.emit, crew.gone)
                own = crew.testbed if len(crews) > 1 else ""
                held.enter_context(leases.held(partial(_changed, journal, own)))
            yield

    def _run(self, journal: Journal, provenance: Mapping[str, object]) -> Summary:
        note, state = _noting(journal), fold(journal.entries)
        note("campaign-resumed" if state.controllers else "campaign-started", trials=len(self.plan.trials))
        stations = self._stations(journal)
        for station in stations:
            station.begin(state)
        stations[0].recovery.trials(state)
        self._take(note, journal)
        write_json(self.folder / "provenance.json", provenance)
        note("files-recorded", files=digests(self.folder, *OWN_FILES))
        try:
            stopped = self._run_open(stations, fold(journal.entries))
        except KeyboardInterrupt:
            note("campaign-interrupted")
            raise
        finally:
            for station in stations:
                station.end(self.folder / "commands" / _numbered(station, state.controllers + 1))
        return self._close(note, journal, stopped)

    def _stations(self, journal: Journal) -> list[TestbedRunner]:
        crews = self.intent.crews(self._sessions)
        contexts = [self._context(journal, crew, shared=len(crews) > 1) for crew in crews]
        return [
            TestbedRunner(context, crew, lambda: journal.entries)
            for context, crew in zip(contexts, crews, strict=True)
        ]

    def _context(self, journal: Journal, crew: TestbedSetup, shared: bool) -> CampaignContext:
        """Make a testbed's context; where there are several, events say which one they are of."""
        note, emit = _noting(journal), self.emit
        if shared:
            note, emit = partial(note, testbed=crew.testbed), _of(crew.testbed, emit, self._showing)
        who = (self.folder.name, self.folder, crew.sessions, self._catalogue)
        return CampaignContext(
            *who,
            note,
            emit,
            policy=crew.policy,
            testbed=crew.testbed,
            shared=shared,
            storage=self._storage,
        )

    def _take(self, note: Note, journal: Journal) -> None:
        """Take the plan after recovery, which may need an earlier one; then say what cannot run."""
        take(self.folder, self.plan, self.intent.sources, note, fold(journal.entries))
        point_latest(self.folder)
        groups: dict[tuple[str, ...], list[str]] = {}
        for id_, reasons in self.intent.unserved.items():
            groups.setdefault(tuple(reasons), []).append(id_)
        if groups:
            blocked = [{"reasons": why, "trials": ids} for why, ids in groups.items()]
            note("trials-blocked", blocked=blocked)

    def _run_open(self, stations: Sequence[TestbedRunner], state: CampaignState) -> str:
        """Run what is open; return what ended that before its time."""
        opened = [trial for trial in self.plan.trials if is_open(state.trials.get(trial.id))]
        todo = [trial for trial in opened if trial.id not in self.intent.unserved]
        values = {
            "asked": len(self.plan.trials) - len(opened) + len(todo),
            "open": len(todo),
            "seconds": [trial.resolved.duration_s for trial in todo],
            "testbeds": len(stations),
        }
        self.emit(Event("trials-open", values))
        attempts = {id_: trial.attempts for id_, trial in state.trials.items()}
        pool = TrialQueue(todo, attempts, fail_fast=self.intent.fail_fast)
        for station in stations:
            pool.join(station.crew.testbed, station.serves)
        if len(stations) == 1:
            stations[0].work(pool)
        else:
            run_in_threads([_job(station, pool) for station in stations], pool.stop)
        return pool.stopped

    def _close(self, note: Note, journal: Journal, stopped: str) -> Summary:
        if stopped:
            note("campaign-stopped", reason=stopped)
            self.emit(Event("campaign-stopped", {"reason": stopped}))
        summary = summarise(self.folder, self.plan, fold(journal.entries))
        note("campaign-finished", completed=summary.done, failed=sorted(summary.failed))
        return summary


def _changed(journal: Journal, testbed: str) -> Collection[str]:
    """Name the hosts of a testbed that are not as they were found."""
    return fold(journal.entries).on(testbed).unrestored.keys()


def _job(runner: TestbedRunner, pool: TrialQueue) -> TestbedJob:
    context = runner.context
    return TestbedJob(
        runner.crew.testbed, partial(runner.work, pool), context.interrupt, context.sessions, context.emit
    )


def _numbered(station: TestbedRunner, number: int) -> str:
    return f"{number}-{station.context.testbed}" if station.context.shared else str(number)


def _of(testbed: str, emit: Emit, turn: Lock) -> Emit:
    """Say of events which testbed they are of, and pass them on one at a time: each comes from its thread."""

    def of(event: Event) -> None:
        with turn:
            emit(Event(event.name, {**event.values, "testbed": testbed}))

    return of


def summarise(folder: Path, plan: Plan, state: CampaignState) -> Summary:
    """Count what is there and name what is not, with the reasons of the last attempt."""
    known = {trial.id: state.trials.get(trial.id) for trial in plan.trials}
    missing = {id_: standing for id_, standing in known.items() if is_open(standing)}
    blocked = {id_: state.blocked[id_] for id_ in missing if id_ in state.blocked}
    open_ = {id_: standing for id_, standing in missing.items() if id_ not in blocked}
    left = _left(plan, open_.keys(), state.quarantined)
    failed = {id_: standing.reasons if standing else left.get(id_, ()) for id_, standing in open_.items()}
    done = len(known) - len(missing)
    return Summary(folder, len(known), done, failed, blocked, state.quarantined, state.stopped)


def _left(plan: Plan, ids: Collection[str], quarantined: Mapping[str, str]) -> Mapping[str, tuple[str, ...]]:
    """Say of trials that were not begun which hosts they need that are not used any more."""
    if not quarantined:
        return {}
    needs = needs_by_trial(plan)
    needed = {trial.id: needs(trial) & quarantined.keys() for trial in plan.trials if trial.id in ids}
    return {id_: (f"not run: it needs {', '.join(sorted(hosts))}",) for id_, hosts in needed.items() if hosts}
