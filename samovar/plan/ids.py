"""The ids of trials: readable levels, the replicate, and a hash of all that the trial sets, runs and records.

The hash is that of the digests of the trial's components and does not include the replicate. More replicates
thus add trials and keep the existing ids, and an edit of the experiment changes the ids of the affected
trials only.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from samovar.errors import PlanError
from samovar.plan.trials import Slot, Treatments

HASH_DIGITS = 6
LONGEST_LEVEL = 24
LONGEST_NAME = 160  # leaves room for suffixes below the 255 bytes of a file name
MAIN = "main"


class SameTrialsError(PlanError):
    """Two treatments give the same trial; carries the part and the first factor that changes nothing."""

    def __init__(self, part: str, first: Mapping[str, str], second: Mapping[str, str]) -> None:
        differing = [name for name in second if first[name] != second[name]]
        self.part, self.factor = part, differing[0]
        both = " and ".join(f"{name} {first[name]} and {second[name]}" for name in differing)
        common = ", ".join(f"{name} is {level}" for name, level in second.items() if name not in differing)
        where = f" where {common}" if common else ""
        line = ", ".join(f"{name}: {_quoted(level)}" for name, level in second.items())
        remedy = f"use levels that change something, or add the line {{{line}}} to exclude"
        super().__init__(f"{part}: {both} give the same trial{where}; {remedy}")


def _quoted(level: str) -> str:
    return f'"{level}"' if re.search(r"[^A-Za-z0-9./%_ -]", level) else level


def ids_of(treatments: Treatments, slots: Sequence[Slot]) -> list[str]:
    """Return the id of every trial of a part.

    Raises SameTrialsError for treatments whose trials are the same, and PlanError for ids that are.
    """
    words = [[word(label) for label in labels] for labels in treatments.factors.values()]
    names = [
        name_of(treatments.part, (one[level] for one, level in zip(words, levels, strict=True)))
        for levels in treatments.levels
    ]
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


def name_of(part: str, words: Iterable[str]) -> str:
    """Return the readable half of an id, part-levels; the part is left out if it is the only one, `main`."""
    first = "" if part == MAIN else word(part)
    name = "-".join(one for one in (first, *words) if one)[:LONGEST_NAME].strip("-.")
    return f"{name}-" if name else ""


def word(level: str) -> str:
    """Return a level with the characters that are safe in a file name."""
    return re.sub(r"[^A-Za-z0-9.]+", "-", level.replace("%", "pct"))[:LONGEST_LEVEL].strip("-.")


def _hashes(treatments: Treatments, replicate: int) -> list[str]:
    """Return the hash of every treatment in one replicate, shortened."""
    head = json.dumps([treatments.part, *treatments.components], ensure_ascii=False).encode()
    columns = treatments.columns(replicate).values()
    rows = zip(*([component.digest for component in column] for column in columns), strict=True)
    digests = [hashlib.sha256(head + b"".join(row)).digest() for row in rows]
    if len(set(digests)) < len(digests):
        first: dict[bytes, int] = {}
        for number, digest in enumerate(digests):
            if first.setdefault(digest, number) != number:
                labels = treatments.labels(first[digest]), treatments.labels(number)
                raise SameTrialsError(treatments.part, *labels)
    return [digest.hex()[:HASH_DIGITS] for digest in digests]
