"""Compare free disk space, on the controller and on hosts, with what trials need; react to a full disk.

A file in the campaign's folder reserves disk space, so that the end of the run can be recorded even if the
disk is full.
"""

from __future__ import annotations

import errno
import os
import shutil
from collections.abc import Iterator, Mapping
from pathlib import Path

from samovar.campaign.availability.findings import HERE, Finding
from samovar.errors import CampaignError
from samovar.experiment import RecipeCatalogue
from samovar.hosts import HostFacts
from samovar.plan import TRAFFIC_AND_RECORDING, Cost, Plan, Resolved, host_bytes, stored_bytes
from samovar.units import format_bytes

LESS = "record less: shorter trials, a smaller snaplen, fewer captures"
RESERVE = ".reserve"
RESERVE_BYTES = 1_000_000
_DISK_ERRORS = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EIO, errno.EACCES, errno.EPERM})


def shortage(free_bytes: int, floor_bytes: int, needed_bytes: int) -> str:
    """Return a message if a disk has too little space for `needed_bytes`, otherwise an empty text.

    `floor_bytes` of the disk must stay free.
    """
    if free_bytes >= floor_bytes + needed_bytes:
        return ""
    free, floor, needed = (format_bytes(size, 3) for size in (free_bytes, floor_bytes, needed_bytes))
    return (
        f"the disk has {free} free; the next trial needs {needed}, "
        f"and {floor} must stay free (free_space in config.yaml)"
    )


def needed_here(resolved: Resolved, catalogue: RecipeCatalogue) -> int:
    """Estimate how many bytes of the controller's disk a trial needs at most, while its files are fetched."""
    return stored_bytes(resolved, catalogue) + sum(host_bytes(resolved, catalogue).values())


def nearest_folder(path: Path) -> Path:
    """Return `path` if it exists, otherwise the nearest folder above it that exists."""
    return next(folder for folder in (path, *path.parents) if folder.exists())


def unusable(results: Path) -> str | None:
    """Return why a results folder cannot be written to, or None if it can."""
    folder = nearest_folder(results)
    if results.is_symlink() and folder != results:
        return f"{results} is a link to a missing folder"
    if not folder.is_dir():
        return f"{folder} is not a folder"
    return None if os.access(folder, os.W_OK | os.X_OK) else f"{folder} is not writable"


def free_here(folder: Path) -> int:
    """Return the free bytes of the controller's disk that holds a folder, or will hold it once it exists.

    Raises CampaignError if the free space cannot be read.
    """
    try:
        return shutil.disk_usage(nearest_folder(folder)).free
    except OSError as error:
        raise CampaignError(f"{folder}: free space cannot be read: {error.strerror}") from error


def full_disks(
    plan: Plan, catalogue: RecipeCatalogue, facts: Mapping[str, HostFacts], floor_bytes: int
) -> Iterator[Finding]:
    """Yield a finding for each host with too little free disk space for the files of a trial."""
    groups = plan.groups(TRAFFIC_AND_RECORDING)
    needed: dict[str, dict[int, int]] = {}
    for number, group in enumerate(groups):
        for host, size in host_bytes(group.resolved, catalogue).items():
            if host in facts and size > facts[host].disk_free_bytes - floor_bytes:
                needed.setdefault(host, {})[number] = size
    for host, sizes in needed.items():
        most, free = format_bytes(max(sizes.values()), 3), _free(facts[host].disk_free_bytes, floor_bytes)
        what = f"a trial writes up to {most}, but the disk has {free}"
        yield Finding(host, what, LESS, True, plan.trials_of(groups[number] for number in sizes))


def _free(free_bytes: int, floor_bytes: int) -> str:
    free = f"{format_bytes(free_bytes, 3)} free"
    return f"{free}, of which free_space reserves {format_bytes(floor_bytes, 3)}" if floor_bytes else free


def space_here(cost: Cost, results: Path, floor_bytes: int = 0) -> Iterator[Finding]:
    """Yield a finding if the disk of the results folder has too little space for the files of all trials."""
    free_bytes = free_here(results)
    if cost.controller_bytes and cost.controller_bytes > free_bytes - floor_bytes:
        needed, free = format_bytes(cost.controller_bytes, 3), _free(free_bytes, floor_bytes)
        what = f"{cost.trials} trials write about {needed}, but the disk of {results} has {free}"
        yield Finding(
            HERE, what, f"free some space, set `results` in config.yaml to another disk, or {LESS}", True
        )


def is_disk_error(error: BaseException) -> bool:
    """Return whether an error means that no file can be written, so that the next trial would fail too."""
    if isinstance(error, CampaignError):
        return True
    return isinstance(error, OSError) and error.errno in _DISK_ERRORS


class DiskReserve:
    """A file that reserves disk space; it is removed when a write fails.

    `lost` is the error message of the first write that failed, otherwise empty.
    """

    def __init__(self) -> None:
        self._reserve: Path | None = None
        self.lost = ""

    def hold(self, folder: Path) -> None:
        """Create a file of RESERVE_BYTES in a folder. Raises CampaignError if fewer bytes are free."""
        self._reserve = folder / RESERVE
        try:
            with self._reserve.open("wb") as out:
                os.posix_fallocate(out.fileno(), 0, RESERVE_BYTES)
        except OSError as error:
            self.release()
            raise CampaignError(f"{folder}: cannot be written: {error.strerror}") from error

    def fail(self, error: BaseException) -> None:
        """Remember the error of a failed write; remove the reserve file to free space for recording it."""
        self.lost = self.lost or str(error)
        self.release()

    def release(self) -> None:
        """Remove the file that hold() has created."""
        if self._reserve is not None:
            try:
                self._reserve.unlink(missing_ok=True)
            except OSError as error:  # the disk fails, so no space can be freed on it
                self.lost = self.lost or str(error)
            self._reserve = None
