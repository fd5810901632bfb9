"""The state of the source tree that a campaign is run from."""

from __future__ import annotations

import subprocess
from collections.abc import Mapping
from pathlib import Path


def git_state(root: Path) -> Mapping[str, object]:
    """Tell the revision of a checkout and whether it was modified; nothing where git knows none."""
    revision = _git_says(root, "rev-parse", "HEAD")
    if not revision:
        return {}
    return {"revision": revision, "modified": bool(_git_says(root, "status", "--porcelain"))}


def _git_says(root: Path, *words: str) -> str:
    done = subprocess.run(["git", "-C", str(root), *words], capture_output=True, text=True, check=False)
    return done.stdout.strip() if done.returncode == 0 else ""
