"""Plans, campaigns and menus as lines of text."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from samovar.journal import CampaignState
from samovar.plan import Cost, Plan, Trial
from samovar.runner.campaign import Summary, is_open
from samovar.units import format_bytes

MARKS: Mapping[str, str] = {"valid": "✓", "suspect": "?", "invalid": "✗", "": "·"}


def clock(seconds: float) -> str:
    """Write a length of time as people read it: 0:42, 12:05, 3:20:00."""
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02d}:{rest:02d}" if hours else f"{minutes}:{rest:02d}"


def columns(rows: Iterable[Sequence[str]]) -> Iterator[str]:
    """Align rows of cells in columns, two blanks apart."""
    table = [tuple(row) for row in rows]
    if not table:
        return
    widths = [max(len(row[i]) for row in table) for i in range(len(table[0]))]
    for row in table:
        yield "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()


def plan_lines(plan: Plan, cost: Cost, blocked: Mapping[str, Sequence[str]]) -> Iterator[str]:
    """Show a plan: the trials in order, what they cost, what cannot run, what a supervisor would say."""
    yield f"{plan.experiment} ({plan.profile or 'full'}) on {plan.testbed}: {plan.title}"
    yield ""
    yield from columns(
        (str(number), trial.id, clock(trial.resolved.duration_s), "; ".join(blocked.get(trial.id, ())))
        for number, trial in enumerate(plan.trials, 1)
    )
    yield ""
    yield from cost_lines(cost)
    runnable = sum(trial.id not in blocked for trial in plan.trials)
    if runnable < len(plan.trials):
        yield f"{len(plan.trials) - runnable} of {len(plan.trials)} trials cannot run on {plan.testbed}"
    yield from (f"warning: {warning}" for warning in plan.warnings)


def cost_lines(cost: Cost) -> Iterator[str]:
    """Show what a plan costs."""
    yield (
        f"{cost.trials} trials, {cost.hours:.2f} h (traffic {clock(cost.traffic_s)}, "
        f"beyond traffic {clock(cost.overhead_s)}), {cost.reboots} reboots"
    )
    yield (
        f"{format_bytes(cost.host_bytes, 3)} on a host at a time, {format_bytes(cost.controller_bytes, 3)} here"
    )


def plan_json(plan: Plan, cost: Cost, blocked: Mapping[str, Sequence[str]]) -> Mapping[str, object]:
    """Return a plan for machines: plan.json's keys, the cost, and the reasons of trials that cannot run."""
    costs = {
        "trials": cost.trials,
        "hours": cost.hours,
        "traffic_s": cost.traffic_s,
        "overhead_s": cost.overhead_s,
        "host_bytes": cost.host_bytes,
        "controller_bytes": cost.controller_bytes,
        "reboots": cost.reboots,
    }
    return {**plan.as_json(), "cost": costs, "cannot_run": {key: list(why) for key, why in blocked.items()}}


def status_lines(folder: Path, plan: Plan, state: CampaignState) -> Iterator[str]:
    """Show where a campaign stands: each trial, then the counts."""
    yield f"{plan.experiment} ({plan.profile or 'full'}) in {folder}: {state.last_event or 'not started'}"
    yield ""
    yield from columns(_trial_row(trial, state) for trial in plan.trials)
    yield ""
    opened = [trial for trial in plan.trials if is_open(state.trials.get(trial.id))]
    left_s = sum(trial.resolved.duration_s for trial in opened)
    done = len(plan.trials) - len(opened)
    yield f"{done} of {len(plan.trials)} trials done" + (f", about {clock(left_s)} left" if opened else "")


def _trial_row(trial: Trial, state: CampaignState) -> tuple[str, str, str, str]:
    known = state.trials.get(trial.id)
    if known is None:
        return "·", trial.id, "open", ""
    mark = MARKS.get(known.verdict, "·") if known.standing == "completed" else "✗"
    beyond = f"{known.overhead_s:.1f} s beyond traffic" if known.overhead_s is not None else ""
    return mark, trial.id, known.standing, "; ".join(known.reasons) or beyond


def summary_lines(summary: Summary, again: str) -> Iterator[str]:
    """Show how a campaign ended and, where something is missing, the command that tries again."""
    yield f"{summary.done} of {summary.asked} trials done: {summary.folder}"
    for trial, reasons in summary.failed.items():
        yield f"  ✗ {trial}: {'; '.join(reasons) or 'not run'}"
    if summary.failed:
        yield f"run what is missing: {again}"
