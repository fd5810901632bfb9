"""Divide the trials of a plan into shards, which several controllers run independently of each other."""

from __future__ import annotations

import re
from dataclasses import dataclass
from itertools import accumulate

from samovar.errors import DefinitionError, PlanError
from samovar.plan.plan import Plan
from samovar.units import counted

_TEXT = re.compile(r"([1-9][0-9]{0,5})/([1-9][0-9]{0,5})")


@dataclass(frozen=True, order=True)
class Shard:
    """One of `of` shards of a plan; `number` counts from 1. Written `2/4`."""

    of: int
    number: int

    def __str__(self) -> str:
        """Return the shard as written after --shard, such as `2/4`."""
        return f"{self.number}/{self.of}"

    @classmethod
    def parse(cls, text: str) -> Shard:
        """Return the shard that a text such as `2/4` means. Raises DefinitionError."""
        match = _TEXT.fullmatch(text)
        if match and int(match[1]) <= int(match[2]):
            return cls(int(match[2]), int(match[1]))
        message = "not a shard; must be NUMBER/SHARDS, counted from 1, such as 2/4"
        raise DefinitionError.at(f"--shard {text}", message)

    @classmethod
    def all_of(cls, of: int) -> tuple[Shard, ...]:
        """Return all shards of a plan that is divided into `of` shards."""
        return tuple(cls(of, number) for number in range(1, of + 1))

    def ids(self, plan: Plan) -> tuple[str, ...]:
        """Return the ids of the shard's trials in the plan's order.

        A shard consists of whole replicates, in which every treatment of a part runs once. In a blocked
        order, replicates are blocks. Replicates are dealt to the shards in turn. Raises PlanError if there
        are more shards than replicates.
        """
        before = [0, *accumulate(part.replicates for part in plan.parts)]
        if self.of > (most := before[-1]):
            at_most = f"at most {counted(most, 'shard')}"
            raise PlanError(
                f"--shard {self}: {plan.experiment} can be divided into {at_most}, since a shard has whole "
                f"replicates, in which every treatment of a part runs once; use {at_most}, or more replicates"
            )
        place = {part.name: start for part, start in zip(plan.parts, before, strict=False)}
        of_treatment = [place[part.part] for part in plan.trials.parts for _ in range(len(part))]
        return tuple(
            id_
            for id_, slot in zip(plan.ids, plan.trials.slots, strict=True)
            if (of_treatment[slot.treatment] + slot.replicate - 1) % self.of == self.number - 1
        )
