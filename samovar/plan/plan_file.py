"""Write the trials of plan.json, and read them back with every number checked.

The file holds each distinct component once (`values`), the treatments of each part as columns of indices into
them (`treatments`), and a line for each trial: id, number of the treatment through all parts, replicate,
block.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain
from typing import Any

from pydantic import BaseModel, ConfigDict, NonNegativeInt, TypeAdapter

from samovar.plan.model import CapturePlan, FlowPlan, HostPlan, LoggerPlan, PathPlan, PlanValue, RunPlan
from samovar.plan.trials import Component, Components, Slot, Treatments, Trials, kind_of

KEYS = ("values", "treatments", "trials")
TYPES: Mapping[str, Any] = {
    "run": RunPlan,
    "path": PathPlan | None,
    "hosts": HostPlan,
    "flows": tuple[FlowPlan, ...],
    "captures": tuple[CapturePlan, ...],
    "loggers": tuple[LoggerPlan, ...],
}


def json_of_trials(trials: Trials) -> Iterator[str]:
    """Yield the text of the keys values, treatments and trials of plan.json."""
    columns = (column for part in trials.parts for columns in part.components.values() for column in columns)
    distinct = sorted(set(chain.from_iterable(columns)), key=lambda component: component.number)
    yield ',\n "values": [\n'
    yield ",\n".join(component.text for component in distinct)
    yield '\n ],\n "treatments": [\n'
    yield ",\n".join(map(_json_of_part, trials.parts))
    yield '\n ],\n "trials": [\n'
    rows = zip(trials.ids, trials.slots, strict=True)
    yield ",\n".join(f'["{id_}",{slot.treatment},{slot.replicate},{slot.block}]' for id_, slot in rows)
    yield "\n ]"


def _json_of_part(part: Treatments) -> str:
    """Return the JSON of a part's treatments, a line for each column."""
    head = f'{{"part": {_dumps(part.part)}, "number": {len(part)}, "factors": {_dumps(part.factors)}'
    levels = {name: _list([row[number] for row in part.levels]) for number, name in enumerate(part.factors)}
    values: dict[str, str] = {}
    for name, columns in part.components.items():
        texts = [_list([component.number for component in column]) for column in columns]
        values[name] = texts[0] if len(texts) == 1 else f"[{','.join(texts)}]"
    return f'{head},\n "levels": {{{_lines(levels)}}},\n "resolved": {{{_lines(values)}}}}}'


def _dumps(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, allow_nan=False)


def _list(numbers: Sequence[int]) -> str:
    return f"[{','.join(map(str, numbers))}]"


def _lines(columns: Mapping[str, str]) -> str:
    return ",".join(f"\n  {_dumps(name)}: {text}" for name, text in columns.items())


class _PartColumns(PlanValue):
    """The treatments of a part in plan.json: `number` entries in each column, indices of levels or values.

    A component that contains random values has a column for each replicate.
    """

    part: str
    number: NonNegativeInt
    factors: Mapping[str, tuple[str, ...]]
    levels: Mapping[str, tuple[NonNegativeInt, ...]]
    resolved: Mapping[str, tuple[NonNegativeInt, ...] | tuple[tuple[NonNegativeInt, ...], ...]]

    def columns(self) -> Iterator[tuple[str, Sequence[Sequence[int]]]]:
        """Yield the name and the columns of each component."""
        for name, values in self.resolved.items():
            yield name, [one for one in values if isinstance(one, tuple)] or [values]  # type: ignore[list-item]


class _TrialsJson(BaseModel):
    """The keys of plan.json that hold the trials."""

    model_config = ConfigDict(defer_build=True)

    values: tuple[Any, ...]
    treatments: tuple[_PartColumns, ...]
    trials: tuple[tuple[str, NonNegativeInt, NonNegativeInt, NonNegativeInt], ...]


def read_trials(tree: Mapping[str, Any]) -> Trials:
    """Return the trials of plan.json from its parsed JSON.

    Raises pydantic's ValidationError, or ValueError, KeyError or IndexError for indices beyond their list.
    """
    file = _TrialsJson.model_validate(tree)
    parts = [(one, dict(one.columns())) for one in file.treatments]
    used = {
        (number, kind_of(name))
        for _, resolved in parts
        for name, columns in resolved.items()
        for column in columns
        for number in column
    }
    adapters = {kind: TypeAdapter[Any](TYPES[kind]) for kind in {kind for _, kind in used}}
    components, found = Components(), dict[tuple[str, int], Component]()
    for number, kind in sorted(used):  # a value is read once as each kind that it is used as
        found[kind, number] = components.add(kind, adapters[kind].validate_python(file.values[number]))
    treatments = [
        Treatments(
            part=one.part,
            factors=one.factors,
            levels=_rows(one),
            components={
                name: [[found[kind_of(name), number] for number in column] for column in columns]
                for name, columns in resolved.items()
            },
        )
        for one, resolved in parts
    ]
    ids, slots = [row[0] for row in file.trials], [Slot(*row[1:]) for row in file.trials]
    if any(slot.treatment >= sum(map(len, treatments)) for slot in slots):
        raise ValueError("a trial of an unknown treatment")
    return Trials(treatments, ids, slots)


def _rows(part: _PartColumns) -> Sequence[tuple[int, ...]]:
    """Return the levels of each treatment; raises ValueError for columns of another length."""
    columns = [part.levels[factor] for factor in part.factors]
    for column, labels in zip(columns, part.factors.values(), strict=True):
        if max(column, default=0) >= len(labels):
            raise ValueError(f"{part.part}: a level beyond the {len(labels)} of its factor")
    lengths = {len(column) for _, every in part.columns() for column in every} | {*map(len, columns)}
    if lengths != {part.number}:
        raise ValueError(f"{part.part}: columns of {sorted(lengths)} for {part.number} treatments")
    return list(zip(*columns, strict=True)) if columns else [()] * part.number
