"""The journal of a campaign: what happened, one JSON object a line, on disk before the next step is taken.

Written and read here; what it means for the trials is a pure function of the events, `fold`.
"""

from __future__ import annotations

import fcntl
import json
import os
import threading
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

from samovar.errors import CampaignError

NAME = "journal.jsonl"


@dataclass(frozen=True)
class Entry:
    """One event: its name, when (epoch seconds of the controller), and its values."""

    t_s: float
    event: str
    values: Mapping[str, Any] = field(default_factory=dict)

    def line(self) -> bytes:
        """Return the event as a line of the journal."""
        record = {"t_s": self.t_s, "event": self.event, **self.values}
        return json.dumps(record, ensure_ascii=False, allow_nan=False).encode() + b"\n"


def read_journal(file: Path) -> list[Entry]:
    """Return the events of a journal, which may be growing meanwhile; a torn last line is passed over.

    Raises CampaignError when there is no journal, or when another line than the last is not an event.
    """
    return _parse(file, _bytes_of(file))[0]


class Journal:
    """A journal open for writing, by one controller at a time."""

    def __init__(self, file: Path) -> None:
        """Open or begin a journal; a torn last line is moved to journal.torn-N beside it.

        Raises CampaignError when another controller has it open, or when a line before the last is not an
        event.
        """
        self._file = file
        self._lock = threading.Lock()
        self._fd = _open(file)
        try:
            _lock(self._fd, file)
            self._entries = self._mend()
        except BaseException:
            os.close(self._fd)
            raise

    def __enter__(self) -> Journal:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    @property
    def entries(self) -> tuple[Entry, ...]:
        """All events so far, those of earlier controllers included."""
        return tuple(self._entries)

    def append(self, event: str, t_s: float, **values: Any) -> Entry:
        """Write an event and return when it is on disk; any thread may.

        Raises CampaignError when it cannot be written whole; then the journal is as it was before.
        """
        entry = Entry(t_s, event, values)
        with self._lock:
            size_bytes = os.fstat(self._fd).st_size
            try:
                _write(self._fd, entry.line())
            except OSError as error:
                os.ftruncate(self._fd, size_bytes)
                raise CampaignError(f"{self._file}: {event} cannot be written: {error.strerror}") from error
            self._entries.append(entry)
        return entry

    def close(self) -> None:
        """Close the journal and let other controllers have it."""
        os.close(self._fd)

    def _mend(self) -> list[Entry]:
        entries, torn = _parse(self._file, _bytes_of(self._file))
        if torn:
            _keep_torn(self._file, torn)
            os.ftruncate(self._fd, os.fstat(self._fd).st_size - len(torn))
            os.fsync(self._fd)
        return entries


def _open(file: Path) -> int:
    try:
        fd = os.open(file, os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o666)
    except OSError as error:
        raise CampaignError(f"{file}: cannot be opened: {error.strerror}") from error
    _sync_folder(file.parent)
    return fd


def _lock(fd: int, file: Path) -> None:
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as error:
        raise CampaignError(f"{file}: another controller is at work on this campaign") from error


def _write(fd: int, data: bytes) -> None:
    while data:
        data = data[os.write(fd, data) :]
    os.fsync(fd)


def _keep_torn(file: Path, torn: bytes) -> None:
    number = 1
    while (kept := file.with_name(f"{file.stem}.torn-{number}")).exists():
        number += 1
    fd = os.open(kept, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666)
    try:
        _write(fd, torn)
    finally:
        os.close(fd)
    _sync_folder(file.parent)


def _sync_folder(folder: Path) -> None:
    # A new name is on disk when its folder is: fsync(2).
    fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


def _bytes_of(file: Path) -> bytes:
    try:
        return file.read_bytes()
    except OSError as error:
        raise CampaignError(f"{file}: cannot be read: {error.strerror}") from error


def _parse(file: Path, data: bytes) -> tuple[list[Entry], bytes]:
    """Return the events, and the bytes of a last line that was not written whole."""
    entries: list[Entry] = []
    *lines, rest = data.split(b"\n")
    for number, line in enumerate(lines, 1):
        entry = _entry(line)
        if entry is None and number == len(lines) and not rest:
            return entries, line + b"\n"  # a last block of which only the length reached the disk
        if entry is None:
            raise CampaignError(f"{file}:{number}: not an event; accepted: a JSON object with t_s and event")
        entries.append(entry)
    return entries, rest


def _entry(line: bytes) -> Entry | None:
    try:
        record = json.loads(line)
        return Entry(float(record.pop("t_s")), str(record.pop("event")), record)
    except (ValueError, TypeError, KeyError, AttributeError):
        return None


