"""From an experiment and a testbed to the ordered trials: pure, the same input gives the same bytes."""

from samovar.plan.cost import Cost, estimate_cost
from samovar.plan.make import make_plan
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
    "Cost",
    "FlowPlan",
    "HostPlan",
    "LoggerPlan",
    "PartPlan",
    "PathPlan",
    "Plan",
    "Resolved",
    "Trial",
    "estimate_cost",
    "make_plan",
]
