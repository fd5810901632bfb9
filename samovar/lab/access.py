"""The record of a running lab: how its hosts are reached, and its first process."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Literal

from samovar.atomic_files import write_json
from samovar.errors import LabError

Kernel = Literal["uml", "native"]
RECORD = "access.json"


@dataclass(frozen=True)
class OsProcess:
    """A process, identified by its PID and its start time (proc(5), field 22): PIDs are used again."""

    pid: int
    start_ticks: int

    @property
    def is_running(self) -> bool:
        """Whether this process still exists; a zombie does not."""
        fields = _stat_fields(self.pid)
        return fields is not None and fields[0] != "Z" and int(fields[19]) == self.start_ticks

    @property
    def parent(self) -> OsProcess | None:
        """The parent process, or None if there is none."""
        fields = _stat_fields(self.pid)
        return process(int(fields[1])) if fields is not None else None


@dataclass(frozen=True)
class Access:
    """How the hosts of a lab are reached."""

    pid: int
    start_ticks: int
    kernel: Kernel
    user_namespace: bool
    key: str
    known_hosts: str
    testbed: str = ""
    user: str = "root"
    port: int = 22
    hosts: Mapping[str, str] = field(default_factory=dict)
    fingerprint: str = ""
    release: str = ""
    allowed_before: str | None = None

    @property
    def process(self) -> OsProcess:
        """The lab's first process; all of the lab ends with it."""
        return OsProcess(self.pid, self.start_ticks)


def process(pid: int) -> OsProcess | None:
    """Return the process with a PID, or None if there is none."""
    fields = _stat_fields(pid)
    return OsProcess(pid, int(fields[19])) if fields is not None else None


def children(pid: int) -> list[int]:
    """Return the PIDs of the children of a process."""
    numbers = [int(name) for name in os.listdir("/proc") if name.isdigit()]
    return [n for n in numbers if (fields := _stat_fields(n)) is not None and int(fields[1]) == pid]


def _stat_fields(pid: int) -> list[str] | None:
    """Return /proc/PID/stat from its third field on; the second may contain blanks and brackets."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
    except (FileNotFoundError, ProcessLookupError):
        return None
    return text[text.rindex(")") + 2 :].split()


def read_access(state_folder: Path) -> Access | None:
    """Return how a lab is reached, or None if it does not run. Raises LabError for an invalid record."""
    access = read_record(state_folder)
    return access if access is not None and access.process.is_running else None


def read_record(state_folder: Path) -> Access | None:
    """Return the record of the last lab, running or not; None if there is none."""
    path = state_folder / RECORD
    try:
        return Access(**json.loads(path.read_text(encoding="utf-8")))
    except FileNotFoundError:
        return None
    except (ValueError, TypeError) as error:
        raise LabError(f"{path}: {error}; remove the file if no lab runs") from error


def write_record(state_folder: Path, access: Access) -> None:
    """Write the record atomically."""
    write_json(state_folder / RECORD, asdict(access))
