"""A trial becomes part of its campaign by one rename, or is put aside whole."""

from __future__ import annotations

import os
from pathlib import Path

from samovar.errors import CampaignError


def commit_trial(in_progress: Path, trials: Path) -> Path:
    """Move a whole trial from in-progress/<id> to trials/<id>, on disk when this returns; return where it is.

    Raises CampaignError when it has no manifest, holds a file that was not fetched whole, or is there
    already.
    """
    target = trials / in_progress.name
    if not (in_progress / "manifest.json").is_file():
        raise CampaignError(f"{in_progress}: no manifest.json; accepted: a trial that was judged")
    partial = sorted(in_progress.rglob("*.part"))
    if partial:
        raise CampaignError(f"{partial[0]}: not fetched whole; accepted: a trial without .part files")
    if target.exists():
        raise CampaignError(f"{target}: there already; a trial that completed is never overwritten")
    _sync_tree(in_progress)
    return _move(in_progress, target)


def set_aside(in_progress: Path, home: Path) -> Path:
    """Move a half-written trial to <home>/<id>-<n>, n being the first that is free; return where it is."""
    number = 1
    while (target := home / f"{in_progress.name}-{number}").exists():
        number += 1
    return _move(in_progress, target)


def _move(source: Path, target: Path) -> Path:
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        source.rename(target)
    except OSError as error:
        raise CampaignError(f"{source}: cannot become {target}: {error.strerror}") from error
    for folder in (target.parent, source.parent):
        _sync(folder)
    return target


def _sync_tree(folder: Path) -> None:
    # A rename may reach the disk before what it names does, unless that was sent there first: fsync(2).
    for place, _, files in os.walk(folder):
        for file in files:
            _sync(Path(place, file))
        _sync(Path(place))


def _sync(path: Path) -> None:
    fd = os.open(path, os.O_RDONLY)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)
