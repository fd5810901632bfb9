"""A plan of any size as lines of text: the design, what stands and runs, the first trials, the cost."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby

from samovar.plan import Cost, PartPlan, Plan, Trial
from samovar.plan.compare import Changed, Comparison
from samovar.runner.folder import Standing
from samovar.runner.preflight import Finding
from samovar.units import format_bytes
from samovar.view.words import clock, columns, counted

FEW = 12
"""So many trials are shown of a plan that has more than a screen of them."""
SCREEN = 30
FEW_CHANGES, FEW_NAMES = 8, 3
STRIP = 100
"""A strip is drawn of a part whose trials and blocks take no more characters than that."""
GLYPHS = "123456789abcdefghijklmnopqrstuvwxyz"


@dataclass(frozen=True)
class Seen:
    """All that `fab plan` knows: the plan, the campaign it goes on in, what it costs, what cannot run.

    `unasked` says why the testbed was not asked what it can do; empty when it was. Where several testbeds
    share the trials, `each` has what is left as it would be on that one alone.
    """

    plan: Plan
    standing: Standing
    whole: Cost
    left: Cost
    findings: Sequence[Finding] = ()
    blocked: Mapping[str, Sequence[str]] = field(default_factory=dict)
    unasked: str = ""
    each: Mapping[str, Cost] = field(default_factory=dict)

    @property
    def hopeless(self) -> bool:
        """Whether no trial can run: each is blocked, or what is lacking is of them all."""
        of_all = any(finding.stops and not finding.trials for finding in self.findings)
        return of_all or len(self.blocked) == len(self.plan.trials)

    def state(self, id_: str) -> str:
        """Say how a trial stands: cannot run, stands, or why it is to be run."""
        if id_ in self.blocked:
            return "cannot run"
        return self.standing.comparison.runs.get(id_, "stands")


def plan_lines(seen: Seen, every: bool = False) -> Iterator[str]:
    """Show a plan: its design, the first trials (or all), the campaign, the cost, what stands in the way."""
    plan = seen.plan
    title = f": {plan.title}" if plan.title else ""
    yield f"{plan.experiment} ({plan.profile or 'full'}) on {plan.testbed}{title}"
    if plan.overrides:
        yield "set: " + ", ".join(f"{key}={value}" for key, value in plan.overrides.items())
    yield ""
    yield from design_lines(plan)
    yield from trial_lines(seen, every)
    yield ""
    yield from standing_lines(seen.standing)
    yield from cost_lines(seen)
    yield from capability_lines(seen)
    yield from (f"warning: {warning}" for warning in plan.warnings)


def design_lines(plan: Plan) -> Iterator[str]:
    """Show the parts: factors with their levels, the counts, a strip of the order where it is short."""
    trials = {group.part: len(group) for group in plan.table.groups}
    for part in plan.parts:
        yield f"{part.name}: {part.title}" if part.title else part.name
        yield from columns((f"  {name}", _levels(levels)) for name, levels in part.factors.items())
        number = trials.get(part.name, 0)
        of = f"{counted(number, 'treatment')} x {counted(part.replicates, 'replicate')}"
        yield f"  {of} = {counted(number * part.replicates, 'trial')}"
        yield from strip_lines(plan, part)
        yield ""
    seeded = f", seed {plan.seed}" if plan.order != "sequential" else ""
    yield f"{counted(len(plan.trials), 'trial')}, order {plan.order}{seeded}"


def _levels(levels: Sequence[str]) -> str:
    if len(levels) <= FEW:
        return ", ".join(levels)
    first, last = levels[: FEW // 2], levels[-2:]
    return f"{', '.join(first)}, … {len(levels) - FEW // 2 - 2} more …, {', '.join(last)}"


def strip_lines(plan: Plan, part: PartPlan) -> Iterator[str]:
    """Draw each factor that varies against the order: a trial is a character, its level's number."""
    varying = {name: levels for name, levels in part.factors.items() if 1 < len(levels) <= len(GLYPHS)}
    expected = sum(len(group) for group in plan.table.groups if group.part == part.name) * part.replicates
    if not varying or expected > STRIP:
        return
    trials = [trial for trial in plan.trials if trial.part == part.name]
    blocks = [list(block) for _, block in groupby(trials, key=lambda trial: trial.block)]
    if len(trials) + len(blocks) > STRIP:
        return
    rows = [(f"  {name}", _strip(blocks, name, levels)) for name, levels in varying.items()]
    yield "  in order, a level's number for each trial:" if len(blocks) < 2 else "  in order, block by block:"
    yield from columns(rows)


def _strip(blocks: Iterable[Sequence[Trial]], factor: str, levels: Sequence[str]) -> str:
    glyphs = dict(zip(levels, GLYPHS, strict=False))
    return " ".join("".join(glyphs.get(trial.treatment[factor], "+") for trial in block) for block in blocks)


def trial_lines(seen: Seen, every: bool) -> Iterator[str]:
    """Show the trials in order, the first ones of a long plan."""
    trials = seen.plan.trials
    shown = len(trials) if every or len(trials) <= SCREEN else FEW
    yield from columns(
        (
            f"  {number}",
            trial.id,
            clock(trial.resolved.duration_s),
            seen.state(trial.id) if seen.standing.folder or trial.id in seen.blocked else "",
            "; ".join(seen.blocked.get(trial.id, ())),
        )
        for number, trial in enumerate(trials[:shown], 1)
    )
    if shown < len(trials):
        yield f"  … {len(trials) - shown:,} more (--all shows them)"


