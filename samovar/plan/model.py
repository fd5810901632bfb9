"""What a trial sets, runs and records, as values: one class for each component of a trial.

The field names (or their aliases) are the keys of plan.json and manifest.json.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, SerializerFunctionWrapHandler, model_serializer


class Value(BaseModel):
    """A frozen part of a plan."""

    model_config = ConfigDict(frozen=True, extra="forbid", populate_by_name=True, defer_build=True)

    def as_json(self) -> dict[str, Any]:
        """Return the plain form, with the keys of plan.json."""
        return self.model_dump(mode="json", by_alias=True)


class DirectionPlan(Value):
    """One way through the bottleneck: it is shaped at the interface by which the packets leave the router.

    The way through a device between two hosts has an empty interface. Without a rate nothing queues there,
    and neither aqm nor buffer is set. Shares are of 0 to 1.
    """

    interface: str = ""
    rate_bps: int | None = None
    delay_s: float = 0.0
    jitter_s: float = 0.0
    loss: float = 0.0
    loss_burst_packets: float | None = None
    reorder: float = 0.0
    duplicate: float = 0.0
    aqm: str | None = None
    buffer_packets: int | None = None
    buffer_bytes: int | None = None
    aqm_parameters: Mapping[str, str] = Field(default_factory=dict)


class MatchPlan(Value):
    """Packets that data goes by, and their answers the other way; None matches anything.

    All is said of the way down: where the packets come from and go to, subnets as 172.16.10.2/32. `port` is
    what they go to, `from_port` what they come from: that of the receiver, where data goes up.
    """

    from_subnet: str | None = None
    to_subnet: str | None = None
    port: int | None = None
    from_port: int | None = None


class ClassPlan(Value):
    """Packets with a delay and loss of their own, in place of the path's, before the same queue."""

    match: tuple[MatchPlan, ...]
    delay_down_s: float
    delay_up_s: float
    loss: float


class DevicePlan(Value):
    """A pair of adapters that joins two hosts; drift is a share of the rate, a quantum 512 bit times.

    `host` is the one where `down` begins. A lab's adapters are `settable` there; of real ones nobody can be
    asked, and all that is said of them is what they are taken to be. `seed` is that of their drift.
    """

    host: str
    settable: bool
    medium: str
    flow_control: bool
    pause_quanta: int
    drift: float = 0.0
    seed: int | None = None


class PathPlan(Value):
    """What the bottleneck is set to: `down` is the way from its `from` to its `to`, `up` the way back.

    It is a router's, or that of a link's device: then `down` begins at the link's first host in the testbed's
    file, and the router's name is empty.
    """

    router: str
    rtt_s: float
    down: DirectionPlan
    up: DirectionPlan
    classes: tuple[ClassPlan, ...] = ()
    link: str | None = None
    device: DevicePlan | None = None

    @model_serializer(mode="wrap")
    def _without_device(self, write: SerializerFunctionWrapHandler) -> dict[str, Any]:
        """Leave out what a router's path does not have, so that its trials keep their ids."""
        written: dict[str, Any] = write(self)
        return {key: value for key, value in written.items() if key not in ("link", "device") or value}


class HostPlan(Value):
    """What one host is set to; None leaves a setting as it is found.

    `settings` holds what else is set: a setting recipe's name to its parameters as written.
    """

    os: str
    release: str | None = None
    role: str
    cc: str | None
    rwnd_bytes: int | None
    mtu_bytes: int | None
    txd: int | None
    interfaces: tuple[str, ...]
    cc_parameters: Mapping[str, str] = Field(default_factory=dict)
    settings: Mapping[str, Mapping[str, str]] = Field(default_factory=dict)

    @property
    def system(self) -> str:
        """Name the system as recipes are looked up for it: linux, freebsd-11."""
        return f"{self.os}-{self.release.partition('.')[0]}" if self.release else self.os


class FlowPlan(Value):
    """One flow: data goes from `from_host` to `to_host`, which listens on the port.

    It ends by one of duration, size and `until`, the label of the flow that it ends with. Flows that one
    entry of the experiment makes have its label as their group.
    """

    label: str
    group: str = ""
    generator: str
    from_host: str = Field(alias="from")
    to_host: str = Field(alias="to")
    from_address: str
    to_address: str
    port: int
    start_s: float
    duration_s: float | None
    size_bytes: int | None
    until: str | None = None
    cc: str | None = None
    rwnd_bytes: int | None = None
    dscp: int | None = None
    parameters: Mapping[str, str] = Field(default_factory=dict)


class StopPlan(Value):
    """When the traffic of a trial ends although flows would go on, which counts as completed."""

    after_s: float | None = None
    when: str | None = None


class CapturePlan(Value):
    """One packet capture."""

    host: str
    interface: str
    snaplen_bytes: int


class LoggerPlan(Value):
    """One logger on one host; without an interval it samples as often as its recipe says."""

    logger: str
    host: str
    interface: str
    interval_s: float | None = None
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
    stop: StopPlan | None = None

    def window_bytes(self, flow: FlowPlan) -> int | None:
        """Return the largest window that a flow's receiver is to offer: its own, or else the host's."""
        if flow.rwnd_bytes is not None:
            return flow.rwnd_bytes
        host = self.hosts.get(flow.to_host)
        return host.rwnd_bytes if host else None


class Trial:
    """One replicate of one treatment: light, as there may be a million; `resolved` is made when asked for."""

    __slots__ = ("_resolved", "block", "id", "part", "replicate", "treatment")

    def __init__(
        self,
        *,
        id: str,
        part: str,
        treatment: Mapping[str, str],
        replicate: int,
        block: int,
        resolved: Resolved | Callable[[], Resolved],
    ) -> None:
        self.id, self.part, self.treatment = id, part, treatment
        self.replicate, self.block, self._resolved = replicate, block, resolved

    @property
    def resolved(self) -> Resolved:
        """Everything that the trial sets, runs and records."""
        return self._resolved if isinstance(self._resolved, Resolved) else self._resolved()

    def model_copy(self, *, update: Mapping[str, Any]) -> Trial:
        """Return the trial with some of it changed, as components have it."""
        own = ("id", "part", "treatment", "replicate", "block", "resolved")
        return Trial(**{**{name: getattr(self, name) for name in own}, **update})

    def as_json(self) -> dict[str, Any]:
        """Return the plain form, in full, as manifest.json has it."""
        return {
            "id": self.id,
            "part": self.part,
            "treatment": dict(self.treatment),
            "replicate": self.replicate,
            "block": self.block,
            "resolved": self.resolved.as_json(),
        }

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Trial) and self.as_json() == other.as_json()

    def __hash__(self) -> int:
        return hash(self.id)

    def __repr__(self) -> str:
        return f"Trial({self.id})"
