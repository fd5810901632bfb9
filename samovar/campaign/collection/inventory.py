"""What a journal says that a campaign's folder holds: a pure function of its events."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from samovar.campaign.journal import Entry


@dataclass
class Record:
    """The folder as the journal has it.

    `folders` are trials, whole or set aside, by path, each with the SHA-256 of its SHA256SUMS, None where the
    journal of an earlier release did not keep it. `files` are files of the campaign itself with theirs.
    `running` are the trials that have begun and not finished.
    """

    folders: dict[str, str | None] = field(default_factory=dict)
    files: dict[str, str] = field(default_factory=dict)
    running: set[str] = field(default_factory=set)
    finished: bool = False


def recorded(entries: Iterable[Entry]) -> Record:
    """Derive from a journal what the folder holds."""
    record = Record()
    for entry in entries:
        step = _STEPS.get(entry.event)
        if step:
            step(record, entry.values)
        record.finished = entry.event == "campaign-finished"
    return record


def _started(record: Record, values: Any) -> None:
    record.folders.pop(_trial(values), None)
    record.running.add(str(values["id"]))


def _finished(record: Record, values: Any) -> None:
    record.running.discard(str(values["id"]))
    if values.get("outcome") == "completed":
        record.folders[_trial(values)] = values.get("sums_sha256")


def _set_aside(record: Record, values: Any) -> None:
    moved = record.folders.pop(_trial(values), None)
    record.folders[str(values["folder"])] = values.get("sums_sha256") or moved


def _files(record: Record, values: Any) -> None:
    record.files = dict(values["files"])


def _measured(record: Record, values: Any) -> None:
    if "sha256" in values:
        record.files[str(values["file"])] = str(values["sha256"])


def _trial(values: Any) -> str:
    return f"trials/{values['id']}"


_STEPS = {
    "trial-started": _started,
    "trial-finished": _finished,
    "trial-set-aside": _set_aside,
    "files-recorded": _files,
    "path-measured": _measured,
    "window-measured": _measured,
}
