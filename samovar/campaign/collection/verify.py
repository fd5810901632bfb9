"""Verify by checksums that no recorded file of a campaign has changed since it was written: `fab verify`.

The checksums form a chain. SHA256SUMS of a trial has the checksums of all its files. The journal has the
checksums of each SHA256SUMS, of the plan and of the definition files. At the end of each trial, the journal
gets a checksum of its own lines so far.
"""

from __future__ import annotations

import os
import re
import stat
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from samovar.campaign.collection.checksums import SUMS, content_of, names_in, read_sums, sha256_of
from samovar.campaign.journal import JOURNAL, Entry, failed_checksums, read_journal
from samovar.errors import CampaignError
from samovar.events import Emit, Event, silent
from samovar.units import counted

REPORT_S = 0.2
UNRECORDED = ("tables/", "in-progress/", "bundle/", "set-aside/", "commands/", "export/")
"""Folders whose files may have no recorded checksum. The analysis writes tables/ and bundle/, `fab export`
writes export/, and a running campaign writes in-progress/ and commands/. Trials in set-aside/ are verified
separately."""
ARCHIVE = "traces.tar.zst"
"""The file to which `fab archive` moves all traces."""
TRACE = re.compile(r"(trials|set-aside)/[^/]+/traces/.+")
GROWING = re.compile(r"journal\.jsonl|journal\.torn-\d+|\.reserve|.*\.part")
"""The journal, and files that a running or killed controller leaves; they have no recorded checksum."""


@dataclass(frozen=True, order=True)
class FileProblem:
    """A problem with a file; its path is relative to the campaign's folder."""

    path: str
    problem: str

    def __str__(self) -> str:
        return f"{printable(self.path)}: {self.problem}"


@dataclass(frozen=True)
class Verification:
    """The result of a verification. `notes` list what could not be verified, and why."""

    findings: Sequence[FileProblem]
    notes: Sequence[str]
    files: int
    size_bytes: int
    seconds: float


def verify(folder: Path, emit: Emit = silent) -> Verification:
    """Compare every file of a campaign with its recorded checksum.

    Emits events `verifying`, in which `done` is the number of bytes read so far; `of` is the total number.
    Raises CampaignError if the folder has no journal, or if the journal cannot be read.
    """
    started_s = time.monotonic()
    if not (folder / JOURNAL).is_file():
        message = "journal.jsonl is missing; use the folder of a campaign that has started"
        raise CampaignError(f"{folder}: {message}")
    verifier = _Verifier(folder)
    verifier.apply(read_journal(folder / JOURNAL))
    expected = dict(verifier.expected())
    verifier.omit_archived(expected)
    verifier.add_unknown(expected)
    sizes = verifier.sizes(expected)
    verifier.compare_journal()
    verifier.compare_checksums(expected, sizes, emit)
    seconds = round(time.monotonic() - started_s, 3)
    findings = sorted(verifier.findings)
    return Verification(findings, verifier.notes, len(sizes), sum(sizes.values()), seconds)


def printable(name: str) -> str:
    """Return a file name as one printable line, with control characters and invalid UTF-8 escaped."""
    escaped = "".join(
        c if c.isprintable() else c.encode("unicode_escape", "backslashreplace").decode() for c in name
    )
    return escaped.encode("utf-8", "backslashreplace").decode()


