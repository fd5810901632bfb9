"""A plan against what a campaign has: which trials stand, which run and why, which results do not count."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from samovar.plan.groups import EVERYTHING, Kinds
from samovar.plan.model import Trial
from samovar.plan.plan import Plan
from samovar.plan.table import Table

DONE, NEW, STALE = "done", "new", "stale"
NOTHING = "nothing"
DIGITS = 15
"""So many digits tell any two values apart that were written differently."""
_NAMES = (("label",), ("logger", "host"), ("host", "interface"), ("match",))
"""The keys that tell the entries of a list apart: flows, loggers, captures, classes of the path."""

Levels = frozenset[tuple[str, str]]


@dataclass(frozen=True)
class Changed:
    """Results that an edit made stale: what it changed, they, and the trials that run in their stead."""

    changes: tuple[str, ...]
    results: tuple[str, ...]
    trials: tuple[str, ...]


@dataclass(frozen=True)
class Comparison:
    """A plan against a campaign; every id stands in one place only.

    `stands` are trials asked for and done. `runs` maps each trial still to be run, in the plan's order, to
    why: new, stale (a result is there, of the trial as it was), or the last attempt's failed, interrupted or
    invalid. `stale` and `orphans` are results that stay on disk and no longer count: those of a trial that
    was changed, and those of one that nobody asks for any more. `renamed` counts the new trials that set, run
    and record what one of the latter did: a part, a factor or a level has another name.
    """

    stands: tuple[str, ...]
    runs: Mapping[str, str]
    stale: tuple[Changed, ...] = ()
    orphans: tuple[str, ...] = ()
    renamed: int = 0

    @property
    def counts(self) -> dict[str, int]:
        """Count the trials to run by why they do."""
        found: dict[str, int] = {}
        for why in self.runs.values():
            found[why] = found.get(why, 0) + 1
        return found


def compare(plan: Plan, before: Plan | None, standing: Mapping[str, str]) -> Comparison:
    """Compare a plan with the one that a campaign has been run by.

    `standing` says of each trial that the campaign knows, by id, `done` or how its last attempt ended.
    """
    asked = dict.fromkeys(plan.table.ids)
    stands = tuple(id_ for id_ in asked if standing.get(id_) == DONE)
    results = {id_ for id_, how in standing.items() if how == DONE and id_ not in asked}
    stale = tuple(_stale(plan, before, results)) if before is not None and results else ()
    again = {id_ for changed in stale for id_ in changed.trials}
    runs = {
        id_: STALE if id_ in again else standing.get(id_, NEW) for id_ in asked if standing.get(id_) != DONE
    }
    orphans = results - {id_ for changed in stale for id_ in changed.results}
    renamed = 0
    if before is not None and orphans:
        was = _counted(before.table, orphans)
        now = _counted(plan.table, {id_ for id_, why in runs.items() if why == NEW})
        renamed = sum(min(number, now[all_of_it]) for all_of_it, number in was.items() if all_of_it in now)
    return Comparison(stands, runs, stale, tuple(id_ for id_ in standing if id_ in orphans), renamed)


def _counted(table: Table, only: Collection[str]) -> Mapping[str, int]:
    """Count some trials by all that they set, run and record, worked out once for those that are alike."""
    kinds = Kinds(table, EVERYTHING)
    found: dict[str, int] = {}
    for kind, number in kinds.trials(only).items():
        all_of_it = json.dumps(kinds.resolved(kind).as_json(), sort_keys=True)
        found[all_of_it] = found.get(all_of_it, 0) + number
    return found


def _stale(plan: Plan, before: Plan, results: set[str]) -> Iterator[Changed]:
    """Pair each result with the trial of the same part, levels and replicate, and group by what changed."""
    ids = enumerate(before.table.ids)
    old = {_key(trial): trial for trial in (before.trials[n] for n, id_ in ids if id_ in results)}
    found: dict[tuple[str, ...], list[tuple[str, str]]] = {}
    known: dict[tuple[str, Levels], tuple[str, ...]] = {}
    for now in plan.trials:
        was = old.get(_key(now))
        if was is None:
            continue
        treatment = _key(now)[:2]  # the replicates of one treatment differ alike
        if treatment not in known:
            known[treatment] = tuple(differences(was.resolved.as_json(), now.resolved.as_json()))
        found.setdefault(known[treatment], []).append((was.id, now.id))
    for changes, pairs in found.items():
        yield Changed(changes, tuple(one for one, _ in pairs), tuple(one for _, one in pairs))


def _key(trial: Trial) -> tuple[str, Levels, int]:
    return trial.part, frozenset(trial.treatment.items()), trial.replicate


def differences(before: Any, after: Any, where: str = "") -> Iterator[str]:
    """Say what differs between two plain values: `path.down.buffer_packets 320 -> 640`."""
    if before == after:
        return
    old, new = _named(before), _named(after)
    if old is None or new is None:
        yield f"{where} {_word(before)} -> {_word(after)}"
        return
    for key in [*old, *(key for key in new if key not in old)]:
        yield from differences(old.get(key), new.get(key), f"{where}.{key}" if where else key)


def _named(value: Any) -> Mapping[str, Any] | None:
    """Return a mapping, or a list of mappings by the names of its entries; None for anything else."""
    if isinstance(value, Mapping):
        return value
    if isinstance(value, list) and value and all(isinstance(one, Mapping) for one in value):
        keys = next((keys for keys in _NAMES if all(key in one for key in keys for one in value)), None)
        names = ["-".join(_word(one[key]) for key in keys) for one in value] if keys else []
        return dict(zip(names, value, strict=True)) if len(set(names)) == len(value) else None
    return None


def _word(value: Any) -> str:
    if value is None or value in ({}, []):
        return NOTHING
    if isinstance(value, Mapping):
        return " ".join(f"{key} {_word(one)}" for key, one in value.items() if one not in (None, {}, []))
    if isinstance(value, Sequence) and not isinstance(value, str):
        return ", ".join(_word(one) for one in value)
    return f"{value:.{DIGITS}g}" if isinstance(value, float) else str(value)
