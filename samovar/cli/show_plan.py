"""A plan as text, JSON and CSV: design, run order, campaign to resume, cost, missing capabilities."""

from __future__ import annotations

import csv
import io
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby

from samovar.campaign import ResumePoint
from samovar.campaign.availability import Finding
from samovar.cli.text import clock, columns, counted, folded
from samovar.plan import Changed, Comparison, Cost, PartPlan, Plan, Trial
from samovar.units import format_bytes

SCREEN, FEW = 30, 12
"""A plan of more than SCREEN trials is shown by its first FEW trials."""
FEW_CHANGES, FEW_NAMES = 8, 3
STRIP = 100
"""The run order of a part is drawn if its trials and blocks need no more characters than this."""
LEVEL_DIGITS = "123456789abcdefghijklmnopqrstuvwxyz"
ESTIMATE_DIGITS = 2
LONG_H = 48


@dataclass(frozen=True)
class PlanPreview:
    """All that is known of a plan before it runs.

    `cost_remaining` is of the trials that are still to run, `cost_possible` of those of them that the
    testbed can run; `cost_by_testbed` is what remains if one of several testbeds ran everything.
    `not_queried` says why the testbed was not queried for its capabilities; empty if it was.
    """

    plan: Plan
    resume: ResumePoint
    cost: Cost
    cost_remaining: Cost
    findings: Sequence[Finding] = ()
    blocked: Mapping[str, Sequence[str]] = field(default_factory=dict)
    not_queried: str = ""
    cost_by_testbed: Mapping[str, Cost] = field(default_factory=dict)
    cost_possible: Cost | None = None
    changed_recipes: Sequence[str] = ()

    @property
    def nothing_can_run(self) -> bool:
        """Whether every trial is blocked, or something is missing that all trials need."""
        needed_by_all = any(finding.stops and not finding.trials for finding in self.findings)
        return needed_by_all or len(self.blocked) == len(self.plan.trials)

    def state(self, id_: str) -> str:
        """Return `cannot run`, `stands` for a trial that is done, or why a trial is still to run."""
        if id_ in self.blocked:
            return "cannot run"
        return self.resume.comparison.runs.get(id_, "stands")


def plan_lines(preview: PlanPreview, every_trial: bool = False, width: int | None = None) -> Iterator[str]:
    """Show a plan; lines are folded at the width of the terminal if there is one."""
    yield from folded(_plan_lines(preview, every_trial, width), width)


def _plan_lines(preview: PlanPreview, every_trial: bool, width: int | None) -> Iterator[str]:
    plan = preview.plan
    title = f": {plan.title}" if plan.title else ""
    yield f"{plan.experiment} ({plan.profile or 'full'}) on {plan.testbed}{title}"
    yield from override_lines(plan)
    yield ""
    yield from _design_lines(plan, width)
    yield from _trial_table(preview, every_trial)
    yield ""
    yield from _campaign_lines(preview.resume, preview.changed_recipes)
    yield ""
    yield from _cost_lines(preview)
    yield from _capability_lines(preview)
    yield from _warning_lines(plan)


def override_lines(plan: Plan) -> Iterator[str]:
    """Show the values set on the command line, in one line; nothing if there are none."""
    if plan.overrides:
        yield "set: " + ", ".join(f"{key}={value}" for key, value in plan.overrides.items())


# --- design and order


