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

from pydantic import TypeAdapter, ValidationError

from samovar.errors import PlanError
from samovar.plan.model import CapturePlan, FlowPlan, HostPlan, LoggerPlan, PathPlan, RunPlan
from samovar.plan.trials import Component, Components, Slot, Treatments, Trials, kind_of

KEYS = ("values", "treatments", "trials")
EXPECTED = "expected a plan written by samovar"
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


def read_trials(tree: Mapping[str, Any]) -> Trials:
    """Return the trials of plan.json from its parsed JSON; raises PlanError."""
    try:
        components = _read_components(tree)
        parts = [_read_part(one, components) for one in tree["treatments"]]
        ids = [str(row[0]) for row in tree["trials"] if isinstance(row[0], str)]
        slots = [Slot(*map(_index, row[1:])) for row in tree["trials"]]
        treatments = sum(map(len, parts))
        if len(ids) < len(slots) or any(slot.treatment >= treatments for slot in slots):
            raise PlanError(f"plan.json: trials without an id, or of unknown treatments; {EXPECTED}")
        return Trials(parts, ids, slots)
    except (KeyError, TypeError, ValueError, IndexError, AttributeError) as error:
        raise PlanError(f"plan.json: cannot read the trials ({error!r}); {EXPECTED}") from error


def _index(number: object) -> int:
    if not isinstance(number, int) or number < 0:
        raise ValueError(f"{number!r} is not an index")
    return number


def _read_components(tree: Mapping[str, Any]) -> Mapping[tuple[str, int], Component]:
    """Return the components by kind and index: a value is read once as each kind that it is used as."""
    used = {
        (_index(number), kind_of(name))
        for part in tree["treatments"]
        for name, values in part["resolved"].items()
        for column in _columns(values)
        for number in column
    }
    adapters = {kind: TypeAdapter[Any](TYPES[kind]) for kind in {kind for _, kind in used}}
    components, found = Components(), dict[tuple[str, int], Component]()
    for number, kind in sorted(used):
        try:
            found[kind, number] = components.add(kind, adapters[kind].validate_python(tree["values"][number]))
        except ValidationError as error:
            first = error.errors(include_url=False)[0]
            where = ".".join(map(str, ("values", number, *first["loc"])))
            raise PlanError(f"plan.json: {where}: {first['msg'].lower()}; {EXPECTED}") from error
    return found


def _columns(values: Sequence[Any]) -> Sequence[Sequence[Any]]:
    return values if values and isinstance(values[0], list) else [values]


def _read_part(tree: Mapping[str, Any], components: Mapping[tuple[str, int], Component]) -> Treatments:
    part, number = str(tree["part"]), int(tree["number"])
    factors = {str(name): tuple(map(str, labels)) for name, labels in tree["factors"].items()}
    levels = [_checked(part, tree["levels"][name], number, len(labels)) for name, labels in factors.items()]
    resolved: dict[str, Sequence[Sequence[Component]]] = {}
    for name, values in tree["resolved"].items():
        kind = kind_of(name)
        columns = [_checked(part, column, number) for column in _columns(values)]
        resolved[str(name)] = [[components[kind, one] for one in column] for column in columns]
    rows = list(zip(*levels, strict=True)) if levels else [()] * number
    return Treatments(part=part, factors=factors, levels=rows, components=resolved)


def _checked(part: str, column: Sequence[Any], treatments: int, levels: int | None = None) -> Sequence[int]:
    """Return a column after checking that it has an index for each treatment, of one of so many levels."""
    if len(column) != treatments:
        raise ValueError(f"{part}: a column of {len(column)} for {treatments} treatments")
    if levels is not None and any(_index(number) >= levels for number in column):
        raise ValueError(f"{part}: a level beyond the {levels} of its factor")
    return column
