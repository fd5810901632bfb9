"""The plan: every treatment resolved on the testbed, its trials named and put in order."""

from __future__ import annotations

import gc
from array import array
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import chain

from samovar.experiment import Part, ResolvedExperiment
from samovar.experiment.outputs import Exhibits
from samovar.plan.columns import treatments_of
from samovar.plan.ids import SameTrialsError, ids_of, word
from samovar.plan.laid import UncomputedError
from samovar.plan.order import order_of
from samovar.plan.placed import placed, placed_factor
from samovar.plan.places import Places
from samovar.plan.plan import Changes, PartPlan, Plan
from samovar.plan.pool import Pool
from samovar.plan.product import Column
from samovar.plan.reboots import Costly, Count, Headers, States, Together, costly_of
from samovar.plan.resolve import Where, components_of
from samovar.plan.table import Order, Table, Treatments
from samovar.plan.treatments import Design, design_of
from samovar.plan.warnings import warnings_of


@dataclass(frozen=True)
class Site:
    """What a plan is made with beside experiment and testbed: headers of recipes, figures and tables."""

    headers: Headers | None = None
    exhibits: Exhibits = field(default_factory=dict)


NOWHERE = Site()


def make_plan(resolved: ResolvedExperiment, *, site: Site = NOWHERE) -> Plan:
    """Plan an experiment on its testbed: the same input gives the same bytes.

    Raises PlanError for what cannot run on this testbed, DefinitionError where the place in a file is known.
    """
    with _uncollected():
        return _make_plan(resolved, site)


@contextmanager
def _uncollected() -> Iterator[None]:
    """Keep the garbage collector from going through millions of new objects that all stay."""
    ran = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if ran:
            gc.enable()


def _make_plan(resolved: ResolvedExperiment, site: Site) -> Plan:
    applied, testbed = resolved.experiment, resolved.testbed
    pool = Pool()
    places = Places(testbed)
    states = States(site.headers)
    planned = [_plan_part(resolved, name, places, pool, states) for name in applied.parts]
    table = _table(planned, pool)
    return Plan(
        experiment=applied.name,
        title=applied.title,
        source=applied.source,
        description=applied.description,
        profile=resolved.profile,
        overrides=dict(resolved.overrides),
        testbed=testbed.name,
        seed=applied.order.seed,
        order=applied.order.kind,
        parts=tuple(_part_plan(one.group.part, one.design) for one in planned),
        changes=_changes(planned),
        figures=applied.figures,
        tables=applied.tables,
        warnings=warnings_of(applied, testbed, table, site.exhibits),
        trials=table,
    )


@dataclass(frozen=True)
class _Planned:
    """One part: its treatments, its trials in order, their ids."""

    design: Design
    group: Treatments
    costly: Costly
    order: Order
    ids: Sequence[str]


def _plan_part(
    resolved: ResolvedExperiment, name: str, places: Places, pool: Pool, states: States
) -> _Planned:
    experiment = resolved.experiment
    part = experiment.parts[name]
    design = design_of(name, part)
    where = Where(name, places, resolved.settings[name], experiment.order.seed)
    try:
        group = treatments_of(name, design, part.replicates, components_of(where), pool)
    except UncomputedError as error:
        raise placed(error, resolved) from error
    costly = costly_of(group, pool, states)
    how = experiment.order
    order = order_of(how.kind, how.seed, name, len(group), part.replicates, costly.plots())
    words = [[word(label) for label in labels] for labels in design.labels]
    try:
        ids = ids_of(group, design.combinations.rows(words), order, pool)
    except SameTrialsError as error:
        raise placed_factor(error, error.part, error.factor, experiment) from error
    return _Planned(design, group, costly, order, ids)


def _part_plan(name: str, design: Design) -> PartPlan:
    part: Part = design.part
    factors = {factor.name: factor.labels for factor in design.factors}
    return PartPlan(name=name, title=part.title, factors=factors, replicates=part.replicates)


def _table(planned: Sequence[_Planned], pool: Pool) -> Table:
    """Put the parts one after the other."""
    every = Order(array("I"), array("I"), array("I"))
    begin = 0
    for one in planned:
        every.treatments.extend(_shifted(one.order.treatments, begin))
        every.replicates.extend(one.order.replicates)
        every.blocks.extend(one.order.blocks)
        begin += len(one.group)
    ids = planned[0].ids if len(planned) == 1 else list(chain.from_iterable(one.ids for one in planned))
    return Table(pool, [one.group for one in planned], ids, every)


def _shifted(column: Column, by: int) -> Column:
    return array("I", [one + by for one in column]) if by else column


def _changes(planned: Sequence[_Planned]) -> Changes:
    """Count what the plan's order takes, and what each part block after block in the file's order would."""
    reboots, either, boots, together = Count(), Count(), Count(), Together()
    for one in planned:
        replicates = one.design.part.replicates
        reboots.add(one.costly.reboots, one.order.treatments, replicates)
        either.add(one.costly.either, one.order.treatments, replicates)
        boots.add(together.of(one.costly.reboots), one.order.treatments, replicates)
    own, naive = reboots.back()
    return Changes(
        reboots=reboots.own + own,
        resets=either.own - reboots.own,
        naive_reboots=reboots.naive + naive,
        naive_resets=either.naive - reboots.naive,
        boots=boots.own + boots.back()[0],
    )