def _design_lines(plan: Plan, width: int | None) -> Iterator[str]:
    """Show factors, levels and number of trials of each part, and the run order of a short one."""
    trials = Counter(trial.part for trial in plan.trials)
    for part in plan.parts:
        yield f"{part.name}: {part.title}" if part.title else part.name
        yield from columns((f"  {name}", _levels(levels)) for name, levels in part.factors.items())
        number = trials[part.name]
        treatments = counted(number // part.replicates, "treatment")
        yield f"  {treatments} x {counted(part.replicates, 'replicate')} = {counted(number, 'trial')}"
        yield from _order_strip(plan, part, number, width)
        yield ""
    seed = f", seed {plan.seed}" if plan.order != "sequential" else ""
    yield f"{counted(len(plan.trials), 'trial')}, order {plan.order}{seed}"


def _levels(levels: Sequence[str]) -> str:
    if len(levels) <= FEW:
        return ", ".join(levels)
    first, last = levels[: FEW // 2], levels[-2:]
    return f"{', '.join(first)}, … {len(levels) - FEW // 2 - 2} more …, {', '.join(last)}"


def _order_strip(plan: Plan, part: PartPlan, number: int, width: int | None) -> Iterator[str]:
    """Draw the run order of each varying factor if it is short: a character per trial, for its level."""
    varying = {name: levels for name, levels in part.factors.items() if 1 < len(levels) <= len(LEVEL_DIGITS)}
    if not varying or number > STRIP:
        return
    trials = [trial for trial in plan.trials if trial.part == part.name]
    blocks = [list(block) for _, block in groupby(trials, key=lambda trial: trial.block)]
    room = min(STRIP, width - max(map(len, varying)) - 4) if width else STRIP
    if len(trials) + len(blocks) <= room:
        by_block = " by block" if len(blocks) > 1 else ""
        yield f"  run order{by_block} (a digit per trial: the number of its level):"
        yield from columns((f"  {name}", _digits(blocks, name, levels)) for name, levels in varying.items())


def _digits(blocks: Iterable[Sequence[Trial]], factor: str, levels: Sequence[str]) -> str:
    digits = dict(zip(levels, LEVEL_DIGITS, strict=False))
    return " ".join("".join(digits.get(trial.treatment[factor], "+") for trial in block) for block in blocks)


def _trial_table(preview: PlanPreview, every_trial: bool) -> Iterator[str]:
    """Show the trials in run order; only the first ones of a long plan."""
    trials, blocked = preview.plan.trials, preview.blocked
    shown = len(trials) if every_trial or len(trials) <= SCREEN else FEW
    yield from columns(
        (
            f"  {number}",
            trial.id,
            clock(trial.resolved.duration_s),
            _state_text(preview, trial.id),
            "; ".join(blocked.get(trial.id, ())),
        )
        for number, trial in enumerate(trials[:shown], 1)
    )
    if shown < len(trials):
        yield f"  … {len(trials) - shown:,} more (--all shows them)"


def _state_text(preview: PlanPreview, id_: str) -> str:
    if preview.resume.folder is None and id_ not in preview.blocked:
        return ""
    state = preview.state(id_)
    return {"stands": "done", "stale": "changed"}.get(state, state)


# --- the campaign that the plan resumes

REASONS_TO_RUN: Mapping[str, str] = {
    "new": "new",
    "stale": "changed since they ran",
    "failed": "failed before",
    "interrupted": "interrupted before",
    "invalid": "invalid before",
}


def _campaign_lines(resume: ResumePoint, changed_recipes: Sequence[str]) -> Iterator[str]:
    """Show what a plan changes in the campaign that it resumes: trials done, to run, and no longer used."""
    comparison = resume.comparison
    if resume.folder is None:
        yield f"new campaign: {counted(len(comparison.runs), 'trial')} to run"
        return
    yield f"resumes campaign {resume.folder}"
    yield f"  = {counted(len(comparison.stands), 'trial')} done"
    if changed_recipes:
        yield f"      recipes changed since then: {_few(changed_recipes)}; `--new` measures everything again"
    for reason, number in comparison.counts.items():
        yield f"  + {counted(number, 'trial')} to run: {REASONS_TO_RUN.get(reason, reason)}"
    yield from _outdated_lines(comparison.stale)
    yield from _unused_lines(comparison)


def _outdated_lines(changes: Sequence[Changed]) -> Iterator[str]:
    """Show which results no longer match the experiment, and what changed; results stay on disk."""
    for one in changes[:FEW_CHANGES]:
        results = counted(len(one.results), "result")
        yield f"  ~ {results} outdated by a change, kept but not analysed: {_few(one.results)}"
        yield from (f"      {change}" for change in one.changes[:FEW_CHANGES])
        if len(one.changes) > FEW_CHANGES:
            yield f"      … {len(one.changes) - FEW_CHANGES} more"
    if len(changes) > FEW_CHANGES:
        rest = sum(len(one.results) for one in changes[FEW_CHANGES:])
        yield f"  ~ {counted(rest, 'more result')} outdated by other changes"


def _unused_lines(comparison: Comparison) -> Iterator[str]:
    """Show which results the plan does not contain."""
    if comparison.orphans:
        results = counted(len(comparison.orphans), "result")
        yield f"  - {results} not in this plan, kept but not analysed: {_few(comparison.orphans)}"
    if comparison.renamed:
        yield (
            f"      {comparison.renamed:,} with the settings of new trials: a part, factor or level was "
            "renamed; under its old name they would be used"
        )


def _few(names: Sequence[str]) -> str:
    more = f", … {len(names) - FEW_NAMES:,} more" if len(names) > FEW_NAMES else ""
    return ", ".join(names[:FEW_NAMES]) + more


# --- cost


def _cost_lines(preview: PlanPreview) -> Iterator[str]:
    """Show the time and disk space of a plan, of what remains of it and of what can run."""
    cost, remaining, possible = preview.cost, preview.cost_remaining, preview.cost_possible
    yield _total("cost", cost)
    if 0 < remaining.trials < cost.trials:
        yield _total("remaining", remaining)
    if possible is not None and 0 < possible.trials < remaining.trials:
        yield _total("can run", possible)
    by_testbed = preview.cost_by_testbed
    yield from columns(
        (f"  {name}", value) for name, value in _cost_rows(preview.plan, cost, remaining, by_testbed)
    )


def _total(name: str, cost: Cost) -> str:
    times = f"traffic {clock(cost.traffic_s)} + overhead {clock(cost.overhead_s)}"
    if cost.repeats.attempts:
        times += f" + repeated attempts {clock(cost.repeats_s)}"
    if cost.boots:
        times += f" + reboots {clock(cost.reboot_s)}"
    if cost.paths:
        times += f" + path calibration {clock(cost.path_s)}"
    testbeds = f" on {cost.testbeds} testbeds in parallel" if cost.testbeds > 1 else ""
    return f"{name}: {counted(cost.trials, 'trial')}, {campaign_duration(cost.total_s)}{testbeds} ({times})"


def campaign_duration(seconds: float) -> str:
    """Return the duration of a campaign with three digits at most: 42 s, 9.2 min, 3.1 h, 120 h, 5.0 days."""
    if seconds < 59.5:
        return f"{seconds:.0f} s"
    if seconds < 3597:
        return f"{seconds / 60:.1f} min"
    hours = seconds / 3600
    return f"{hours:.1f} h" if hours < LONG_H else f"{hours:,.0f} h, {hours / 24:,.1f} days"


def _cost_rows(
    plan: Plan, cost: Cost, remaining: Cost, by_testbed: Mapping[str, Cost]
) -> Iterator[tuple[str, str]]:
    if by_testbed:
        yield from ((f"overhead on {name}", str(one.overhead)) for name, one in by_testbed.items())
    else:
        yield "overhead", str(cost.overhead)
    if cost.repeats.attempts:
        yield "repeats", str(cost.repeats)
    if cost.boots:
        yield "reboots", f"{counted(cost.boots, 'wait')} for rebooting hosts, {cost.boot}"
    if cost.paths:
        yield "calibration", f"{counted(cost.paths, 'path')} measured before use, {cost.path}"
    if remaining.trials:
        yield "disk", _disk(remaining, by_testbed)
    yield "hosts", _host_changes(plan)


def _disk(remaining: Cost, by_testbed: Mapping[str, Cost]) -> str:
    sizes = {
        f"{name}: {host}": size for name, one in by_testbed.items() for host, size in one.host_bytes.items()
    }
    here = f"about {format_bytes(remaining.controller_bytes, ESTIMATE_DIGITS)} on the controller"
    hosts = "; ".join(_sizes_by_host(sizes or remaining.host_bytes))
    return f"{here}; on hosts until a trial is collected, {hosts}" if hosts else f"{here}, nothing on hosts"


def _sizes_by_host(sizes: Mapping[str, int]) -> Iterator[str]:
    """Yield the sizes, the largest first, each with the hosts that need it; many hosts are counted."""
    found: dict[str, list[str]] = {}
    for host, size in sorted(sizes.items(), key=lambda item: (-item[1], item[0])):
        found.setdefault(format_bytes(size, ESTIMATE_DIGITS), []).append(host)
    for amount, hosts in found.items():
        names = ", ".join(hosts) if len(hosts) <= FEW_NAMES else f"{len(hosts)} hosts"
        yield f"{amount} at {'each of ' if len(hosts) > 1 else ''}{names}"


def _host_changes(plan: Plan) -> str:
    """Return the number of reboots and interface resets, compared with the order of the experiment file."""
    changes = plan.changes
    pairs = (
        ("reboot", changes.reboots, changes.naive_reboots),
        ("interface reset", changes.resets, changes.naive_resets),
    )
    words = [
        f"{counted(number, noun)} ({naive:,} in the order of the file)"
        for noun, number, naive in pairs
        if number or naive
    ]
    return ", ".join(words) or "0 reboots, 0 interface resets"


# --- what the testbed cannot do, and warnings


def _capability_lines(preview: PlanPreview) -> Iterator[str]:
    """Show each thing that prevents trials from running, and whether the testbed was queried."""
    plan, blocked = preview.plan, preview.blocked
    stops = [finding for finding in preview.findings if finding.stops]
    some = [finding for finding in stops if finding.trials]
    if len(some) < len(stops):
        yield "no trial can run until this is fixed:"
        yield from (f"  ✗ {finding}" for finding in stops if not finding.trials)
    if some:
        yield f"{len(blocked):,} of {counted(len(plan.trials), 'trial')} cannot run on {plan.testbed}:"
        yield from (f"  ✗ {finding}" for finding in some)
    yield from (f"  ? {finding}" for finding in preview.findings if not finding.stops)
    if some and len(blocked) < len(plan.trials):
        yield "  `fab run … --allow-partial` runs the others"
    if preview.not_queried:
        first, *more = preview.not_queried.splitlines()
        if preview.cost_by_testbed:
            yield "the testbeds were not queried for what they can do:"
            yield from (f"  {line}" for line in (first, *more))
        else:
            yield f"the testbed was not queried for what it can do: {first}"
            yield from (f"  {line}" for line in more)


def _warning_lines(plan: Plan) -> Iterator[str]:
    """Show the warnings; the same warning for several parts is shown once."""
    found: dict[str, list[str]] = {}
    names = {part.name for part in plan.parts}
    for warning in plan.warnings:
        part, colon, text = warning.partition(": ")
        of_part = colon and part in names
        found.setdefault(text if of_part else warning, []).extend([part] if of_part else [])
    for text, parts in found.items():
        yield f"warning: {', '.join(parts)}: {text}" if parts else f"warning: {text}"


# --- for programs


def plan_json(preview: PlanPreview) -> Mapping[str, object]:
    """Return the keys of plan.json, and beside them the cost, the campaign and why trials cannot run."""
    folder, comparison = preview.resume.folder, preview.resume.comparison
    return {
        **preview.plan.as_json(),
        "cost": _cost_json(preview.cost),
        "left": _cost_json(preview.cost_remaining),
        "possible": _cost_json(preview.cost_possible or preview.cost_remaining),
        "campaign": {
            "folder": str(folder) if folder else None,
            "stands": list(comparison.stands),
            "runs": dict(comparison.runs),
            "stale": [vars(one) for one in comparison.stale],
            "orphans": list(comparison.orphans),
            "renamed": comparison.renamed,
            "recipes_changed": list(preview.changed_recipes),
        },
        "refused": [str(one) for one in preview.findings if one.stops and not one.trials],
        "cannot_run": {id_: list(why) for id_, why in preview.blocked.items()},
        "not_asked": preview.not_queried or None,
    }


def _cost_json(cost: Cost) -> Mapping[str, object]:
    return {
        "trials": cost.trials,
        "hours": cost.hours,
        "testbeds": cost.testbeds,
        "traffic_s": cost.traffic_s,
        "overhead_s": cost.overhead_s,
        "overhead_measured": cost.overhead.measured,
        "again_s": cost.repeats_s,
        "boots": cost.boots,
        "reboot_s": cost.reboot_s,
        "paths_measured": cost.paths,
        "path_s": cost.path_s,
        "host_bytes": dict(cost.host_bytes),
        "controller_bytes": cost.controller_bytes,
    }


def plan_csv(preview: PlanPreview) -> Iterator[str]:
    """Yield a line per trial in run order: a column per factor, the duration in seconds, the state."""
    factors = list(dict.fromkeys(factor for part in preview.plan.parts for factor in part.factors))
    yield _csv_line(["order", "id", "part", *factors, "replicate", "block", "duration_s", "state"])
    for number, trial in enumerate(preview.plan.trials, 1):
        levels = [trial.treatment.get(factor, "") for factor in factors]
        place = [trial.replicate, trial.block, f"{trial.resolved.duration_s:.9g}", preview.state(trial.id)]
        yield _csv_line([number, trial.id, trial.part, *levels, *place])


def _csv_line(cells: Sequence[object]) -> str:
    out = io.StringIO()
    csv.writer(out, lineterminator="").writerow(cells)
    return out.getvalue()
