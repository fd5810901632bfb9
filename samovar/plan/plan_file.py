"""Write the trials of plan.json, and read them back with every number checked.

The file has each distinct component once (`values`), the treatments of each part as columns of indices into
`values` (`treatments`), and a line for each trial (`trials`): its id, treatment (numbered across all parts),
replicate and block.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from itertools import chain
from typing import Annotated, Any

from pydantic import (
    BeforeValidator,
    ConfigDict,
    NonNegativeInt,
    StringConstraints,
    TypeAdapter,
    model_validator,
)

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
    """Yield the text of the keys `values`, `treatments` and `trials` of plan.json."""
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
    head = {"part": part.part, "number": len(part), "factors": part.factors}
    levels = {name: [row[number] for row in part.levels] for number, name in enumerate(part.factors)}
    values: dict[str, Any] = {}
    for name, columns in part.components.items():
        numbers = [[component.number for component in column] for column in columns]
        values[name] = numbers if len(numbers) > 1 else numbers[0]
    text = json.dumps(head, ensure_ascii=False, allow_nan=False)[:-1]
    return f'{text},\n "levels": {_json_of_columns(levels)},\n "resolved": {_json_of_columns(values)}}}'


def _json_of_columns(columns: Mapping[str, Any]) -> str:
    names = {name: json.dumps(name, ensure_ascii=False) for name in columns}
    lines = (f"\n  {names[name]}: {json.dumps(one, separators=(',', ':'))}" for name, one in columns.items())
    return f"{{{','.join(lines)}}}"


def _as_columns(values: Any) -> Any:
    """Return a component's columns as a list: one column, or one for each replicate if values are random."""
    is_several = isinstance(values, list) and values and isinstance(values[0], list)
    return values if is_several else [values]


Column = tuple[NonNegativeInt, ...]
FolderName = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]*$")]
"""A name that becomes part of a path, and must not lead out of the results folder."""


class _PartJson(PlanValue):
    """The treatments of a part in plan.json.

    Each column has `number` entries, which are indices of levels or values.
    """

    part: str
    number: NonNegativeInt
    factors: Mapping[str, tuple[str, ...]]
    levels: Mapping[str, Column]
    resolved: Mapping[str, Annotated[tuple[Column, ...], BeforeValidator(_as_columns)]]

    @model_validator(mode="after")
    def _check_columns(self) -> _PartJson:
        columns = chain(self.levels.values(), *self.resolved.values())
        lengths = {len(column) for column in columns}
        if lengths != {self.number}:
            raise ValueError(f"columns of {sorted(lengths)} entries for {self.number} treatments")
        if any(max(column) >= len(self.factors.get(name, ())) for name, column in self.levels.items()):
            raise ValueError("the index of a level is beyond the levels of its factor")
        return self


class _TrialsJson(PlanValue):
    """The keys of plan.json that hold the trials. Other keys are ignored."""

    model_config = ConfigDict(extra="ignore")

    values: tuple[Any, ...]
    treatments: tuple[_PartJson, ...]
    trials: tuple[tuple[FolderName, NonNegativeInt, NonNegativeInt, NonNegativeInt], ...]


def read_trials(tree: Mapping[str, Any]) -> Trials:
    """Read the trials of plan.json. Raises pydantic's ValidationError, or LookupError for a wrong index."""
    file = _TrialsJson.model_validate(tree)
    used: dict[str, set[int]] = {}
    for part in file.treatments:
        for name, columns in part.resolved.items():
            used.setdefault(kind_of(name), set()).update(*columns)
    adapters = {kind: TypeAdapter[Any](TYPES[kind]) for kind in used}
    components = Components()
    found: dict[str, dict[int, Component]] = {kind: {} for kind in used}
    for number, kind in sorted((number, kind) for kind, numbers in used.items() for number in numbers):
        value = adapters[kind].validate_python(
            file.values[number]
        )  # once for each kind of component that uses it
        found[kind][number] = components.add(kind, value)
    parts = [
        Treatments(
            part=one.part,
            factors=one.factors,
            levels=list(zip(*(one.levels[name] for name in one.factors), strict=True)) or [()] * one.number,
            components={
                name: [list(map(found[kind_of(name)].__getitem__, column)) for column in every]
                for name, every in one.resolved.items()
            },
        )
        for one in file.treatments
    ]
    slots = [Slot(*row[1:]) for row in file.trials]
    if max((slot.treatment for slot in slots), default=0) >= sum(map(len, parts)):
        raise IndexError("trial of an unknown treatment")
    return Trials(parts, [row[0] for row in file.trials], slots)
