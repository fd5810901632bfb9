"""Show a plan as text, JSON or CSV, with its cost and what the testbed lacks; and show one trial in full."""

from __future__ import annotations

import csv
import io
import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

from samovar.campaign import ResumePoint
from samovar.campaign.availability import Finding
from samovar.cli.text import columns, key_title, value_text
from samovar.plan import Cost, Plan, Trial
from samovar.recipes import Catalogue
from samovar.units import clock, counted, format_bytes

SCREEN, FEW = 30, 12
"""Of a plan with more than SCREEN trials, only the first FEW trials are listed."""
FEW_CHANGES, FEW_NAMES = 8, 3
ESTIMATE_DIGITS = 2


@dataclass(frozen=True)
class PlanPreview:
    """What `fab plan` shows: the plan, its cost, the trials to run, and what hosts lack for them.

    `cost_remaining` is the cost of the trials that are still to run. `cost_possible` is the cost of those
    among them that the testbed can run. `not_queried` is the reason why the testbed was not queried, or
    empty.
    """

    plan: Plan
    resume: ResumePoint
    cost: Cost
    cost_remaining: Cost
    findings: Sequence[Finding] = ()
    blocked: Mapping[str, Sequence[str]] = field(default_factory=dict)
    not_queried: str = ""
    cost_possible: Cost | None = None
    changed_recipes: Sequence[str] = ()

    @property
    def nothing_can_run(self) -> bool:
        """Whether every trial is blocked, or the testbed lacks something that all trials need."""
        needed_by_all = any(finding.stops and not finding.trials for finding in self.findings)
        return needed_by_all or (len(self.blocked) == len(self.picked_ids) > 0)

    @property
    def picked_ids(self) -> Sequence[str]:
        """The ids of the trials that the preview is about: the picked trials, or all trials of the plan."""
        return self.resume.picked.ids

    def trials(self) -> Iterator[tuple[int, Trial]]:
        """Yield the trials that the preview is about, with their numbers in the plan (counted from 1)."""
        ids = set(self.picked_ids)
        yield from ((number, one) for number, one in enumerate(self.plan.trials, 1) if one.id in ids)

    def state(self, id_: str) -> str:
        """Return the state of a trial: `cannot run`, `stands` (it is done), or the reason why it will run."""
        if id_ in self.blocked:
            return "cannot run"
        return self.resume.comparison.runs.get(id_, "stands")


def plan_lines(preview: PlanPreview, every_trial: bool = False) -> Iterator[str]:
    """Yield the lines of `plan`."""
    plan = preview.plan
    title = f": {plan.title}" if plan.title else ""
    yield f"{plan.experiment} ({plan.profile or 'full'}) on {plan.testbed}{title}"
    yield from override_lines(plan)
    yield ""
    yield from _design_lines(plan)
    if preview.resume.picked.text:
        yield f"picked: {len(preview.picked_ids)} of them ({preview.resume.picked.text})"
    yield from _trial_table(preview, every_trial)
    yield ""
    yield from _campaign_lines(preview.resume, preview.changed_recipes)
    yield ""
    yield from _cost_lines(preview)
    yield from _capability_lines(preview)
    yield from (f"warning: {warning}" for warning in plan.warnings)


def override_lines(plan: Plan) -> Iterator[str]:
    """Yield a line with the values set by --set on the command line, if there are any."""
    if plan.overrides:
        yield "set: " + ", ".join(f"{key}={value}" for key, value in plan.overrides.items())


