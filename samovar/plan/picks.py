"""Pick trials of a plan: by factor levels, by id, by the outcome of the last attempt, or the first N."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from samovar.errors import DefinitionError, PlanError, unknown
from samovar.plan.model import Trial
from samovar.plan.plan import Plan
from samovar.plan.shards import Shard
from samovar.units import counted

FEW_IDS = 3


@dataclass(frozen=True)
class Picked:
    """The ids of picked trials in the plan's order; `text` has the options, or is empty for the whole plan.

    With `again`, picked trials that are already done run again.
    """

    text: str
    ids: tuple[str, ...]
    again: bool = False


@dataclass(frozen=True)
class Pick:
    """The options that pick trials of a plan. A trial is picked if every given option selects it.

    `only` are texts such as `cc=cubic,cdg mtu=1500`: a trial must have one of the levels of each factor.
    `trials` are ids or beginnings of ids. `again` are results such as `failed`: a trial's last result in the
    campaign must be one of them. Of the trials that these options select, only the first `first` in the
    plan's order are picked.
    """

    only: tuple[str, ...] = ()
    trials: tuple[str, ...] = ()
    first: int | None = None
    again: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        """Whether any option is given."""
        return self != Pick()

    def __str__(self) -> str:
        """Return the picks as text: `cc=cubic mtu=1500, first 2`."""
        ids = [", ".join(self.trials[:FEW_IDS])] if self.trials else []
        if len(self.trials) > FEW_IDS:
            ids = [f"{ids[0]} and {counted(len(self.trials) - FEW_IDS, 'more trial')}"]
        again = [f"again {', '.join(self.again)}"] if self.again else []
        first = [f"first {self.first}"] if self.first is not None else []
        return ", ".join([*(" ".join(one.split()) for one in self.only), *ids, *again, *first])

    @property
    def options(self) -> str:
        """The options as written on a command line, with a space before each."""
        words = [word for one in self.only for word in ("--only", one)]
        words += [word for one in self.trials for word in ("--trial", one)]
        words += [word for one in self.again for word in ("--again", one)]
        words += [] if self.first is None else ["--first", str(self.first)]
        return "".join(f" {shlex.quote(word)}" for word in words)

    def of(self, plan: Plan, results: Mapping[str, str] | None = None) -> Picked:
        """Return the trials of a plan that are picked; `results` has the last result of each trial.

        Without options, all trials are picked. If the plan has a shard, only trials of that shard are picked.
        Raises DefinitionError for an unknown factor, level or trial. Raises PlanError if no trial is picked,
        unless `again` is given.
        """
        if not self and not plan.shard:
            return Picked("", tuple(plan.ids))
        conditions = list(_conditions(self.only, plan))
        named = {_find(plan, one) for one in self.trials}
        of_shard = set(Shard.parse(plan.shard).ids(plan) if plan.shard else plan.ids)
        ids = [
            trial.id
            for trial in plan.trials
            if trial.id in of_shard
            and (not named or trial.id in named)
            and all(_label(trial, name) in levels for name, levels in conditions)
            and (not self.again or (results or {}).get(trial.id) in self.again)
        ]
        if not ids and not self.again:
            whole = f"shard {plan.shard} of {plan.experiment}" if plan.shard else plan.experiment
            what = f"no trial of {whole} matches all of {self.options.strip()}"
            raise PlanError(f"{what}; write several levels of a factor with commas: cc=cubic,cdg")
        text = ", ".join(filter(None, [f"shard {plan.shard}" if plan.shard else "", str(self)]))
        return Picked(text, tuple(ids[: self.first]), bool(self.again))


def _find(plan: Plan, name: str) -> str:
    try:
        return plan.find(name).id
    except PlanError as error:
        raise DefinitionError.at(f"--trial {name}", str(error)) from None


def _label(trial: Trial, name: str) -> str | None:
    """Return the label of a trial's level; `part` and `replicate` may be picked like factors."""
    own = {"part": trial.part, "replicate": str(trial.replicate)}
    return trial.treatment.get(name, own.get(name))


def known_levels(plan: Plan) -> Mapping[str, Sequence[str]]:
    """Return, for each factor, the labels of the levels by which trials can be picked."""
    most = max(part.replicates for part in plan.parts)
    levels: dict[str, dict[str, None]] = {
        "part": dict.fromkeys(part.name for part in plan.parts),
        "replicate": dict.fromkeys(str(number) for number in range(1, most + 1)),
    }
    factors: dict[str, dict[str, None]] = {}
    for part in plan.parts:
        for name, labels in part.factors.items():
            factors.setdefault(name, {}).update(dict.fromkeys(labels))
    return {name: tuple(labels) for name, labels in (levels | factors).items()}


def _conditions(only: Sequence[str], plan: Plan) -> Iterator[tuple[str, frozenset[str]]]:
    """Yield each factor in --only with its levels; a trial must have one of these levels."""
    known = known_levels(plan) if only else {}
    for text in only:
        place = f"--only {shlex.quote(text)}"
        try:
            words = shlex.split(text)
        except ValueError as error:
            raise DefinitionError.at(
                place, f"{str(error).lower()}; write FACTOR=LEVEL, such as cc=cubic"
            ) from None
        if not words:
            raise DefinitionError.at(place, "it is empty; write FACTOR=LEVEL, such as cc=cubic")
        for word in words:
            name, separator, level = word.partition("=")
            if not separator:
                raise DefinitionError.at(place, f"`{word}` is not FACTOR=LEVEL, such as {_example(known)}")
            if name not in known:
                raise DefinitionError.at(place, unknown("factor", name, known))
            levels = [level] if level in known[name] else level.split(",")
            for one in levels:
                if one not in known[name]:
                    raise DefinitionError.at(place, unknown(f"level of {name}", one, known[name]))
            yield name, frozenset(levels)


def _example(known: Mapping[str, Sequence[str]]) -> str:
    name, levels = list(known.items())[-1]
    return f"{name}={levels[0]}"
