"""Ids of trials: readable levels, the replicate, and a hash of all that the trial is.

The hash leaves the replicate out: more replicates add trials and keep the ids there were, and an edited
experiment changes the ids of exactly the trials that it touches.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping

from samovar.plan.model import Resolved

HASH_DIGITS = 6
LONGEST_LEVEL = 24
LONGEST_NAME = 160  # with room for suffixes below the 255 bytes of a file name
MAIN = "main"


def digest(part: str, resolved: Resolved) -> str:
    """Return the hash of a resolved trial."""
    value = {"part": part, "resolved": resolved.as_json()}
    text = json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)
    return hashlib.sha256(text.encode()).hexdigest()


def trial_id(part: str, treatment: Mapping[str, str], replicate: int, full_hash: str) -> str:
    """Return the id: part-levels-rN-hash, without the part when it is the only one, `main`."""
    words = [word(level) for level in treatment.values()]
    name = "-".join(one for one in [*([] if part == MAIN else [word(part)]), *words] if one)
    return "-".join(
        one for one in (name[:LONGEST_NAME].strip("-."), f"r{replicate}", full_hash[:HASH_DIGITS]) if one
    )


def word(level: str) -> str:
    """Return a level as it may stand in a file's name."""
    return re.sub(r"[^A-Za-z0-9.]+", "-", level.replace("%", "pct"))[:LONGEST_LEVEL].strip("-.")
