"""Read and write journal.jsonl: one event per line, synced to disk before the controller continues."""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from samovar.atomic_files import sync, write_whole
from samovar.errors import CampaignError

JOURNAL = "journal.jsonl"
LOCKED = "another controller is running this campaign"
LOCK_WAIT_S, LOCK_POLL_S = 0.5, 0.01
CHECKSUMMED = frozenset({"trial-finished", "files-recorded", "campaign-finished", "campaign-interrupted"})
"""Events with a value `before`, which is the SHA-256 of all bytes of the journal before the event's line."""


Note = Callable[..., None]
"""A function that appends an event to the journal; it takes the name, and the values as keyword arguments."""


@dataclass(frozen=True)
class Entry:
    """One event of a journal: its time (seconds since the epoch, controller's clock), name and values."""

    t_s: float
    event: str
    values: Mapping[str, Any] = field(default_factory=dict)

    def line(self) -> bytes:
        """Return the event as a line of the journal."""
        record = {"t_s": self.t_s, "event": self.event, **self.values}
        return json.dumps(record, ensure_ascii=False, allow_nan=False).encode() + b"\n"

    def value_problem(self, number: int, error: Exception) -> str:
        """Return the message for an event, in line `number`, whose values are missing or wrong."""
        return f"line {number}: {self.event}: value missing or wrong: {type(error).__name__}: {error}"


def read_journal(file: Path) -> list[Entry]:
    """Return the events of a journal, which may still grow. An incomplete last line is ignored.

    Raises CampaignError if the file cannot be read, or if a line other than the last is not an event.
    """
    return _parse(file, _bytes_of(file))[0]


def is_running(file: Path) -> bool:
    """Return whether a controller has locked a journal, maybe on another computer that shares the disk.

    Returns False if the journal is missing. The journal may be on a read-only disk. Raises CampaignError if
    it cannot be opened.
    """
    try:
        fd = os.open(file, os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError:
        return False
    except OSError as error:
        raise CampaignError(f"{file}: cannot be opened: {error.strerror}") from error
    try:
        fcntl.flock(fd, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(fd)
    return False


def failed_checksums(data: bytes) -> Iterator[int]:
    """Yield the number, from 1, of each line whose `before` is not the SHA-256 of all earlier lines."""
    digest = hashlib.sha256()
    for number, line in enumerate(data.split(b"\n"), 1):
        entry = _entry(line)
        before = entry.values.get("before") if entry and entry.event in CHECKSUMMED else None
        if before not in (None, digest.hexdigest()):
            yield number
        digest.update(line + b"\n")


def journal_bytes(entries: Iterable[Entry]) -> bytes:
    """Return the content of a journal with these events; events in CHECKSUMMED get a new value `before`."""
    lines, digest = [], hashlib.sha256()
    for entry in entries:
        values = {key: value for key, value in entry.values.items() if key != "before"}
        checksum = {"before": digest.hexdigest()} if entry.event in CHECKSUMMED else {}
        lines.append(Entry(entry.t_s, entry.event, {**values, **checksum}).line())
        digest.update(lines[-1])
    return b"".join(lines)


class Journal:
    """A journal that is open for writing, and locked so that only one controller writes it.

    If a controller died while it wrote the last line, this incomplete line is moved to journal.torn-N. Raises
    CampaignError if another controller has the journal open, or if the file cannot be read or written.
    """

    def __init__(self, file: Path) -> None:
        self._file, self._lock = file, threading.Lock()
        self._written = 0, hashlib.sha256()  # size of the journal in bytes, and the digest of these bytes
        try:
            self._fd = os.open(file, os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o666)
        except OSError as error:
            raise CampaignError(f"{file}: cannot be opened: {error.strerror}") from error
        sync(file.parent)
        try:
            self._take_lock()
            self._entries = self._repair()
        except BlockingIOError as error:
            os.close(self._fd)
            raise CampaignError(f"{file}: {LOCKED}") from error
        except BaseException:
            os.close(self._fd)
            raise

    def __enter__(self) -> Journal:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    @property
    def entries(self) -> tuple[Entry, ...]:
        """All events so far, including those of earlier controllers."""
        return tuple(self._entries)

    def note(self, event: str, **values: Any) -> None:
        """Append an event with the present time."""
        self.append(event, round(time.time(), 6), **values)

    def append(self, event: str, t_s: float, **values: Any) -> Entry:
        """Append an event, and return it once it is on disk. Any thread may call this.

        An event in CHECKSUMMED gets a value `before`. Raises CampaignError if the event cannot be written
        completely; the journal is then unchanged.
        """
        with self._lock:
            size_bytes, digest = self._written
            if os.fstat(self._fd).st_size != size_bytes:  # Ctrl-C interrupted the writing of an event
                os.ftruncate(self._fd, size_bytes)
            checksum = {"before": digest.hexdigest()} if event in CHECKSUMMED else {}
            entry = Entry(t_s, event, {**values, **checksum})
            line, after = entry.line(), digest.copy()
            after.update(line)
            left = line
            try:
                while left:
                    left = left[os.write(self._fd, left) :]
                os.fsync(self._fd)
            except OSError as error:
                os.ftruncate(self._fd, size_bytes)
                raise CampaignError(f"{self._file}: {event} cannot be written: {error.strerror}") from error
            self._written = size_bytes + len(line), after
            self._entries.append(entry)
        return entry

    def close(self) -> None:
        """Close the journal, and release its lock, so that other controllers can open it."""
        os.close(self._fd)

    def _take_lock(self) -> None:
        """Lock the journal. Raises BlockingIOError if another process keeps it locked for LOCK_WAIT_S.

        is_running() locks the journal for a shorter time.
        """
        until_s = time.monotonic() + LOCK_WAIT_S
        while True:
            try:
                fcntl.flock(self._fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
                return
            except BlockingIOError:
                if time.monotonic() >= until_s:
                    raise
            time.sleep(LOCK_POLL_S)

    def _repair(self) -> list[Entry]:
        data = _bytes_of(self._file)
        entries, torn = _parse(self._file, data)
        size_bytes = len(data) - len(torn)
        self._written = size_bytes, hashlib.sha256(data[:size_bytes])
        if torn:
            number = 1
            while (kept := self._file.with_name(f"{self._file.stem}.torn-{number}")).exists():
                number += 1
            write_whole(kept, torn)
            sync(kept.parent)
            os.ftruncate(self._fd, size_bytes)
            os.fsync(self._fd)
        return entries


def _bytes_of(file: Path) -> bytes:
    try:
        return file.read_bytes()
    except OSError as error:
        raise CampaignError(f"{file}: cannot be read: {error.strerror}") from error


def _parse(file: Path, data: bytes) -> tuple[list[Entry], bytes]:
    """Return the events, and the bytes of a last line that was not written completely."""
    entries: list[Entry] = []
    *lines, rest = data.split(b"\n")
    for number, line in enumerate(lines, 1):
        entry = _entry(line)
        if entry is None and number == len(lines) and not rest:
            # After a power loss, the file may have its full length without the content of its last block.
            return entries, line + b"\n"
        if entry is None:
            raise CampaignError(f"{file}:{number}: not an event; must be a JSON object with t_s and event")
        entries.append(entry)
    return entries, rest


def _entry(line: bytes) -> Entry | None:
    try:
        record = json.loads(line)
        return Entry(float(record.pop("t_s")), str(record.pop("event")), record)
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        return None
