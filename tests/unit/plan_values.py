"""Build small plans for tests, without reading an experiment."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from samovar.plan import PartPlan, Plan, Resolved, Trial
from samovar.plan.model import RunPlan
from samovar.plan.trials import HOST, Component, Components, Slot, Treatments, Trials
from tests.unit.trials import RESOLVED


def trial(label: str, replicate: int = 1, resolved: Resolved = RESOLVED, part: str = "main") -> Trial:
    """Make a trial with one factor, `cc`; its id ends with its duration in place of a hash."""
    id_ = f"{label}-r{replicate}-{resolved.duration_s:g}"
    return Trial(
        id=id_, part=part, treatment={"cc": label}, replicate=replicate, block=replicate, source=resolved
    )


def lasting(duration_s: float) -> Resolved:
    """Return the resolved values of the sample trial with this duration."""
    return RESOLVED.model_copy(update={"duration_s": duration_s})


def values_of(resolved: Resolved) -> dict[str, Any]:
    """Return the resolved values of a trial by the name of the component to which they belong."""
    run = RunPlan(
        mtu_bytes=resolved.mtu_bytes,
        duration_s=resolved.duration_s,
        deadline_s=resolved.deadline_s,
        stop=resolved.stop,
    )
    return {
        "run": run,
        "path": resolved.path,
        **{f"{HOST}{name}": host for name, host in resolved.hosts.items()},
        "flows": resolved.flows,
        "captures": resolved.captures,
        "loggers": resolved.loggers,
    }


def shared_trials(trials: Iterable[Trial]) -> Trials:
    """Combine trials into the trials of a plan; trials with equal levels and values share a treatment."""
    trials = list(trials)
    components, parts = Components(), list[Treatments]()
    treatment_of: dict[str, int] = {}
    by_part: dict[str, list[Trial]] = {}
    for trial in trials:
        by_part.setdefault(trial.part, []).append(trial)
    for part, own in by_part.items():
        labels: dict[str, dict[str, int]] = {factor: {} for factor in own[0].treatment}
        names = tuple(values_of(own[0].resolved))
        rows: dict[tuple[tuple[int, ...], tuple[Component, ...]], int] = {}
        begin = sum(map(len, parts))
        for trial in own:
            levels = tuple(
                known.setdefault(trial.treatment[factor], len(known)) for factor, known in labels.items()
            )
            values = values_of(trial.resolved)
            row = levels, tuple(components.add(name, values[name]) for name in names)
            treatment_of[trial.id] = begin + rows.setdefault(row, len(rows))
        columns = zip(*(values for _, values in rows), strict=True)
        parts.append(
            Treatments(
                part=part,
                factors={factor: tuple(known) for factor, known in labels.items()},
                levels=[levels for levels, _ in rows],
                components={name: (column,) for name, column in zip(names, columns, strict=True)},
            )
        )
    slots = [Slot(treatment_of[trial.id], trial.replicate, trial.block) for trial in trials]
    return Trials(parts, [trial.id for trial in trials], slots)


def plan_of(trials: Iterable[Trial], **values: object) -> Plan:
    """Make a plan of trials of one part; `values` replace other fields of the plan."""
    trials = tuple(trials)
    labels = tuple(dict.fromkeys(one.treatment["cc"] for one in trials))
    replicates = max((one.replicate for one in trials), default=1)
    part = PartPlan(name="main", title="", factors={"cc": labels}, replicates=replicates)
    known: dict[str, object] = {
        "experiment": "x",
        "title": "A title",
        "source": "",
        "description": "",
        "profile": None,
        "testbed": "lab",
        "seed": 1,
        "order": "blocked",
        "parts": (part,),
        "figures": (),
        "tables": (),
        "trials": shared_trials(trials),
    }
    return Plan.model_validate({**known, **values})
