"""The events of the journal: all that are written have a schema, and match it."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from samovar.campaign.journal.journal_file import CHECKSUMMED
from samovar.events import JOURNAL_EVENTS, line_schema

ROOT = Path(__file__).parents[3]
WRITERS = ("note", "_note", "report", "append")
VALIDATOR = Draft202012Validator(line_schema("journal", JOURNAL_EVENTS))


def written() -> Iterator[tuple[Path, int, str]]:
    """Find each event that the package writes, by file and line."""
    for file in sorted((ROOT / "samovar" / "campaign").rglob("*.py")):
        for node in ast.walk(ast.parse(file.read_text())):
            if isinstance(node, ast.Call) and _name(node.func) in WRITERS and node.args:
                yield from ((file, node.lineno, text) for text in _texts(node))


def _name(function: ast.expr) -> str:
    return getattr(function, "attr", getattr(function, "id", ""))


def _texts(call: ast.Call) -> Iterator[str]:
    """Find the names of events in a call: a text, or the choice between two; the name of a host has no hyphen."""
    options = [call.args[0]]
    if isinstance(call.args[0], ast.IfExp):
        options = [call.args[0].body, call.args[0].orelse]
    values = (option.value for option in options if isinstance(option, ast.Constant))
    yield from (value for value in values if isinstance(value, str) and call.keywords)


def test_every_event_that_is_written_has_a_type() -> None:
    found = {text for _, _, text in written()}
    assert len(found) > 15
    assert [
        f"{file.name}:{line}: {text}" for file, line, text in written() if text not in JOURNAL_EVENTS
    ] == []


def test_the_events_with_a_checksum_of_the_journal_are_listed() -> None:
    listed = {name for name, (_, keys) in JOURNAL_EVENTS.items() if "before?" in keys.split(", ")}
    assert listed == CHECKSUMMED


GOOD: tuple[dict[str, Any], ...] = (
    {"t_s": 1.5, "event": "campaign-started", "trials": 4},
    {"t_s": 1.5, "event": "campaign-interrupted", "before": "0" * 64, "testbed": "lab"},
    {"t_s": 1.5, "event": "state-read", "id": "a", "host": "src", "state": {"cc": "cubic"}},
    {"t_s": 1.5, "event": "trial-started", "id": "a", "attempt": 1, "testbed": "lab"},
)


@pytest.mark.parametrize("event", GOOD, ids=lambda event: str(event["event"]))
def test_an_event_validates_against_its_schema(event: dict[str, Any]) -> None:
    VALIDATOR.validate(event)


@pytest.mark.parametrize(
    "change",
    [
        {"event": "campaign-begun"},
        {"trials": -1},
        {"trials": "4"},
        {"trials": None},
        {"t_s": "now"},
        {"colour": "red"},
    ],
    ids=str,
)
def test_a_wrong_event_does_not_validate(change: dict[str, Any]) -> None:
    assert not VALIDATOR.is_valid({**GOOD[0], **change})
