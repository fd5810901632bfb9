"""Columns of a part's treatments: each component is worked out once for all treatments that share it.

Which factors a component depends on is found out by working it out: what it reads, it depends on. So
a column is exactly what working out every treatment by itself would give.
"""

from __future__ import annotations

from array import array
from collections.abc import Mapping, Sequence

from samovar.errors import PlanError
from samovar.plan.pool import Pool
from samovar.plan.product import Column
from samovar.plan.resolve import Component
from samovar.plan.table import Treatments
from samovar.plan.treatments import Design, Reader


def treatments_of(
    name: str, design: Design, replicates: int, components: Mapping[str, Component], pool: Pool
) -> Treatments:
    """Return the treatments of a part with every component's values; raises PlanError."""
    columns = tuple(
        _column(design, replicates, component, make, pool) for component, make in components.items()
    )
    return Treatments(
        part=name,
        factors=tuple(factor.name for factor in design.factors),
        labels=design.labels,
        levels=design.combinations,
        components=tuple(components),
        columns=columns,
    )


def _column(
    design: Design, replicates: int, component: str, make: Component, pool: Pool
) -> tuple[Column, ...]:
    """Return a component's values, by treatment; one column for each replicate where draws differ."""
    depends: tuple[int, ...] = ()
    while True:
        keys = design.combinations.keys(depends)
        unique = sorted(set(keys))
        known: dict[int, int] = {}
        drawn, read = _work_out(design, depends, unique, component, make, pool, known)
        if read <= set(depends):
            break
        depends = tuple(sorted({*depends, *read}))
    columns = [_numbered(keys, known)]
    for replicate in range(2, replicates + 1) if drawn else ():
        _work_out(design, depends, unique, component, make, pool, known, replicate)
        columns.append(_numbered(keys, known))
    return tuple(columns)


def _work_out(
    design: Design,
    depends: Sequence[int],
    keys: Sequence[int],
    component: str,
    make: Component,
    pool: Pool,
    known: dict[int, int],
    replicate: int = 1,
) -> tuple[bool, set[int]]:
    """Work a component out for each key; stop when it reads a factor that the keys do not tell apart."""
    drawn, read = False, set[int]()
    for key in keys:
        reader = Reader(design, design.combinations.levels_of(key, depends), replicate)
        try:
            value = make(reader)
        except PlanError:  # of no account where the levels read are those of no treatment
            if reader.read <= set(depends):
                raise
        read |= reader.read
        if not reader.read <= set(depends):
            break
        drawn = drawn or reader.drawn
        known[key] = pool.add(component, value)
    return drawn, read


def _numbered(keys: Column, known: Mapping[int, int]) -> Column:
    if len(known) == 1:
        return array("I", known.values()) * len(keys)
    return array("I", map(known.__getitem__, keys))
