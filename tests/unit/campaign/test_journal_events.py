"""Schemas of the journal's events: every event that the code writes has one, and invalid events are refused."""

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


def written_events() -> Iterator[tuple[Path, int, str]]:
    """Yield file, line and name of each event that the package samovar.campaign writes."""
    for file in sorted((ROOT / "samovar" / "campaign").rglob("*.py")):
        for node in ast.walk(ast.parse(file.read_text())):
            if isinstance(node, ast.Call) and _function_name(node.func) in WRITERS and node.args:
                yield from ((file, node.lineno, text) for text in _event_names(node))


def _function_name(function: ast.expr) -> str:
    return getattr(function, "attr", getattr(function, "id", ""))


def _event_names(call: ast.Call) -> Iterator[str]:
    """Yield the event names in a call with keywords: its first argument, a string or a choice of two strings."""
    options = [call.args[0]]
    if isinstance(call.args[0], ast.IfExp):
        options = [call.args[0].body, call.args[0].orelse]
    values = (option.value for option in options if isinstance(option, ast.Constant))
    yield from (value for value in values if isinstance(value, str) and call.keywords)


def test_every_event_that_the_code_writes_is_declared() -> None:
    found = {text for _, _, text in written_events()}
    assert len(found) > 15
    assert [
        f"{file.name}:{line}: {text}" for file, line, text in written_events() if text not in JOURNAL_EVENTS
    ] == []


def test_the_events_declared_with_a_checksum_are_those_to_which_the_journal_adds_it() -> None:
    listed = {name for name, (_, keys) in JOURNAL_EVENTS.items() if "before?" in keys.split(", ")}
    assert listed == CHECKSUMMED


VALID: tuple[dict[str, Any], ...] = (
    {"t_s": 1.5, "event": "campaign-started", "trials": 4},
    {"t_s": 1.5, "event": "campaign-interrupted", "before": "0" * 64, "testbed": "lab"},
    {"t_s": 1.5, "event": "state-read", "id": "a", "host": "src", "state": {"cc": "cubic"}},
    {"t_s": 1.5, "event": "trial-started", "id": "a", "attempt": 1, "testbed": "lab"},
)


@pytest.mark.parametrize("event", VALID, ids=lambda event: str(event["event"]))
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
    assert not VALIDATOR.is_valid({**VALID[0], **change})
