"""Implement `merge` and `run --shards`, which merge the campaigns of shards into one."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

from samovar.campaign import (
    Merged,
    Summary,
    latest_shards,
    merge_shards,
    read_plan,
    read_state,
    run_command,
    summarise,
)
from samovar.campaign.journal import CampaignState
from samovar.cli.program import command, open_controller, show
from samovar.cli.project import Request
from samovar.cli.shard_runs import run_shards
from samovar.plan import Plan
from samovar.units import counted


@command
def run_in_shards(root: Path, request: Request, shards: int, on: str, options: Sequence[str]) -> int:
    """Run all shards of an experiment at the same time, and merge them."""
    folders = run_shards(root, request, shards, on, options)
    return show_merged(merge_shards(folders, open_controller(root).project.results))


@command
def merge(root: Path, shards: Sequence[str], force: bool = False) -> int:
    """Merge campaigns of shards; the exit code is 1 if trials of the merged campaign are left to run."""
    project = open_controller(root).project
    if len(shards) == 1 and (project.results / shards[0]).is_dir() and "/" not in shards[0]:
        folders = latest_shards(shards[0], project.results)
    else:
        folders = [project.campaign(one) for one in shards]
    return show_merged(merge_shards(folders, project.results, force))


def show_merged(merged: Merged) -> int:
    """Show a merged campaign; return 1 if trials of it are left to run, otherwise 0."""
    plan, state = read_plan(merged.folder), read_state(merged.folder)
    summary = summarise(merged.folder, plan, state)
    show(merged_lines(merged, plan, state, summary))
    return int(not summary.complete)


def merged_lines(merged: Merged, plan: Plan, state: CampaignState, summary: Summary) -> Iterator[str]:
    """Yield the lines to print after `merge`: trials by node, the campaign, how to run missing trials."""
    nodes = Counter(trial.node or "unknown" for trial in state.trials.values())
    yield from (f"{node}: {counted(number, 'trial')}" for node, number in sorted(nodes.items()))
    yield f"{summary.done} of {counted(summary.trials, 'trial')} done: {merged.folder}"
    if not merged.is_new:
        yield "these shards had been merged before"
    if summary.failed:
        yield f"to run the missing trials: {run_command(plan)}"
