"""Free disk, here and on hosts: what is enough for the next trial, and what happens when there is none."""

from __future__ import annotations

import errno
import os
from pathlib import Path

from samovar.errors import CampaignError
from samovar.plan import Resolved
from samovar.plan.volume import host_bytes, kept_bytes
from samovar.units import format_bytes

RESERVE = ".reserve"
RESERVE_BYTES = 1_000_000
"""What is kept to be able to write down how a campaign ended although the disk is full."""
LOOK_EVERY_S = 30.0
PLENTY = 20
"""A host with so many times what a trial leaves is asked every LOOK_EVERY_S only, any other before each."""
_FULL = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EIO, errno.EACCES, errno.EPERM})


def shortage(free_bytes: int, floor_bytes: int, needed_bytes: int) -> str:
    """Say that a disk has too little for the next trial; empty when it has enough."""
    if free_bytes >= floor_bytes + needed_bytes:
        return ""
    free, floor = format_bytes(free_bytes, 3), format_bytes(floor_bytes, 3)
    needed = f"{format_bytes(needed_bytes, 3)} that the next trial leaves"
    return f"the disk has {free} free; accepted: {floor} (free_space in config.yaml) and {needed}"


def needed_here(resolved: Resolved) -> int:
    """Estimate what a trial takes here in bytes: what is kept, and once more what is being fetched."""
    return kept_bytes(resolved) + sum(host_bytes(resolved).values())


def unusable(results: Path) -> str | None:
    """Say why no campaign can be kept in a results folder, or return None."""
    folder = next(folder for folder in (results, *results.parents) if folder.exists())
    if results.is_symlink() and folder != results:
        return f"{results} is a link to what is not there"
    if not folder.is_dir():
        return f"{folder} is no folder"
    return None if os.access(folder, os.W_OK | os.X_OK) else f"nothing can be written to {folder}"


def free_here(folder: Path) -> int:
    """Return the bytes that a folder's disk has for us. Raises CampaignError."""
    try:
        disk = os.statvfs(folder)
    except OSError as error:
        raise CampaignError(f"{folder}: cannot be looked at: {error.strerror}") from error
    return disk.f_bavail * disk.f_frsize


def is_due(since_s: float, free_bytes: int | None, floor_bytes: int, needed_bytes: int) -> bool:
    """Tell whether a host is to be asked for its free disk, so long after it last told so much."""
    if free_bytes is None:
        return True
    return since_s >= LOOK_EVERY_S or free_bytes < floor_bytes + PLENTY * needed_bytes


def is_storage(error: BaseException) -> bool:
    """Tell whether an error says that nothing can be written here, which the next trial would meet too."""
    if isinstance(error, CampaignError):
        return True
    return isinstance(error, OSError) and error.errno in _FULL


class Storage:
    """The disk under a campaign: a reserve is held on it until it is full, or fails."""

    def __init__(self) -> None:
        self._reserve: Path | None = None
        self.lost = ""

    def hold(self, folder: Path) -> None:
        """Set some disk aside. Raises CampaignError when there is not even that."""
        self._reserve = folder / RESERVE
        try:
            with self._reserve.open("wb") as out:
                os.posix_fallocate(out.fileno(), 0, RESERVE_BYTES)
        except OSError as error:
            self.release()
            raise CampaignError(f"{folder}: cannot be written: {error.strerror}") from error

    def fail(self, error: BaseException) -> None:
        """Take note that writing failed, and free what was set aside, so that this can be written down."""
        self.lost = self.lost or str(error)
        self.release()

    def release(self) -> None:
        """Give back what was set aside."""
        if self._reserve is not None:
            try:
                self._reserve.unlink(missing_ok=True)
            except OSError as error:  # of a disk that fails: there is nothing to give back
                self.lost = self.lost or str(error)
            self._reserve = None
