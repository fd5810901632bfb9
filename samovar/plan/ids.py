"""Ids of trials: readable levels, the replicate, and a hash of all that the trial is.

The hash is made of the digests of the trial's components and leaves the replicate out: more replicates add
trials and keep the ids there were, and an edited experiment changes the ids of exactly the trials that
it touches.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence

from samovar.errors import PlanError
from samovar.plan.pool import Pool
from samovar.plan.product import Column
from samovar.plan.table import Order, Treatments

HASH_DIGITS = 6
LONGEST_LEVEL = 24
LONGEST_NAME = 160  # with room for suffixes below the 255 bytes of a file name
MAIN = "main"


class SameTrialsError(PlanError):
    """Two treatments are one trial; carries their part and the first factor whose levels change nothing."""

    def __init__(self, part: str, first: Mapping[str, str], second: Mapping[str, str]) -> None:
        apart = [name for name in second if first[name] != second[name]]
        self.part, self.factor = part, apart[0]
        both = " and ".join(f"{name} {first[name]} and {second[name]}" for name in apart)
        alike = ", ".join(f"{name} is {level}" for name, level in second.items() if name not in apart)
        where = f" where {alike}" if alike else ""
        line = ", ".join(f"{name}: {_quoted(level)}" for name, level in second.items())
        message = f"{both} make one and the same trial{where}; expected levels that change something"
        super().__init__(f"{part}: {message}, or the line {{{line}}} in exclude")


def _quoted(level: str) -> str:
    return f'"{level}"' if re.search(r"[^A-Za-z0-9./%_ -]", level) else level


def prefix(part: str, components: Sequence[str]) -> bytes:
    """Return what the digests of a part's components are put behind."""
    return json.dumps([part, *components], ensure_ascii=False).encode()


def digest(before: bytes, digests: Iterable[bytes]) -> bytes:
    """Return the hash of a trial, from those of its components in their order."""
    return hashlib.sha256(before + b"".join(digests)).digest()


def name_of(part: str, words: Iterable[str]) -> str:
    """Return the readable half of an id: part-levels, without the part when it is the only one, `main`."""
    before = "" if part == MAIN else word(part)
    name = "-".join(one for one in (before, *words) if one)[:LONGEST_NAME].strip("-.")
    return f"{name}-" if name else ""


def word(level: str) -> str:
    """Return a level as it may stand in a file's name."""
    return re.sub(r"[^A-Za-z0-9.]+", "-", level.replace("%", "pct"))[:LONGEST_LEVEL].strip("-.")


def ids_of(group: Treatments, rows: Iterable[tuple[str, ...]], order: Order, pool: Pool) -> list[str]:
    """Return the id of every trial of a part; `rows` are the words of its treatments.

    Raises PlanError when treatments are the same, or cannot be told apart by their ids.
    """
    names = _names(group, rows)
    hashes = [_hashes(group, pool, replicate) for replicate in range(1, group.drawn + 1)]
    drawn = group.drawn
    trials = zip(order.treatments, order.replicates, strict=True)
    ids = [f"{names[one]}r{replicate}-{hashes[(replicate - 1) % drawn][one]}" for one, replicate in trials]
    if len(set(ids)) < len(ids):
        raise PlanError(
            f"{group.part}: {_twice(ids)} would be two trials; expected levels with labels that differ"
        )
    return ids


def _names(group: Treatments, rows: Iterable[tuple[str, ...]]) -> list[str]:
    """Return the readable half of every treatment's id."""
    words = [[word(label) for label in labels] for labels in group.labels]
    most = sum(max(map(len, one), default=0) + 1 for one in words) + len(group.part)
    plain = group.part == MAIN and words and all(all(one) for one in words) and most <= LONGEST_NAME
    if plain:  # what name_of comes to when nothing is left out or cut
        return [f"{name}-" for name in map("-".join, rows)]
    return [name_of(group.part, one) for one in rows]


def _hashes(group: Treatments, pool: Pool, replicate: int) -> list[str]:
    before, columns = _folded(group, pool, replicate)
    rows = zip(*columns, strict=True) if columns else [()] * len(group)
    sha256, join = hashlib.sha256, b"".join
    found = [sha256(before + join(row)).digest() for row in rows]  # digest(), without a million calls
    if len(set(found)) < len(found):
        _refuse_same(group, found)
    return [one.hex()[:HASH_DIGITS] for one in found]


def _folded(group: Treatments, pool: Pool, replicate: int) -> tuple[bytes, list[Iterator[bytes]]]:
    """Return the digests by treatment; one that all share is put to what stands before it."""
    before = prefix(group.part, group.components)
    known: list[tuple[Column, dict[int, bytes]]] = []
    for column in group.columns_of(replicate):
        digests = {number: pool.digests[number] for number in set(column)}
        if len(digests) > 1:
            known.append((column, digests))
            continue
        shared = b"".join(digests.values())
        if known:
            last = known[-1][1]
            last.update({number: one + shared for number, one in last.items()})
        else:
            before += shared
    return before, [map(digests.__getitem__, column) for column, digests in known]


def _refuse_same(group: Treatments, digests: Sequence[bytes]) -> None:
    seen: dict[bytes, int] = {}
    for number, one in enumerate(digests):
        first = seen.setdefault(one, number)
        if first != number:
            raise SameTrialsError(group.part, group.treatment(first), group.treatment(number))


def _twice(ids: Sequence[str]) -> str:
    return next(_repeated(ids))


def _repeated(ids: Sequence[str]) -> Iterator[str]:
    seen: set[str] = set()
    for one in ids:
        if one in seen:
            yield one
        seen.add(one)
