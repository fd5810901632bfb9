"""The state of a host as key=value lines: read, compared with what was wanted, and with what was before."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class Difference:
    """One key whose value is not what it should be."""

    key: str
    wanted: str
    observed: str | None

    def __str__(self) -> str:
        """Say it in words."""
        found = "nothing" if self.observed is None else repr(self.observed)
        return f"{self.key}: wanted {self.wanted!r}, found {found}"


@dataclass(frozen=True)
class Compared:
    """One key with what it should be, what it is, and whether that is the same."""

    key: str
    wanted: str
    observed: str | None
    met: bool


def parse_state(text: str) -> dict[str, str]:
    """Read key=value lines; lines of another form are not state, and runs of blanks count as one."""
    pairs = (line.partition("=") for line in text.splitlines())
    return {key: " ".join(value.split()) for key, equals, value in pairs if equals and key and " " not in key}


def unmet(wanted: Iterable[str], state: Mapping[str, str]) -> tuple[Difference, ...]:
    """Compare a state with wanted lines: `key=value` must be equal, `key*=text` must hold the text."""
    return tuple(Difference(c.key, c.wanted, c.observed) for c in compared(wanted, state) if not c.met)


def compared(wanted: Iterable[str], state: Mapping[str, str]) -> Iterator[Compared]:
    """Set each wanted line beside what a state has for it, see unmet."""
    for line in wanted:
        key, _, value = line.partition("=")
        holds = key.endswith("*")
        key = key.rstrip("*")
        found = state.get(key)
        yield Compared(key, value, found, found is not None and (value in found if holds else value == found))


def changed(before: Mapping[str, str], after: Mapping[str, str]) -> tuple[Difference, ...]:
    """List every key whose value differs between two readings."""
    keys = sorted(before.keys() | after.keys())
    return tuple(
        Difference(key, before.get(key, "nothing"), after.get(key))
        for key in keys
        if before.get(key) != after.get(key)
    )


def parse_named(text: str, word: str) -> dict[str, str]:
    """Read lines of `word NAME VALUE` that a script printed."""
    lines = (line.split(" ", 2) for line in text.splitlines() if line.startswith(f"{word} "))
    return {name: " ".join(value) for _, name, *value in lines}
