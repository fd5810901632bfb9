"""Whether a campaign's folder still holds what was measured: every file against checksums that chain up.

A trial's SHA256SUMS has the sums of all of its files; its own is in the journal, as are those of the plan and
the definitions; and the journal says at the end of each trial what the journal was until then.
"""

from __future__ import annotations

import json
import os
import re
import stat
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

from samovar.campaign.collection.checksums import SUMS, content_of, names_in, read_sums, sha256_of
from samovar.campaign.collection.inventory import Record, recorded
from samovar.campaign.journal import NAME as JOURNAL
from samovar.campaign.journal import broken_seals, read_journal
from samovar.errors import CampaignError
from samovar.events import Emit, Event, silent

REPORT_S = 0.2
DERIVED = ("tables/", "in-progress/", "bundle/", "set-aside/", "commands/")
"""Folders whose files may come and go: made anew by the analysis, being written, or checked by themselves."""
GROWING = re.compile(r"journal\.jsonl|journal\.torn-\d+|.*\.part")


@dataclass(frozen=True, order=True)
class FileProblem:
    """One thing that is not as it was: the path below the campaign's folder, and what is wrong."""

    path: str
    problem: str

    def __str__(self) -> str:
        return f"{shown(self.path)}: {self.problem}"


@dataclass
class Verification:
    """What came of verifying a campaign; `notes` say what could not be verified, and why."""

    findings: list[FileProblem] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    files: int = 0
    size_bytes: int = 0
    seconds: float = 0.0


@dataclass(frozen=True)
class _Due:
    path: str
    sha256: str
    size_bytes: int


def verify(folder: Path, emit: Emit = silent) -> Verification:
    """Compare every file of a campaign with what was kept of it when it was written.

    Emits `verifying` {done, of} in bytes. Raises CampaignError where there is no campaign, or its journal
    cannot be read.
    """
    started = time.monotonic()
    if not (folder / JOURNAL).is_file():
        raise CampaignError(f"{folder}: no journal.jsonl; accepted: the folder of a campaign that was begun")
    found = Verification()
    record = recorded(read_journal(folder / JOURNAL))
    due = _Reading(folder, record, found).due()
    found.findings += _journal(folder)
    found.findings += _summed(folder, due, emit)
    found.findings.sort()
    found.files, found.size_bytes = len(due), sum(one.size_bytes for one in due)
    found.seconds = round(time.monotonic() - started, 3)
    return found


def shown(name: str) -> str:
    """Write a name so that it takes one line and says nothing to a terminal, whatever bytes it has."""
    printable = "".join(
        c if c.isprintable() else c.encode("unicode_escape", "backslashreplace").decode() for c in name
    )
    return printable.encode("utf-8", "backslashreplace").decode()


