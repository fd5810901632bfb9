"""The plan as a value, and as the bytes of plan.json (schema 2): the same plan gives the same bytes."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from pydantic import ConfigDict, Field, SkipValidation, ValidationError

from samovar.errors import PlanError
from samovar.plan.model import Trial, Value
from samovar.plan.plan_file import KEYS, read_trials, table_of, texts_of
from samovar.plan.table import Table

SCHEMA = 2
EXPECTED = "expected a plan written by samovar"


class PartPlan(Value):
    """One part of the design: its factors with their levels as written."""

    name: str
    title: str
    factors: Mapping[str, tuple[str, ...]]
    replicates: int


class Changes(Value):
    """How often hosts reboot or reset interfaces in the plan's order, and would in a naive one.

    Naive is block after block, each in the order of the file. `boots` is how often trials wait for hosts that
    reboot, those that reboot at the same time counting once.
    """

    reboots: int = 0
    resets: int = 0
    naive_reboots: int = 0
    naive_resets: int = 0
    boots: int = 0


class Head(Value):
    """Everything of a plan but its trials."""

    schema_version: int = Field(default=SCHEMA, alias="schema")
    experiment: str
    title: str
    source: str
    description: str
    profile: str | None
    overrides: Mapping[str, str] = Field(default_factory=dict)
    testbed: str
    seed: int
    order: str
    parts: tuple[PartPlan, ...]
    changes: Changes = Changes()
    figures: tuple[Mapping[str, Any], ...]
    tables: tuple[Mapping[str, Any], ...]
    warnings: tuple[str, ...] = ()


class Plan(Head):
    """The ordered trials of one experiment on one testbed."""

    model_config = ConfigDict(arbitrary_types_allowed=True, defer_build=True)

    trials: SkipValidation[Sequence[Trial]]

    @property
    def table(self) -> Table:
        """The trials with every value held once."""
        return self.trials if isinstance(self.trials, Table) else table_of(self.trials)

    def as_json(self) -> dict[str, Any]:
        """Return the plain form with every trial in full, which plan.json has not."""
        return {**self._head(), "trials": [trial.as_json() for trial in self.trials]}

    def _head(self) -> dict[str, Any]:
        return Head.model_dump(self, mode="json", by_alias=True, exclude={"trials"})

    def to_json(self) -> bytes:
        """Return the bytes of plan.json: one line for each value, treatment and trial."""
        return "".join(self._texts()).encode()

    def _texts(self) -> Iterator[str]:
        yield json.dumps(self._head(), ensure_ascii=False, allow_nan=False, indent=1)[:-2]
        yield from texts_of(self.table)
        yield "\n}\n"

    @classmethod
    def from_json(cls, data: bytes) -> Plan:
        """Read plan.json back; raises PlanError when it is not one of this schema."""
        tree = _tree(data)
        schema = tree.get("schema")
        if schema != SCHEMA:
            raise PlanError(_other_schema(schema))
        table = read_trials(tree)
        head = {key: value for key, value in tree.items() if key not in KEYS}
        try:
            return cls.model_validate({**head, "trials": table})
        except ValidationError as error:
            first = error.errors(include_url=False)[0]
            where = ".".join(str(part) for part in first["loc"]) or "the file"
            raise PlanError(f"plan.json: {where}: {first['msg'].lower()}; {EXPECTED}") from error


def _other_schema(schema: object) -> str:
    whose = "an earlier release" if schema == 1 else "another release"
    remedy = "use the release that made the campaign, or begin another one with `fab run`"
    return f"plan.json: schema {schema} of {whose}; this one reads schema {SCHEMA}: {remedy}"


def _tree(data: bytes) -> dict[str, Any]:
    try:
        tree = json.loads(data)
    except ValueError as error:
        raise PlanError(f"plan.json: is no JSON ({error}); {EXPECTED}") from error
    if not isinstance(tree, dict):
        raise PlanError(f"plan.json: is no mapping; {EXPECTED}")
    return tree
