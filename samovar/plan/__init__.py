"""From an experiment and a testbed to the ordered trials; the same input gives the same bytes."""

from samovar.plan.cost import (
    ASSUMED_BOOT,
    ASSUMED_PATH,
    Cost,
    MeasuredTimes,
    Overhead,
    Repeats,
    StepTime,
    estimate_cost,
    parallel_s,
    shared_cost,
)
from samovar.plan.diff import DONE, Changed, Comparison, compare, on_testbed
from samovar.plan.explain_trial import explain_trial
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
from samovar.plan.plan import Changes, PartPlan, Plan, Site, make_plan
from samovar.plan.trials import TRAFFIC_AND_RECORDING, Group, View
from samovar.plan.volume import host_bytes, stored_bytes

__all__ = [
    "ASSUMED_BOOT",
    "ASSUMED_PATH",
    "DONE",
    "TRAFFIC_AND_RECORDING",
    "CapturePlan",
    "Changed",
    "Changes",
    "ClassPlan",
    "Comparison",
    "Cost",
    "DevicePlan",
    "DirectionPlan",
    "FlowPlan",
    "Group",
    "HostPlan",
    "LoggerPlan",
    "MatchPlan",
    "MeasuredTimes",
    "Overhead",
    "PartPlan",
    "PathPlan",
    "Plan",
    "Repeats",
    "Resolved",
    "Site",
    "StepTime",
    "StopPlan",
    "Trial",
    "View",
    "compare",
    "estimate_cost",
    "explain_trial",
    "host_bytes",
    "make_plan",
    "on_testbed",
    "parallel_s",
    "shared_cost",
    "stored_bytes",
]
