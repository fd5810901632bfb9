"""The plan: every combination of levels, resolved on the testbed, named and put in order."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product

from samovar.definition.experiment import Experiment, Part
from samovar.definition.load import apply_profile
from samovar.definition.testbed import Testbed
from samovar.errors import PlanError
from samovar.plan.identity import digest, trial_id
from samovar.plan.model import PartPlan, Plan, Resolved, Trial
from samovar.plan.order import ordered
from samovar.plan.resolve import resolve
from samovar.plan.settings import settings_of
from samovar.plan.warn import warnings_of


@dataclass(frozen=True)
class Treatment:
    """One combination of levels, resolved."""

    levels: Mapping[str, str]
    resolved: Resolved
    digest: str


def make_plan(
    experiment: Experiment,
    testbed: Testbed,
    profile_name: str | None = None,
    overrides: Mapping[str, str] | None = None,
) -> Plan:
    """Plan an experiment on a testbed: the same input gives the same bytes.

    Raises DefinitionError for an unknown profile and PlanError for what cannot run on this testbed.
    """
    applied = apply_profile(experiment, profile_name, overrides)
    parts = applied.parts.items()
    trials = tuple(trial for name, part in parts for trial in _trials(applied, name, part, testbed))
    return Plan(
        experiment=applied.name,
        title=applied.title,
        source=applied.source,
        description=applied.description,
        profile=profile_name,
        overrides=dict(overrides or {}),
        testbed=testbed.name,
        seed=applied.order.seed,
        order=applied.order.kind,
        parts=tuple(_part_plan(name, part) for name, part in parts),
        figures=applied.figures,
        tables=applied.tables,
        warnings=warnings_of(applied, testbed, trials),
        trials=trials,
    )


def treatments_of(part: Part) -> Iterator[dict[str, str]]:
    """Yield every combination of a part's levels; the last factor varies fastest."""
    names = list(part.factors)
    for levels in product(*(factor.labels for factor in part.factors.values())):
        yield dict(zip(names, levels, strict=True))


def _trials(experiment: Experiment, name: str, part: Part, testbed: Testbed) -> Iterator[Trial]:
    treatments = [_treatment(name, part, levels, testbed) for levels in treatments_of(part)]
    _refuse_same(name, treatments)
    order = experiment.order
    for slot in ordered(order.kind, order.seed, name, len(treatments), part.replicates):
        treatment = treatments[slot.treatment]
        yield Trial(
            id=trial_id(name, treatment.levels, slot.replicate, treatment.digest),
            part=name,
            treatment=treatment.levels,
            replicate=slot.replicate,
            block=slot.block,
            resolved=treatment.resolved,
        )


def _treatment(name: str, part: Part, levels: Mapping[str, str], testbed: Testbed) -> Treatment:
    resolved = resolve(part, settings_of(part, levels), testbed)
    return Treatment(levels, resolved, digest(name, resolved))


def _part_plan(name: str, part: Part) -> PartPlan:
    return PartPlan(
        name=name,
        title=part.title,
        factors={factor.name: factor.labels for factor in part.factors.values()},
        replicates=part.replicates,
    )


def _refuse_same(part: str, treatments: Sequence[Treatment]) -> None:
    seen: dict[str, Treatment] = {}
    for treatment in treatments:
        first = seen.setdefault(treatment.digest, treatment)
        if first is not treatment:
            both = f"{dict(first.levels)} and {dict(treatment.levels)}"
            message = f"treatments {both} are one and the same trial; expected levels that change something"
            raise PlanError(f"{part}: {message}")
