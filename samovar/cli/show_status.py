"""Where a campaign stands, by its journal alone: also while another process runs it."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean

from samovar.campaign.collection import Verification
from samovar.campaign.folder import testbeds_of
from samovar.campaign.journal import CampaignState, Entry, TrialState, is_open
from samovar.cli.live_state import FIRST_GUESS_S, left_s
from samovar.cli.trial_grid import BLOCKED, GLYPHS, matrix_lines, rows_of, standing, words_of
from samovar.cli.wording import clock, columns, counted, set_lines
from samovar.plan import Plan, Trial
from samovar.units import format_bytes

FEW = 10
FINDINGS = 1000
ENDS = ("campaign-finished", "campaign-interrupted")


@dataclass(frozen=True)
class Asked:
    """A campaign that is looked at: its folder, plan and state, who holds it, and when that is."""

    folder: Path
    plan: Plan
    state: CampaignState
    now_s: float
    is_held: bool = False

    @property
    def again(self) -> str:
        """The command that runs what is missing."""
        plan = self.plan
        words = ["fab", "run", plan.experiment]
        words += ["--profile", plan.profile] if plan.profile else []
        words += ["--testbed", plan.testbed]
        for key, value in plan.overrides.items():
            words += ["--set", f"{key}={value}"]
        return shlex.join(words)

    @property
    def open(self) -> list[Trial]:
        """The trials that are still to run and can."""
        trials = self.state.trials
        return [t for t in self.plan.trials if is_open(trials.get(t.id)) and t.id not in self.state.blocked]

    @property
    def left_s(self) -> float:
        """Seconds until all is done: planned traffic and what trials have cost beyond it so far."""
        costs = [t.overhead_s for t in self.state.with_status("completed") if t.overhead_s is not None]
        known = fmean(costs) if costs else FIRST_GUESS_S
        return left_s([trial.resolved.duration_s for trial in self.open], known, self.at_work)

    @property
    def at_work(self) -> int:
        """How many testbeds share what is open: those of the plan that have not run out of trials."""
        return max(1, len(testbeds_of(self.plan.testbed)) - len(self.state.idle))


def status_lines(asked: Asked, width: int, every: bool = False) -> Iterator[str]:
    """Show how a campaign stands: the grid of its trials, what runs, what failed and why, what is left."""
    plan, state = asked.plan, asked.state
    yield f"{plan.experiment} ({plan.profile or 'full'}) on {plan.testbed} in {asked.folder}"
    yield from set_lines(plan.overrides)
    yield _heard(asked)
    yield ""
    yield from matrix_lines(rows_of(plan, words_of(plan, state)), width, 10**6 if every else 30)
    yield from _running(asked)
    yield from _failed(asked)
    if every:
        yield ""
        yield from columns(_row(trial, state) for trial in plan.trials)
    yield ""
    yield from _counts(asked)


def _heard(asked: Asked) -> str:
    state = asked.state
    if not state.last_event:
        return "not started"
    age = f"last event {state.last_event}, {clock(asked.now_s - state.t_last_s)} ago"
    if asked.is_held:
        return f"a controller is at work; {age}"
    ended = (
        "no controller is at work" if state.last_event in ENDS else "no controller is at work: it was cut off"
    )
    return f"{ended}; {age}"


def _running(asked: Asked) -> Iterator[str]:
    for trial in asked.state.with_status("in flight"):
        phase = list(trial.phases)[-1:] or ["its begin"]
        where = f" on {trial.testbed}" if trial.testbed else ""
        word = "runs" if asked.is_held else "was cut off"
        since = clock(asked.now_s - trial.t_start_s)
        yield f"» {trial.id}{where}: {word}, begun {since} ago, done with {phase[0]}"


def _failed(asked: Asked) -> Iterator[str]:
    asked_for = {trial.id for trial in asked.plan.trials}
    trials = [t for t in asked.state.trials.values() if t.id in asked_for and _is_failed(t)]
    for trial in trials[:FEW]:
        attempts = f" after {counted(trial.attempts, 'attempt')}" if trial.attempts > 1 else ""
        yield f"✗ {trial.id}: {standing(trial)}{attempts}: {' '.join('; '.join(trial.reasons).split())}"
    if len(trials) > FEW:
        yield f"  … {len(trials) - FEW:,} more (--all shows them)"
    for host, why in asked.state.quarantined.items():
        yield f"✗ {host}: not used any more: {why}"


def _is_failed(trial: TrialState) -> bool:
    return trial.status != "in flight" and is_open(trial)


def _counts(asked: Asked) -> Iterator[str]:
    plan, state, left = asked.plan, asked.state, asked.open
    opened = sum(is_open(state.trials.get(trial.id)) for trial in plan.trials)
    yield f"{len(plan.trials) - opened} of {len(plan.trials)} trials done" + (
        f", about {clock(asked.left_s)} left" if left else ""
    )
    if opened > len(left):
        yield f"{opened - len(left)} cannot run on {plan.testbed}"
    known = {trial.id for trial in plan.trials}
    unasked = sum(not is_open(trial) for id_, trial in state.trials.items() if id_ not in known)
    if unasked:
        yield f"{counted(unasked, 'result')} of earlier plans kept, not analysed"
    if left and not asked.is_held:
        yield f"run what is missing: {asked.again}"


def _row(trial: Trial, state: CampaignState) -> tuple[str, str, str, str]:
    known = state.trials.get(trial.id)
    word = standing(known, trial.id in state.blocked)
    if word == BLOCKED:
        return GLYPHS[word], trial.id, word, "; ".join(state.blocked[trial.id])
    beyond = f"{known.overhead_s:.1f} s beyond traffic" if known and known.overhead_s is not None else ""
    return GLYPHS.get(word, "·"), trial.id, word, "; ".join(known.reasons if known else ()) or beyond


def status_json(asked: Asked) -> Mapping[str, object]:
    """Return for machines how a campaign stands."""
    plan, state = asked.plan, asked.state
    return {
        "schema": 1,
        "folder": str(asked.folder),
        "experiment": plan.experiment,
        "profile": plan.profile,
        "testbed": plan.testbed,
        "controller_at_work": asked.is_held,
        "last_event": state.last_event,
        "t_last_s": state.t_last_s,
        "stopped": state.stopped or None,
        "quarantined": dict(state.quarantined),
        "unrestored": sorted(state.unrestored),
        "trials_left": len(asked.open),
        "seconds_left": round(asked.left_s, 1) if asked.open else 0.0,
        "again": asked.again if asked.open else None,
        "trials": [_trial_json(trial, state) for trial in plan.trials],
    }


def _trial_json(trial: Trial, state: CampaignState) -> Mapping[str, object]:
    known = state.trials.get(trial.id)
    about = {
        "id": trial.id,
        "part": trial.part,
        "treatment": dict(trial.treatment),
        "replicate": trial.replicate,
    }
    if known is None:
        return {**about, "state": standing(known, trial.id in state.blocked)}
    return {
        **about,
        "state": standing(known, trial.id in state.blocked),
        "attempts": known.attempts,
        "reasons": list(known.reasons),
        "t_start_s": known.t_start_s,
        "seconds": known.seconds,
        "overhead_s": known.overhead_s,
        "testbed": known.testbed or None,
        "phases": dict(known.phases),
    }


def owner_lines(entries: Iterable[Entry]) -> Iterator[str]:
    """Say which hosts were taken over from another campaign since the last controller began."""
    since: list[str] = []
    for entry in entries:
        if entry.event in ("campaign-started", "campaign-resumed"):
            since = []
        if entry.event == "lease-taken":
            since.append(f"? {entry.values['host']}: taken over from {entry.values['owner']}")
    yield from since


def verified_lines(folder: Path, found: Verification) -> Sequence[str]:
    """Say what came of verifying a campaign: a line per finding, then what was read."""
    lines = [f"✗ {finding}" for finding in found.findings[:FINDINGS]]
    if len(found.findings) > FINDINGS:
        lines.append(f"  … {len(found.findings) - FINDINGS:,} more")
    lines += [f"? {note}" for note in found.notes]
    read = f"{counted(found.files, 'file')}, {format_bytes(found.size_bytes, 3)}, in {found.seconds:.1f} s"
    end = f"{counted(len(found.findings), 'finding')}" if found.findings else "as it was written"
    return [*lines, f"{'✗' if found.findings else '✓'} {folder}: {end} ({read})"]
