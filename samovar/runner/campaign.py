"""A campaign at work: the loop over what the plan asks for and the journal lacks."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from samovar.collect import digests, sealed
from samovar.command import Catalogue
from samovar.command.scripts import TrialScripts
from samovar.errors import TestbedError
from samovar.events import Emit, Event
from samovar.journal import NAME as JOURNAL
from samovar.journal import CampaignState, Journal, fold, is_open
from samovar.plan import Plan, Trial
from samovar.plan.compare import Comparison, compare
from samovar.runner.bench import Bench, Note, Recorder, write_json
from samovar.runner.folder import (
    point_latest,
    read_plan,
    replacement_of,
    standings,
)
from samovar.runner.lasting import Lasting
from samovar.runner.paths import Paths
from samovar.runner.policy import AS_ALWAYS, Policy
from samovar.runner.reboot import Reboots
from samovar.runner.recovery import Recovery, find_trial
from samovar.runner.trial import Carried, Finished, TrialRun
from samovar.testbed import Machine, Sessions

OWN_FILES = ("plan.json", "provenance.json", "*.yaml", "definition/**/*", "plans/**/*", "calibration/*")
"""What a campaign has beside its trials and keeps as it is, so that the journal has checksums of it."""


@dataclass(frozen=True)
class Summary:
    """What a campaign has come to."""

    folder: Path
    asked: int
    done: int
    failed: Mapping[str, tuple[str, ...]]
    blocked: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

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
    how hosts boot and are switched, `policy` by what trials are judged.
    """

    plan: Plan
    sources: Mapping[str, bytes]
    blocked: Mapping[str, Sequence[str]] = field(default_factory=dict)
    machines: Mapping[str, Machine] = field(default_factory=dict)
    policy: Policy = AS_ALWAYS