class _Verifier:
    """Collects from a journal which files the campaign's folder should contain, and reports differences.

    `_folders` maps the folders of trials, complete or set aside, to the SHA-256 of their SHA256SUMS, or to
    None if a full disk prevented writing it. `_own_files` maps the campaign's own files, which are
    those outside the folders of trials, to their SHA-256. `_running` has the ids of trials that were started
    and not finished.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._folders: dict[str, str | None] = {}
        self._own_files: dict[str, str] = {}
        self._running: set[str] = set()
        self.findings: list[FileProblem] = []
        self.notes: list[str] = []

    def apply(self, entries: Iterable[Entry]) -> None:
        """Derive from the events of a journal which files the folder should contain."""
        for number, entry in enumerate(entries, 1):
            try:
                self._apply(entry.event, entry.values)
            except (KeyError, TypeError, ValueError) as error:
                self._add(JOURNAL, entry.value_problem(number, error))

    def _apply(self, event: str, values: Mapping[str, Any]) -> None:
        folders, running = self._folders, self._running
        if event == "trial-started":
            folders.pop(f"trials/{values['id']}", None)
            running.add(str(values["id"]))
        elif event == "trial-finished":
            running.discard(str(values["id"]))
            if values.get("outcome") == "completed":
                folders[f"trials/{values['id']}"] = values.get("sums_sha256")
        elif event == "trial-set-aside":
            moved = folders.pop(f"trials/{values['id']}", None)
            folders[str(values["folder"])] = values.get("sums_sha256") or moved
        elif event == "files-recorded":
            self._own_files = dict(values["files"])
        elif event in ("path-measured", "window-measured") and "sha256" in values:
            self._own_files[str(values["file"])] = str(values["sha256"])

    def expected(self) -> Iterator[tuple[str, str]]:
        """Yield the path and the checksum of every file that should exist."""
        yield from self._own_files.items()
        if not self._own_files:
            self.notes.append(
                "not verified: plan and definition files, whose checksums the journal does not have"
            )
        for path, sha256 in self._folders.items():
            if sha256:
                yield f"{path}/{SUMS}", sha256
                yield from self._in_sums(path)
            elif path.startswith("trials/"):
                self._add(path, "its checksum is missing in the journal")
        yield from self._in_unrecorded_folders()
        if (self._folder / "bundle" / SUMS).is_file():
            listed = dict(self._in_sums("bundle"))
            yield from listed.items()
            for name in names_in(self._folder / "bundle"):
                if name != SUMS and f"bundle/{name}" not in listed:
                    self._add(f"bundle/{name}", "was added after the bundle was made")
        elif (self._folder / "bundle").is_dir():
            self.notes.append("not verified: the bundle, which has no SHA256SUMS before `fab report`")

    def _in_sums(self, path: str) -> Iterator[tuple[str, str]]:
        """Yield path and checksum of each file in a folder's SHA256SUMS.

        A path that leads out of the folder is reported as a problem.
        """
        try:
            sums = read_sums(content_of(self._folder / path / SUMS))
        except OSError:
            return  # compare_checksums() reports that SHA256SUMS cannot be read
        except ValueError as error:
            self._add(f"{path}/{SUMS}", str(error))
            return
        for name, sha256 in sums.items():
            if name.startswith("/") or ".." in name.split("/"):
                self._add(f"{path}/{SUMS}", f"lists {printable(name)}, which is not below the folder")
            else:
                yield f"{path}/{name}", sha256

    def _in_unrecorded_folders(self) -> Iterator[tuple[str, str]]:
        """Yield path and checksum of each file of the trials whose end is not in the journal.

        The controller of such a trial still runs, or was killed. Folders that the journal does not know are
        reported.
        """
        for home in ("trials", "set-aside"):
            place = self._folder / home
            names = [one.name for one in place.iterdir() if one.is_dir()] if place.is_dir() else []
            for name in sorted(names):
                path = f"{home}/{name}"
                if path in self._folders:
                    continue
                if home == "trials" and name not in self._running:
                    self._add(path, "is not in the journal")
                else:
                    self.notes.append(
                        f"{printable(path)}: not in the journal yet; compared only with its own checksums"
                    )
                    yield from self._in_sums(path)

    def omit_archived(self, expected: dict[str, str]) -> None:
        """Remove archived traces, which are missing in the folder, from the expected files."""
        if (self._folder / ARCHIVE).is_file():
            archived = [
                name for name in expected if TRACE.fullmatch(name) and not (self._folder / name).exists()
            ]
            for name in archived:
                del expected[name]
            self.notes.append(
                f"not verified: {counted(len(archived), 'trace')} in {ARCHIVE}; "
                "`fab archive --restore` verifies and restores them"
            )

    def add_unknown(self, expected: Mapping[str, str]) -> None:
        """Report unexpected files in folders for which the checksums of all files are recorded."""
        recorded = {path for path, sha256 in self._folders.items() if sha256}
        for path in names_in(self._folder):
            is_own = (
                self._own_files
                and not path.startswith(("trials/", *UNRECORDED))
                and path != ARCHIVE
                and not GROWING.fullmatch(path)
            )
            if path not in expected and (is_own or "/".join(path.split("/")[:2]) in recorded):
                self._add(path, "was added after the campaign was written")

    def sizes(self, expected: Iterable[str]) -> dict[str, int]:
        """Return the size in bytes of each expected file.

        Report files that are missing or not regular files.
        """
        sizes: dict[str, int] = {}
        for path in expected:
            try:
                found = os.lstat(self._folder / path)
            except OSError as error:
                self._add(path, "missing" if isinstance(error, FileNotFoundError) else str(error.strerror))
            else:
                if stat.S_ISREG(found.st_mode):
                    sizes[path] = found.st_size
                else:
                    self._add(path, "is no longer a plain file")
        return sizes

    def compare_journal(self) -> None:
        """Check the journal by the checksums in its lines, and against its copy in bundle/."""
        data = (self._folder / JOURNAL).read_bytes()
        for number in failed_checksums(data):
            self._add(JOURNAL, f"line {number}: the lines before it have changed since they were written")
        copy = self._folder / "bundle" / "provenance" / JOURNAL
        if copy.is_file() and not copy.is_symlink() and not data.startswith(content_of(copy)):
            self._add(JOURNAL, "lines have changed or are missing since they were copied to the bundle")

    def compare_checksums(self, expected: Mapping[str, str], sizes: Mapping[str, int], emit: Emit) -> None:
        """Compute checksums on all CPUs; report files that differ from their expected checksums.

        Large files come first, so that the CPUs finish at about the same time.
        """

        def problem_of(path: str) -> str:
            try:
                sha256 = sha256_of(self._folder / path)
            except OSError as error:
                return f"cannot be read: {error.strerror}"
            return "" if sha256 == expected[path] else "changed since it was written"

        paths = sorted(sizes, key=sizes.__getitem__, reverse=True)
        done, of, next_s = 0, sum(sizes.values()), 0.0
        with ThreadPoolExecutor(os.cpu_count() or 1, thread_name_prefix="sum") as threads:
            for path, problem in zip(paths, threads.map(problem_of, paths), strict=True):
                if problem:
                    self._add(path, problem)
                done += sizes[path]
                if time.monotonic() >= next_s:
                    next_s = time.monotonic() + REPORT_S
                    emit(Event("verifying", {"done": done, "of": of}))

    def _add(self, path: str, problem: str) -> None:
        self.findings.append(FileProblem(path, problem))
