"""Write files atomically: after a crash, a file has either its old content or its new content."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory


def write_whole(file: Path, data: bytes) -> None:
    """Replace the content of a file by writing a new file to disk and renaming it. Raises OSError."""
    file.parent.mkdir(parents=True, exist_ok=True)
    part = file.with_name(f"{file.name}.part")
    with part.open("wb") as out:
        out.write(data)
        out.flush()
        os.fsync(out.fileno())
    part.replace(file)


def sync(path: Path) -> None:
    """Sync a file, or the entries of a folder, to disk with fsync(2). Raises OSError."""
    fd = os.open(path, os.O_RDONLY)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


def write_json(file: Path, value: object) -> None:
    """Replace the content of a file with a value, written as indented JSON. Raises OSError."""
    write_whole(file, (json.dumps(value, ensure_ascii=False, indent=1) + "\n").encode())


@contextmanager
def staged(folder: Path) -> Iterator[Path]:
    """Yield a temporary folder; at the end of the context, move its files to `folder`.

    After an error in the context, no file is moved. Raises OSError.
    """
    folder.mkdir(parents=True, exist_ok=True)
    with TemporaryDirectory(prefix=".part-", dir=folder) as new:
        yield Path(new)
        for file in sorted(Path(new).iterdir()):
            sync(file)
            file.replace(folder / file.name)
        sync(folder)
