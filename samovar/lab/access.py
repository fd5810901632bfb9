"""The record of a running lab: how it is reached, and which process it ends with."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Literal

from samovar.errors import LabError

Kernel = Literal["uml", "native"]
RECORD = "access.json"


@dataclass(frozen=True)
class OsProcess:
    """A process told apart from any later one with the same number by when it started (proc(5), field 22)."""

    pid: int
    start_ticks: int

    @property
    def is_running(self) -> bool:
        """Tell whether this very process still exists; one that only waits to be reaped does not."""
        fields = _stat_fields(self.pid)
        return fields is not None and fields[0] != "Z" and int(fields[19]) == self.start_ticks

    @property
    def parent(self) -> OsProcess | None:
        """Return the process that waits for this one, or None when there is none."""
        fields = _stat_fields(self.pid)
        return process(int(fields[1])) if fields is not None else None


@dataclass(frozen=True)
class Access:
    """What it takes to reach a lab's hosts."""

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
        """The lab's first process: when it ends, all of the lab ends."""
        return OsProcess(self.pid, self.start_ticks)


def process(pid: int) -> OsProcess | None:
    """Identify a process by its number; None when there is none."""
    fields = _stat_fields(pid)
    return OsProcess(pid, int(fields[19])) if fields is not None else None


def children(pid: int) -> list[int]:
    """List the processes that a process has started, by the parents that /proc shows."""
    numbers = [int(name) for name in os.listdir("/proc") if name.isdigit()]
    return [n for n in numbers if (fields := _stat_fields(n)) is not None and int(fields[1]) == pid]


def _stat_fields(pid: int) -> list[str] | None:
    """Read /proc/PID/stat from its third field on; the second may hold blanks and brackets."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
    except (FileNotFoundError, ProcessLookupError):
        return None
    return text[text.rindex(")") + 2 :].split()


def read_access(state_folder: Path) -> Access | None:
    """Read how a lab is reached; None when there is no record or its process is gone.

    Raises LabError when the record is not what the lab writes.
    """
    access = read_record(state_folder)
    return access if access is not None and access.process.is_running else None


def read_record(state_folder: Path) -> Access | None:
    """Read the record of the last lab, running or not; None when there is none."""
    path = state_folder / RECORD
    try:
        values: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        return Access(**values)
    except FileNotFoundError:
        return None
    except (ValueError, TypeError) as error:
        raise LabError(f"{path}: {error}; remove the file if no lab runs") from error


def write_record(state_folder: Path, access: Access) -> None:
    """Write the record whole or not at all."""
    path = state_folder / RECORD
    draft = path.with_suffix(".new")
    draft.write_text(json.dumps(asdict(access), indent=1) + "\n", encoding="utf-8")
    draft.replace(path)
