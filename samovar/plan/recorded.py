"""What a plan records, against what its scorecard, figures and tables are made of."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from samovar.experiment import Experiment
from samovar.experiment.metric_needs import NEEDS, Trace
from samovar.experiment.outputs import KINDS, Exhibits
from samovar.plan.groups import Kinds, Looks
from samovar.plan.model import Resolved
from samovar.plan.table import Table

SENDER = ("tcp-info", "siftr", "tcp-probe")


class Seen(NamedTuple):
    """What is recorded of one flow: captures at its ends; loggers at its sender, its receiver, the router."""

    near: bool
    far: bool
    sender: Collection[str]
    receiver: Collection[str]
    router: Collection[str]


HAS: Mapping[Trace, Callable[[Seen], bool]] = {
    Trace.EITHER: lambda seen: seen.near or seen.far,
    Trace.NEAR: lambda seen: seen.near,
    Trace.BOTH: lambda seen: seen.near and seen.far,
    Trace.SENDER: lambda seen: any(logger in seen.sender for logger in SENDER),
    Trace.QUEUE: lambda seen: "queue" in seen.router,
    Trace.BEACONS: lambda seen: "beacons" in seen.sender and "beacons" in seen.receiver,
    Trace.PAUSES: lambda seen: seen.near or "pause-frames" in seen.sender,
    Trace.DROPS: lambda seen: "nic" in seen.sender or "siftr" in seen.sender,
    Trace.CARD: lambda seen: "nic" in seen.sender,
}


def unrecorded(experiment: Experiment, table: Table, exhibits: Exhibits) -> Iterator[str]:
    """Say of expectations, figures and tables that nothing is recorded which they could be made of."""
    seen = _seen(table)
    for line in experiment.expect:
        lacking = _lacking([(line.metric,)], _of_parts(seen, [line.part] if line.part else ()))
        if lacking:
            yield f"expect: {line.metric} {_takes(lacking)}; the scorecard will say no data"
    for kind, entries in zip(KINDS, (experiment.figures, experiment.tables), strict=True):
        for entry in entries:
            lacking = _lacking(_shown(entry, kind, exhibits), _of_parts(seen, _listed(entry.get("part", ()))))
            if lacking:
                yield f"{kind} {entry[kind]} {_takes(lacking)}; the report will say so in its place"


def _takes(lacking: Iterable[Trace]) -> str:
    return f"takes {' and '.join(trace.value for trace in lacking)}, which no trial has"


def _shown(entry: Mapping[str, Any], kind: str, exhibits: Exhibits) -> Sequence[Sequence[str]]:
    """Return what a figure or table shows: groups of metrics, of which it needs one."""
    exhibit = exhibits.get(kind, {}).get(str(entry[kind]))
    if exhibit is None or exhibit.shows:
        return exhibit.shows if exhibit else []
    keys = [key for key in ("metric", "metrics") if key in exhibit.options and key in entry]
    return [(metric,) for key in keys for metric in _listed(entry[key])]


def _listed(value: Any) -> Sequence[str]:
    return [str(one) for one in value] if isinstance(value, list | tuple) else [str(value)]


def _of_parts(seen: Mapping[str, Collection[Seen]], parts: Collection[str]) -> list[Seen]:
    return [one for name, flows in seen.items() if not parts or name in parts for one in flows]


def _lacking(groups: Sequence[Sequence[str]], flows: Collection[Seen]) -> list[Trace]:
    """Return what lacks for the first of several groups of metrics; nothing where a flow has all for one."""
    needs = [[trace for metric in group for trace in NEEDS.get(metric, ())] for group in groups]
    if not flows or not needs or any(all(HAS[one](seen) for one in need) for need in needs for seen in flows):
        return []
    first = list(dict.fromkeys(needs[0]))
    never = [one for one in first if not any(HAS[one](seen) for seen in flows)]
    return never or first


def _seen(table: Table) -> dict[str, set[Seen]]:
    """Return by part what is recorded of any of its flows."""
    looks: Looks = {
        "path": lambda path: path and path.router,
        "flows": lambda flows: tuple((flow.from_host, flow.to_host) for flow in flows),
        "captures": lambda captures: tuple(one.host for one in captures),
        "loggers": lambda loggers: tuple((one.logger, one.host) for one in loggers),
    }
    kinds = Kinds(table, looks)
    found: dict[str, set[Seen]] = {}
    for kind in range(len(kinds)):
        resolved = kinds.resolved(kind)
        found.setdefault(kinds.part(kind), set()).update(_of_flows(resolved))
    return found


def _of_flows(resolved: Resolved) -> Iterator[Seen]:
    """Yield what is recorded of each flow."""
    captured = {capture.host for capture in resolved.captures}
    at: dict[str, set[str]] = {}
    for one in resolved.loggers:
        at.setdefault(one.host, set()).add(one.logger)
    loggers = {host: frozenset(names) for host, names in at.items()}
    none = frozenset[str]()
    router = loggers.get(resolved.path.router, none) if resolved.path else none
    for ends in {(flow.from_host, flow.to_host) for flow in resolved.flows}:
        near, far = (host in captured for host in ends)
        sender, receiver = (loggers.get(host, none) for host in ends)
        yield Seen(near, far, sender, receiver, router)
