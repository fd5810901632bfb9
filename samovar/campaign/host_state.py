"""Parse the state of a host from lines `key=value`; compare it with wanted values or an earlier state."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class StateComparison:
    """A key's wanted value, its observed value (None if missing), and whether the two match."""

    key: str
    wanted: str
    observed: str | None
    met: bool

    def __str__(self) -> str:
        found = "nothing" if self.observed is None else repr(self.observed)
        return f"{self.key}: wanted {self.wanted!r}, found {found}"


def parse_state(text: str) -> dict[str, str]:
    """Return the key=value lines of a script's output as a mapping. Other lines are ignored.

    Each run of blanks in a value becomes one blank, so that values can be compared.
    """
    pairs = (line.partition("=") for line in text.splitlines())
    return {key: " ".join(value.split()) for key, equals, value in pairs if equals and key and " " not in key}


def parse_named(text: str, word: str) -> dict[str, str]:
    """Return the values of the lines `WORD NAME VALUE` that begin with `word`, by name."""
    lines = (line.split(" ", 2) for line in text.splitlines() if line.startswith(f"{word} "))
    return {name: " ".join(value) for _, name, *value in lines}


def compare_state(wanted: Iterable[str], state: Mapping[str, str]) -> Iterator[StateComparison]:
    """Compare a state with wanted lines.

    A line `key=value` matches if the state has exactly this value. A line `key*=text` matches if the value in
    the state contains the text.
    """
    for line in wanted:
        name, _, value = line.partition("=")
        key = name.rstrip("*")
        found = state.get(key)
        met = found is not None and (value in found if name.endswith("*") else value == found)
        yield StateComparison(key, value, found, met)


def unmet(wanted: Iterable[str], state: Mapping[str, str]) -> tuple[StateComparison, ...]:
    """Return a comparison for each wanted line that does not match a state; see compare_state()."""
    return tuple(one for one in compare_state(wanted, state) if not one.met)


def changed(before: Mapping[str, str], after: Mapping[str, str]) -> tuple[StateComparison, ...]:
    """Return a comparison for every key whose values in two states differ, or that is in only one of them.

    The value in the state `before` counts as wanted, the value in the state `after` as observed.
    """
    keys = sorted(key for key in before.keys() | after.keys() if before.get(key) != after.get(key))
    return tuple(StateComparison(key, before.get(key, "nothing"), after.get(key), False) for key in keys)
