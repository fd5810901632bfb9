"""Warnings about a plan that can run, but perhaps cannot answer the experiment's question.

Each warning is given once for a part, with the number of treatments that it applies to and an example.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import combinations
from math import prod
from typing import Any

from samovar.experiment import Experiment, Output, Outputs, RecipeCatalogue, Testbed, yaml_tree
from samovar.plan.factor_effects import FactorEffects
from samovar.plan.model import PathPlan
from samovar.plan.placement import Placement
from samovar.plan.trials import Group, Treatments, Trials, View
from samovar.plan.warning_checks import CHECKS, TreatmentCheck

FEWEST_REPLICATES = 3
FOR_95_PERCENT = 6
"""Fewest replicates for a 95 % interval: with 5, the range has 1 - 2 (1/2)^5 = 94 % confidence."""

NOT_RECORDED = {
    "captures": "throughput, RTT and loss cannot be measured",
    "loggers": "the state of TCP, such as cwnd, and of the queue cannot be measured",
}
"""Text about the measurements that are impossible if a part has no captures, or no loggers."""


def warnings_of(
    experiment: Experiment,
    testbed: Testbed,
    trials: Trials,
    outputs: Outputs,
    catalogue: RecipeCatalogue,
) -> tuple[str, ...]:
    """Return the warnings of a whole plan, each once, in a stable order: by part, then by kind."""
    treatments = {part.part: part for part in trials.parts}
    beside = _beside_bottleneck(testbed, trials)
    effects = FactorEffects(experiment, testbed, catalogue)
    found = [_run_check(check, trials, catalogue) for check in CHECKS]
    warnings: list[str] = []
    for name, part in experiment.parts.items():
        warnings += _design_warnings(name, part.replicates, experiment.order.kind, len(treatments[name]))
        written = yaml_tree.node_at(experiment.tree, "parts", name)
        for key, lost in NOT_RECORDED.items():
            if not getattr(part, key) and yaml_tree.node_at(written, key) is None:
                warnings.append(f"{name}: no {key}; {lost}; write `{key}: []` if none are intended")
        warnings += _level_warnings(treatments[name])
        warnings += effects.warnings(treatments[name])
        warnings += beside.get(name, ())
        warnings += [texts[name] for texts in found if name in texts]
    if not experiment.figures and yaml_tree.node_at(experiment.tree, "figures") is None:
        warnings.append("no figures; the report will draw nothing; write `figures: []` if none are intended")
    return tuple(dict.fromkeys((*warnings, *_unrecorded(experiment, trials, outputs))))


def _design_warnings(name: str, replicates: int, order: str, treatments: int) -> Iterator[str]:
    amount = "1 replicate" if replicates == 1 else f"{replicates} replicates"
    if replicates < FEWEST_REPLICATES:
        needs = f"an interval of the median needs {FEWEST_REPLICATES}, a 95 % interval needs {FOR_95_PERCENT}"
        yield f"{name}: {amount}; {needs}"
    elif replicates < FOR_95_PERCENT:
        confidence = 100 * (1 - 2 * 0.5**replicates)
        needs = f"a 95 % interval needs {FOR_95_PERCENT}"
        yield f"{name}: {amount} give a {confidence:g} % interval of the median; {needs}"
    if order == "sequential" and treatments > 1:
        drift = "drift over time looks like an effect of the factor that changes least often"
        yield f"{name}: order sequential; {drift}"


def _level_warnings(part: Treatments) -> Iterator[str]:
    """Yield the levels that no treatment has, and the factors whose levels always change together."""
    if len(part) == prod(map(len, part.factors.values())):
        return  # every combination is present
    columns = dict(zip(part.factors, zip(*part.levels, strict=True), strict=True))
    present = {name: set(column) for name, column in columns.items()}
    for name, labels in part.factors.items():
        missing = [label for number, label in enumerate(labels) if number not in present[name]]
        if missing:
            yield f"{part.part}: no treatment has {name} {', '.join(missing)}"
    varying = [name for name in part.factors if len(present[name]) > 1]
    for one, other in combinations(varying, 2):
        pairs = set(zip(columns[one], columns[other], strict=True))
        if len(pairs) == len(present[one]) == len(present[other]):
            yield f"{part.part}: {one} and {other} vary together, so their effects cannot be separated"


def _beside_bottleneck(testbed: Testbed, trials: Trials) -> Mapping[str, Collection[str]]:
    """Return, for each part, warnings about flows that bypass the queue although a path is set."""
    found: dict[str, dict[str, None]] = {}
    placement = Placement(testbed)
    for group in trials.groups({"path": _shaped, "flows": None}):
        for flow in group.resolved.flows if group.resolved.path else ():
            route = placement.route(flow.from_host, flow.to_host)
            if route is None or not route.directions & _shaped(group.resolved.path):
                label = flow.group or flow.label
                warning = f"{group.part}: flow '{label}' does not pass the bottleneck's queue"
                found.setdefault(group.part, {})[warning] = None
    return found


def _shaped(path: PathPlan | None) -> frozenset[str]:
    """Return the directions of a path that have a rate, so that packets queue there."""
    directions = (("down", path.down), ("up", path.up)) if path is not None else ()
    return frozenset(name for name, direction in directions if direction.rate_bps is not None)


def _run_check(check: TreatmentCheck, trials: Trials, catalogue: RecipeCatalogue) -> Mapping[str, str]:
    """Run a check once for each group of treatments that give it equal inputs; return warnings by part."""
    found: dict[str, list[tuple[Group, str]]] = {}
    for group in trials.groups(check.view):
        details = check.find(group.resolved, catalogue)
        if details is not None:
            found.setdefault(group.part, []).append((group, details))
    sizes = {part.part: len(part) for part in trials.parts}
    warnings: dict[str, str] = {}
    for part, affected in found.items():
        group, details = affected[0]
        treatments, total, where = sum(one.treatments for one, _ in affected), sizes[part], ""
        if total > 1:
            many = f"all {treatments:,}" if treatments == total else f"{treatments:,} of {total:,}"
            where = f" for {many} treatments, e.g. {' '.join(group.levels.values())}"
        warnings[part] = f"{part}: {check.message}{where}: {details}"
    return warnings


FlowTraces = frozenset[str]
"""The recordings of a flow, such as `sender:capture` and `router:queue`."""


def _unrecorded(experiment: Experiment, trials: Trials, outputs: Outputs) -> Iterator[str]:
    """Yield the expectations, figures and tables whose data are not recorded in any trial."""
    traces = _traces_by_part(trials)
    asked: list[tuple[str, Sequence[Sequence[str]], Sequence[str], str]] = []
    for line in experiment.expect:
        parts = _listed(line.part or ())
        asked.append((f"expect: {line.metric}", [(line.metric,)], parts, "the scorecard will report no data"))
    for kind, entries in (("figure", experiment.figures), ("table", experiment.tables)):
        for entry in entries:
            metrics = _metrics_of(entry, outputs.kinds[kind].get(str(entry[kind])))
            parts = _listed(entry.get("part", ()))
            asked.append(
                (f"{kind} {entry[kind]}", metrics, parts, "the report will have a note in its place")
            )
    for name, metrics, parts, consequence in asked:
        flows = [one for part, own in traces.items() if not parts or part in parts for one in own]
        missing = " and ".join(outputs.quantities[one].what for one in _missing(outputs, metrics, flows))
        if missing:
            yield f"{name} needs {missing}, which no trial records; {consequence}"
    yield from _unrecorded_series(experiment, traces, outputs)


def _unrecorded_series(
    experiment: Experiment, traces: Mapping[str, Collection[FlowTraces]], outputs: Outputs
) -> Iterator[str]:
    """Yield the quantities over time that figures show although they are not recorded in any trial."""
    for entry in experiment.figures:
        output = outputs.figures.get(str(entry["figure"]))
        options = (
            [key for key, one in output.options.items() if one.type in ("series", "measure")]
            if output
            else []
        )
        parts = _listed(entry.get("part", ()))
        flows = [one for part, own in traces.items() if not parts or part in parts for one in own]
        for name in (one for key in options if key in entry for one in _listed(entry[key])):
            series = outputs.series.get(name)
            if series and flows and not any(outputs.records(flow, series) for flow in flows):
                needs = " or ".join(outputs.source_text(group) for group in series.sources)
                yield f"figure {entry['figure']} shows {name}, which needs {needs}; no trial records it"


def _metrics_of(entry: Mapping[str, Any], output: Output | None) -> Sequence[Sequence[str]]:
    """Return a figure's or table's groups of metrics. The output needs all metrics of one of the groups."""
    if output is None or output.shows:
        return output.shows if output else []
    types = ("metric", "measure")
    keys = [key for key, option in output.options.items() if option.type in types and key in entry]
    return [(metric,) for key in keys for metric in _listed(entry[key])]


def _listed(value: Any) -> Sequence[str]:
    return [str(one) for one in value] if isinstance(value, list | tuple) else [str(value)]


def _missing(outputs: Outputs, groups: Sequence[Sequence[str]], flows: Collection[FlowTraces]) -> list[str]:
    """Return the quantities that are missing for the first group of metrics.

    The result is empty if at least one flow has all quantities that a group needs.
    """
    known = outputs.metrics
    needs = [[need for name in group if name in known for need in known[name].needs] for group in groups]

    def has(flow: FlowTraces, need: str) -> bool:
        return any(flow.issuperset(wanted) for wanted in outputs.quantities[need].alternatives)

    met = any(all(has(flow, need) for need in group) for group in needs for flow in flows)
    if not flows or not needs or met:
        return []
    first = list(dict.fromkeys(needs[0]))
    return [need for need in first if not any(has(flow, need) for flow in flows)] or first


def _traces_by_part(trials: Trials) -> Mapping[str, Collection[FlowTraces]]:
    """Return, for each part, the different sets of recordings that its flows have."""
    view: View = {
        "path": lambda path: path and path.router,
        "flows": lambda flows: tuple((flow.from_host, flow.to_host, flow.generator) for flow in flows),
        "captures": lambda captures: tuple(one.host for one in captures),
        "loggers": lambda loggers: tuple((one.logger, one.host) for one in loggers),
    }
    found: dict[str, set[FlowTraces]] = {}
    for group in trials.groups(view):
        resolved, own = group.resolved, found.setdefault(group.part, set())
        recorded = [("capture", one.host) for one in resolved.captures]
        recorded += [(one.logger, one.host) for one in resolved.loggers]
        router = resolved.path.router if resolved.path else ""
        for flow in resolved.flows:
            ends = {"sender": flow.from_host, "receiver": flow.to_host, "router": router}
            traces = {f"{end}:{what}" for what, at in recorded for end in ends if ends[end] == at}
            own.add(frozenset(traces | {f"flow:{flow.generator}"}))
    return found