class CampaignRun:
    """One controller at work on one campaign."""

    def __init__(
        self, folder: Path, intent: Intent, sessions: Sessions, catalogue: Catalogue, emit: Emit
    ) -> None:
        self.folder, self.emit = folder, emit
        self.plan, self.intent = intent.plan, intent
        self._sessions, self._catalogue = sessions, catalogue

    def run(self, provenance: Mapping[str, object]) -> Summary:
        """Take the plan as the campaign's, and run every trial that is still open, each on its own merits.

        Raises KeyboardInterrupt again after the running trial was broken off, restored and written down.
        """
        with Journal(self.folder / JOURNAL) as journal:
            bench = self._bench(journal)
            state = fold(journal.entries)
            bench.note(
                "campaign-resumed" if state.controllers else "campaign-started", trials=len(self.plan.trials)
            )
            lasting = self._lasting(bench)
            recovery = Recovery(bench, partial(self._scripts, bench))
            recovery.hosts(state, lasting)
            recovery.trials(state)
            self._take(bench, journal)
            write_json(self.folder / "provenance.json", provenance)
            bench.note("files-recorded", files=digests(self.folder, *OWN_FILES))
            try:
                self._run_open(bench, journal, Carried(lasting, Paths(bench)))
            except KeyboardInterrupt:
                bench.note("campaign-interrupted")
                raise
            finally:
                self._finish_lasting(bench, lasting, state.controllers + 1)
            return self._close(bench, fold(journal.entries))

    def _bench(self, journal: Journal) -> Bench:
        note = _noting(journal)
        who = (self.folder.name, self.folder, self._sessions, self._catalogue)
        return Bench(*who, note, self.emit, policy=self.intent.policy)

    def _lasting(self, bench: Bench) -> Lasting:
        systems = {name: host.system for name, host in self.plan.trials[0].resolved.hosts.items()}
        return Lasting(bench, Reboots(bench, systems, self.intent.machines), partial(self._scripts, bench))

    def _scripts(self, bench: Bench, id_: str) -> TrialScripts:
        known = (trial for trial in self.plan.trials if trial.id == id_)
        trial = next(known, None) or find_trial(self.folder, id_)
        return TrialScripts(trial, self._catalogue, bench.campaign)

    def _finish_lasting(self, bench: Bench, lasting: Lasting, number: int) -> None:
        """Put back what outlasts trials; what cannot be stays in the journal for whoever goes on."""
        if not lasting.hosts:
            return
        recorder = Recorder(self.folder / "commands" / str(number))
        for session in self._sessions:
            session.record = recorder
        try:
            lasting.finish()
        except TestbedError as error:
            self.emit(Event("warning", {"text": str(error)}))

    def _take(self, bench: Bench, journal: Journal) -> None:
        """Take the plan after recovery, which may need an earlier one; then say what cannot run."""
        take(self.folder, self.plan, self.intent.sources, bench.note, fold(journal.entries))
        point_latest(self.folder)
        groups: dict[tuple[str, ...], list[str]] = {}
        for id_, reasons in self.intent.blocked.items():
            groups.setdefault(tuple(reasons), []).append(id_)
        if groups:
            blocked = [{"reasons": why, "trials": ids} for why, ids in groups.items()]
            bench.note("trials-blocked", blocked=blocked)

    def _run_open(self, bench: Bench, journal: Journal, carried: Carried) -> None:
        state = fold(journal.entries)
        opened = [trial for trial in self.plan.trials if is_open(state.trials.get(trial.id))]
        todo = [trial for trial in opened if trial.id not in self.intent.blocked]
        values = {
            "asked": len(self.plan.trials) - len(opened) + len(todo),
            "open": len(todo),
            "seconds": [_expected_s(t) for t in todo],
        }
        self.emit(Event("trials-open", values))
        for trial in todo:
            known = state.trials.get(trial.id)
            self._run_again(bench, trial, (known.attempts if known else 0) + 1, carried)

    def _run_again(self, bench: Bench, trial: Trial, attempt: int, carried: Carried) -> None:
        """Run a trial until it is not invalid, as often as the policy allows, unless its path is refused."""
        refusal = carried.paths.refusal(trial.resolved)
        if refusal:
            self._tell(bench, "trial-refused", id=trial.id, reasons=list(refusal))
            return
        last = attempt + bench.policy.retries
        for number in range(attempt, last + 1):
            finished = self._run_one(bench, trial, number, carried)
            if finished.verdict != "invalid" or carried.paths.refusal(trial.resolved):
                return
            if number < last:
                values = {"attempt": number + 1, "of": last, "seconds": _expected_s(trial)}
                self._tell(bench, "trial-again", id=trial.id, **values, reasons=list(finished.reasons))

    def _tell(self, bench: Bench, event: str, **values: object) -> None:
        bench.note(event, **values)
        self.emit(Event(event, values))

    def _run_one(self, bench: Bench, trial: Trial, attempt: int, carried: Carried) -> Finished:
        invalid = bench.trials / trial.id
        if invalid.exists():
            self._put_aside(bench, invalid)
        bench.note("trial-started", id=trial.id, attempt=attempt)
        self.emit(Event("trial-started", {"id": trial.id, "attempt": attempt, "seconds": _expected_s(trial)}))
        finish = partial(self._finish, bench, trial)
        try:
            finished = TrialRun(bench, trial, attempt, carried).run()
        except KeyboardInterrupt:
            finish(Finished("interrupted", "invalid", ("interrupted by the user",), 0.0))
            raise
        finish(finished)
        return finished

    def _put_aside(self, bench: Bench, folder: Path) -> None:
        Recovery(bench, partial(self._scripts, bench)).put_aside(folder)

    def _finish(self, bench: Bench, trial: Trial, finished: Finished) -> None:
        values = {
            "id": trial.id,
            "outcome": finished.outcome,
            "verdict": finished.verdict,
            "reasons": list(finished.reasons),
            "overhead_s": finished.overhead_s,
        }
        bench.note("trial-finished", **values, **sealed(bench.trials / trial.id))
        self.emit(Event("trial-finished", {**values, "phases": dict(finished.phases)}))
        half = bench.in_progress / trial.id
        if half.exists():
            self._put_aside(bench, half)

    def _close(self, bench: Bench, state: CampaignState) -> Summary:
        summary = summarise(self.folder, self.plan, state)
        bench.note("campaign-finished", completed=summary.done, failed=sorted(summary.failed))
        return summary


def summarise(folder: Path, plan: Plan, state: CampaignState) -> Summary:
    """Count what is there and name what is not, with the reasons of the last attempt."""
    known = {trial.id: state.trials.get(trial.id) for trial in plan.trials}
    missing = {id_: standing for id_, standing in known.items() if is_open(standing)}
    blocked = {id_: state.blocked[id_] for id_ in missing if id_ in state.blocked}
    failed = {
        id_: standing.reasons if standing else () for id_, standing in missing.items() if id_ not in blocked
    }
    return Summary(folder, len(known), len(known) - len(missing), failed, blocked)


def _expected_s(trial: Trial) -> float:
    return trial.resolved.duration_s
