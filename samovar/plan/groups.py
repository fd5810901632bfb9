"""Trials by treatment: what holds for one replicate holds for all, and need be worked out only once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from samovar.plan.model import Resolved, Trial
from samovar.plan.table import Table


@dataclass(frozen=True)
class Treatment:
    """One combination of levels: its first trial, and the ids of all, in the plan's order."""

    first: Trial
    ids: list[str] = field(default_factory=list)

    @property
    def resolved(self) -> Resolved:
        """What the first trial comes to; replicates may differ in when their flows start."""
        return self.first.resolved


def by_treatment(table: Table) -> Sequence[Treatment]:
    """Group trials by treatment, in the order in which each comes first."""
    found: dict[int, Treatment] = {}
    for number, (treatment, id_) in enumerate(zip(table.order.treatments, table.ids, strict=True)):
        if treatment not in found:
            found[treatment] = Treatment(table[number])
        found[treatment].ids.append(id_)
    return list(found.values())
