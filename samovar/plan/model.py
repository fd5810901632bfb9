"""What a trial sets, runs and records: a pydantic model for each component.

The field names (or their aliases) are the keys of plan.json and manifest.json.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from typing import Any

from pydantic import BaseModel, ConfigDict, Field


def _is_unset(value: object) -> bool:
    """Return whether plan.json leaves out a value, so that a new key does not change the ids of trials."""
    return not value


class PlanValue(BaseModel):
    """Base of all models of a plan, which are immutable."""

    model_config = ConfigDict(frozen=True, extra="forbid", populate_by_name=True, defer_build=True)

    def as_json(self) -> dict[str, Any]:
        """Return the value as JSON types, with the keys of plan.json."""
        return self.model_dump(mode="json", by_alias=True)


class DirectionPlan(PlanValue):
    """One direction through the bottleneck, shaped at the interface by which its packets leave the router.

    The interface is empty if the bottleneck is a device between two hosts. Without a rate nothing queues, and
    neither aqm nor buffer is set. Shares are between 0 and 1.
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


class MatchPlan(PlanValue):
    """The packets of a class in the downstream direction.

    The answers to these packets belong to the class as well. A field that is None matches all packets.
    Subnets are written like 172.16.10.2/32. `port` is the destination port. `from_port` is the source port;
    it is the receiver's port if data flows upstream.
    """

    from_subnet: str | None = None
    to_subnet: str | None = None
    port: int | None = None
    from_port: int | None = None


class ClassPlan(PlanValue):
    """Packets with their own delay and loss instead of the path's. All classes share the path's queue."""

    match: tuple[MatchPlan, ...]
    delay_down_s: float
    delay_up_s: float
    loss: float


class DevicePlan(PlanValue):
    """A pair of adapters that joins two hosts.

    A transmission on the medium takes `access_s` plus the time of its frames, which is at most `burst_s`. The
    medium's rate varies randomly by at most the share `drift`; `seed` seeds these random numbers.
    `pause_quanta` counts quanta of 512 bit times. `host` is the host where `down` begins. Adapters of a lab
    are `settable`. Real adapters cannot be queried, so their values are assumptions.
    """

    host: str
    settable: bool
    medium: str
    flow_control: bool
    pause_quanta: int
    access_s: float | None = Field(None, exclude_if=_is_unset)
    burst_s: float | None = Field(None, exclude_if=_is_unset)
    drift: float = 0.0
    seed: int | None = None


class PathPlan(PlanValue):
    """The settings of the bottleneck.

    `down` is the direction from the bottleneck's `from` to its `to`, and `up` is the opposite direction. The
    bottleneck is a router, or the device of a link. If the bottleneck is a device, `down` begins at the
    link's first host in the testbed's file, and the router's name is empty.
    """

    router: str
    rtt_s: float
    down: DirectionPlan
    up: DirectionPlan
    classes: tuple[ClassPlan, ...] = ()
    link: str | None = Field(None, exclude_if=_is_unset)
    device: DevicePlan | None = Field(None, exclude_if=_is_unset)


class WlanPlan(PlanValue):
    """A WLAN that a lab simulates; it belongs to the plan of its access point, the first of `hosts`.

    A rate of None means that senders adapt their rates. Other values of the WLAN are settings of its hosts.
    """

    link: str
    hosts: tuple[str, ...]
    standard: str
    rate_bps: int | None
    seed: int


class HostPlan(PlanValue):
    """Settings of one host. A value of None means that the trial does not change the setting.

    `settings` maps setting recipes to their parameters as text. `wlans` are the WLANs whose access point is
    this host.
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
    wlans: tuple[WlanPlan, ...] = Field((), exclude_if=_is_unset)

    @property
    def system(self) -> str:
        """The system in the catalogue of recipes: linux, or freebsd-11 for release 11.4."""
        return f"{self.os}-{self.release.partition('.')[0]}" if self.release else self.os


class FlowPlan(PlanValue):
    """One flow: data flows from `from_host` to `to_host`, and one of them listens on the port.

    A flow ends after its duration or size, or with the flow whose label is `until`. `group` is the label of
    the experiment's entry; all flows that an entry expands to share it.
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


class StopPlan(PlanValue):
    """The condition that ends a trial's traffic although flows still run. The trial is then complete."""

    after_s: float | None = None
    when: str | None = None


class CapturePlan(PlanValue):
    """One packet capture."""

    host: str
    interface: str
    snaplen_bytes: int


class LoggerPlan(PlanValue):
    """One logger on one host; if it has no interval, its recipe determines how often it samples."""

    logger: str
    host: str
    interface: str
    interval_s: float | None = None
    parameters: Mapping[str, str] = Field(default_factory=dict)


class RunPlan(PlanValue):
    """Values of a trial as a whole: smallest MTU, expected and latest end of the traffic, stop."""

    mtu_bytes: int | None
    duration_s: float
    deadline_s: float
    stop: StopPlan | None


class Resolved(PlanValue):
    """Everything that a trial sets, runs and records; the trial's id contains a hash of it."""

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
        """Return the largest window in bytes that a receiver may offer, set for the flow or else its host."""
        if flow.rwnd_bytes is not None:
            return flow.rwnd_bytes
        host = self.hosts.get(flow.to_host)
        return host.rwnd_bytes if host else None

    def direction_of(self, flow: FlowPlan) -> str:
        """Return a flow's direction through the path: `up` if its data comes from a receiver, else `down`."""
        host = self.hosts.get(flow.from_host)
        return "up" if host is not None and host.role == "receiver" else "down"


class Changes(PlanValue):
    """How often hosts reboot or reset interfaces, in the plan's order and in a naive order.

    The naive order runs block after block, each block in the order of the file. `boots` is how often trials
    wait for hosts that reboot; hosts that reboot at the same time count once.
    """

    reboots: int = 0
    resets: int = 0
    naive_reboots: int = 0
    naive_resets: int = 0
    boots: int = 0


@dataclass(frozen=True, eq=False)
class Trial:
    """One replicate of one treatment.

    `source` is what the trial sets, runs and records, or a function that computes this on demand.
    """

    id: str
    part: str
    treatment: Mapping[str, str]
    replicate: int
    block: int
    source: Resolved | Callable[[], Resolved] = field(repr=False)

    @property
    def resolved(self) -> Resolved:
        """Everything that the trial sets, runs and records."""
        return self.source if isinstance(self.source, Resolved) else self.source()

    def as_json(self) -> dict[str, Any]:
        """Return the trial as JSON types, with the keys of manifest.json."""
        values = {one.name: getattr(self, one.name) for one in fields(self) if one.name != "source"}
        return {**values, "treatment": dict(self.treatment), "resolved": self.resolved.as_json()}