Standing = Literal["in flight", "completed", "failed", "interrupted"]


@dataclass(frozen=True)
class TrialState:
    """What the journal says of one trial.

    `standing` is of the last attempt: in flight until it finished, which after a crash it never did.
    `seconds` and `overhead_s` (the part of it that was not traffic) are None until then. `phases` are seconds
    by phase.
    """

    id: str
    attempts: int = 0
    standing: Standing = "in flight"
    verdict: str = ""
    reasons: tuple[str, ...] = ()
    t_start_s: float = 0.0
    seconds: float | None = None
    overhead_s: float | None = None
    phases: Mapping[str, float] = field(default_factory=dict)
    set_aside: tuple[str, ...] = ()


@dataclass(frozen=True)
class StateRead:
    """What a host was like before a trial changed it."""

    id: str
    host: str
    state: Any


@dataclass(frozen=True)
class CampaignState:
    """What the journal says of a campaign.

    `unrestored` has, by host, what was read and not restored since, oldest first: restore the newest first,
    so that the oldest, which no trial had touched, has the last word.
    """

    trials: Mapping[str, TrialState]
    unrestored: Mapping[str, tuple[StateRead, ...]]
    controllers: int = 0
    last_event: str = ""
    t_last_s: float = 0.0

    def standing(self, standing: Standing) -> tuple[TrialState, ...]:
        """Return the trials that stand so, in the order in which they were first started."""
        return tuple(trial for trial in self.trials.values() if trial.standing == standing)


def fold(entries: Iterable[Entry]) -> CampaignState:
    """Derive a campaign's state from its events; unknown events change nothing.

    Raises CampaignError for an event that lacks one of its values.
    """
    trials: dict[str, TrialState] = {}
    unrestored: dict[str, tuple[StateRead, ...]] = {}
    controllers, last = 0, Entry(0.0, "")
    for number, last in enumerate(entries, 1):
        try:
            _fold_one(trials, unrestored, last)
        except (KeyError, TypeError, ValueError) as error:
            raise CampaignError(
                f"journal, line {number}: {last.event}: value missing or wrong: {error}"
            ) from error
        controllers += last.event in ("campaign-started", "campaign-resumed")
    return CampaignState(trials, unrestored, controllers, last.event, last.t_s)


def _fold_one(
    trials: dict[str, TrialState], unrestored: dict[str, tuple[StateRead, ...]], entry: Entry
) -> None:
    values = entry.values
    if entry.event in _TRIAL_STEPS:
        trial = trials.get(values["id"], TrialState(values["id"]))
        trials[trial.id] = _TRIAL_STEPS[entry.event](trial, entry)
    elif entry.event == "state-read":
        read = StateRead(values["id"], values["host"], values["state"])
        unrestored[read.host] = (*unrestored.get(read.host, ()), read)
    elif entry.event == "state-restored":
        reads = _before(unrestored.pop(values["host"], ()), values["id"])
        unrestored.update({values["host"]: reads} if reads else {})


def _before(reads: tuple[StateRead, ...], id_: str) -> tuple[StateRead, ...]:
    """Return the reads that restoring a trial's leaves open: those that are older."""
    ids = [read.id for read in reads]
    return reads[: ids.index(id_)] if id_ in ids else reads


def _started(trial: TrialState, entry: Entry) -> TrialState:
    attempt = int(entry.values["attempt"])
    return TrialState(trial.id, attempt, t_start_s=entry.t_s, set_aside=trial.set_aside)


def _phase(trial: TrialState, entry: Entry) -> TrialState:
    name, seconds = str(entry.values["phase"]), float(entry.values["seconds"])
    return replace(trial, phases={**trial.phases, name: trial.phases.get(name, 0.0) + seconds})


def _finished(trial: TrialState, entry: Entry) -> TrialState:
    values = entry.values
    if values["outcome"] not in ("completed", "failed", "interrupted"):
        raise ValueError(f"outcome {values['outcome']!r}")
    return replace(
        trial,
        standing=values["outcome"],
        verdict=str(values.get("verdict", "")),
        reasons=tuple(values.get("reasons", ())),
        seconds=entry.t_s - trial.t_start_s,
        overhead_s=values.get("overhead_s"),
    )


def _set_aside(trial: TrialState, entry: Entry) -> TrialState:
    standing: Standing = "interrupted" if trial.standing == "in flight" else trial.standing
    return replace(trial, standing=standing, set_aside=(*trial.set_aside, str(entry.values["folder"])))


_TRIAL_STEPS: Mapping[str, Callable[[TrialState, Entry], TrialState]] = {
    "trial-started": _started,
    "phase": _phase,
    "trial-finished": _finished,
    "trial-set-aside": _set_aside,
}
