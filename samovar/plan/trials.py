"""The trials of a plan as a sequence; trials share equal values, and treatments can be grouped by them.

What a trial sets, runs and records consists of components: `run`, `path`, `hosts.NAME` for each host,
`flows`, `captures` and `loggers`. Equal components are one object. Whatever depends on some components only
is therefore computed once for each group of treatments that have them in common (`Trials.groups`), not once
for each trial.
"""

from __future__ import annotations

import hashlib
import json
from bisect import bisect_right
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Any, NamedTuple, overload

from samovar.plan.model import PlanValue, Resolved, RunPlan, Trial

HOST = "hosts."
DIGEST_BYTES = 16

View = Mapping[str, Callable[[Any], Hashable] | None]
"""What to compare of treatments: the name of a component, or `hosts` for every host, to a key of its value.

None compares the whole component.
"""
ALL_COMPONENTS: View = dict.fromkeys(("run", "path", "hosts", "flows", "captures", "loggers"))
TRAFFIC_AND_RECORDING: View = dict.fromkeys(("run", "path", "flows", "captures", "loggers"))
"""What decides how long a trial takes and how much it records."""


@dataclass(frozen=True, eq=False, slots=True)
class Component:
    """A value that treatments share; `number` is its index in plan.json, `text` its canonical JSON."""

    number: int
    value: Any
    text: str
    digest: bytes


class Components:
    """The distinct components of a plan, in the order in which they were first needed."""

    def __init__(self) -> None:
        self._by_text: dict[tuple[str, str], Component] = {}

    def __iter__(self) -> Iterator[Component]:
        return iter(self._by_text.values())

    def add(self, name: str, value: object) -> Component:
        """Return the component with this value, a new one if there is none of this kind yet."""
        text = canonical_json(value)
        key = kind_of(name), text
        if key not in self._by_text:
            digest = hashlib.sha256(text.encode()).digest()[:DIGEST_BYTES]
            self._by_text[key] = Component(len(self._by_text), value, text, digest)
        return self._by_text[key]


def kind_of(name: str) -> str:
    """Return the kind of a component: `hosts` for `hosts.src`, and the name itself for the others."""
    return name.partition(".")[0]


def canonical_json(value: object) -> str:
    """Return the JSON text of a component's value; equal values have equal texts."""
    return json.dumps(
        _plain(value), sort_keys=True, ensure_ascii=False, allow_nan=False, separators=(",", ":")
    )


def _plain(value: object) -> Any:
    if isinstance(value, PlanValue):
        return value.as_json()
    return list(map(_plain, value)) if isinstance(value, tuple) else value


def resolved_of(values: Mapping[str, Any]) -> Resolved:
    """Assemble what a trial sets, runs and records from the values of its components."""
    run: RunPlan = values["run"]
    return Resolved.model_construct(
        mtu_bytes=run.mtu_bytes,
        duration_s=run.duration_s,
        deadline_s=run.deadline_s,
        path=values["path"],
        hosts={name.removeprefix(HOST): host for name, host in values.items() if name.startswith(HOST)},
        flows=values["flows"],
        captures=values["captures"],
        loggers=values["loggers"],
        stop=run.stop,
    )


@dataclass(frozen=True)
class Treatments:
    """The treatments of one part in columns: entry n of each column belongs to treatment n.

    `factors` holds the labels of each factor's levels, `levels` the numbers of a treatment's levels. A
    component has one column, or one for each replicate if it contains random values.
    """

    part: str
    factors: Mapping[str, tuple[str, ...]]
    levels: Sequence[tuple[int, ...]]
    components: Mapping[str, Sequence[Sequence[Component]]]

    def __len__(self) -> int:
        return len(self.levels)

    def labels(self, treatment: int) -> dict[str, str]:
        """Return the labels of a treatment's levels, by factor."""
        levels = self.levels[treatment]
        return {
            name: labels[level] for (name, labels), level in zip(self.factors.items(), levels, strict=True)
        }

    def columns(self, replicate: int) -> dict[str, Sequence[Component]]:
        """Return the column of every component for one replicate, by name."""
        return {name: columns[(replicate - 1) % len(columns)] for name, columns in self.components.items()}

    def resolved(self, treatment: int, replicate: int = 1) -> Resolved:
        """Return what the trials of a treatment set, run and record in one replicate."""
        return resolved_of(
            {name: column[treatment].value for name, column in self.columns(replicate).items()}
        )


