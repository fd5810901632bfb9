"""A sample trial with its resolved values, for tests of scripts and verdicts."""

from __future__ import annotations

from samovar.plan import (
    CapturePlan,
    DirectionPlan,
    FlowPlan,
    HostPlan,
    LoggerPlan,
    PathPlan,
    Resolved,
    Trial,
)


def host(
    role: str, interfaces: tuple[str, ...], cc: str | None = None, rwnd_bytes: int | None = None
) -> HostPlan:
    """Return the plan of a Linux host with an MTU of 600 bytes."""
    return HostPlan(
        os="linux", role=role, cc=cc, rwnd_bytes=rwnd_bytes, mtu_bytes=600, txd=None, interfaces=interfaces
    )


def flow(label: str = "bulk", generator: str = "iperf3", start_s: float = 0.0) -> FlowPlan:
    """Return the plan of a flow from src to dst."""
    return FlowPlan(
        label=label,
        generator=generator,
        from_host="src",
        to_host="dst",
        from_address="172.16.10.2",
        to_address="172.16.11.2",
        port=5001,
        start_s=start_s,
        duration_s=6.0,
        size_bytes=None,
    )


PATH = PathPlan(
    router="rtr",
    rtt_s=0.02,
    down=DirectionPlan(
        interface="eth2", rate_bps=12_000_000, delay_s=0.01, loss=0.001, aqm="pfifo", buffer_packets=137
    ),
    up=DirectionPlan(interface="eth1", delay_s=0.01),
)

RESOLVED = Resolved(
    mtu_bytes=600,
    duration_s=6.0,
    deadline_s=21.0,
    path=PATH,
    hosts={
        "src": host("sender", ("eth1",), cc="newreno"),
        "rtr": host("router", ("eth1", "eth2")),
        "dst": host("receiver", ("eth1",), rwnd_bytes=9_999_000),
    },
    flows=(flow(), flow("late", "nuttcp", 2.5).model_copy(update={"port": 5002})),
    captures=(
        CapturePlan(host="src", interface="eth1", snaplen_bytes=96),
        CapturePlan(host="dst", interface="eth1", snaplen_bytes=96),
    ),
    loggers=(
        LoggerPlan(logger="tcp-info", host="src", interface="eth1", interval_s=0.01),
        LoggerPlan(logger="queue", host="rtr", interface="eth2", interval_s=0.005),
    ),
)

TRIAL = Trial(
    id="newreno-9999KB-600-r1-abc123", part="main", treatment={}, replicate=1, block=1, source=RESOLVED
)
