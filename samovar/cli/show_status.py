"""Show a campaign: its status at any time, and what commands print about it when they end.

The status has a grid of the trials, running and failed trials, and the time remaining. The grid has a row per
treatment and a symbol per replicate. The grid can be read without colour.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean

from samovar.campaign import (
    Merged,
    Restored,
    Summary,
    expected_overhead_s,
    read_plan,
    read_state,
    run_command,
    testbeds_of,
)
from samovar.campaign.collection import Verification
from samovar.campaign.journal import JOURNAL, CampaignState, is_open, is_running
from samovar.cli.show_plan import override_lines
from samovar.cli.text import columns, first_lines
from samovar.plan import MeasuredTimes, Plan, Trial, parallel_s
from samovar.units import clock, counted, format_bytes

OPEN, RUNNING, BLOCKED, LATER = "open", "running", "cannot run", "not picked"
FAILED, INTERRUPTED = "failed", "interrupted"
SYMBOLS: Mapping[str, str] = {
    "valid": "✓",
    "suspect": "?",
    "invalid": "!",
    FAILED: "✗",
    INTERRUPTED: "/",
    RUNNING: "»",
    OPEN: "·",
    BLOCKED: "−",
    LATER: "○",
}
"""The symbol of each state of a trial in the grid. The legend below the grid explains the symbols in it."""
GAP = "  "
MOST_FAILURES = 40
"""At most this many failed trials are listed after a run."""
FEW_TRIALS, FEW_REASONS, MOST_FINDINGS = 10, 5, 1000
SHOWN_BY_ALL = " (--all shows them)"
ASSUMED_OVERHEAD_S = MeasuredTimes().overhead.seconds
"""The overhead in seconds that is assumed for each trial until the overhead of one has been measured."""


def remaining_s(
    traffic_s: Collection[float],
    overheads_s: Collection[float],
    testbeds: int,
    assumed_s: float = ASSUMED_OVERHEAD_S,
) -> float:
    """Return the time in seconds that the open trials take, with `testbeds` testbeds in parallel.

    `traffic_s` has the traffic time of each open trial. The overhead of a trial is the mean of `overheads_s`,
    or `assumed_s` if `overheads_s` is empty. The result is at least the time of the longest trial.
    """
    if not traffic_s:
        return 0.0
    overhead_s = fmean(overheads_s) if overheads_s else assumed_s
    work_s = sum(traffic_s) + len(traffic_s) * overhead_s
    return parallel_s(work_s, len(traffic_s), testbeds, max(traffic_s) + overhead_s)


def place_text(testbed: str, attempt: int = 1) -> str:
    """Return a trial's testbed and attempt as text; leave out an empty testbed and the first attempt."""
    return (f" on {testbed}" if testbed else "") + (f", attempt {attempt}" if attempt > 1 else "")


Grid = Mapping[str, Sequence[str]]
"""The grid of a campaign: maps each treatment's label to the states of its trials, by replicate."""


def trial_states(plan: Plan, state: CampaignState, is_running: bool = False) -> dict[str, str]:
    """Map the id of each trial of a plan to the trial's state, which is a key of SYMBOLS.

    `is_running` states whether a process is running the campaign. If not, trials in flight were interrupted.
    """
    states = {}
    for id_ in plan.ids:
        trial = state.trials.get(id_)
        if state.is_left_for_later(id_):
            states[id_] = LATER
        elif id_ in state.blocked and is_open(trial):
            states[id_] = BLOCKED
        elif trial is None:
            states[id_] = OPEN
        elif trial.status == "in flight":
            states[id_] = RUNNING if is_running else INTERRUPTED
        else:
            states[id_] = trial.result
    return states


def grid_of(plan: Plan, states: Mapping[str, str]) -> Grid:
    """Return the grid of a plan. A treatment's label has the levels of the factors that vary in its part."""
    varying = {
        part.name: [name for name, levels in part.factors.items() if len(levels) > 1] for part in plan.parts
    }
    found: dict[str, list[tuple[int, str]]] = {}
    for trial in plan.trials:
        part = "" if trial.part == "main" else trial.part
        levels = (trial.treatment.get(name, "") for name in varying[trial.part])
        label = " ".join(filter(None, (part, *levels))) or "all"
        found.setdefault(label, []).append((trial.replicate, states[trial.id]))
    return {label: [state for _, state in sorted(cells)] for label, cells in found.items()}