@dataclass(frozen=True)
class _Reading:
    """Finds what is to be summed, and says on the way what is missing, beside, or no plain file."""

    folder: Path
    record: Record
    found: Verification

    def due(self) -> list[_Due]:
        asked = dict(self._asked())
        due = [one for path, sum_ in asked.items() if (one := self._due(path, sum_))]
        for path in self._beside(asked):
            self._say(path, "was not there when the campaign was written")
        return due

    def _asked(self) -> Iterator[tuple[str, str]]:
        """Yield every file that should be there with its checksum."""
        yield from self.record.files.items()
        if not self.record.files:
            self.found.notes.append("the journal keeps no checksums of plan and definitions: not verified")
        old = [path for path, sum_ in self.record.folders.items() if sum_ is None]
        if old:
            self.found.notes.append(
                f"{len(old)} trials were written before checksums covered all of a trial: "
                f"what their manifests list was verified, commands, facts and the manifests were not"
            )
        for path, sum_ in self.record.folders.items():
            yield from self._manifest(path) if sum_ is None else self._sealed(path, sum_)
        yield from self._unrecorded()
        yield from self._bundle()

    def _sealed(self, path: str, sum_: str) -> Iterator[tuple[str, str]]:
        yield f"{path}/{SUMS}", sum_
        yield from self._listed(path)

    def _listed(self, path: str) -> Iterator[tuple[str, str]]:
        """Yield what a folder's SHA256SUMS lists; where that is none, say so."""
        text = self._bytes(f"{path}/{SUMS}")
        if text is None:
            return
        try:
            sums = read_sums(text)
        except ValueError as error:
            self._say(f"{path}/{SUMS}", str(error))
            return
        for name, sum_ in sums.items():
            if _leads_out(name):
                self._say(f"{path}/{SUMS}", f"lists {shown(name)}, which is not below it")
            else:
                yield f"{path}/{name}", sum_

    def _manifest(self, path: str) -> Iterator[tuple[str, str]]:
        """Yield what a trial's manifest lists: all that is known of trials of earlier releases."""
        if path.startswith("set-aside/"):
            return
        text = self._bytes(f"{path}/manifest.json")
        if text is None:
            self._say(f"{path}/manifest.json", "missing")
            return
        try:
            files = [(str(one["path"]), str(one["sha256"])) for one in json.loads(text)["files"]]
        except (ValueError, TypeError, KeyError):
            self._say(f"{path}/manifest.json", "is no manifest")
            return
        for name, sum_ in files:
            if _leads_out(name):
                self._say(f"{path}/manifest.json", f"lists {shown(name)}, which is not below it")
            else:
                yield f"{path}/{name}", sum_

    def _unrecorded(self) -> Iterator[tuple[str, str]]:
        """Take trials that the journal does not know: their controller runs, or was cut off; or put there."""
        for home in ("trials", "set-aside"):
            for place in sorted(self._folders(home)):
                path = f"{home}/{place}"
                if path in self.record.folders:
                    continue
                if home == "trials" and place not in self.record.running:
                    self._say(path, "no trial that the journal knows")
                else:
                    self.found.notes.append(
                        f"{shown(path)}: not yet in the journal; its own checksums were compared"
                    )
                    yield from self._listed(path)

    def _folders(self, home: str) -> Iterable[str]:
        place = self.folder / home
        return [one.name for one in place.iterdir() if one.is_dir()] if place.is_dir() else ()

    def _bundle(self) -> Iterator[tuple[str, str]]:
        if (self.folder / "bundle" / SUMS).is_file():
            yield from self._listed("bundle")
            yield from self._extras("bundle")
        elif (self.folder / "bundle").is_dir():
            self.found.notes.append("the bundle has no SHA256SUMS yet: `fab report` makes it")

    def _extras(self, path: str) -> Iterator[tuple[str, str]]:
        listed = dict(self._listed(path))
        for name in names_in(self.folder / path):
            if name != SUMS and f"{path}/{name}" not in listed:
                self._say(f"{path}/{name}", "was not there when the bundle was made")
        yield from ()

    def _beside(self, asked: Mapping[str, str]) -> Iterator[str]:
        """Yield files that nobody has asked for, where all that belongs there is known."""
        sealed = {path for path, sum_ in self.record.folders.items() if sum_}
        for path in names_in(self.folder):
            if path in asked:
                continue
            own = (
                self.record.files
                and not path.startswith(("trials/", *DERIVED))
                and not GROWING.fullmatch(path)
            )
            if own or "/".join(path.split("/")[:2]) in sealed:
                yield path

    def _due(self, path: str, sum_: str) -> _Due | None:
        try:
            seen = os.lstat(self.folder / path)
        except OSError as error:
            self._say(path, "missing" if isinstance(error, FileNotFoundError) else str(error.strerror))
            return None
        if not stat.S_ISREG(seen.st_mode):
            self._say(path, "is no plain file any more")
            return None
        return _Due(path, sum_, seen.st_size)

    def _bytes(self, path: str) -> bytes | None:
        try:
            return content_of(self.folder / path)
        except OSError:
            return None  # what is missing or cannot be read is said where its own sum is due

    def _say(self, path: str, problem: str) -> None:
        self.found.findings.append(FileProblem(path, problem))


def _leads_out(name: str) -> bool:
    return name.startswith("/") or ".." in name.split("/")


def _journal(folder: Path) -> Iterator[FileProblem]:
    """Compare what the journal says of itself, and the copy that the bundle has of it."""
    data = (folder / JOURNAL).read_bytes()
    for number in broken_seals(data):
        yield FileProblem(JOURNAL, f"line {number}: what stands before it is not what was written")
    copy = folder / "bundle" / "provenance" / JOURNAL
    if copy.is_file() and not copy.is_symlink() and not data.startswith(content_of(copy)):
        yield FileProblem(JOURNAL, "does not begin with what the bundle's copy of it has")


def _summed(folder: Path, due: Iterable[_Due], emit: Emit) -> Iterator[FileProblem]:
    """Sum files on all CPUs, large ones first, so that none is left alone at the end."""
    jobs = sorted(due, key=lambda one: one.size_bytes, reverse=True)
    tell = _Progress(sum(one.size_bytes for one in jobs), emit)
    with ThreadPoolExecutor(os.cpu_count() or 1, thread_name_prefix="sum") as threads:
        for job, problem in zip(
            jobs, threads.map(lambda job: _compared(folder, job, tell), jobs), strict=True
        ):
            if problem:
                yield FileProblem(job.path, problem)


def _compared(folder: Path, job: _Due, tell: Callable[[int], None]) -> str:
    try:
        is_ = sha256_of(folder / job.path, tell)
    except OSError as error:
        return f"cannot be read: {error.strerror}"
    return "" if is_ == job.sha256 else "changed since it was written"


class _Progress:
    """Tells how many bytes are done, not more often than an eye can follow."""

    def __init__(self, of: int, emit: Emit) -> None:
        self._of, self._emit, self._done, self._next_s = of, emit, 0, 0.0
        self._lock = threading.Lock()

    def __call__(self, size_bytes: int) -> None:
        with self._lock:
            self._done += size_bytes
            if time.monotonic() >= self._next_s:
                self._next_s = time.monotonic() + REPORT_S
                self._emit(Event("verifying", {"done": self._done, "of": self._of}))
