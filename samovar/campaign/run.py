"""Run a campaign: all trials of its plan that are not complete, on one testbed or several."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from threading import Lock

from samovar.atomic_files import write_json
from samovar.campaign.availability import DiskReserve, LeaseRequest, Leases, needed_hosts_by_trial
from samovar.campaign.collection import digests
from samovar.campaign.context import CampaignContext
from samovar.campaign.folder import point_latest, read_json, replace_plan, testbeds_of
from samovar.campaign.interrupts import run_in_threads
from samovar.campaign.journal import JOURNAL, CampaignState, Journal, Note, fold, is_open
from samovar.campaign.provenance_json import PROVENANCE, changed_kernels, keep_absent_hosts, this_node
from samovar.campaign.retries import TestbedRunner, TestbedSetup
from samovar.campaign.trial_queue import TrialQueue
from samovar.errors import CampaignError
from samovar.events import Emit, Event
from samovar.plan import Picked, Plan, Trial
from samovar.recipes import Catalogue

OWN_FILES = (
    *("plan.json", "provenance.json", "*.yaml", "definition/**/*"),
    *("testbeds/**/*", "plans/**/*", "calibration/*", "shards/**/*"),
)
"""Patterns of the files of a campaign that do not belong to one trial. The journal records their
checksums."""


@dataclass(frozen=True)
class Summary:
    """What a campaign has achieved so far.

    `trials` is the number of trials that the run was to complete; `done` of these trials are complete.
    `blocked` has the trials that no testbed can run. `failed` maps the remaining trials to the reasons why
    they are not complete. `quarantined` maps hosts to reasons. `stopped` is the reason why the run ended
    early, otherwise empty. If the user picked a part of the plan, `part` states how much of the plan has run.
    """

    folder: Path
    trials: int
    done: int
    failed: Mapping[str, tuple[str, ...]]
    blocked: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    quarantined: Mapping[str, str] = field(default_factory=dict)
    stopped: str = ""
    part: str = ""

    @property
    def complete(self) -> bool:
        """Whether all trials of the run are complete, apart from those that no testbed can run."""
        return not self.failed


@dataclass(frozen=True)
class CampaignRun:
    """One run of a campaign by one controller. `testbeds` has the plan as resolved for each testbed.

    Only the `picked` trials run. With `fail_fast`, the first failed trial ends the run. With `force`, leases
    that other campaigns have on the hosts are taken over.
    """

    folder: Path
    plan: Plan
    sources: Mapping[str, bytes]
    picked: Picked
    testbeds: Sequence[TestbedSetup]
    catalogue: Catalogue
    emit: Emit
    fail_fast: bool = False
    force: bool = False
    disk: DiskReserve = field(default_factory=DiskReserve, init=False)
    emit_lock: AbstractContextManager[bool] = field(default_factory=Lock, init=False)

    def run(self, provenance: Mapping[str, object]) -> Summary:
        """Run every open trial, and return the summary; `provenance` is the content of provenance.json.

        A trial that fails does not end the run. On Ctrl-C, the running trial is ended and its hosts are
        restored, and then KeyboardInterrupt is raised. Raises CampaignError if the campaign's folder cannot
        be written.
        """
        try:
            with Journal(self.folder / JOURNAL) as journal, ExitStack() as stack:
                runners = [TestbedRunner(self._context(journal, setup), setup) for setup in self.testbeds]
                for runner in runners:
                    setup = runner.setup
                    request = LeaseRequest(self.folder, setup.testbed, force=self.force)
                    leases = Leases(setup.sessions, request, journal.note, self.emit)
                    hosts = [host for host in setup.sessions.hosts if host not in setup.survey.unreachable]
                    stack.enter_context(leases.held(hosts, runner.context.unrestored_hosts))
                self.disk.hold(self.folder)
                try:
                    return self._run(journal, runners, provenance)
                except KeyboardInterrupt:
                    journal.note("campaign-interrupted")
                    raise
        except OSError as error:
            raise CampaignError(f"{self.folder}: cannot be written: {error}") from error
        finally:
            self.disk.release()

    def _run(
        self, journal: Journal, runners: Sequence[TestbedRunner], provenance: Mapping[str, object]
    ) -> Summary:
        note, state = journal.note, fold(journal.entries)
        began = "campaign-resumed" if state.controllers else "campaign-started"
        note(began, trials=len(self.plan.trials), **this_node())
        note_pick(self.picked, state, note)
        for runner in runners:
            runner.hosts.restore_all(runner.setup.survey.unreachable)
            runner.recovery.close_trials(state)
        # The plan is replaced after recovery, because recovery may need trials of the previous plan.
        replace_plan(self.folder, self.plan, self.sources, note, fold(journal.entries))
        point_latest(self.folder)
        blocked = self._blocked_everywhere()
        if blocked:
            trials_by_reasons: dict[tuple[str, ...], list[str]] = {}
            for id_, reasons in blocked.items():
                trials_by_reasons.setdefault(tuple(reasons), []).append(id_)
            groups = [{"reasons": why, "trials": ids} for why, ids in trials_by_reasons.items()]
            note("trials-blocked", blocked=groups)
        current = fold(journal.entries)
        self._record_provenance(runners, provenance, current)
        note("files-recorded", files=digests(self.folder, *OWN_FILES))
        queue = self._open_trials(runners, blocked, current)
        try:
            if len(runners) == 1:
                runners[0].run_trials(queue)
            else:
                jobs = [(runner.context, partial(runner.run_trials, queue)) for runner in runners]
                run_in_threads(jobs, queue.stop)
        finally:
            for runner in runners:
                number = state.controllers + 1
                name = f"{number}-{runner.setup.testbed}" if len(runners) > 1 else str(number)
                runner.restore_boot_settings(self.folder / "commands" / name)
        if queue.stopped:
            note("campaign-stopped", reason=queue.stopped)
            self.emit(Event("campaign-stopped", {"reason": queue.stopped}))
        state = fold(journal.entries)
        left = self._left_again(current, state)
        summary = summarise(self.folder, self.plan, state, self.picked.ids, left)
        note("campaign-finished", completed=state.number_done(self.plan.ids), failed=sorted(summary.failed))
        return summary

    def _left_again(self, before: CampaignState, now: CampaignState) -> Collection[str]:
        """Return the trials that this run was to run again, but did not start."""
        ids = self.picked.ids if self.picked.again else ()
        return frozenset(id_ for id_ in ids if now.trials[id_].attempts == before.trials[id_].attempts)

    def _record_provenance(
        self, runners: Sequence[TestbedRunner], provenance: Mapping[str, object], state: CampaignState
    ) -> None:
        """Write provenance.json. If any trial is complete already, report hosts whose kernel has changed."""
        before, done = read_json(self.folder / PROVENANCE), state.number_done(self.plan.ids)
        contexts = {runner.setup.testbed: runner.context for runner in runners}
        for (testbed, host), old, new in changed_kernels(before, provenance) if done else ():
            values = {"host": host, "kernel_before": old, "kernel_now": new, "completed": done}
            contexts[testbed].report("kernel-changed", **values)
        # Quarantined hosts, such as hosts that do not answer, have no session any more.
        hosts = {
            runner.setup.testbed: (*runner.context.sessions.hosts, *runner.hosts.quarantined)
            for runner in runners
        }
        write_json(self.folder / PROVENANCE, keep_absent_hosts(provenance, before, hosts))

    def _context(self, journal: Journal, setup: TestbedSetup) -> CampaignContext:
        """Return the context of a testbed.

        If the campaign has several testbeds, each event carries the name of its testbed.
        """
        note: Note = journal.note
        emit, shared = self.emit, len(testbeds_of(self.plan.testbed)) > 1

        def emit_marked(event: Event) -> None:
            with self.emit_lock:  # each testbed runs in a thread of its own
                self.emit(Event(event.name, {**event.values, "testbed": setup.testbed}))

        if shared:
            note, emit = partial(note, testbed=setup.testbed), emit_marked
        return CampaignContext(
            self.folder,
            setup.sessions,
            self.catalogue,
            note,
            emit,
            policy=setup.policy,
            machines=setup.machines,
            boots=dict(setup.survey.boots),
            testbed=setup.testbed,
            shared=shared,
            disk=self.disk,
            entries=lambda: journal.entries,
        )

    def _blocked_everywhere(self) -> Mapping[str, Sequence[str]]:
        """Return the ids of trials that no testbed can run, each with the reasons from all testbeds."""
        first, *others = [setup.blocked for setup in self.testbeds]
        ids = set(first).intersection(*others)
        return {id_: [why for one in (first, *others) for why in one[id_]] for id_ in first if id_ in ids}

    def _open_trials(
        self, runners: Sequence[TestbedRunner], blocked: Collection[str], state: CampaignState
    ) -> TrialQueue:
        """Return the queue of trials that are open and not blocked, and emit an event with their number."""
        trials = _trials_with(self.picked.ids, self.plan)
        again = self.picked.again
        open_trials = [trial for trial in trials if again or is_open(state.trials.get(trial.id))]
        runnable = [trial for trial in open_trials if trial.id not in blocked]
        values = {
            "asked": len(trials) - len(open_trials) + len(runnable),
            "open": len(runnable),
            "seconds": [trial.resolved.duration_s for trial in runnable],
            "testbeds": len(runners),
        }
        self.emit(Event("trials-open", values))
        attempts = {id_: trial.attempts for id_, trial in state.trials.items()}
        can_run = {runner.setup.testbed: runner.can_run for runner in runners}
        return TrialQueue(runnable, can_run, attempts, fail_fast=self.fail_fast)


def note_pick(picked: Picked, state: CampaignState, note: Note) -> None:
    """Record in the journal the trials to which a run is limited, unless the journal has them already.

    A run of the whole plan is recorded with an empty list. Nothing is recorded if trials are run again
    (`picked.again`), because an earlier run has already run them.
    """
    text, ids = picked.text, picked.ids if picked.text else ()
    known = text in state.picks and state.picked.issuperset(ids) if text else not state.picks
    if not known and not picked.again:
        note("trials-picked", pick=text, trials=list(ids))


def _trials_with(ids: Iterable[str], plan: Plan) -> Sequence[Trial]:
    wanted = set(ids)
    return [trial for trial in plan.trials if trial.id in wanted]


def adopt_plan(folder: Path, plan: Plan, sources: Mapping[str, bytes], picked: Picked) -> Summary:
    """Store a changed plan without open trials in its campaign, contact no host, and return the summary."""
    with Journal(folder / JOURNAL) as journal:
        state = fold(journal.entries)
        note_pick(picked, state, journal.note)
        if replace_plan(folder, plan, sources, journal.note, state):
            journal.note("files-recorded", files=digests(folder, *OWN_FILES))
            journal.note("campaign-finished", completed=state.number_done(plan.ids), failed=[])
        state = fold(journal.entries)
    point_latest(folder)
    return summarise(folder, plan, state, picked.ids)


def summarise(
    folder: Path, plan: Plan, state: CampaignState, ids: Iterable[str], left: Collection[str] = ()
) -> Summary:
    """Return the summary of a campaign: how many trials in `ids` are complete, and why the others are not.

    Trials in `left` should have run again but did not; they count as missing, even if they are complete.
    """
    trials = _trials_with(ids, plan)
    missing = [trial for trial in trials if trial.id in left or is_open(state.trials.get(trial.id))]
    blocked = {trial.id: state.blocked[trial.id] for trial in missing if trial.id in state.blocked}
    needs = needed_hosts_by_trial(plan) if state.quarantined else {}
    failed: dict[str, tuple[str, ...]] = {}
    for id_ in (trial.id for trial in missing if trial.id not in blocked):
        attempted = state.trials.get(id_)
        if attempted and id_ not in left:
            failed[id_] = attempted.reasons
        else:
            lost = sorted(needs.get(id_, frozenset()) & state.quarantined.keys())
            failed[id_] = (f"not run: it needs {', '.join(lost)}",) if lost else ()
    return Summary(
        folder=folder,
        trials=len(trials),
        done=len(trials) - len(missing),
        failed=failed,
        blocked=blocked,
        quarantined=state.quarantined,
        stopped=state.stopped,
        part=state.part_text(plan.ids),
    )
