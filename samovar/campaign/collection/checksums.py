"""Compute checksums of files; write and read SHA256SUMS in the format of sha256sum(1)."""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Iterator, Mapping
from pathlib import Path

from samovar.errors import CampaignError

SUMS = "SHA256SUMS"
_LINE = re.compile(r"([0-9a-f]{64}) [ *]([^\0]+)")


def sha256_of(file: Path) -> str:
    """Return the SHA-256 of a file in hexadecimal. Raises OSError, e.g. for a symbolic link."""
    with open(file, "rb", buffering=0, opener=_open_plain) as source:
        return hashlib.file_digest(source, "sha256").hexdigest()


def content_of(file: Path) -> bytes:
    """Return the content of a file; empty for a named pipe. Raises OSError, e.g. for a symbolic link."""
    with open(file, "rb", opener=_open_plain) as source:
        return source.read() or b""


def _open_plain(path: str, flags: int) -> int:
    # A file may have been replaced by a named pipe, which would block for ever: open(2), O_NONBLOCK.
    return os.open(path, flags | os.O_NOFOLLOW | os.O_NONBLOCK)


def names_in(folder: Path) -> Iterator[str]:
    """Yield the relative path of every file below a folder. Symbolic links count as files."""
    pending = [("", str(folder))]
    while pending:
        prefix, place = pending.pop()
        with os.scandir(place) as entries:
            for entry in sorted(entries, key=lambda one: one.name):
                if entry.is_dir(follow_symlinks=False):
                    pending.append((f"{prefix}{entry.name}/", entry.path))
                else:
                    yield prefix + entry.name


def write_sums(folder: Path, known: Mapping[str, str] | None = None) -> None:
    """Write SHA256SUMS with the checksums of all files below a folder.

    `known` maps paths to checksums that need not be computed again. Raises CampaignError if a file cannot be
    read, if its name contains a line break, or if SHA256SUMS cannot be written.
    """
    known = known or {}
    try:
        names = sorted(name for name in names_in(folder) if name != SUMS)
        if unlisted := [name for name in names if "\n" in name]:
            raise CampaignError(f"{folder}: {unlisted[0]!r}: the name of a file must be one line")
        sums = {name: known.get(name) or sha256_of(folder / name) for name in names}
        text = "".join(f"{sha256}  {name}\n" for name, sha256 in sums.items())
        (folder / SUMS).write_bytes(os.fsencode(text))
    except OSError as error:
        raise CampaignError(f"{folder}: its checksums cannot be made: {error}") from error


def read_sums(text: bytes) -> dict[str, str]:
    """Return the checksums in the content of SHA256SUMS, by path.

    Raises ValueError with the number of the first invalid line.
    """
    sums = {}
    for number, line in enumerate(os.fsdecode(text).split("\n")[:-1], 1):
        match = _LINE.fullmatch(line)
        if match is None:
            raise ValueError(f"line {number} is not a checksum")
        sums[match[2]] = match[1]
    return sums


def sums_digest(folder: Path) -> Mapping[str, str]:
    """Return `sums_sha256` for a journal event: the SHA-256 of a folder's SHA256SUMS; empty without it."""
    sums = folder / SUMS
    return {"sums_sha256": sha256_of(sums)} if sums.is_file() else {}


def digests(folder: Path, *patterns: str) -> Mapping[str, str]:
    """Return, by path, the SHA-256 of each file below a folder that matches one of the glob patterns.

    Raises CampaignError.
    """
    found = {file for pattern in patterns for file in folder.glob(pattern) if file.is_file()}
    try:
        return {file.relative_to(folder).as_posix(): sha256_of(file) for file in sorted(found)}
    except OSError as error:
        raise CampaignError(f"{error.filename}: cannot be read: {error.strerror}") from error
