"""The journal of a campaign: what happened, one JSON object a line, on disk before the next step is taken.

What it means for the trials is a pure function of the events: see state.py.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import threading
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from samovar.errors import CampaignError

NAME = "journal.jsonl"
SEALING = frozenset({"trial-finished", "files-recorded", "campaign-finished", "campaign-interrupted"})
"""Events that say what the journal was until then: `before` is the SHA-256 of all bytes before their line."""


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


def holder(file: Path) -> int | None:
    """Return the process that has a journal open for writing on this machine; None where that is not known.

    It is read from the kernel's list, proc_locks(5): to ask for the lock could keep a controller from it.
    """
    try:
        seen = file.stat()
        lines = Path("/proc/locks").read_text().splitlines()
    except OSError:
        return None
    place = f"{os.major(seen.st_dev):02x}:{os.minor(seen.st_dev):02x}:{seen.st_ino}"
    words = (line.split() for line in lines)
    return next((int(one[4]) for one in words if len(one) > 5 and (one[1], one[5]) == ("FLOCK", place)), None)


def broken_seals(data: bytes) -> Iterator[int]:
    """Yield the lines, counted from 1, that say another thing of the journal before them than is there."""
    digest = hashlib.sha256()
    for number, line in enumerate(data.split(b"\n"), 1):
        entry = _entry(line)
        before = entry.values.get("before") if entry and entry.event in SEALING else None
        if before not in (None, digest.hexdigest()):
            yield number
        digest.update(line + b"\n")


class Journal:
    """A journal open for writing, by one controller at a time."""

    def __init__(self, file: Path) -> None:
        """Open or begin a journal; a torn last line is moved to journal.torn-N beside it.

        Raises CampaignError when another controller has it open, or when a line before the last is not an
        event.
        """
        self._file = file
        self._written = 0, hashlib.sha256()  # how much is there, and what it comes to
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
        """Write an event and return when it is on disk; any thread may. Those of SEALING get `before`.

        Raises CampaignError when it cannot be written whole; then the journal is as it was before.
        """
        with self._lock:
            size_bytes, digest = self._written
            if os.fstat(self._fd).st_size != size_bytes:  # Ctrl-C came as an event was being written
                os.ftruncate(self._fd, size_bytes)
            seal = {"before": digest.hexdigest()} if event in SEALING else {}
            entry = Entry(t_s, event, {**values, **seal})
            line, after = entry.line(), digest.copy()
            after.update(line)
            try:
                _write(self._fd, line)
            except OSError as error:
                os.ftruncate(self._fd, size_bytes)
                raise CampaignError(f"{self._file}: {event} cannot be written: {error.strerror}") from error
            self._written = size_bytes + len(line), after
            self._entries.append(entry)
        return entry

    def close(self) -> None:
        """Close the journal and let other controllers have it."""
        os.close(self._fd)

    def _mend(self) -> list[Entry]:
        data = _bytes_of(self._file)
        entries, torn = _parse(self._file, data)
        self._written = len(data) - len(torn), hashlib.sha256(data[: len(data) - len(torn)])
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
