"""Files that are written whole or not at all: a reader, also after a crash, finds the old or the new."""

from __future__ import annotations

import json
import os
from pathlib import Path


def write_whole(file: Path, data: bytes) -> None:
    """Write a file beside its place, on disk, then rename it: rename(2), fsync(2). Raises OSError."""
    file.parent.mkdir(parents=True, exist_ok=True)
    part = file.with_name(f"{file.name}.part")
    with part.open("wb") as out:
        out.write(data)
        out.flush()
        os.fsync(out.fileno())
    part.replace(file)


def write_json(file: Path, value: object) -> None:
    """Write a value whole, as JSON that people can read. Raises OSError."""
    write_whole(file, (json.dumps(value, ensure_ascii=False, indent=1) + "\n").encode())
