"""Plan an experiment on a testbed: resolve every treatment, put the trials in order and give them ids."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any

from pydantic import ConfigDict, Field, SkipValidation, ValidationError

from samovar.errors import DefinitionError, PlanError, SamovarError
from samovar.experiment import (
    Experiment,
    Map,
    Node,
    Outputs,
    ResolvedExperiment,
    Seq,
    Text,
    package_outputs,
    unknown,
)
from samovar.plan.ids import SameTrialsError, ids_of
from samovar.plan.level_precedence import FormulaError, PartContext
from samovar.plan.matrix import matrix_of
from samovar.plan.model import Changes, PlanValue, Trial
from samovar.plan.order import (
    CostlySettings,
    PlanCatalogue,
    costly_settings,
    count_changes,
    nested,
    ordered,
)
from samovar.plan.placement import Placement
from samovar.plan.plan_file import EXPECTED, KEYS, json_of_trials, read_trials
from samovar.plan.resolve import resolve_part
from samovar.plan.trials import Components, Group, Slot, Treatments, Trials, View
from samovar.plan.warnings import warnings_of

SCHEMA = 2


class PartPlan(PlanValue):
    """One part of the experiment: its factors with their levels as written."""

    name: str
    title: str
    factors: Mapping[str, tuple[str, ...]]
    replicates: int


class Head(PlanValue):
    """Everything in a plan except its trials."""

    schema_version: int = Field(default=SCHEMA, alias="schema")
    experiment: str
    title: str
    source: str
    description: str
    profile: str | None
    overrides: Mapping[str, str] = Field(default_factory=dict)
    testbed: str
    seed: int
    order: str
    parts: tuple[PartPlan, ...]
    changes: Changes = Changes()
    figures: tuple[Mapping[str, Any], ...]
    tables: tuple[Mapping[str, Any], ...]
    warnings: tuple[str, ...] = ()


class Plan(Head):
    """The ordered trials of one experiment on one testbed."""

    model_config = ConfigDict(arbitrary_types_allowed=True, defer_build=True)

    trials: SkipValidation[Trials]

    @property
    def ids(self) -> Sequence[str]:
        """The ids of all trials in order."""
        return self.trials.ids

    def find(self, name: str) -> Trial:
        """Return the trial with an id, or with an id that begins so; raises PlanError."""
        having = [id_ for id_ in self.ids if id_.startswith(name)]
        if name in having or len(having) == 1:
            return self.trials[self.ids.index(name if name in having else having[0])]
        if having:
            raise PlanError(f"the ids of {len(having)} trials begin with '{name}'; give one of them in full")
        raise PlanError(unknown("trial", name, self.ids))

    def treatments(self) -> Mapping[str, int]:
        """Return the number of treatments of each part."""
        return {part.part: len(part) for part in self.trials.parts}

    def groups(self, view: View) -> list[Group]:
        """Return the groups of treatments that are equal in a view of their components, in order."""
        return self.trials.groups(view)

    def trials_of(self, groups: Iterable[Group]) -> tuple[str, ...]:
        """Return the ids of all trials of some groups, in the plan's order."""
        chosen = {id_ for group in groups for id_ in group.trials}
        return tuple(id_ for id_ in self.ids if id_ in chosen)

    def durations_s(self) -> Mapping[str, float]:
        """Return how long the traffic of each trial lasts in seconds, as in its first replicate, by id."""
        groups = self.groups({"run": lambda run: run.duration_s})
        known = {id_: group.resolved.duration_s for group in groups for id_ in group.trials}
        return {id_: known[id_] for id_ in self.ids}

    def as_json(self) -> dict[str, Any]:
        """Return the plan as plain values, every trial in full; plan.json shares common values."""
        return {**self._head(), "trials": [trial.as_json() for trial in self.trials]}

    def _head(self) -> dict[str, Any]:
        return Head.model_dump(self, mode="json", by_alias=True, exclude={"trials"})

    def to_json(self) -> bytes:
        """Return the bytes of plan.json: one line for each value, treatment and trial."""
        head = json.dumps(self._head(), ensure_ascii=False, allow_nan=False, indent=1)[:-2]
        return "".join([head, *json_of_trials(self.trials), "\n}\n"]).encode()

    @classmethod
    def from_json(cls, data: bytes) -> Plan:
        """Return the plan from the bytes of plan.json; raises PlanError for any other file."""
        try:
            tree = json.loads(data)
        except ValueError as error:
            raise PlanError(f"plan.json: not JSON ({error}); {EXPECTED}") from error
        if not isinstance(tree, dict):
            raise PlanError(f"plan.json: not a mapping; {EXPECTED}")
        if tree.get("schema") != SCHEMA:
            release = "an earlier release" if tree.get("schema") == 1 else "another release"
            raise PlanError(
                f"plan.json: schema {tree.get('schema')} of {release}; this one reads schema {SCHEMA}: "
                "use the release that created the campaign, or start a new campaign with `fab run`"
            )
        trials = read_trials(tree)
        head = {key: value for key, value in tree.items() if key not in KEYS}
        try:
            return cls.model_validate({**head, "trials": trials})
        except ValidationError as error:
            first = error.errors(include_url=False)[0]
            where = ".".join(str(part) for part in first["loc"]) or "the file"
            raise PlanError(f"plan.json: {where}: {first['msg'].lower()}; {EXPECTED}") from error


