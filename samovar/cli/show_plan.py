"""A plan of any size as lines of text: the design, what stands and runs, the first trials, the cost."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby

from samovar.campaign.availability.requirements import Finding
from samovar.campaign.folder import ResumePoint
from samovar.cli.show_cost import cost_lines
from samovar.cli.wording import clock, columns, counted, folded, set_lines
from samovar.plan import Cost, PartPlan, Plan, Trial
from samovar.plan.diff import Changed, Comparison

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
    share the trials, `each` has what is left as it would be on that one alone. `possible` is what is left
    without what cannot run. `recipes` are those that have changed since the campaign ran last.
    """

    plan: Plan
    standing: ResumePoint
    whole: Cost
    left: Cost
    findings: Sequence[Finding] = ()
    blocked: Mapping[str, Sequence[str]] = field(default_factory=dict)
    unasked: str = ""
    each: Mapping[str, Cost] = field(default_factory=dict)
    possible: Cost | None = None
    recipes: Sequence[str] = ()

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


def plan_lines(seen: Seen, every: bool = False, width: int | None = None) -> Iterator[str]:
    """Show a plan: its design, the first trials (or all), the campaign, the cost, what stands in the way.

    Lines are broken at the width of a terminal; without one, each statement is a line.
    """
    yield from folded(_lines(seen, every, width), width)


def _lines(seen: Seen, every: bool, width: int | None) -> Iterator[str]:
    plan = seen.plan
    title = f": {plan.title}" if plan.title else ""
    yield f"{plan.experiment} ({plan.profile or 'full'}) on {plan.testbed}{title}"
    yield from set_lines(plan.overrides)
    yield ""
    yield from design_lines(plan, width)
    yield from trial_lines(seen, every)
    yield ""
    yield from standing_lines(seen.standing, seen.recipes)
    yield ""
    yield from cost_lines(plan, seen.whole, seen.left, seen.each, seen.possible)
    yield from capability_lines(seen)
    yield from warning_lines(plan)


def design_lines(plan: Plan, width: int | None = None) -> Iterator[str]:
    """Show the parts: factors with their levels, the counts, a strip of the order where it is short."""
    trials = {group.part: len(group) for group in plan.table.groups}
    for part in plan.parts:
        yield f"{part.name}: {part.title}" if part.title else part.name
        yield from columns((f"  {name}", _levels(levels)) for name, levels in part.factors.items())
        number = trials.get(part.name, 0)
        of = f"{counted(number, 'treatment')} x {counted(part.replicates, 'replicate')}"
        yield f"  {of} = {counted(number * part.replicates, 'trial')}"
        yield from strip_lines(plan, part, width)
        yield ""
    seeded = f", seed {plan.seed}" if plan.order != "sequential" else ""
    yield f"{counted(len(plan.trials), 'trial')}, order {plan.order}{seeded}"


def _levels(levels: Sequence[str]) -> str:
    if len(levels) <= FEW:
        return ", ".join(levels)
    first, last = levels[: FEW // 2], levels[-2:]
    return f"{', '.join(first)}, … {len(levels) - FEW // 2 - 2} more …, {', '.join(last)}"


def strip_lines(plan: Plan, part: PartPlan, width: int | None = None) -> Iterator[str]:
    """Draw each factor that varies against the order: a trial is a character, its level's number."""
    varying = {name: levels for name, levels in part.factors.items() if 1 < len(levels) <= len(GLYPHS)}
    expected = sum(len(group) for group in plan.table.groups if group.part == part.name) * part.replicates
    if not varying or expected > STRIP:
        return
    trials = [trial for trial in plan.trials if trial.part == part.name]
    blocks = [list(block) for _, block in groupby(trials, key=lambda trial: trial.block)]
    if len(trials) + len(blocks) > STRIP:
        return
    yield "  in order, a level's number for each trial:" if len(blocks) < 2 else "  in order, block by block:"
    for number, some in enumerate(_side_by_side(blocks, (width or STRIP + 40) - max(map(len, varying)) - 4)):
        yield from [""] if number else []
        yield from columns((f"  {name}", _strip(some, name, levels)) for name, levels in varying.items())


def _side_by_side(blocks: Sequence[Sequence[Trial]], room: int) -> Iterator[Sequence[Sequence[Trial]]]:
    """Put so many blocks on one line as fit, one at least, and equal ones evenly."""
    longest = max(map(len, blocks))
    if all(len(block) == longest for block in blocks):
        lines = -(-len(blocks) // max(1, (room + 1) // (longest + 1)))
        room = -(-len(blocks) // lines) * (longest + 1) - 1
    some: list[Sequence[Trial]] = []
    for block in blocks:
        if some and sum(len(one) + 1 for one in some) + len(block) > room:
            yield some
            some = []
        some.append(block)
    yield some


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


def standing_lines(standing: ResumePoint, recipes: Sequence[str] = ()) -> Iterator[str]:
    """Show a plan as a change of the campaign that it goes on in: what stands, runs, no longer counts."""
    comparison = standing.comparison
    if standing.folder is None:
        yield f"a new campaign begins: {counted(len(comparison.runs), 'trial')} to run"
        return
    yield f"goes on in {standing.folder}"
    yield f"  = {counted(len(comparison.stands), 'trial')} {_verb(len(comparison.stands), 'stand')}"
    if recipes:
        yield f"      by recipes that have changed since: {_few(recipes)}; `--new` measures all anew"
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
    if comparison.renamed:
        which = f"{comparison.renamed:,} did what new trials do"
        yield f"      {which}, under another name of a part, factor or level; under the old one they stand"


def _few(names: Sequence[str]) -> str:
    more = f", … {len(names) - FEW_NAMES:,} more" if len(names) > FEW_NAMES else ""
    return ", ".join(names[:FEW_NAMES]) + more


def _verb(number: int, verb: str) -> str:
    return f"{verb}s" if number == 1 else verb


def capability_lines(seen: Seen) -> Iterator[str]:
    """Show what keeps trials from running, each thing once, and that the testbed was not asked."""
    stops = [finding for finding in seen.findings if finding.stops]
    some = [finding for finding in stops if finding.trials]
    if len(some) < len(stops):
        yield "nothing runs before this is put right:"
        yield from (f"  ✗ {finding}" for finding in stops if not finding.trials)
    if some:
        which = f"{len(seen.blocked):,} of {counted(len(seen.plan.trials), 'trial')}"
        yield f"{which} cannot run on {seen.plan.testbed}:"
        yield from (f"  ✗ {finding}" for finding in some)
    yield from (f"  ? {finding}" for finding in seen.findings if not finding.stops)
    if some and len(seen.blocked) < len(seen.plan.trials):
        yield "  `fab run … --allow-partial` runs the others"
    if seen.unasked:
        first, *more = seen.unasked.splitlines()
        if seen.each:
            yield "testbeds were not asked what they can do:"
            yield from (f"  {line}" for line in (first, *more))
        else:
            yield f"the testbed was not asked what it can do, {first}"
            yield from (f"  {line}" for line in more)


def warning_lines(plan: Plan) -> Iterator[str]:
    """Show the warnings; what is said of several parts in the same words is said once."""
    found: dict[str, list[str]] = {}
    names = {part.name for part in plan.parts}
    for warning in plan.warnings:
        part, colon, said = warning.partition(": ")
        of_part = colon and part in names
        found.setdefault(said if of_part else warning, []).extend([part] if of_part else [])
    for said, parts in found.items():
        yield f"warning: {', '.join(parts)}: {said}" if parts else f"warning: {said}"
