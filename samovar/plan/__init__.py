"""From an experiment and a testbed to the ordered trials: pure, the same input gives the same bytes."""

from samovar.plan.model import (
    CapturePlan,
    FlowPlan,
    HostPlan,
    LoggerPlan,
    PartPlan,
    PathPlan,
    Plan,
    Resolved,
    Trial,
)

__all__ = [
    "CapturePlan",
    "FlowPlan",
    "HostPlan",
    "LoggerPlan",
    "PartPlan",
    "PathPlan",
    "Plan",
    "Resolved",
    "Trial",
]
