"""From an experiment and a testbed to the ordered trials: pure, the same input gives the same bytes."""

from samovar.plan.cost import Cost, estimate_cost
from samovar.plan.make import make_plan
from samovar.plan.model import (
    CapturePlan,
    ClassPlan,
    DirectionPlan,
    FlowPlan,
    HostPlan,
    LoggerPlan,
    MatchPlan,
    PartPlan,
    PathPlan,
    Plan,
    Resolved,
    StopPlan,
    Trial,
)

__all__ = [
    "CapturePlan",
    "ClassPlan",
    "Cost",
    "DirectionPlan",
    "FlowPlan",
    "HostPlan",
    "LoggerPlan",
    "MatchPlan",
    "PartPlan",
    "PathPlan",
    "Plan",
    "Resolved",
    "StopPlan",
    "Trial",
    "estimate_cost",
    "make_plan",
]