class Slot(NamedTuple):
    """The place of a trial in the order: the number of its treatment, its replicate and its block."""

    treatment: int
    replicate: int
    block: int


@dataclass(frozen=True)
class Group:
    """Treatments of one part that are equal in a view.

    `levels` and `resolved` are those of the first treatment, in its first replicate. `treatments` counts
    them, and `trials` holds the ids of their trials in the plan's order.
    """

    part: str
    levels: Mapping[str, str]
    resolved: Resolved
    treatments: int
    trials: Sequence[str]


class Trials(Sequence[Trial]):
    """The trials of a plan in their order; the slots count treatments through all parts."""

    def __init__(self, parts: Sequence[Treatments], ids: Sequence[str], slots: Sequence[Slot]) -> None:
        self.parts, self.ids, self.slots = tuple(parts), tuple(ids), tuple(slots)
        self._ends = list(accumulate(map(len, self.parts)))

    def __len__(self) -> int:
        return len(self.ids)

    @overload
    def __getitem__(self, index: int) -> Trial: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[Trial]: ...
    def __getitem__(self, index: int | slice) -> Trial | Sequence[Trial]:
        numbers = range(len(self))[index]
        return self._trial(numbers) if isinstance(numbers, int) else list(map(self._trial, numbers))

    def __iter__(self) -> Iterator[Trial]:
        return map(self._trial, range(len(self)))

    def _trial(self, number: int) -> Trial:
        slot = self.slots[number]
        at = bisect_right(self._ends, slot.treatment)
        part = self.parts[at]
        treatment = slot.treatment - (self._ends[at] - len(part))
        return Trial(
            id=self.ids[number],
            part=part.part,
            treatment=part.labels(treatment),
            replicate=slot.replicate,
            block=slot.block,
            resolved=lambda: part.resolved(treatment, slot.replicate),
        )

    def groups(self, view: View) -> list[Group]:
        """Return the groups of treatments that are equal in a view of their first replicate, in order."""
        firsts: list[tuple[Treatments, int]] = []
        group_of: list[int] = []
        for part in self.parts:
            numbers: dict[Hashable, int] = {}
            for treatment, key in enumerate(_keys(part, view)):
                number = numbers.setdefault(key, len(firsts))
                if number == len(firsts):
                    firsts.append((part, treatment))
                group_of.append(number)
        treatments = [0] * len(firsts)
        for number in group_of:
            treatments[number] += 1
        trials: list[list[str]] = [[] for _ in firsts]
        for id_, slot in zip(self.ids, self.slots, strict=True):
            trials[group_of[slot.treatment]].append(id_)
        return [
            Group(part.part, part.labels(first), part.resolved(first), count, ids)
            for (part, first), count, ids in zip(firsts, treatments, trials, strict=True)
        ]


def _keys(part: Treatments, view: View) -> Iterable[Hashable]:
    """Return for each treatment of a part what a view compares of it."""
    columns: list[Sequence[Hashable]] = []
    for name, column in part.columns(1).items():
        key = name if name in view else kind_of(name)
        if key not in view:
            continue
        key_of, distinct = view[key], set(column)
        keys: dict[Component, Hashable] = {
            component: component if key_of is None else key_of(component.value) for component in distinct
        }
        if len(set(keys.values())) > 1:
            columns.append([keys[component] for component in column])
    return zip(*columns, strict=True) if columns else [()] * len(part)
