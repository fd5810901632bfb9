"""Plans, campaigns and menus as lines of text."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from samovar.command import Catalogue
from samovar.journal import CampaignState
from samovar.plan import Cost, Plan, Trial
from samovar.runner.campaign import Summary, is_open
from samovar.runner.preflight import Finding
from samovar.testbed import HostFacts
from samovar.units import format_bytes

MARKS: Mapping[str, str] = {"valid": "✓", "suspect": "?", "invalid": "✗", "": "·"}
STANDINGS: Mapping[str, str] = {"in flight": "»", "failed": "✗", "interrupted": "✗"}


def clock(seconds: float) -> str:
    """Write a length of time as people read it: 0:42, 12:05, 3:20:00."""
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02d}:{rest:02d}" if hours else f"{minutes}:{rest:02d}"


def counted(number: int, thing: str) -> str:
    """Write a number of things: 1 trial, 2 trials."""
    return f"{number} {thing}{'' if number == 1 else 's'}"


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
        f"{counted(cost.trials, 'trial')}, {cost.hours:.2f} h (traffic {clock(cost.traffic_s)}, "
        f"beyond traffic {clock(cost.overhead_s)}), {cost.reboots} reboots"
    )
    here = format_bytes(cost.controller_bytes, 3)
    yield f"{format_bytes(cost.host_bytes, 3)} on a host at a time, {here} here"


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
    mark = STANDINGS.get(known.standing) or MARKS.get(known.verdict, "·")
    beyond = f"{known.overhead_s:.1f} s beyond traffic" if known.overhead_s is not None else ""
    return mark, trial.id, known.standing, "; ".join(known.reasons) or beyond


def summary_lines(summary: Summary, again: str) -> Iterator[str]:
    """Show how a campaign ended and, where something is missing, the command that tries again."""
    yield f"{summary.done} of {summary.asked} trials done: {summary.folder}"
    for trial, reasons in summary.failed.items():
        yield f"  ✗ {trial}: {'; '.join(reasons) or 'not run'}"
    if summary.failed:
        yield f"run what is missing: {again}"


def menu_lines(
    root: Path, experiments: Iterable[Path], testbeds: Iterable[Path], catalogue: Catalogue
) -> Iterator[str]:
    """Show what there is to choose from: experiments, testbeds, recipes, figures and tables."""
    yield "experiments"
    yield from columns((f"  {path.stem}", _top_level(path, "title")) for path in experiments)
    yield "testbeds"
    yield from columns((f"  {path.stem}", _top_level(path, "description")) for path in testbeds)
    for kind in ("aqm", "generator", "logger", "setting"):
        yield f"recipes: {kind}"
        yield from columns(
            (f"  {name}", os, catalogue.header(kind, name, os).summary)
            for os in catalogue.operating_systems()
            for name in sorted(catalogue.names(kind, os))
        )
    for kind in ("figure", "table"):
        yield f"{kind}s"
        yield from columns(_exhibits(root / "analysis" / "R", kind))


def _top_level(path: Path, key: str) -> str:
    """Find one top-level line of a definition file without judging the rest of it."""
    marked = [line for line in path.read_text(errors="replace").splitlines() if line.startswith(f"{key}:")]
    return marked[0].partition(":")[2].strip().rstrip(">|") if marked else ""


def _exhibits(folder: Path, kind: str) -> Iterator[tuple[str, str]]:
    """Find what an experiment may name: R functions figure_… and table_…, with their titles."""
    pattern = re.compile(
        rf"(?:^#' (?P<title>[^@\n]*)\n(?:^#.*\n)*)?^{kind}_(?P<name>\w+) <- function", re.MULTILINE
    )
    for path in sorted(folder.glob("*.R")):
        for match in pattern.finditer(path.read_text()):
            yield f"  {match['name'].replace('_', '-')}", match["title"] or ""


def facts_lines(facts: Mapping[str, HostFacts]) -> Iterator[str]:
    """Show what each host is and offers, one column a host."""
    if not facts:
        return
    yield from columns([("", *facts), *_fact_rows(list(facts.values()))])


def _fact_rows(facts: Sequence[HostFacts]) -> Iterator[tuple[str, ...]]:
    yield "kernel", *(fact.kernel for fact in facts)
    yield "system", *(fact.os_release for fact in facts)
    clocks = (f"{fact.clock_offset_s * 1000:+.1f} ± {fact.clock_error_s * 1000:.1f} ms" for fact in facts)
    yield "clock", *clocks
    yield "free disk", *(format_bytes(fact.disk_free_bytes, 3) for fact in facts)
    for cc in sorted({cc for fact in facts for cc in fact.cc_offered}):
        yield f"cc {cc}", *("yes" if cc in fact.cc_offered else "-" for fact in facts)
    for qdisc in sorted({qdisc for fact in facts for qdisc in fact.qdiscs}):
        yield f"qdisc {qdisc}", *("yes" if qdisc in fact.qdiscs else "-" for fact in facts)
    for tool in sorted({tool for fact in facts for tool in fact.tools}):
        yield tool, *(fact.tools.get(tool) or ("yes" if tool in fact.tools else "-") for fact in facts)


def finding_lines(findings: Sequence[Finding]) -> Iterator[str]:
    """Show what stands in the way, or that nothing does."""
    yield ""
    yield from (f"{'✗' if finding.stops else '?'} {finding}" for finding in findings)
    if not any(finding.stops for finding in findings):
        yield "✓ the testbed has what the experiment needs"
