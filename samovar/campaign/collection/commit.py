"""Commit a complete trial to its campaign by one rename, or move an incomplete trial to set-aside/."""

from __future__ import annotations

import json
import os
from pathlib import Path

from samovar.atomic_files import sync
from samovar.campaign.collection.checksums import SUMS, write_sums
from samovar.errors import CampaignError


def commit_trial(in_progress: Path, trials: Path) -> Path:
    """Move a complete trial from in-progress/ID to trials/ID, synced to disk, and return its new path.

    First writes the checksums of all files of the trial to SHA256SUMS. Raises CampaignError if the trial has
    no manifest.json, if a file was not fetched completely, or if trials/ID exists already.
    """
    target, manifest = trials / in_progress.name, in_progress / "manifest.json"
    if not manifest.is_file():
        raise CampaignError(f"{in_progress}: manifest.json is missing: the trial was not judged")
    partial = sorted(in_progress.rglob("*.part"))
    if partial:
        raise CampaignError(f"{partial[0]}: this file was not fetched completely")
    if target.exists():
        raise CampaignError(f"{target}: exists already; a completed trial is never overwritten")
    # Files from hosts were verified on arrival, so their checksums need not be computed again.
    files = json.loads(manifest.read_bytes()).get("files", ())
    write_sums(in_progress, {entry["path"]: entry["sha256"] for entry in files})
    # A rename may reach the disk before the files do, unless they are synced first: fsync(2).
    for place, _, names in os.walk(in_progress):
        for name in names:
            _sync(Path(place, name))
        _sync(Path(place))
    return _move(in_progress, target)


def set_aside(in_progress: Path, home: Path) -> Path:
    """Move an incomplete trial to the folder ID-N in `home`, with the first free N; return its new path.

    Writes checksums of its files unless SHA256SUMS exists or the disk is full.
    """
    if not (in_progress / SUMS).exists():
        try:
            write_sums(in_progress)
        except CampaignError:
            (in_progress / SUMS).unlink(missing_ok=True)  # a partial SHA256SUMS would look complete
    number = 1
    while (target := home / f"{in_progress.name}-{number}").exists():
        number += 1
    return _move(in_progress, target)


def _move(source: Path, target: Path) -> Path:
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        source.rename(target)
    except OSError as error:
        raise CampaignError(f"{source}: cannot be moved to {target}: {error.strerror}") from error
    for folder in (target.parent, source.parent):
        _sync(folder)
    return target


def _sync(path: Path) -> None:
    try:
        sync(path)
    except OSError as error:
        raise CampaignError(f"{path}: cannot be written to disk: {error.strerror}") from error