def _design_lines(plan: Plan) -> Iterator[str]:
    """Yield the factors, levels and number of trials of each part, and the order of all trials."""
    trials = Counter(trial.part for trial in plan.trials)
    for part in plan.parts:
        yield f"{part.name}: {part.title}" if part.title else part.name
        yield from columns((f"  {name}", _levels(levels)) for name, levels in part.factors.items())
        number = trials[part.name]
        treatments = counted(number // part.replicates, "treatment")
        yield f"  {treatments} x {counted(part.replicates, 'replicate')} = {counted(number, 'trial')}"
        yield ""
    seed = f", seed {plan.seed}" if plan.order != "sequential" else ""
    yield f"{counted(len(plan.trials), 'trial')}, order {plan.order}{seed}"


def _levels(levels: Sequence[str]) -> str:
    if len(levels) > FEW:
        levels = [*levels[: FEW // 2], f"… {len(levels) - FEW // 2 - 2} more …", *levels[-2:]]
    return ", ".join(levels)


def _trial_table(preview: PlanPreview, every_trial: bool) -> Iterator[str]:
    """Yield a line for each trial in run order. Of a long plan, only the first trials are listed."""
    amount, blocked = len(preview.picked_ids), preview.blocked
    shown = amount if every_trial or amount <= SCREEN else FEW
    rows = []
    for number, trial in islice(preview.trials(), shown):
        state = preview.state(trial.id) if preview.resume.folder or trial.id in blocked else ""
        state = {"stands": "done", "stale": "changed"}.get(state, state)
        duration, why = clock(trial.resolved.duration_s), "; ".join(blocked.get(trial.id, ()))
        rows.append((f"  {number}", trial.id, duration, state, why))
    yield from columns(rows)
    if shown < amount:
        yield f"  … {amount - shown:,} more (--all shows them)"


REASONS_TO_RUN: Mapping[str, str] = {
    "new": "new",
    "stale": "changed since they ran",
    "failed": "failed before",
    "interrupted": "interrupted before",
    "invalid": "invalid before",
    "suspect": "suspect before",
}


def _campaign_lines(resume: ResumePoint, changed_recipes: Sequence[str]) -> Iterator[str]:
    """Yield lines with the campaign that a plan resumes, and the numbers of done, open and unused trials."""
    comparison, kept = resume.comparison, "kept but not analysed"
    if resume.folder is None:
        yield f"new campaign: {counted(len(comparison.runs), 'trial')} to run"
        return
    yield f"resumes campaign {resume.folder}"
    yield f"  = {counted(len(comparison.stands), 'trial')} done"
    if changed_recipes:
        yield f"      recipes changed since then: {_few(changed_recipes)}; `--new` measures everything again"
    for reason, number in comparison.counts.items():
        yield f"  + {counted(number, 'trial')} to run: {REASONS_TO_RUN.get(reason, reason)}"
    for one in comparison.stale[:FEW_CHANGES]:
        yield f"  ~ {counted(len(one.results), 'result')} outdated by a change, {kept}: {_few(one.results)}"
        yield from (f"      {change}" for change in one.changes[:FEW_CHANGES])
    rest = sum(len(one.results) for one in comparison.stale[FEW_CHANGES:])
    if rest:
        yield f"  ~ {counted(rest, 'more result')} outdated by other changes"
    if comparison.orphans:
        orphans = counted(len(comparison.orphans), "result")
        yield f"  - {orphans} not in this plan, {kept}: {_few(comparison.orphans)}"
    if comparison.renamed:
        yield (
            f"      including {comparison.renamed:,} with the settings of new trials, because a part, factor "
            "or level was renamed; to use them, restore the old name"
        )


def _few(names: Sequence[str]) -> str:
    more = f", … {len(names) - FEW_NAMES:,} more" if len(names) > FEW_NAMES else ""
    return ", ".join(names[:FEW_NAMES]) + more


def _cost_lines(preview: PlanPreview) -> Iterator[str]:
    """Yield the time of all trials, of the open ones, and of those that can run; and the disk space."""
    cost, remaining, possible = preview.cost, preview.cost_remaining, preview.cost_possible
    yield _total("cost", cost)
    if 0 < remaining.trials < cost.trials:
        yield _total("remaining", remaining)
    if possible is not None and 0 < possible.trials < remaining.trials:
        yield _total("can run", possible)
    rows = [(f"  {name}", source) for name, _, source in _times(cost)]
    if remaining.trials:
        rows.append(("  disk", _disk(remaining)))
    changes = preview.plan.changes
    for what, number, naive in (
        ("reboot", changes.reboots, changes.naive_reboots),
        ("interface reset", changes.resets, changes.naive_resets),
    ):
        if (number or naive) and not preview.resume.picked.text:  # known only for the whole plan
            rows.append(("  hosts", f"{counted(number, what)} ({naive:,} in the order of the file)"))
    yield from columns(rows)


def _total(name: str, cost: Cost) -> str:
    times = [f"traffic {clock(cost.traffic_s)}", *(f"{what} {clock(s)}" for what, s, _ in _times(cost))]
    testbeds = f" on {cost.testbeds} testbeds in parallel" if cost.testbeds > 1 else ""
    total = f"{counted(cost.trials, 'trial')}, {clock(cost.total_s)}{testbeds}"
    return f"{name}: {total} ({' + '.join(times)})"


def _times(cost: Cost) -> list[tuple[str, float, str]]:
    """Return each non-zero duration except that of the traffic: its name, its seconds and its source."""
    times = cost.times
    rows = (
        ("overhead", cost.overhead_s, str(times.overhead)),
        ("repeats", cost.repeats_s, str(times.repeats)),
        ("reboots", cost.reboot_s, f"{counted(cost.boots, 'wait')} for rebooting hosts, {times.boot}"),
        ("calibration", cost.path_s, f"{counted(cost.paths, 'path')} measured before use, {times.path}"),
    )
    return [row for row in rows if row[1]]


def _disk(cost: Cost) -> str:
    here = f"about {format_bytes(cost.controller_bytes, ESTIMATE_DIGITS)} on the controller"
    if not cost.host_bytes:
        return here
    host, size = max(cost.host_bytes.items(), key=lambda item: item[1])
    return f"{here}; on hosts up to {format_bytes(size, ESTIMATE_DIGITS)} ({host}) until a trial is collected"


def _capability_lines(preview: PlanPreview) -> Iterator[str]:
    """Yield what prevents trials from running, and whether the testbed was queried."""
    plan, blocked = preview.plan, preview.blocked
    stops = [finding for finding in preview.findings if finding.stops]
    some = [finding for finding in stops if finding.trials]
    if len(some) < len(stops):
        yield "no trial can run until this is fixed:"
        yield from (f"  ✗ {finding}" for finding in stops if not finding.trials)
    if some:
        yield f"{len(blocked):,} of {counted(len(preview.picked_ids), 'trial')} cannot run on {plan.testbed}:"
        yield from (f"  ✗ {finding}" for finding in some)
    yield from (f"  ? {finding}" for finding in preview.findings if not finding.stops)
    if some and len(blocked) < len(preview.picked_ids):
        yield "  `fab run … --allow-partial` runs the others"
    if preview.not_queried:
        first, *more = preview.not_queried.splitlines()
        yield f"the testbed was not queried for what it can do: {first}"
        yield from (f"  {line}" for line in more)


NOT_SHOWN = frozenset({"group", "from_address", "to_address", "os", "release", "interfaces"})


def trial_lines(trial: Trial, catalogue: Catalogue) -> Iterator[str]:
    """Yield the values of one trial: path, hosts, flows, captures, loggers. Unset values are left out."""
    resolved = trial.resolved
    levels = ", ".join(f"{name} {level}" for name, level in trial.treatment.items())
    yield f"{trial.id}: part {trial.part}, replicate {trial.replicate}, block {trial.block}"
    yield from [f"  {levels}"] if levels else []
    yield f"  traffic {clock(resolved.duration_s)}, at most {clock(resolved.deadline_s)}"
    values = resolved.as_json()
    path = values["path"] or {}
    yield from _table("stop", [values["stop"]] if values["stop"] else [])
    yield from _table("path", [{"direction": one, **path[one]} for one in ("down", "up") if path])
    yield from _table("classes", path.get("classes", []))
    yield from _table("hosts", [{"host": name, **host} for name, host in values["hosts"].items()])
    for title in ("flows", "captures"):
        yield from _table(title, values[title])
    systems = {name: host.system for name, host in resolved.hosts.items()}
    loggers = [
        {"logger": one["logger"], "records": _recorded(one["logger"], systems[one["host"]], catalogue), **one}
        for one in values["loggers"]
    ]
    yield from _table("loggers", loggers)


def _recorded(logger: str, system: str, catalogue: Catalogue) -> str:
    """Return the name of the quantity that a logger records; empty if it equals the logger's own name."""
    recorded = (name for name, loggers in catalogue.quantities(system).items() if logger in loggers)
    return next((name for name in recorded if name != logger), "")


def _table(title: str, rows: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """Yield rows of plan.json as a table with a title. A key that has no value in any row is left out."""
    texts = [{key: value_text(key, value) for key, value in row.items()} for row in rows]
    keys = [key for row in texts[:1] for key in row if key not in NOT_SHOWN]
    used = [key for key in keys if any(row[key] for row in texts)]
    if used:
        yield from ("", title)
        cells = [[key_title(key) for key in used], *([row[key] for key in used] for row in texts)]
        yield from (f"  {line}" for line in columns(cells))


def plan_json(preview: PlanPreview) -> Iterator[str]:
    """Yield the lines of `plan --json`: plan.json, and keys for cost, campaign and trials that cannot run.

    Trials are resolved one at a time to save memory: a plan can have a hundred thousand trials.
    """
    resume = preview.resume
    folder, comparison, picked = resume.folder, resume.comparison, resume.picked
    rest = {
        **({"picked": picked.text} if picked.text else {}),
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
    yield f"{_indented(preview.plan.head()).removesuffix(CLOSING)},"
    yield ' "trials": ['
    amount = len(preview.picked_ids)
    for number, (_, trial) in enumerate(preview.trials(), 1):
        comma = "," if number < amount else ""
        yield f"  {_indented(trial.as_json())}{comma}".replace("\n", "\n  ")
    yield " ],"
    yield _indented(rest).removeprefix("{\n")


CLOSING = "\n}"


def _indented(value: object) -> str:
    return json.dumps(value, indent=1, ensure_ascii=False)


def _cost_json(cost: Cost) -> Mapping[str, object]:
    return {
        "trials": cost.trials,
        "hours": cost.total_s / 3600,
        "testbeds": cost.testbeds,
        "traffic_s": cost.traffic_s,
        "overhead_s": cost.overhead_s,
        "overhead_measured": cost.times.overhead.measured,
        "again_s": cost.repeats_s,
        "boots": cost.boots,
        "reboot_s": cost.reboot_s,
        "paths_measured": cost.paths,
        "path_s": cost.path_s,
        "host_bytes": dict(cost.host_bytes),
        "controller_bytes": cost.controller_bytes,
    }


def plan_csv(preview: PlanPreview) -> str:
    """Return the text of `plan --csv`: a row per trial in run order, with its levels, duration and state."""
    factors = list(dict.fromkeys(factor for part in preview.plan.parts for factor in part.factors))
    out = io.StringIO()
    table = csv.writer(out, lineterminator="\n")
    table.writerow(["order", "id", "part", *factors, "replicate", "block", "duration_s", "state"])
    for number, trial in preview.trials():
        levels = [trial.treatment.get(factor, "") for factor in factors]
        place = [trial.replicate, trial.block, f"{trial.resolved.duration_s:.9g}", preview.state(trial.id)]
        table.writerow([number, trial.id, trial.part, *levels, *place])
    return out.getvalue().removesuffix("\n")