def standing_lines(standing: Standing) -> Iterator[str]:
    """Show a plan as a change of the campaign that it goes on in: what stands, runs, no longer counts."""
    comparison = standing.comparison
    if standing.folder is None:
        yield f"a new campaign begins: {counted(len(comparison.runs), 'trial')} to run"
        return
    yield f"goes on in {standing.folder}"
    yield f"  = {counted(len(comparison.stands), 'trial')} {_verb(len(comparison.stands), 'stand')}"
    for why, number in comparison.counts.items():
        yield f"  + {counted(number, 'trial')} to run: {WHY.get(why, why)}"
    yield from stale_lines(comparison.stale)
    yield from orphan_lines(comparison)


WHY: Mapping[str, str] = {
    "new": "new",
    "stale": "changed since they ran",
    "failed": "failed before",
    "interrupted": "interrupted before",
    "invalid": "judged invalid before",
}


def stale_lines(stale: Sequence[Changed]) -> Iterator[str]:
    """Show which results became stale and what changed; results stay on disk."""
    for one in stale[:FEW_CHANGES]:
        results = counted(len(one.results), "result")
        yield f"  ~ {results} stale, kept and no longer analysed: {_few(one.results)}"
        yield from (f"      {change}" for change in one.changes[:FEW_CHANGES])
        if len(one.changes) > FEW_CHANGES:
            yield f"      … {len(one.changes) - FEW_CHANGES} more"
    if len(stale) > FEW_CHANGES:
        rest = sum(len(one.results) for one in stale[FEW_CHANGES:])
        yield f"  ~ {counted(rest, 'more result')} stale by other changes"


def orphan_lines(comparison: Comparison) -> Iterator[str]:
    """Show which results nobody asks for any more."""
    if comparison.orphans:
        results = counted(len(comparison.orphans), "result")
        yield f"  - {results} no longer asked for, kept and not analysed: {_few(comparison.orphans)}"


def _few(names: Sequence[str]) -> str:
    more = f", … {len(names) - FEW_NAMES:,} more" if len(names) > FEW_NAMES else ""
    return ", ".join(names[:FEW_NAMES]) + more


def _verb(number: int, verb: str) -> str:
    return f"{verb}s" if number == 1 else verb


def cost_lines(seen: Seen) -> Iterator[str]:
    """Show what the plan costs, what of it is left, and where the figures are from."""
    yield ""
    yield _cost_line("cost", seen.whole)
    if 0 < seen.left.trials < seen.whole.trials:
        yield _cost_line("left", seen.left)
    yield from (f"  beyond traffic on {name}: {cost.overhead}" for name, cost in seen.each.items())
    if not seen.each:
        yield f"  beyond traffic: {seen.whole.overhead}"
    if seen.whole.boots:
        yield f"  reboots: {counted(seen.whole.boots, 'time')} that hosts are waited for, {seen.whole.boot}"
    here = format_bytes(seen.left.controller_bytes, 3)
    places = {
        f"{name}: {host}": size for name, one in seen.each.items() for host, size in one.host_bytes.items()
    }
    left = sorted((places or seen.left.host_bytes).items())
    hosts = (f"{format_bytes(size, 3)} at {host}" for host, size in left)
    yield f"  disk: {here} here; {', '.join(hosts) or 'nothing on hosts'} until a trial is collected"
    yield from change_lines(seen.plan)


def _cost_line(word: str, cost: Cost) -> str:
    times = f"traffic {clock(cost.traffic_s)} + beyond traffic {clock(cost.overhead_s)}"
    if cost.boots:
        times += f" + reboots {clock(cost.reboot_s)}"
    at_once = f" on {cost.testbeds} testbeds at once" if cost.testbeds > 1 else ""
    return f"{word}: {counted(cost.trials, 'trial')}, {cost.hours:.2f} h{at_once} ({times})"


def change_lines(plan: Plan) -> Iterator[str]:
    """Show what the order takes of reboots and resets of interfaces, against the order of the file."""
    changes = plan.changes
    pairs = (
        ("reboot", changes.reboots, changes.naive_reboots),
        ("interface reset", changes.resets, changes.naive_resets),
    )
    words = [
        f"{counted(number, thing)} ({naive} in the order of the file)"
        for thing, number, naive in pairs
        if number or naive
    ]
    yield f"  hosts: {', '.join(words)}" if words else "  hosts: 0 reboots, 0 interface resets"


def capability_lines(seen: Seen) -> Iterator[str]:
    """Show what the testbed cannot do, each thing once, and that it was not asked where it was not."""
    findings = [finding for finding in seen.findings if finding.stops]
    if findings:
        number = len(seen.plan.trials) if seen.hopeless else len(seen.blocked)
        yield f"{number} of {len(seen.plan.trials)} trials cannot run on {seen.plan.testbed}:"
        yield from (f"  ✗ {finding}" for finding in findings)
    yield from (f"  ? {finding}" for finding in seen.findings if not finding.stops)
    if seen.blocked and len(seen.blocked) < len(seen.plan.trials):
        yield "  `fab run … --allow-partial` runs the others"
    if seen.unasked:
        yield f"the testbed was not asked what it can do, {seen.unasked}"
