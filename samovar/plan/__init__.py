"""From an experiment and a testbed to the ordered trials; the same input gives the same bytes."""

from samovar.plan.cost import (
    Cost,
    MeasuredTimes,
    Repeats,
    StepTime,
    estimate_cost,
    host_bytes,
    parallel_s,
    shared_cost,
    stored_bytes,
)
from samovar.plan.diff import DONE, Changed, Comparison, compare, on_testbed
from samovar.plan.explain_trial import explain_trial
from samovar.plan.model import (
    CapturePlan,
    Changes,
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
from samovar.plan.plan import PartPlan, Plan, make_plan
from samovar.plan.trials import TRAFFIC_AND_RECORDING, Group, View

__all__ = [
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
    "PartPlan",
    "PathPlan",
    "Plan",
    "Repeats",
    "Resolved",
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
