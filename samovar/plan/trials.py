"""The trials of a plan as a sequence, and their ids.

Equal values of trials are stored only once, and trials can be grouped by value.

What a trial sets, runs and records consists of components: `run`, `path`, `hosts.NAME` for each host,
`flows`, `captures` and `loggers`. Equal components are one object. A result that depends only on some
components is therefore computed once for each group of treatments with the same components (`Trials.groups`),
not once for each trial.

An id consists of readable levels, the replicate, and a hash of the digests of the trial's components. The
hash does not depend on the replicate: more replicates add trials and keep the existing ids. An edit of the
experiment changes only the ids of the affected trials.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from itertools import chain, islice
from typing import Any, NamedTuple, overload

from samovar.errors import PlanError
from samovar.plan.model import PlanValue, Resolved, RunPlan, Trial

HOST = "hosts."
DIGEST_BYTES = 16
HASH_DIGITS = 6
LONGEST_LEVEL = 24
LONGEST_NAME = 160  # leaves room for suffixes below the 255 bytes of a file name
MAIN = "main"

View = Mapping[str, Callable[[Any], Hashable] | None]
"""How treatments are compared: maps a component, or `hosts` for every host, to a function of its value.

Where the function is None, the whole component is compared.
"""
ALL_COMPONENTS: View = dict.fromkeys(("run", "path", "hosts", "flows", "captures", "loggers"))
TRAFFIC_AND_RECORDING: View = {
    **dict.fromkeys(("run", "path", "flows", "captures", "loggers")),
    "hosts": lambda host: tuple(sorted(host.settings.get("shaper", {}).items())),
}
"""What decides how long a trial takes and how much it records; a sender's shaper limits its flows."""


@dataclass(frozen=True, eq=False, slots=True)
class Component:
    """A value that treatments share; `number` is its index in plan.json, `text` its canonical JSON."""

    number: int
    value: Any
    text: str
    digest: bytes


