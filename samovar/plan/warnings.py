"""What a supervisor would say of a plan: it can run, but may not show what was meant.

Each warning is said once for a part, with how many of its treatments it holds for and one of them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from math import prod

from samovar.experiment import Experiment, Testbed, shortest_path
from samovar.experiment.metrics import METRICS
from samovar.experiment.outputs import Exhibits
from samovar.plan.groups import Kinds
from samovar.plan.model import PathPlan
from samovar.plan.places import ways_through
from samovar.plan.recorded import unrecorded
from samovar.plan.table import Table, Treatments
from samovar.plan.warning_checks import CHECKS, Check

FEWEST_REPLICATES = 3
FOR_AN_INTERVAL = 6
"""Order statistics of fewer values span the median with less than 95 %: 1 - 2 (1/2)^5 = 0.94."""


@dataclass
class Found:
    """What one check found in one part: in so many treatments, first with these levels, and what it said."""

    treatments: int
    levels: str
    said: str


def warnings_of(
    experiment: Experiment, testbed: Testbed, table: Table, exhibits: Exhibits
) -> tuple[str, ...]:
    """Return the warnings of a whole plan, each once, in a stable order: by part, then by kind."""
    treatments = {group.part: len(group) for group in table.groups}
    beside = _beside_bottleneck(testbed, table)
    design = {group.part: tuple(_of_levels(group)) for group in table.groups}
    found = [(check, _found(check, table)) for check in CHECKS]
    warnings: list[str] = []
    for name, part in experiment.parts.items():
        number = treatments.get(name, 0)
        warnings += _of_design(name, part.replicates, experiment.order.kind, number)
        warnings += design.get(name, ())
        warnings += beside.get(name, ())
        warnings += [_said(name, check, parts[name], number) for check, parts in found if name in parts]
    return tuple(
        dict.fromkeys((*warnings, *_of_metrics(experiment), *unrecorded(experiment, table, exhibits)))
    )


def _of_metrics(experiment: Experiment) -> Iterator[str]:
    """Name the metrics that are expected to be something although nothing measures them yet."""
    for metric in dict.fromkeys(line.metric for line in experiment.expect):
        if not METRICS[metric].written:
            yield f"expect: no analysis writes {metric} yet; the scorecard will say no data"


def _of_design(name: str, replicates: int, order: str, treatments: int) -> Iterator[str]:
    amount = "1 replicate" if replicates == 1 else f"{replicates} replicates"
    interval = f"a 95 % interval of the median needs {FOR_AN_INTERVAL}"
    if replicates < FEWEST_REPLICATES:
        yield f"{name}: {amount}; a range needs {FEWEST_REPLICATES}, {interval}"
    elif replicates < FOR_AN_INTERVAL:
        yield f"{name}: {amount} give a range; {interval}"
    if order == "sequential" and treatments > 1:
        yield f"{name}: order sequential; what drifts with time looks like an effect of the slowest factor"


def _of_levels(group: Treatments) -> Iterator[str]:
    """Name levels that no treatment has, and factors whose levels go with one another's."""
    if len(group) == prod(map(len, group.labels)):
        return  # every combination is there
    columns = {name: group.levels.column(number) for number, name in enumerate(group.factors)}
    levels = {name: set(column) for name, column in columns.items()}
    for name, labels in zip(group.factors, group.labels, strict=True):
        gone = [label for number, label in enumerate(labels) if number not in levels[name]]
        if gone:
            yield f"{group.part}: no treatment has {name} {', '.join(gone)}"
    varying = [name for name in group.factors if len(levels[name]) > 1]
    for one, other in combinations(varying, 2):
        pairs = set(zip(columns[one], columns[other], strict=True))
        if len(pairs) == len(levels[one]) == len(levels[other]):
            yield f"{group.part}: {one} and {other} vary together, so nobody can tell their effects apart"


def _found(check: Check, table: Table) -> Mapping[str, Found]:
    """Run a check once for all treatments alike in what it looks at; return what it found by part."""
    kinds = Kinds(table, check.looks)
    numbers = kinds.treatments()
    found: dict[str, Found] = {}
    for kind in range(len(kinds)):
        said = check.of(kinds.resolved(kind))
        if said is not None:
            levels = " ".join(kinds.levels(kind).values())
            found.setdefault(kinds.part(kind), Found(0, levels, said)).treatments += numbers[kind]
    return found


def _said(name: str, check: Check, found: Found, treatments: int) -> str:
    if treatments <= 1:
        return f"{name}: {check.says}: {found.said}"
    whole = found.treatments == treatments
    many = f"all {treatments:,}" if whole else f"{found.treatments:,} of {treatments:,}"
    return f"{name}: {check.says} for {many} treatments, e.g. {found.levels}: {found.said}"


def _beside_bottleneck(testbed: Testbed, table: Table) -> Mapping[str, Sequence[str]]:
    """Name by part the flows that do not meet the bottleneck's queue although the part sets a path."""
    found: dict[str, dict[str, None]] = {}
    known: dict[tuple[str, str], frozenset[str]] = {}
    kinds = Kinds(table, {"path": _shaped, "flows": None})
    for kind in range(len(kinds)):
        part, resolved = kinds.part(kind), kinds.resolved(kind)
        for flow in resolved.flows if resolved.path else ():
            ends = (flow.from_host, flow.to_host)
            if ends not in known:
                known[ends] = ways_through(testbed, shortest_path(testbed, *ends) or ())
            if not known[ends] & _shaped(resolved.path):
                warning = f"{part}: flow '{flow.group or flow.label}' does not pass the bottleneck's queue"
                found.setdefault(part, {})[warning] = None
    return {part: tuple(warnings) for part, warnings in found.items()}


def _shaped(path: PathPlan | None) -> frozenset[str]:
    """Return the ways of a path that have a rate, so that packets queue there."""
    ways = (("down", path.down), ("up", path.up)) if path is not None else ()
    return frozenset(name for name, way in ways if way.rate_bps is not None)
