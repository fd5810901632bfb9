"""Verify that a campaign's folder still holds what was measured, by checksums that form a chain.

SHA256SUMS of a trial has the checksums of all its files; its own checksum is in the journal, as are those of
the plan and the definition files; and the journal has a checksum of itself at the end of each trial.
"""

from __future__ import annotations

import os
import re
import stat
import threading
import time
from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

from samovar.campaign.collection.checksums import SUMS, content_of, names_in, read_sums, sha256_of
from samovar.campaign.journal import NAME as JOURNAL
from samovar.campaign.journal import Entry, broken_seals, read_journal
from samovar.errors import CampaignError
from samovar.events import Emit, Event, silent

REPORT_S = 0.2
UNRECORDED = ("tables/", "in-progress/", "bundle/", "set-aside/", "commands/")
"""Folders whose files may come and go: made by the analysis, being written, or verified separately."""
GROWING = re.compile(r"journal\.jsonl|journal\.torn-\d+|.*\.part")


@dataclass(frozen=True, order=True)
class FileProblem:
    """A problem with a file; its path is relative to the campaign's folder."""

    path: str
    problem: str

    def __str__(self) -> str:
        return f"{printable(self.path)}: {self.problem}"


@dataclass
class Verification:
    """The result of a verification; `notes` name what could not be verified, with the reasons."""

    findings: list[FileProblem] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    files: int = 0
    size_bytes: int = 0
    seconds: float = 0.0


@dataclass(frozen=True)
class _File:
    """A file to verify, with the checksum that it should have."""

    path: str
    sha256: str
    size_bytes: int


def verify(folder: Path, emit: Emit = silent) -> Verification:
    """Compare every file of a campaign with its recorded checksum.

    Emits `verifying` {done, of} in bytes. Raises CampaignError if the folder has no journal, or if the
    journal cannot be read.
    """
    started_s = time.monotonic()
    if not (folder / JOURNAL).is_file():
        message = "journal.jsonl is missing; use the folder of a campaign that has started"
        raise CampaignError(f"{folder}: {message}")
    result = Verification()
    files = _Expectation(folder, _inventory_of(read_journal(folder / JOURNAL)), result).files()
    result.findings += _journal_problems(folder)
    result.findings += _checksum_problems(folder, files, emit)
    result.findings.sort()
    result.files, result.size_bytes = len(files), sum(file.size_bytes for file in files)
    result.seconds = round(time.monotonic() - started_s, 3)
    return result


def printable(name: str) -> str:
    """Return a file name as one line without control characters, whatever bytes it has."""
    escaped = "".join(
        c if c.isprintable() else c.encode("unicode_escape", "backslashreplace").decode() for c in name
    )
    return escaped.encode("utf-8", "backslashreplace").decode()


@dataclass
class _Inventory:
    """The content of a campaign's folder, according to its journal.

    `folders` maps the paths of trials, complete or set aside, to the SHA-256 of their SHA256SUMS; None for a
    folder that was set aside when the disk was full. `files` maps the campaign's own files to their SHA-256.
    `running` has the trials that were started and not finished.
    """

    folders: dict[str, str | None] = field(default_factory=dict)
    files: dict[str, str] = field(default_factory=dict)
    running: set[str] = field(default_factory=set)


def _inventory_of(entries: Iterable[Entry]) -> _Inventory:
    """Derive from a journal what the folder should contain."""
    inventory = _Inventory()
    folders, running = inventory.folders, inventory.running
    for entry in entries:
        values = entry.values
        if entry.event == "trial-started":
            folders.pop(f"trials/{values['id']}", None)
            running.add(str(values["id"]))
        elif entry.event == "trial-finished":
            running.discard(str(values["id"]))
            if values.get("outcome") == "completed":
                folders[f"trials/{values['id']}"] = values.get("sums_sha256")
        elif entry.event == "trial-set-aside":
            moved = folders.pop(f"trials/{values['id']}", None)
            folders[str(values["folder"])] = values.get("sums_sha256") or moved
        elif entry.event == "files-recorded":
            inventory.files = dict(values["files"])
        elif entry.event in ("path-measured", "window-measured") and "sha256" in values:
            inventory.files[str(values["file"])] = str(values["sha256"])
    return inventory