class Components:
    """The distinct components of a plan, in the order in which they were first needed."""

    def __init__(self) -> None:
        self._by_text: dict[tuple[str, str], Component] = {}

    def add(self, name: str, value: PlanValue | tuple[PlanValue, ...] | None) -> Component:
        """Return the component of this kind that has this value; make it if it is new."""
        plain = [one.as_json() for one in value] if isinstance(value, tuple) else value and value.as_json()
        text = json.dumps(plain, sort_keys=True, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
        key = kind_of(name), text
        if key not in self._by_text:
            digest = hashlib.sha256(text.encode()).digest()[:DIGEST_BYTES]
            self._by_text[key] = Component(len(self._by_text), value, text, digest)
        return self._by_text[key]


def kind_of(name: str) -> str:
    """Return the kind of a component: `hosts` for `hosts.src`, otherwise the name itself."""
    return name.partition(".")[0]


@dataclass(frozen=True)
class Treatments:
    """The treatments of one part in columns: entry n of each column belongs to treatment n.

    `factors` has the labels of each factor's levels. For each treatment, `levels` has the indices of its
    levels. A component has one column, or one for each replicate if it contains random values.
    """

    part: str
    factors: Mapping[str, tuple[str, ...]]
    levels: Sequence[tuple[int, ...]]
    components: Mapping[str, Sequence[Sequence[Component]]]

    def __len__(self) -> int:
        return len(self.levels)

    def labels(self, treatment: int) -> dict[str, str]:
        """Return the labels of a treatment's levels, by factor."""
        levels = self.levels[treatment]
        return {
            name: labels[level] for (name, labels), level in zip(self.factors.items(), levels, strict=True)
        }

    def columns(self, replicate: int) -> dict[str, Sequence[Component]]:
        """Return the column of each component in one replicate: the component's value in every treatment."""
        return {name: columns[(replicate - 1) % len(columns)] for name, columns in self.components.items()}

    def resolved(self, treatment: int, replicate: int = 1) -> Resolved:
        """Return what the trials of a treatment set, run and record in one replicate."""
        values = {name: column[treatment].value for name, column in self.columns(replicate).items()}
        run: RunPlan = values.pop("run")
        hosts = {name.removeprefix(HOST): values.pop(name) for name in tuple(values) if name.startswith(HOST)}
        return Resolved.model_construct(**dict(run), hosts=hosts, **values)


class Slot(NamedTuple):
    """The place of a trial in the order: the number of its treatment, its replicate and its block."""

    treatment: int
    replicate: int
    block: int


@dataclass(frozen=True)
class Group:
    """Treatments of one part that are equal in everything that a view compares.

    `levels` and `resolved` are those of the first treatment in its first replicate. `ids` holds the ids of
    each treatment's trials.
    """

    part: str
    levels: Mapping[str, str]
    resolved: Resolved
    ids: Sequence[Sequence[str]]

    @property
    def treatments(self) -> int:
        """The number of treatments."""
        return len(self.ids)

    @property
    def trials(self) -> list[str]:
        """The ids of all trials."""
        return list(chain.from_iterable(self.ids))


class Trials(Sequence[Trial]):
    """The trials of a plan in their order.

    In `slots`, treatments are numbered through all parts, from the first treatment of the first part.
    """

    def __init__(self, parts: Sequence[Treatments], ids: Sequence[str], slots: Sequence[Slot]) -> None:
        self.parts, self.ids, self.slots = tuple(parts), tuple(ids), tuple(slots)

    @cached_property
    def _places(self) -> Sequence[tuple[Treatments, int]]:
        return [(part, number) for part in self.parts for number in range(len(part))]

    def __len__(self) -> int:
        return len(self.ids)

    @overload
    def __getitem__(self, index: int) -> Trial: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[Trial]: ...
    def __getitem__(self, index: int | slice) -> Trial | Sequence[Trial]:
        """Return one trial or the trials of a slice, made anew at each access.

        A hundred thousand stored trials would need more memory than the plan itself.
        """
        if isinstance(index, slice):
            return [self[one] for one in range(len(self))[index]]
        slot = self.slots[index]
        part, treatment = self._places[slot.treatment]
        source = partial(part.resolved, treatment, slot.replicate)
        labels = part.labels(treatment)
        return Trial(self.ids[index], part.part, labels, slot.replicate, slot.block, source)

    def groups(self, view: View) -> list[Group]:
        """Return the groups of treatments whose first replicates are equal in all that `view` compares.

        The groups are in the order of their first treatments.
        """
        groups: list[Group] = []
        ids = iter(self._ids_by_treatment)
        for part in self.parts:
            treatments: dict[Hashable, list[int]] = {}
            for treatment, key in enumerate(_keys(part, view)):
                treatments.setdefault(key, []).append(treatment)
            own = list(islice(ids, len(part)))
            for numbers in treatments.values():
                first = numbers[0]
                groups.append(
                    Group(part.part, part.labels(first), part.resolved(first), [own[one] for one in numbers])
                )
        return groups

    @cached_property
    def _ids_by_treatment(self) -> Sequence[Sequence[str]]:
        ids: list[list[str]] = [[] for part in self.parts for _ in range(len(part))]
        for id_, slot in zip(self.ids, self.slots, strict=True):
            ids[slot.treatment].append(id_)
        return ids


def _keys(part: Treatments, view: View) -> Iterable[Hashable]:
    """Return, for each treatment of a part, the values by which a view compares treatments."""
    columns: list[Sequence[Hashable]] = []
    for name, column in part.columns(1).items():
        key = name if name in view else kind_of(name)
        if key not in view:
            continue
        key_of, distinct = view[key], set(column)
        keys: dict[Component, Hashable] = {
            component: component if key_of is None else key_of(component.value) for component in distinct
        }
        if len(set(keys.values())) > 1:
            columns.append([keys[component] for component in column])
    return zip(*columns, strict=True) if columns else [()] * len(part)


class DesignError(PlanError):
    """The treatments of a part cannot be planned; `place` is the path of keys to the error."""

    def __init__(self, part: str, place: tuple[str, ...], message: str) -> None:
        self.part, self.place = part, place
        super().__init__(f"{part}: {message}")


def _same_trials(part: str, first: Mapping[str, str], second: Mapping[str, str]) -> DesignError:
    """Return the error for two treatments that give the same trial.

    Its position is that of the first factor without an effect, or `include` if the treatments are equal.
    """
    differing = [name for name in second if first[name] != second[name]]
    if not differing:
        again = f"treatment {' '.join(second.values())} occurs twice; remove one of the lines"
        return DesignError(part, ("include",), again)
    both = " and ".join(f"{name} {first[name]} and {second[name]}" for name in differing)
    common = ", ".join(f"{name} is {level}" for name, level in second.items() if name not in differing)
    where = f" where {common}" if common else ""
    line = ", ".join(f"{name}: {json.dumps(level)}" for name, level in second.items())
    remedy = f"use levels that change something, or add the line {{{line}}} to exclude"
    return DesignError(part, ("factors", differing[0]), f"{both} give the same trial{where}; {remedy}")


def ids_of(treatments: Treatments, slots: Sequence[Slot]) -> list[str]:
    """Return the id of every trial of a part.

    Raises DesignError if two treatments give the same trial, or PlanError if different trials get the same
    id.
    """
    words = [[word(label) for label in labels] for labels in treatments.factors.values()]
    first = [] if treatments.part == MAIN else [word(treatments.part)]
    names = []
    for levels in treatments.levels:  # PART-LEVELS-, without the part if this is `main`
        parts = [*first, *(one[level] for one, level in zip(words, levels, strict=True))]
        name = "-".join(filter(None, parts))[:LONGEST_NAME].strip("-.")
        names.append(f"{name}-" if name else "")
    replicates = max(map(len, treatments.components.values()))
    hashes = [_hashes(treatments, replicate) for replicate in range(1, replicates + 1)]
    ids = [
        f"{names[treatment]}r{replicate}-{hashes[(replicate - 1) % replicates][treatment]}"
        for treatment, replicate, _ in slots
    ]
    if len(set(ids)) < len(ids):
        twice = Counter(ids).most_common(1)[0][0]
        raise PlanError(
            f"{treatments.part}: two trials would have the id {twice}; give their levels labels that differ"
        )
    return ids


def word(level: str) -> str:
    """Return a level with the characters that are safe in a file name."""
    return re.sub(r"[^A-Za-z0-9.]+", "-", level.replace("%", "pct"))[:LONGEST_LEVEL].strip("-.")


def _hashes(treatments: Treatments, replicate: int) -> list[str]:
    """Return each treatment's shortened hash in one replicate. Raises DesignError for equal treatments."""
    head = json.dumps([treatments.part, *treatments.components], ensure_ascii=False).encode()
    columns = treatments.columns(replicate).values()
    rows = zip(*([component.digest for component in column] for column in columns), strict=True)
    digests = [hashlib.sha256(head + b"".join(row)).digest() for row in rows]
    if len(set(digests)) < len(digests):
        first: dict[bytes, int] = {}
        for number, digest in enumerate(digests):
            if first.setdefault(digest, number) != number:
                labels = treatments.labels(first[digest]), treatments.labels(number)
                raise _same_trials(treatments.part, *labels)
    return [digest.hex()[:HASH_DIGITS] for digest in digests]
