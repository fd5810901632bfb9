"""The status of a campaign: a grid of its trials, what runs, what failed, the time remaining.

The grid has a row per treatment and a character per replicate; it is readable without colour.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean

from samovar.campaign import run_command, testbeds_of
from samovar.campaign.collection import Verification
from samovar.campaign.journal import CampaignState, Entry, TrialState, is_open
from samovar.cli.show_plan import override_lines
from samovar.cli.text import clock, columns, counted
from samovar.plan import Plan, Trial, parallel_s
from samovar.units import format_bytes

OPEN, RUNNING, BLOCKED, FAILED = "open", "running", "cannot run", "failed"
SYMBOLS: Mapping[str, str] = {
    "valid": "✓",
    "suspect": "?",
    "invalid": "!",
    FAILED: "✗",
    "interrupted": "/",
    RUNNING: "»",
    OPEN: "·",
    BLOCKED: "−",
}
"""The symbol of each state of a trial; the legend below a grid names those that occur."""
GAP = "  "
FEW_FAILURES, MOST_FINDINGS = 10, 1000
ENDS = ("campaign-finished", "campaign-interrupted")
ASSUMED_OVERHEAD_S = 3.0
"""Time of a trial beyond its traffic, until one has been measured."""


def remaining_s(traffic_s: Collection[float], overhead_s: float, testbeds: int) -> float:
    """Return in seconds how long the open trials take on several testbeds; at least as long as the longest.

    `traffic_s` has the traffic time of each open trial, `overhead_s` is added to each.
    """
    if not traffic_s:
        return 0.0
    work_s = sum(traffic_s) + len(traffic_s) * overhead_s
    return parallel_s(work_s, len(traffic_s), testbeds, max(traffic_s) + overhead_s)


# --- the grid


@dataclass(frozen=True)
class GridRow:
    """A treatment and the states of its trials in the order of replicates."""

    label: str
    states: tuple[str, ...]

    @property
    def all_valid(self) -> bool:
        """Whether every trial is done and valid."""
        return set(self.states) <= {"valid"}


def trial_state(trial: TrialState | None, blocked: bool = False) -> str:
    """Return the state of a trial, a key of SYMBOLS."""
    if blocked and is_open(trial):
        return BLOCKED
    if trial is None:
        return OPEN
    if trial.status == "in flight":
        return RUNNING
    return (trial.verdict or "valid") if trial.status == "completed" else trial.status


def trial_states(plan: Plan, state: CampaignState) -> dict[str, str]:
    """Return the state of each trial of a plan that is not open, by id."""
    states = {t.id: trial_state(state.trials.get(t.id), t.id in state.blocked) for t in plan.trials}
    return {id_: word for id_, word in states.items() if word != OPEN}


def grid_rows(plan: Plan, states: Mapping[str, str]) -> list[GridRow]:
    """Return a row per treatment, labelled with the levels of the factors that vary in its part."""
    levels: dict[str, dict[str, set[str]]] = {}
    for trial in plan.trials:
        for name, level in trial.treatment.items():
            levels.setdefault(trial.part, {}).setdefault(name, set()).add(level)
    found: dict[tuple[str, str], list[tuple[int, str]]] = {}
    for trial in plan.trials:
        varying = (level for name, level in trial.treatment.items() if len(levels[trial.part][name]) > 1)
        part = "" if trial.part == "main" else trial.part
        key = (trial.part, " ".join(filter(None, (part, *varying))) or "all")
        found.setdefault(key, []).append((trial.replicate, states.get(trial.id, OPEN)))
    return [GridRow(label, tuple(one for _, one in sorted(cells))) for (_, label), cells in found.items()]


def grid_lines(rows: Sequence[GridRow], width: int, height: int) -> Iterator[str]:
    """Draw rows in as many columns as fit; if there are too many, rows that are not all valid come first."""
    if not rows:
        return
    label_width = max(len(row.label) for row in rows)
    cells = [f"{row.label:<{label_width}} {_symbols(row.states, width // 2)}" for row in rows]
    across = max(1, (width + len(GAP)) // (max(map(len, cells)) + len(GAP)))
    room = across * max(1, height - 2)
    shown = list(range(len(rows)))
    if len(rows) > room:
        shown = sorted(sorted(shown, key=lambda index: rows[index].all_valid)[:room])
    down = -(-len(shown) // across)
    grid = [[cells[index] for index in shown[start::down]] for start in range(down)]
    yield from columns(row + [""] * (across - len(row)) for row in grid)
    if len(shown) < len(rows):
        yield f"… {len(rows) - len(shown):,} more treatments"
    yield legend(state for row in rows for state in row.states)


def _symbols(states: Sequence[str], room: int) -> str:
    """Return a symbol per replicate, or the count of each symbol if there are more than `room`."""
    if len(states) <= max(room, 8):
        return "".join(SYMBOLS.get(state, "·") for state in states)
    return " ".join(f"{number}{SYMBOLS.get(state, '·')}" for state, number in _count_states(states))


def legend(states: Iterable[str]) -> str:
    """Return the symbols with their meanings and the number of trials of each."""
    return GAP.join(
        f"{SYMBOLS.get(state, '·')} {number:,} {state}" for state, number in _count_states(states)
    )


def _count_states(states: Iterable[str]) -> list[tuple[str, int]]:
    counts = Counter(states)
    return [(state, counts[state]) for state in SYMBOLS if counts[state]]


# --- fab status


@dataclass(frozen=True)
class CampaignStatus:
    """A campaign at one time: its folder, plan and state, and whether a process is running it."""

    folder: Path
    plan: Plan
    state: CampaignState
    now_s: float
    is_running: bool = False

    @property
    def open(self) -> list[Trial]:
        """The trials that are still to run and that the testbed can run."""
        trials = self.state.trials
        return [t for t in self.plan.trials if is_open(trials.get(t.id)) and t.id not in self.state.blocked]

    @property
    def remaining_s(self) -> float:
        """Seconds until all trials are done: planned traffic, and the mean overhead of trials so far."""
        measured = [t.overhead_s for t in self.state.with_status("completed") if t.overhead_s is not None]
        overhead_s = fmean(measured) if measured else ASSUMED_OVERHEAD_S
        testbeds = max(1, len(testbeds_of(self.plan.testbed)) - len(self.state.idle))
        return remaining_s([trial.resolved.duration_s for trial in self.open], overhead_s, testbeds)


def status_lines(status: CampaignStatus, width: int, every_trial: bool = False) -> Iterator[str]:
    """Show the status of a campaign."""
    plan, state = status.plan, status.state
    yield f"{plan.experiment} ({plan.profile or 'full'}) on {plan.testbed} in {status.folder}"
    yield from override_lines(plan)
    yield _activity(status)
    yield ""
    rows = grid_rows(plan, trial_states(plan, state))
    yield from grid_lines(rows, width, 10**6 if every_trial else 30)
    yield from _running_lines(status)
    yield from _failure_lines(status)
    if every_trial:
        yield ""
        yield from columns(_trial_row(trial, state) for trial in plan.trials)
    yield ""
    yield from _count_lines(status)


def _activity(status: CampaignStatus) -> str:
    state = status.state
    if not state.last_event:
        return "not started"
    last = f"last event {state.last_event}, {clock(status.now_s - state.t_last_s)} ago"
    if status.is_running:
        return f"running; {last}"
    return (
        f"{'not running' if state.last_event in ENDS else 'not running: the controller was killed'}; {last}"
    )


def _running_lines(status: CampaignStatus) -> Iterator[str]:
    for trial in status.state.with_status("in flight"):
        phase = f"phase {list(trial.phases)[-1]} done" if trial.phases else "no phase done yet"
        testbed = f" on {trial.testbed}" if trial.testbed else ""
        state = "running" if status.is_running else "cut off"
        yield f"» {trial.id}{testbed}: {state}, started {clock(status.now_s - trial.t_start_s)} ago, {phase}"


def _failure_lines(status: CampaignStatus) -> Iterator[str]:
    planned = {trial.id for trial in status.plan.trials}
    trials = [
        trial
        for trial in status.state.trials.values()
        if trial.id in planned and trial.status != "in flight" and is_open(trial)
    ]
    for trial in trials[:FEW_FAILURES]:
        attempts = f" after {counted(trial.attempts, 'attempt')}" if trial.attempts > 1 else ""
        reasons = " ".join("; ".join(trial.reasons).split())
        yield f"✗ {trial.id}: {trial_state(trial)}{attempts}: {reasons}"
    if len(trials) > FEW_FAILURES:
        yield f"  … {len(trials) - FEW_FAILURES:,} more (--all shows them)"
    for host, why in status.state.quarantined.items():
        yield f"✗ {host}: quarantined: {why}"


def _count_lines(status: CampaignStatus) -> Iterator[str]:
    plan, state, left = status.plan, status.state, status.open
    not_done = sum(is_open(state.trials.get(trial.id)) for trial in plan.trials)
    time_left = f", about {clock(status.remaining_s)} remaining" if left else ""
    yield f"{len(plan.trials) - not_done} of {len(plan.trials)} trials done{time_left}"
    if not_done > len(left):
        yield f"{not_done - len(left)} cannot run on {plan.testbed}"
    planned = {trial.id for trial in plan.trials}
    unused = sum(not is_open(trial) for id_, trial in state.trials.items() if id_ not in planned)
    if unused:
        yield f"{counted(unused, 'result')} of earlier plans kept but not analysed"
    if left and not status.is_running:
        yield f"to run the missing trials: {run_command(status.plan)}"


def _trial_row(trial: Trial, state: CampaignState) -> tuple[str, str, str, str]:
    known = state.trials.get(trial.id)
    word = trial_state(known, trial.id in state.blocked)
    if word == BLOCKED:
        return SYMBOLS[word], trial.id, word, "; ".join(state.blocked[trial.id])
    overhead = f"{known.overhead_s:.1f} s overhead" if known and known.overhead_s is not None else ""
    return SYMBOLS.get(word, "·"), trial.id, word, "; ".join(known.reasons if known else ()) or overhead


def status_json(status: CampaignStatus) -> Mapping[str, object]:
    """Return the status of a campaign for programs."""
    plan, state = status.plan, status.state
    return {
        "schema": 1,
        "folder": str(status.folder),
        "experiment": plan.experiment,
        "profile": plan.profile,
        "testbed": plan.testbed,
        "controller_at_work": status.is_running,
        "last_event": state.last_event,
        "t_last_s": state.t_last_s,
        "stopped": state.stopped or None,
        "quarantined": dict(state.quarantined),
        "unrestored": sorted(state.unrestored),
        "trials_left": len(status.open),
        "seconds_left": round(status.remaining_s, 1) if status.open else 0.0,
        "again": run_command(status.plan) if status.open else None,
        "trials": [_trial_json(trial, state) for trial in plan.trials],
    }


def _trial_json(trial: Trial, state: CampaignState) -> Mapping[str, object]:
    known = state.trials.get(trial.id)
    planned = {
        "id": trial.id,
        "part": trial.part,
        "treatment": dict(trial.treatment),
        "replicate": trial.replicate,
        "state": trial_state(known, trial.id in state.blocked),
    }
    if known is None:
        return planned
    return {
        **planned,
        "attempts": known.attempts,
        "reasons": list(known.reasons),
        "t_start_s": known.t_start_s,
        "seconds": known.seconds,
        "overhead_s": known.overhead_s,
        "testbed": known.testbed or None,
        "phases": dict(known.phases),
    }


def lease_lines(entries: Iterable[Entry]) -> Iterator[str]:
    """Show which hosts the last run took over from another campaign."""
    since: list[str] = []
    for entry in entries:
        if entry.event in ("campaign-started", "campaign-resumed"):
            since = []
        if entry.event == "lease-taken":
            since.append(f"? {entry.values['host']}: taken over from {entry.values['owner']}")
    yield from since


def verification_lines(folder: Path, found: Verification) -> Sequence[str]:
    """Show what `fab verify` found: a line per difference, then what was read."""
    lines = [f"✗ {finding}" for finding in found.findings[:MOST_FINDINGS]]
    if len(found.findings) > MOST_FINDINGS:
        lines.append(f"  … {len(found.findings) - MOST_FINDINGS:,} more")
    lines += [f"? {note}" for note in found.notes]
    read = f"{counted(found.files, 'file')}, {format_bytes(found.size_bytes, 3)}, in {found.seconds:.1f} s"
    result = (
        counted(len(found.findings), "difference") if found.findings else "unchanged since it was recorded"
    )
    return [*lines, f"{'✗' if found.findings else '✓'} {folder}: {result} ({read})"]
