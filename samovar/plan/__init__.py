"""From an experiment and a testbed to the ordered trials: pure, the same input gives the same bytes."""

from samovar.plan.cost import Cost, estimate_cost
from samovar.plan.make import Site, make_plan
from samovar.plan.model import (
    CapturePlan,
    ClassPlan,
    DevicePlan,
    DirectionPlan,
    FlowPlan,
    HostPlan,
    LoggerPlan,
    MatchPlan,
    PathPlan,
    Resolved,
    StopPlan,
    Trial,
)
from samovar.plan.plan import Changes, PartPlan, Plan

__all__ = [
    "CapturePlan",
    "Changes",
    "ClassPlan",
    "Cost",
    "DevicePlan",
    "DirectionPlan",
    "FlowPlan",
    "HostPlan",
    "LoggerPlan",
    "MatchPlan",
    "PartPlan",
    "PathPlan",
    "Plan",
    "Resolved",
    "Site",
    "StopPlan",
    "Trial",
    "estimate_cost",
    "make_plan",
]
