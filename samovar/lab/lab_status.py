"""What can be said of a lab from outside."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from samovar.lab.access import Kernel, read_access
from samovar.lab.dial import answers

ANSWER_DEADLINE_S = 2.0


@dataclass(frozen=True)
class HostStatus:
    """One host of a running lab."""

    name: str
    address: str
    answered: bool


@dataclass(frozen=True)
class LabStatus:
    """A lab as it is now; without kernel and hosts when it does not run."""

    running: bool
    kernel: Kernel | None = None
    release: str = ""
    hosts: tuple[HostStatus, ...] = ()


def status(state_folder: Path) -> LabStatus:
    """Say whether a lab runs, on which kernel, and which of its hosts' SSH servers greet within 2 s."""
    access = read_access(state_folder)
    if access is None:
        return LabStatus(running=False)
    hosts = tuple(
        HostStatus(name, address, answers(access, address, ANSWER_DEADLINE_S))
        for name, address in access.hosts.items()
    )
    return LabStatus(True, access.kernel, access.release, hosts)
