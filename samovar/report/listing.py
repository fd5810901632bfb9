"""The scripts that set the hosts for one trial, as an appendix can hold them."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from pathlib import Path

from samovar.report.campaign import Campaign, Json, ids, standing

# A page holds about 60 lines of listing; a script of more than a page is cut in its middle.
MOST_LINES = 60
MOST_COLUMNS = 96
SCRIPT = re.compile(r"(?P<number>\d+)-(?P<host>.+)-(?P<phase>[^-]+)\.sh$")


def commands(campaign: Campaign) -> Json | None:
    """Return the commands of the first valid trial: those that set hosts in full, the others by name."""
    trial = next((one for one in ids(campaign) if standing(campaign, one) == "valid"), None)
    if trial is None:
        return None
    files = sorted((campaign.folder / "trials" / trial / "commands").glob("*.sh"))
    scripts = [script(file) for file in files if SCRIPT.search(file.name)]
    if not scripts:
        return None
    return {
        "trial": trial,
        "folder": f"trials/{trial}/commands",
        "set": [one for one in scripts if one["phase"].startswith("set")],
        "other": [one for one in scripts if not one["phase"].startswith("set")],
    }


def script(file: Path) -> Json:
    """Read one script with how it ended."""
    match = SCRIPT.search(file.name)
    assert match is not None
    lines = wrapped(file.read_text(encoding="utf-8", errors="replace").rstrip().splitlines())
    kept, dropped = shortened(lines)
    return {
        "name": file.name,
        "host": match["host"],
        "phase": match["phase"],
        "lines": kept,
        "dropped": dropped,
        "ended": ending(file.with_suffix(".json")),
    }


def ending(file: Path) -> str:
    """Say how a script ended, from the record beside it."""
    try:
        record = json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return ""
    words = [f"exit code {record['exit_code']}"] if "exit_code" in record else []
    words += [f"{float(record['seconds']):.2f} s"] if "seconds" in record else []
    return ", ".join(words)


def wrapped(lines: Iterable[str]) -> list[str]:
    """Break lines that a page cannot hold; what goes on is marked."""
    return [piece for line in lines for piece in pieces(line.expandtabs(4))]


def pieces(line: str) -> list[str]:
    """Cut one line to the width of the page."""
    first, rest = line[:MOST_COLUMNS], line[MOST_COLUMNS:]
    width = MOST_COLUMNS - 4
    return [first, *("  ↳ " + rest[start : start + width] for start in range(0, len(rest), width))]


def shortened(lines: list[str]) -> tuple[list[str], int]:
    """Leave out the middle of a long script; return what stays and how many lines went."""
    if len(lines) <= MOST_LINES:
        return lines, 0
    head, tail = MOST_LINES * 3 // 4, MOST_LINES // 4
    dropped = len(lines) - head - tail
    return [*lines[:head], f"  ⋮  {dropped} lines left out", *lines[-tail:]], dropped