def make_plan(resolved: ResolvedExperiment, catalogue: PlanCatalogue, outputs: Outputs | None = None) -> Plan:
    """Return the plan of an experiment on its testbed; the same input gives the same bytes.

    `catalogue` has the headers of recipes. `outputs` are those of the R package, unless a project has more.

    Raises PlanError for trials that cannot run on this testbed, or DefinitionError with a place in a file.
    """
    applied, testbed = resolved.experiment, resolved.testbed
    components, placement = Components(), Placement(testbed)
    planned = [_plan_part(resolved, name, placement, catalogue, components) for name in applied.parts]
    slots: list[Slot] = []
    begin = 0
    for part in planned:
        slots += (
            (slot._replace(treatment=slot.treatment + begin) for slot in part.slots) if begin else part.slots
        )
        begin += len(part.treatments)
    ids = list(chain.from_iterable(part.ids for part in planned))
    trials = Trials([part.treatments for part in planned], ids, slots)
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
        parts=tuple(part.head for part in planned),
        changes=count_changes([(part.costly, part.slots) for part in planned]),
        figures=applied.figures,
        tables=applied.tables,
        warnings=warnings_of(applied, testbed, trials, outputs or package_outputs(), catalogue),
        trials=trials,
    )


@dataclass(frozen=True)
class _PlannedPart:
    """One part: its resolved treatments, and its trials' places in the order and ids."""

    head: PartPlan
    treatments: Treatments
    costly: CostlySettings
    slots: Sequence[Slot]
    ids: Sequence[str]


def _plan_part(
    resolved: ResolvedExperiment,
    name: str,
    placement: Placement,
    catalogue: PlanCatalogue,
    components: Components,
) -> _PlannedPart:
    part, order = resolved.experiment.parts[name], resolved.experiment.order
    matrix, settings = matrix_of(name, part), resolved.settings[name]
    context = PartContext(name, matrix, placement, settings, order.seed, catalogue)
    try:
        treatments = resolve_part(context, part.replicates, components)
    except FormulaError as error:
        raise _located_formula(error, resolved) from error
    costly = costly_settings(treatments, catalogue)
    plots = nested(costly.reboot.values()), nested(costly.either.values())
    slots = ordered(order.kind, order.seed, name, len(treatments), part.replicates, *plots)
    try:
        ids = ids_of(treatments, slots)
    except SameTrialsError as error:
        raise _located_factor(error, resolved.experiment) from error
    head = PartPlan(name=name, title=part.title, factors=treatments.factors, replicates=part.replicates)
    return _PlannedPart(head, treatments, costly, slots, ids)


def _written_part(experiment: Experiment, name: str) -> Node | None:
    parts = experiment.complete.get("parts") if experiment.complete is not None else None
    return parts.get(name) if isinstance(parts, Map) else None


def _located_formula(error: FormulaError, resolved: ResolvedExperiment) -> SamovarError:
    """Return the error with the place of its formula in a file: in the part, or in a host's settings."""
    wanted = set(error.where.replace(":", "").replace(" ", ".").split("."))
    texts = _texts(_written_part(resolved.experiment, error.part))
    found = [(len(wanted.intersection(keys)), one.position) for keys, one in texts if one == error.text]
    for host, settings in () if found else resolved.settings[error.part].items():
        for key, setting in settings.items():
            position = setting.layers[0].position
            if setting.text == error.text and position is not None:
                found.append((len(wanted.intersection((host, key))), position))
    if not found:
        return error
    return DefinitionError([max(found, key=lambda pair: pair[0])[1].problem(str(error))])


def _texts(node: Node | None, keys: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Text]]:
    """Yield every scalar of a tree with the words of the keys that lead to it."""
    if isinstance(node, Text):
        yield keys, node
    elif isinstance(node, Seq):
        for one in node:
            yield from _texts(one, keys)
    elif isinstance(node, Map):
        for key, one in node.items():
            yield from _texts(one, (*keys, *key.split(".")))


def _located_factor(error: SameTrialsError, experiment: Experiment) -> SamovarError:
    """Return the error with the place of the factor's levels in a file."""
    part = _written_part(experiment, error.part)
    factors = part.get("factors") if isinstance(part, Map) else None
    levels = factors.get(error.factor) if isinstance(factors, Map) else None
    return error if levels is None else DefinitionError([levels.position.problem(str(error))])
