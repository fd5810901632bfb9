"""A campaign: a folder, a plan, a journal, and the loop over what the plan asks for and the journal lacks."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

from samovar.collect import set_aside
from samovar.command import Catalogue
from samovar.command.scripts import TrialScripts
from samovar.errors import CampaignError, TestbedError
from samovar.events import Emit, Event
from samovar.journal import NAME as JOURNAL
from samovar.journal import CampaignState, Journal, StateRead, TrialState, fold, read_journal
from samovar.plan import Plan, Trial
from samovar.runner.bench import Bench, write_json
from samovar.runner.state import changed, parse_state
from samovar.runner.trial import STEP_DEADLINE_S, Finished, TrialRun
from samovar.testbed import Sessions

LATEST = "latest"


@dataclass(frozen=True)
class Summary:
    """What a campaign has come to."""

    folder: Path
    asked: int
    done: int
    failed: Mapping[str, tuple[str, ...]]

    @property
    def whole(self) -> bool:
        """Whether every trial of the plan is there."""
        return self.done == self.asked


def open_campaign(plan: Plan, results: Path, sources: Mapping[str, bytes], emit: Emit) -> Path:
    """Find the unfinished campaign of this very plan, or begin a new one; return its folder.

    `sources` are the definition files to keep with it, by the name that they get.
    """
    home = results / plan.experiment
    for folder in sorted(home.glob("*/"), reverse=True):
        if folder.name != LATEST and _goes_on(folder, plan):
            emit(Event("campaign-resumed", {"folder": str(folder)}))
            return folder
    return _begin(plan, home, sources, emit)


def _goes_on(folder: Path, plan: Plan) -> bool:
    file = folder / "plan.json"
    if not file.is_file() or file.read_bytes() != plan.to_json():
        return False
    journal = folder / JOURNAL
    state = fold(read_journal(journal)) if journal.exists() else fold(())
    return any(is_open(state.trials.get(trial.id)) for trial in plan.trials)


def is_open(standing: TrialState | None) -> bool:
    """Tell whether a trial is still to be run: never completed, or completed with an invalid verdict."""
    return standing is None or standing.standing != "completed" or standing.verdict == "invalid"


def _begin(plan: Plan, home: Path, sources: Mapping[str, bytes], emit: Emit) -> Path:
    folder = home / f"{plan.profile or 'full'}-{datetime.now(UTC).astimezone():%Y%m%d-%H%M%S}"
    try:
        (folder / "trials").mkdir(parents=True)
    except FileExistsError:
        raise CampaignError(f"{folder}: exists already; start again in a second") from None
    for name, content in sources.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(content)
    part = folder / "plan.json.part"
    part.write_bytes(plan.to_json())
    part.rename(folder / "plan.json")
    _point_latest(home, folder)
    emit(Event("campaign-created", {"folder": str(folder)}))
    return folder


def _point_latest(home: Path, folder: Path) -> None:
    fresh = home / f".{LATEST}-{folder.name}"
    fresh.symlink_to(folder.name)
    fresh.replace(home / LATEST)


def read_plan(folder: Path) -> Plan:
    """Read the plan of a campaign; raises CampaignError when the folder has none."""
    file = folder / "plan.json"
    if not file.is_file():
        raise CampaignError(
            f"{folder}: no campaign: it has no plan.json; accepted: a folder that `fab run` made"
        )
    return Plan.from_json(file.read_bytes())


class CampaignRun:
    """One controller at work on one campaign."""

    def __init__(self, folder: Path, sessions: Sessions, catalogue: Catalogue, emit: Emit) -> None:
        self.folder, self.emit = folder, emit
        self.plan = read_plan(folder)
        self._sessions, self._catalogue = sessions, catalogue

    def run(self, provenance: Mapping[str, object]) -> Summary:
        """Run every trial that is still open, each on its own merits.

        Raises KeyboardInterrupt again after the running trial was broken off, restored and written down.
        """
        with Journal(self.folder / JOURNAL) as journal:
            bench = self._bench(journal)
            state = fold(journal.entries)
            bench.note(
                "campaign-resumed" if state.controllers else "campaign-started", trials=len(self.plan.trials)
            )
            write_json(self.folder / "provenance.json", provenance)
            self._recover(bench, state)
            try:
                self._run_open(bench, journal)
            except KeyboardInterrupt:
                bench.note("campaign-interrupted")
                raise
            return self._close(bench, fold(journal.entries))

    def _bench(self, journal: Journal) -> Bench:
        def note(event: str, **values: object) -> None:
            journal.append(event, round(time.time(), 6), **values)

        return Bench(self.folder.name, self.folder, self._sessions, self._catalogue, note, self.emit)

    def _recover(self, bench: Bench, state: CampaignState) -> None:
        """Undo what an earlier controller left: running programs, changed states, half-written trials."""
        for host in self._sessions.hosts:
            for read in reversed(state.unrestored.get(host, ())):
                self._restore(bench, read)
        for folder in sorted(bench.in_progress.glob("*/")):
            self._put_aside(bench, folder)
        for trial in state.standing("in flight"):
            self._adopt(bench, trial.id)

    def _adopt(self, bench: Bench, id_: str) -> None:
        """Take a trial as finished that was whole on disk when its controller died before saying so."""
        manifest = bench.trials / id_ / "manifest.json"
        if manifest.is_file():
            seen = json.loads(manifest.read_bytes())
            keys = ("id", "outcome", "verdict", "reasons", "overhead_s")
            bench.note("trial-finished", **{key: seen[key] for key in keys})

    def _restore(self, bench: Bench, read: StateRead) -> None:
        scripts = TrialScripts(self._trial(read.id), self._catalogue, bench.campaign)
        session = self._sessions[read.host]
        session.run(scripts.sweep(read.host), step="sweep", deadline_s=STEP_DEADLINE_S)
        script = scripts.restore(read.host, read.state)
        done = session.run(script, step="restore", deadline_s=STEP_DEADLINE_S)
        differences = [str(difference) for difference in changed(read.state, parse_state(done.text))]
        if differences:
            bench.note("restore-failed", id=read.id, host=read.host, differences=differences)
            text = "\n".join(differences)
            raise TestbedError(
                f"{read.host}: its state from before trial {read.id} cannot be restored:\n{text}"
            )
        bench.note("state-restored", id=read.id, host=read.host)
        self.emit(Event("host-recovered", {"host": read.host, "trial": read.id}))

    def _put_aside(self, bench: Bench, folder: Path) -> None:
        aside = set_aside(folder, self.folder / "set-aside")
        bench.note("trial-set-aside", id=folder.name, folder=str(aside.relative_to(self.folder)))

    def _run_open(self, bench: Bench, journal: Journal) -> None:
        state = fold(journal.entries)
        todo = [trial for trial in self.plan.trials if is_open(state.trials.get(trial.id))]
        values = {
            "asked": len(self.plan.trials),
            "open": len(todo),
            "seconds": [_expected_s(t) for t in todo],
        }
        self.emit(Event("trials-open", values))
        for trial in todo:
            known = state.trials.get(trial.id)
            self._run_one(bench, trial, (known.attempts if known else 0) + 1)

    def _run_one(self, bench: Bench, trial: Trial, attempt: int) -> Finished:
        invalid = bench.trials / trial.id
        if invalid.exists():
            self._put_aside(bench, invalid)
        bench.note("trial-started", id=trial.id, attempt=attempt)
        self.emit(Event("trial-started", {"id": trial.id, "attempt": attempt, "seconds": _expected_s(trial)}))
        finish = partial(self._finish, bench, trial)
        try:
            finished = TrialRun(bench, trial, attempt).run()
        except KeyboardInterrupt:
            finish(Finished("interrupted", "invalid", ("interrupted by the user",), 0.0))
            raise
        finish(finished)
        return finished

    def _finish(self, bench: Bench, trial: Trial, finished: Finished) -> None:
        values = {
            "id": trial.id,
            "outcome": finished.outcome,
            "verdict": finished.verdict,
            "reasons": list(finished.reasons),
            "overhead_s": finished.overhead_s,
        }
        bench.note("trial-finished", **values)
        self.emit(Event("trial-finished", {**values, "phases": dict(finished.phases)}))
        half = bench.in_progress / trial.id
        if half.exists():
            self._put_aside(bench, half)

    def _close(self, bench: Bench, state: CampaignState) -> Summary:
        summary = summarise(self.folder, self.plan, state)
        bench.note("campaign-finished", completed=summary.done, failed=sorted(summary.failed))
        return summary

    def _trial(self, id_: str) -> Trial:
        for trial in self.plan.trials:
            if trial.id == id_:
                return trial
        raise CampaignError(f"{self.folder}: the journal names a trial that the plan has not: {id_}")


def summarise(folder: Path, plan: Plan, state: CampaignState) -> Summary:
    """Count what is there and name what is not, with the reasons of the last attempt."""
    known = {trial.id: state.trials.get(trial.id) for trial in plan.trials}
    missing = {id_: standing for id_, standing in known.items() if is_open(standing)}
    reasons = {id_: standing.reasons if standing else () for id_, standing in missing.items()}
    return Summary(folder, len(known), len(known) - len(missing), reasons)


def _expected_s(trial: Trial) -> float:
    return trial.resolved.duration_s
