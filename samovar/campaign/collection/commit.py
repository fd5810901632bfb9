"""A trial becomes part of its campaign by one rename, or is put aside whole."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path

from samovar.campaign.collection.checksums import SUMS, sha256_of, write_sums
from samovar.errors import CampaignError


def commit_trial(in_progress: Path, trials: Path) -> Path:
    """Move a whole trial from in-progress/<id> to trials/<id>, on disk when this returns; return where it is.

    SHA256SUMS is written beside what it has, of all of that. Raises CampaignError when it has no manifest,
    holds a file that was not fetched whole, or is there already.
    """
    target = trials / in_progress.name
    if not (in_progress / "manifest.json").is_file():
        raise CampaignError(f"{in_progress}: no manifest.json; accepted: a trial that was judged")
    partial = sorted(in_progress.rglob("*.part"))
    if partial:
        raise CampaignError(f"{partial[0]}: not fetched whole; accepted: a trial without .part files")
    if target.exists():
        raise CampaignError(f"{target}: there already; a trial that completed is never overwritten")
    write_sums(in_progress, _collected(in_progress / "manifest.json"))
    _sync_tree(in_progress)
    return _move(in_progress, target)


def sealed(folder: Path) -> Mapping[str, str]:
    """Return what the journal keeps of a folder that has checksums: that of the checksums, `sums_sha256`."""
    sums = folder / SUMS
    return {"sums_sha256": sha256_of(sums)} if sums.is_file() else {}


def digests(folder: Path, *patterns: str) -> Mapping[str, str]:
    """Return the SHA-256 of the files below a folder that match, by path. Raises CampaignError."""
    found = {file for pattern in patterns for file in folder.glob(pattern) if file.is_file()}
    try:
        return {file.relative_to(folder).as_posix(): sha256_of(file) for file in sorted(found)}
    except OSError as error:
        raise CampaignError(f"{error.filename}: cannot be summed: {error.strerror}") from error


def _collected(manifest: Path) -> Mapping[str, str]:
    """Return the checksums of the files that came from hosts, which were verified when they came."""
    told = json.loads(manifest.read_bytes())
    return {entry["path"]: entry["sha256"] for entry in told.get("files", ())}


def set_aside(in_progress: Path, home: Path) -> Path:
    """Move a half-written trial to <home>/<id>-<n>, n being the first that is free; return where it is.

    What it has so far is given checksums, where it has none and the disk has room for them.
    """
    if not (in_progress / SUMS).exists():
        try:
            write_sums(in_progress)
        except CampaignError:
            (in_progress / SUMS).unlink(missing_ok=True)  # half a list would be worse than none
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
    try:
        fd = os.open(path, os.O_RDONLY)
        try:
            os.fsync(fd)
        finally:
            os.close(fd)
    except OSError as error:
        raise CampaignError(f"{path}: cannot be put on disk: {error.strerror}") from error
