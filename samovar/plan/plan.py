"""Plan an experiment on a testbed: resolve every treatment, put the trials in order and give them ids."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from pydantic import ConfigDict, Field, SkipValidation, ValidationError

from samovar import experiment
from samovar.errors import DefinitionError, PlanError, SamovarError, unknown
from samovar.experiment import yaml_tree
from samovar.plan.level_precedence import PartContext, TreatmentError
from samovar.plan.model import Changes, PlanValue, Trial
from samovar.plan.order import States, costly_settings, count_changes, nested, ordered
from samovar.plan.placement import Placement
from samovar.plan.plan_file import KEYS, FolderName, json_of_trials, read_trials
from samovar.plan.resolve import matrix_of, resolve_part
from samovar.plan.trials import Components, DesignError, Group, Slot, Treatments, Trials, View, ids_of
from samovar.plan.warnings import warnings_of

SCHEMA = 2
EXPECTED = "expected a plan written by samovar"


class PartPlan(PlanValue):
    """One part of the experiment: its factors with the labels of their levels."""

    name: str
    title: str
    factors: Mapping[str, tuple[str, ...]]
    replicates: int


class Head(PlanValue):
    """Everything in a plan except its trials.

    `shard` is empty, or the shard of the trials that the campaign runs, such as `2/4`.
    """

    schema_version: int = Field(default=SCHEMA, alias="schema")
    experiment: FolderName
    title: str
    source: str
    description: str
    profile: FolderName | None
    overrides: Mapping[str, str] = Field(default_factory=dict)
    testbed: str
    shard: str = ""
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
        """Return the trial with an id, which may be abbreviated. Raises PlanError."""
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
        """Return the groups of treatments that are equal in the components that `view` compares, in order."""
        return self.trials.groups(view)

    def trials_of(self, groups: Iterable[Group]) -> tuple[str, ...]:
        """Return the ids of all trials of some groups, in the plan's order."""
        chosen = {id_ for group in groups for id_ in group.trials}
        return tuple(id_ for id_ in self.ids if id_ in chosen)

    def head(self) -> dict[str, Any]:
        """Return the plan without its trials as JSON types, with the keys of plan.json."""
        absent = {"trials"} if self.shard else {"trials", "shard"}
        return Head.model_dump(self, mode="json", by_alias=True, exclude=absent)

    def to_json(self) -> bytes:
        """Return the bytes of plan.json: one line for each value, treatment and trial."""
        head = json.dumps(self.head(), ensure_ascii=False, allow_nan=False, indent=1)[:-2]
        return "".join([head, *json_of_trials(self.trials), "\n}\n"]).encode()

    @classmethod
    def from_json(cls, data: bytes) -> Plan:
        """Return the plan from the bytes of plan.json; raises PlanError for any other file."""
        try:
            tree = json.loads(data)
            schema = tree.get("schema")
            if schema != SCHEMA:
                raise PlanError(
                    f"plan.json has the schema {schema or 'unknown'}, but this release reads the schema "
                    f"{SCHEMA}; use the release that created the campaign, or start a new campaign with "
                    "`fab run`"
                )
            head = {key: tree[key] for key in tree.keys() - KEYS}
            return cls.model_validate({**head, "trials": read_trials(tree)})
        except ValidationError as error:
            first = error.errors(include_url=False)[0]
            where, message = ".".join(map(str, first["loc"])) or "the file", first["msg"]
            raise PlanError(f"plan.json: {where}: {message[0].lower()}{message[1:]}; {EXPECTED}") from error
        except (ValueError, AttributeError, LookupError, RecursionError) as error:
            raise PlanError(f"plan.json: damaged or incomplete; {EXPECTED}") from error


def make_plan(
    resolved: experiment.ResolvedExperiment,
    catalogue: experiment.RecipeCatalogue,
    outputs: experiment.Outputs | None = None,
) -> Plan:
    """Return the plan of an experiment on its testbed. The same input gives the same bytes.

    `outputs` are the R package's by default; a project may have more. Raises PlanError for trials that cannot
    run on this testbed, or DefinitionError if the place of the error in a file is known.
    """
    applied, testbed, order = resolved.experiment, resolved.testbed, resolved.experiment.order
    components, placement = Components(), Placement(testbed)
    heads: list[PartPlan] = []
    parts: list[Treatments] = []
    changing: list[tuple[States, States, Sequence[Slot]]] = []
    ids: list[str] = []
    slots: list[Slot] = []
    for name, part in applied.parts.items():
        try:
            (factors, rows), settings = matrix_of(name, part), resolved.settings[name]
            context = PartContext(name, part, factors, placement, settings, order.seed, catalogue)
            treatments = resolve_part(context, rows, part.replicates, components)
            reboot, either = costly_settings(treatments, catalogue)
            plots = nested(reboot.values()), nested(either.values())
            own = ordered(order.kind, order.seed, name, len(treatments), part.replicates, *plots)
            ids += ids_of(treatments, own)
        except (TreatmentError, DesignError) as error:
            raise _located(error, resolved) from error
        begin = sum(map(len, parts))
        slots += [slot._replace(treatment=begin + slot.treatment) for slot in own] if begin else own
        parts.append(treatments)
        changing.append((reboot, either, own))
        heads.append(
            PartPlan(name=name, title=part.title, factors=treatments.factors, replicates=part.replicates)
        )
    trials = Trials(parts, ids, slots)
    return Plan(
        experiment=applied.name,
        title=applied.title,
        source=applied.source,
        description=applied.description,
        profile=resolved.profile,
        overrides=dict(resolved.overrides),
        testbed=testbed.name,
        seed=order.seed,
        order=order.kind,
        parts=tuple(heads),
        changes=count_changes(changing),
        figures=applied.figures,
        tables=applied.tables,
        warnings=warnings_of(applied, testbed, trials, outputs or experiment.package_outputs(), catalogue),
        trials=trials,
    )


def _located(error: TreatmentError | DesignError, resolved: experiment.ResolvedExperiment) -> SamovarError:
    """Return the error with the file position of its factor or value; unchanged if the position is unknown.

    If the text of the faulty value occurs several times, the occurrence whose keys share the most words with
    the error's `where` is chosen.
    """
    part = yaml_tree.node_at(resolved.experiment.tree, "parts", error.part)
    if isinstance(error, DesignError):
        node = yaml_tree.node_at(part, *error.place)
        return error if node is None else DefinitionError([node.position.problem(str(error))])
    words = set(re.split("[:. ]+", error.where))
    texts = list(_texts(part))
    for host, own in resolved.settings[error.part].items():
        texts += [((host, key), one.layers[0].text, one.layers[0].position) for key, one in own.items()]
    equal = [(keys, position) for keys, text, position in texts if text == error.text]
    _, position = max(equal, key=lambda one: len(words.intersection(one[0])), default=((), None))
    return error if position is None else DefinitionError([position.problem(str(error))])


def _texts(
    node: yaml_tree.Node | None, keys: tuple[str, ...] = ()
) -> Iterator[tuple[tuple[str, ...], str, yaml_tree.Position | None]]:
    """Yield every scalar of a tree with the words of the keys that lead to it, and its position."""
    if isinstance(node, yaml_tree.Text):
        yield keys, node, node.position
    elif isinstance(node, yaml_tree.Seq):
        for one in node:
            yield from _texts(one, keys)
    elif isinstance(node, yaml_tree.Map):
        for key, one in node.items():
            yield from _texts(one, (*keys, *key.split(".")))
