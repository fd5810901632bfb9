"""The plan as a value: what every trial sets, runs and records, in full and in order.

The field names (or their aliases) are the keys of plan.json.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from samovar.errors import PlanError

SCHEMA = 1


class Value(BaseModel):
    """A frozen part of a plan."""

    model_config = ConfigDict(frozen=True, extra="forbid", populate_by_name=True)

    def as_json(self) -> dict[str, Any]:
        """Return the plain form, with the keys of plan.json."""
        return self.model_dump(mode="json", by_alias=True)


class PathPlan(Value):
    """What the bottleneck is set to for one trial."""

    router: str
    from_interface: str
    to_interface: str
    rate_bps: int
    rtt_s: float
    loss: float
    aqm: str
    buffer_packets: int | None
    buffer_bytes: int | None
    aqm_parameters: Mapping[str, str] = Field(default_factory=dict)


class HostPlan(Value):
    """What one host is set to; None leaves a setting as it is found."""

    os: str
    role: str
    cc: str | None
    rwnd_bytes: int | None
    mtu_bytes: int | None
    txd: int | None
    interfaces: tuple[str, ...]
    cc_parameters: Mapping[str, str] = Field(default_factory=dict)


class FlowPlan(Value):
    """One flow: data goes from `from_host` to `to_host`, which listens on the port."""

    label: str
    generator: str
    from_host: str = Field(alias="from")
    to_host: str = Field(alias="to")
    from_address: str
    to_address: str
    port: int
    start_s: float
    duration_s: float | None
    size_bytes: int | None
    parameters: Mapping[str, str] = Field(default_factory=dict)


class CapturePlan(Value):
    """One packet capture."""

    host: str
    interface: str
    snaplen_bytes: int


class LoggerPlan(Value):
    """One logger on one host."""

    logger: str
    host: str
    interface: str
    interval_s: float
    parameters: Mapping[str, str] = Field(default_factory=dict)


class Resolved(Value):
    """Everything a trial needs to know; the trial's id is a hash of it."""

    mtu_bytes: int | None
    duration_s: float
    deadline_s: float
    path: PathPlan | None
    hosts: Mapping[str, HostPlan]
    flows: tuple[FlowPlan, ...]
    captures: tuple[CapturePlan, ...]
    loggers: tuple[LoggerPlan, ...]


class Trial(Value):
    """One replicate of one treatment."""

    id: str
    part: str
    treatment: Mapping[str, str]
    replicate: int
    block: int
    resolved: Resolved


class PartPlan(Value):
    """One part of the design: its factors with their levels as written."""

    name: str
    title: str
    factors: Mapping[str, tuple[str, ...]]
    replicates: int


class Plan(Value):
    """The ordered trials of one experiment on one testbed."""

    schema_version: int = Field(default=SCHEMA, alias="schema")
    experiment: str
    title: str
    source: str
    description: str
    profile: str | None
    testbed: str
    seed: int
    order: str
    parts: tuple[PartPlan, ...]
    figures: tuple[Mapping[str, Any], ...]
    tables: tuple[Mapping[str, Any], ...]
    warnings: tuple[str, ...] = ()
    trials: tuple[Trial, ...]

    def to_json(self) -> bytes:
        """Return the canonical bytes of plan.json: the same plan gives the same bytes."""
        text = json.dumps(self.as_json(), ensure_ascii=False, allow_nan=False, indent=1)
        return text.encode() + b"\n"

    @classmethod
    def from_json(cls, data: bytes) -> Plan:
        """Read plan.json back; raises PlanError when it is not one of this schema."""
        try:
            plan = cls.model_validate_json(data)
        except ValidationError as error:
            first = error.errors(include_url=False)[0]
            where = ".".join(str(part) for part in first["loc"]) or "the file"
            message = f"plan.json: {where}: {first['msg'].lower()}; expected a plan written by samovar"
            raise PlanError(message) from error
        if plan.schema_version != SCHEMA:
            raise PlanError(f"plan.json: schema {plan.schema_version}; this version reads schema {SCHEMA}")
        return plan
