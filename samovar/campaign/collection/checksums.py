"""Checksums of a folder's files in the format of sha256sum(1): `sha256sum -c SHA256SUMS` checks them."""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

from samovar.errors import CampaignError

SUMS = "SHA256SUMS"
_BLOCK_BYTES = 1 << 20
_LINE = re.compile(r"(\\?)([0-9a-f]{64}) [ *](.+)")
_ESCAPES = {"\\": "\\\\", "\n": "\\n", "\r": "\\r"}
_ESCAPED = {escaped: plain for plain, escaped in _ESCAPES.items()}


def sha256_of(file: Path, progress: Callable[[int], None] | None = None) -> str:
    """Return the SHA-256 of a file, hexadecimal; `progress` is called with the bytes of each block read.

    Raises OSError; a symbolic link is not followed.
    """
    digest, buffer = hashlib.sha256(), bytearray(_BLOCK_BYTES)
    view = memoryview(buffer)
    with open(file, "rb", buffering=0, opener=_open_plain) as source:
        while size := source.readinto(buffer):
            digest.update(view[:size])
            if progress:
                progress(size)
    return digest.hexdigest()


def content_of(file: Path) -> bytes:
    """Return a file's content, empty for a named pipe. Raises OSError; a symbolic link is not followed."""
    with open(file, "rb", opener=_open_plain) as source:
        return source.read() or b""


def _open_plain(path: str, flags: int) -> int:
    # A file may have been replaced by a named pipe, which would block for ever: open(2), O_NONBLOCK.
    return os.open(path, flags | os.O_NOFOLLOW | os.O_NONBLOCK)


def names_in(folder: Path) -> Iterator[str]:
    """Yield the relative path of everything below a folder except folders; links are not followed."""
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
    """Write SHA256SUMS of everything in a folder; `known` has checksums that need not be computed again.

    Raises CampaignError if a file cannot be read or the checksums cannot be written.
    """
    known = known or {}
    try:
        names = sorted(name for name in names_in(folder) if name != SUMS)
        sums = {name: known.get(name) or sha256_of(folder / name) for name in names}
        text = "".join(_line(name, sha256) for name, sha256 in sums.items())
        (folder / SUMS).write_bytes(os.fsencode(text))
    except OSError as error:
        raise CampaignError(f"{folder}: its checksums cannot be made: {error}") from error


def read_sums(text: bytes) -> dict[str, str]:
    """Return the checksums in the content of SHA256SUMS, by path. Raises ValueError that names a bad line."""
    sums = {}
    for number, line in enumerate(os.fsdecode(text).split("\n")[:-1], 1):
        match = _LINE.fullmatch(line)
        if match is None:
            raise ValueError(f"line {number} is not a checksum")
        sums[_unescape(match[3]) if match[1] else match[3]] = match[2]
    return sums


def _line(name: str, sha256: str) -> str:
    escaped = "".join(_ESCAPES.get(character, character) for character in name)
    return f"{'' if escaped == name else chr(92)}{sha256}  {escaped}\n"


def _unescape(name: str) -> str:
    return re.sub(r"\\[\\nr]", lambda match: _ESCAPED[match[0]], name)