@dataclass(frozen=True)
class _Expectation:
    """Collects the files that should exist; adds missing, unknown and unreadable ones to the result."""

    folder: Path
    inventory: _Inventory
    result: Verification

    def files(self) -> list[_File]:
        expected = dict(self._expected())
        files = [file for path, sha256 in expected.items() if (file := self._file(path, sha256))]
        for path in self._unknown(expected):
            self._add(path, "was not there when the campaign was written")
        return files

    def _expected(self) -> Iterator[tuple[str, str]]:
        """Yield every file that should exist with its checksum."""
        inventory, notes = self.inventory, self.result.notes
        yield from inventory.files.items()
        if not inventory.files:
            notes.append("not verified: plan and definition files, whose checksums the journal does not have")
        for path, sha256 in inventory.folders.items():
            if sha256:
                yield f"{path}/{SUMS}", sha256
                yield from self._in_sums(path)
            elif path.startswith("trials/"):
                self._add(path, "its checksum is missing in the journal")
        yield from self._in_unrecorded_folders()
        if (self.folder / "bundle" / SUMS).is_file():
            listed = dict(self._in_sums("bundle"))
            yield from listed.items()
            for name in names_in(self.folder / "bundle"):
                if name != SUMS and f"bundle/{name}" not in listed:
                    self._add(f"bundle/{name}", "was not there when the bundle was made")
        elif (self.folder / "bundle").is_dir():
            notes.append("not verified: the bundle, which has no SHA256SUMS before `fab report`")

    def _in_sums(self, path: str) -> Iterator[tuple[str, str]]:
        """Yield the files that the SHA256SUMS of a folder lists, except names that lead out of it."""
        try:
            sums = read_sums(content_of(self.folder / path / SUMS))
        except OSError:
            return  # reported where the checksum of this file is compared
        except ValueError as error:
            self._add(f"{path}/{SUMS}", str(error))
            return
        for name, sha256 in sums.items():
            if name.startswith("/") or ".." in name.split("/"):
                self._add(f"{path}/{SUMS}", f"lists {printable(name)}, which is not below the folder")
            else:
                yield f"{path}/{name}", sha256

    def _in_unrecorded_folders(self) -> Iterator[tuple[str, str]]:
        """Yield the files of trials that are not in the journal, if their controller runs or was killed."""
        for home in ("trials", "set-aside"):
            place = self.folder / home
            names = [one.name for one in place.iterdir() if one.is_dir()] if place.is_dir() else []
            for name in sorted(names):
                path = f"{home}/{name}"
                if path in self.inventory.folders:
                    continue
                if home == "trials" and name not in self.inventory.running:
                    self._add(path, "is not a trial of the journal")
                else:
                    self.result.notes.append(
                        f"{printable(path)}: not in the journal yet; compared only with its own checksums"
                    )
                    yield from self._in_sums(path)

    def _unknown(self, expected: Mapping[str, str]) -> Iterator[str]:
        """Yield the files that are not expected, in folders whose whole content is known."""
        recorded = {path for path, sha256 in self.inventory.folders.items() if sha256}
        for path in names_in(self.folder):
            is_own = (
                self.inventory.files
                and not path.startswith(("trials/", *UNRECORDED))
                and not GROWING.fullmatch(path)
            )
            if path not in expected and (is_own or "/".join(path.split("/")[:2]) in recorded):
                yield path

    def _file(self, path: str, sha256: str) -> _File | None:
        try:
            found = os.lstat(self.folder / path)
        except OSError as error:
            self._add(path, "missing" if isinstance(error, FileNotFoundError) else str(error.strerror))
            return None
        if not stat.S_ISREG(found.st_mode):
            self._add(path, "is no longer a plain file")
            return None
        return _File(path, sha256, found.st_size)

    def _add(self, path: str, problem: str) -> None:
        self.result.findings.append(FileProblem(path, problem))


def _journal_problems(folder: Path) -> Iterator[FileProblem]:
    """Check the journal's checksums of itself, and compare it with the copy in the bundle."""
    data = (folder / JOURNAL).read_bytes()
    for number in broken_seals(data):
        yield FileProblem(JOURNAL, f"line {number}: the lines before it have changed since they were written")
    copy = folder / "bundle" / "provenance" / JOURNAL
    if copy.is_file() and not copy.is_symlink() and not data.startswith(content_of(copy)):
        yield FileProblem(JOURNAL, "does not begin with the copy of it in the bundle")


def _checksum_problems(folder: Path, files: Iterable[_File], emit: Emit) -> Iterator[FileProblem]:
    """Compare checksums on all CPUs, large files first so that none is left alone at the end."""
    jobs = sorted(files, key=lambda file: file.size_bytes, reverse=True)
    progress = _Progress(sum(file.size_bytes for file in jobs), emit)

    def problem_of(file: _File) -> str:
        try:
            sha256 = sha256_of(folder / file.path, progress)
        except OSError as error:
            return f"cannot be read: {error.strerror}"
        return "" if sha256 == file.sha256 else "changed since it was written"

    with ThreadPoolExecutor(os.cpu_count() or 1, thread_name_prefix="sum") as threads:
        for file, problem in zip(jobs, threads.map(problem_of, jobs), strict=True):
            if problem:
                yield FileProblem(file.path, problem)


class _Progress:
    """Emits how many bytes are done, at most every REPORT_S."""

    def __init__(self, of: int, emit: Emit) -> None:
        self._of, self._emit, self._done, self._next_s = of, emit, 0, 0.0
        self._lock = threading.Lock()

    def __call__(self, size_bytes: int) -> None:
        with self._lock:
            self._done += size_bytes
            if time.monotonic() >= self._next_s:
                self._next_s = time.monotonic() + REPORT_S
                self._emit(Event("verifying", {"done": self._done, "of": self._of}))