def grid_lines(grid: Grid, width: int, height: int) -> Iterator[str]:
    """Yield the lines of text that show a grid; its rows are arranged in as many columns as fit.

    If not all rows fit, rows in which all trials are valid are left out first.
    """
    if not grid:
        return
    label_width = max(map(len, grid))
    cells = [f"{label:<{label_width}} {_symbols(states, width // 2)}" for label, states in grid.items()]
    across = max(1, (width + len(GAP)) // (max(map(len, cells)) + len(GAP)))
    room = across * max(1, height - 2)
    shown = list(range(len(cells)))
    if len(cells) > room:
        all_valid = [set(states) == {"valid"} for states in grid.values()]
        shown = sorted(sorted(shown, key=all_valid.__getitem__)[:room])
    down = -(-len(shown) // across)
    rows = [[cells[index] for index in shown[start::down]] for start in range(down)]
    yield from columns(row + [""] * (across - len(row)) for row in rows)
    if len(shown) < len(cells):
        yield f"… {len(cells) - len(shown):,} more treatments"
    yield legend(state for states in grid.values() for state in states)


def _symbols(states: Sequence[str], room: int) -> str:
    """Return one symbol per replicate, or the count of each symbol if `room` is too narrow for all."""
    if len(states) <= max(room, 8):
        return "".join(SYMBOLS[state] for state in states)
    counts = Counter(states)
    return " ".join(f"{counts[state]}{symbol}" for state, symbol in SYMBOLS.items() if counts[state])


def legend(states: Iterable[str]) -> str:
    """Return the legend of a grid: each symbol that occurs, with its meaning and number of trials."""
    counts = Counter(states)
    shown = (f"{mark} {counts[state]:,} {state}" for state, mark in SYMBOLS.items() if counts[state])
    return GAP.join(shown)


@dataclass(frozen=True)
class CampaignStatus:
    """A snapshot of a campaign: its folder, plan and journal, and whether a process is running it."""

    folder: Path
    plan: Plan
    state: CampaignState
    now_s: float
    is_running: bool = False

    @classmethod
    def read(cls, folder: Path) -> CampaignStatus:
        """Return the status of a campaign from its journal. Another process may be running the campaign."""
        running = is_running(folder / JOURNAL)
        return cls(folder, read_plan(folder), read_state(folder), time.time(), running)

    @property
    def open(self) -> list[Trial]:
        """The open trials that can run, without those that were left for a later run."""
        state = self.state
        return [
            trial
            for trial in self.plan.trials
            if is_open(state.trials.get(trial.id))
            and trial.id not in state.blocked
            and not state.is_left_for_later(trial.id)
        ]

    @property
    def remaining_s(self) -> float:
        """The estimated seconds until all trials are done, from the mean overhead of the trials so far."""
        measured = [t.overhead_s for t in self.state.with_status("completed") if t.overhead_s is not None]
        overheads_s = measured or [expected_overhead_s(self.folder, self.plan)]
        testbeds = max(1, len(testbeds_of(self.plan.testbed)) - len(self.state.idle))
        return remaining_s([trial.resolved.duration_s for trial in self.open], overheads_s, testbeds)


def status_lines(status: CampaignStatus, width: int, every_trial: bool = False) -> Iterator[str]:
    """Yield the lines of `status`."""
    plan, state = status.plan, status.state
    yield f"{plan.experiment} ({plan.profile or 'full'}) on {plan.testbed} in {status.folder}"
    yield from override_lines(plan)
    if state.last_event:
        killed = "" if state.ended else ": the controller was killed"
        activity = "running" if status.is_running else f"not running{killed}"
        yield f"{activity}; last event {state.last_event}, {_ago(status.now_s - state.t_last_s)}"
    else:
        yield "not started"
    yield from [f"stopped: {state.stopped}"] if state.stopped else []
    yield ""
    states = trial_states(plan, state, status.is_running)
    yield from grid_lines(grid_of(plan, states), width, 10**6 if every_trial else 30)
    for trial in state.with_status("in flight"):
        phase = f"phase {list(trial.phases)[-1]} done" if trial.phases else "no phase done yet"
        mark, word = ("»", "running") if status.is_running else ("/", "cut off")
        started = f"started {_ago(status.now_s - trial.t_start_s)}"
        yield f"{mark} {trial.id}{place_text(trial.testbed)}: {word}, {started}, {phase}"
    yield from [""] if every_trial else []
    yield from (_every_trial_lines if every_trial else _not_valid_lines)(state, states)
    yield from (f"✗ {host}: quarantined: {why}" for host, why in state.quarantined.items())
    yield ""
    yield from _count_lines(status)


def _ago(seconds: float) -> str:
    """Return a past time as text. The time is in the future if the clock of the controller was ahead."""
    return f"{clock(seconds)} ago" if seconds >= 0 else f"{clock(-seconds)} ahead of this computer's clock"


def _not_valid_lines(state: CampaignState, states: Mapping[str, str]) -> Iterator[str]:
    """Yield the trials of the plan that are not valid, worst first, with a line for each reason.

    Of trials beyond the first ten, only the reasons are listed, with the number of trials for each.
    """
    known = [trial for id_, trial in state.trials.items() if id_ in states and trial.reasons]
    ended = [trial for trial in known if trial.status != "in flight"]
    ended.sort(key=lambda trial: not is_open(trial))
    for trial in ended[:FEW_TRIALS]:
        word = trial.result
        attempts = f" after {counted(trial.attempts, 'attempt')}" if trial.attempts > 1 else ""
        yield f"{SYMBOLS[word]} {trial.id}: {word}{attempts}"
        yield from first_lines(_reason_lines(trial.reasons), FEW_REASONS, SHOWN_BY_ALL)
    if len(ended) > FEW_TRIALS:
        yield f"  … {counted(len(ended) - FEW_TRIALS, 'more trial')}{SHOWN_BY_ALL}:"
        subjects = (reason.partition(": ")[0] for trial in ended[FEW_TRIALS:] for reason in trial.reasons)
        counts = Counter(" ".join(one.split()) for one in subjects).most_common()
        yield from first_lines([f"      {number:,} × {one}" for one, number in counts], FEW_REASONS)


def _reason_lines(reasons: Sequence[str]) -> list[str]:
    return [f"    {' '.join(reason.split())}" for reason in reasons]


def _every_trial_lines(state: CampaignState, states: Mapping[str, str]) -> Iterator[str]:
    """For each trial of the plan, yield a row with its state and overhead, and a row per reason, if any."""
    trials = state.trials
    several_nodes = len({trial.node for trial in trials.values()}) > 1
    rows, reasons = [], []
    for id_, word in states.items():
        trial = trials.get(id_)
        overhead_s = trial.overhead_s if trial else None
        overhead = "" if overhead_s is None else f"{overhead_s:.1f} s overhead"
        node = [trial.node if trial else ""] if several_nodes else []
        rows.append([SYMBOLS[word], id_, word, overhead, *node])
        reasons.append(state.blocked[id_] if word == BLOCKED else trial.reasons if trial else ())
    for row, why in zip(columns(rows), reasons, strict=True):
        yield row
        yield from _reason_lines(why)


def _count_lines(status: CampaignStatus) -> Iterator[str]:
    plan, trials, left = status.plan, status.state.trials, status.open
    time_left = f", about {clock(status.remaining_s)} remaining" if left else ""
    yield f"{status.state.number_done(plan.ids)} of {len(plan.trials)} trials done{time_left}"
    blocked = sum(id_ in status.state.blocked and is_open(trials.get(id_)) for id_ in plan.ids)
    if blocked:
        yield f"{blocked} cannot run on {plan.testbed}"
    yield from part_lines(status.state.part_text(plan.ids), plan)
    unused = sum(not is_open(trials[id_]) for id_ in trials.keys() - set(plan.ids))
    if unused:
        yield f"{counted(unused, 'result')} of earlier plans kept but not analysed"
    if left and not status.is_running:
        yield f"to run the missing trials: {run_command(plan)}"


def status_json(status: CampaignStatus) -> Mapping[str, object]:
    """Return the value that `status --json` prints."""
    plan, state = status.plan, status.state
    words = trial_states(plan, state, status.is_running).values()
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
        "again": run_command(plan) if status.open else None,
        "picked": list(state.picks),
        "trials": [_trial_json(trial, word, state) for trial, word in zip(plan.trials, words, strict=True)],
    }


def _trial_json(trial: Trial, word: str, state: CampaignState) -> Mapping[str, object]:
    known = state.trials.get(trial.id)
    values = {key: getattr(trial, key) for key in ("id", "part", "treatment", "replicate")}
    values["state"] = word
    if known is None:
        return values
    keys = ("attempts", "reasons", "t_start_s", "seconds", "overhead_s", "phases")
    places = {key: getattr(known, key) or None for key in ("testbed", "node")}
    return {**values, **{key: getattr(known, key) for key in keys}, **places}


def verification_lines(folder: Path, found: Verification) -> Iterator[str]:
    """Yield the lines of `verify`: one for each difference, and a summary with the number of files read."""
    yield from first_lines([f"✗ {finding}" for finding in found.findings], MOST_FINDINGS)
    yield from (f"? {note}" for note in found.notes)
    result = f"✓ {folder}: unchanged since it was recorded"
    if found.findings:
        result = f"✗ {folder}: {counted(len(found.findings), 'difference')}"
    read = f"{counted(found.files, 'file')}, {format_bytes(found.size_bytes, 3)}, in {found.seconds:.1f} s"
    yield f"{result} ({read})"


def summary_lines(summary: Summary, same_command: str) -> Iterator[str]:
    """Yield the lines to print after a run: results, failures, and the command that runs missing trials."""
    yield f"{summary.done} of {counted(summary.trials, 'trial')} done: {summary.folder}"
    if summary.stopped:
        yield f"stopped: {summary.stopped}"
    yield from (f"  ✗ {host} is quarantined: {why}" for host, why in summary.quarantined.items())
    failed = [f"  ✗ {id_}: {'; '.join(why) or 'not run'}" for id_, why in summary.failed.items()]
    yield from first_lines(failed, MOST_FAILURES)
    if summary.failed:
        yield f"to run the missing trials: {same_command}"
    for reasons, number in Counter(summary.blocked.values()).items():
        yield f"  − {counted(number, 'trial')} cannot run: {'; '.join(reasons)}"


def complete_lines(summary: Summary, experiment: str, again: str) -> Iterator[str]:
    """Yield the lines to print for a complete campaign: its report, and the command to measure it again."""
    picked = "picked " if summary.part else ""
    are = "is" if summary.trials == 1 else "are"
    yield f"all {counted(summary.trials, f'{picked}trial')} {are} done: {summary.folder}"
    pdf = summary.folder / "bundle" / f"{experiment}.pdf"
    yield f"report: {pdf}" if pdf.is_file() else "no report yet: run `fab analyse`, then `fab report`"
    yield f"to measure everything again: {again}"


def part_lines(part: str, plan: Plan) -> Iterator[str]:
    """Yield a line on how much of a plan has run, and how to run the rest; nothing if `part` is empty."""
    if part and plan.shard:
        yield f"{part}; the others are in other shards; to merge all: fab merge {plan.experiment}"
    elif part:
        yield f"{part}; to run the others: {run_command(plan)}"


def restored_lines(testbed: str, restored: Restored) -> Iterator[str]:
    """Yield the lines to print after `restore`: the restored hosts by campaign, and the problems."""
    for campaign, hosts in restored.hosts.items():
        if hosts:
            yield f"✓ {campaign}: {', '.join(hosts)} restored"
    yield from (f"✗ {problem}" for problem in restored.problems)
    if not restored.hosts and not restored.problems:
        where = f"{testbed}: " if testbed else ""
        yield f"{where}nothing to restore; no interrupted campaign has left a host changed"


def merged_lines(merged: Merged, plan: Plan, state: CampaignState, summary: Summary) -> Iterator[str]:
    """Yield the lines to print after `merge`: trials by node, the campaign, how to run missing trials."""
    nodes = Counter(trial.node or "unknown" for trial in state.trials.values())
    yield from (f"{node}: {counted(number, 'trial')}" for node, number in sorted(nodes.items()))
    yield f"{summary.done} of {counted(summary.trials, 'trial')} done: {merged.folder}"
    if not merged.is_new:
        yield "these shards had been merged before"
    if summary.failed:
        yield f"to run the missing trials: {run_command(plan)}"
