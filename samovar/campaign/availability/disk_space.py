"""Free disk space, here and on hosts, compared with what the next trial needs."""

from __future__ import annotations

import os
from pathlib import Path

from samovar.errors import CampaignError
from samovar.experiment import RecipeCatalogue
from samovar.plan import Resolved, host_bytes, stored_bytes
from samovar.units import format_bytes


def shortage(free_bytes: int, floor_bytes: int, needed_bytes: int) -> str:
    """Return a message if a disk has too little space for the next trial, else an empty string.

    `floor_bytes` have to stay free beyond the `needed_bytes` of the trial.
    """
    if free_bytes >= floor_bytes + needed_bytes:
        return ""
    free, floor, needed = (format_bytes(size, 3) for size in (free_bytes, floor_bytes, needed_bytes))
    return (
        f"the disk has {free} free; the next trial needs {needed}, "
        f"and {floor} must stay free (free_space in config.yaml)"
    )


def needed_here(resolved: Resolved, catalogue: RecipeCatalogue) -> int:
    """Estimate the bytes that a trial needs here: what is kept, and once more what is being fetched."""
    return stored_bytes(resolved, catalogue) + sum(host_bytes(resolved, catalogue).values())


def unusable(results: Path) -> str | None:
    """Return why no campaign can be written to a results folder, or None if one can."""
    folder = next(folder for folder in (results, *results.parents) if folder.exists())
    if results.is_symlink() and folder != results:
        return f"{results} is a link to a missing folder"
    if not folder.is_dir():
        return f"{folder} is not a folder"
    return None if os.access(folder, os.W_OK | os.X_OK) else f"{folder} is not writable"


def free_here(folder: Path) -> int:
    """Return the free bytes of a folder's disk. Raises CampaignError."""
    try:
        disk = os.statvfs(folder)
    except OSError as error:
        raise CampaignError(f"{folder}: free space cannot be read: {error.strerror}") from error
    return disk.f_bavail * disk.f_frsize
