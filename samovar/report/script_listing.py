"""The scripts that set the hosts for one trial, as an appendix can hold them."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from samovar.recipes import BODY
from samovar.report.campaign_data import Campaign, Json, ids, read_json, standing

# A page holds about 60 lines of listing; a script of more than a page is cut in its middle.
MOST_LINES = 60
MOST_COLUMNS = 100


def commands(campaign: Campaign) -> Json | None:
    """Return the commands of the first valid trial: those that set hosts in full, the others by name."""
    trial = next((one for one in ids(campaign) if standing(campaign, one) == "valid"), None)
    if trial is None:
        return None
    files = sorted((campaign.folder / "trials" / trial / "commands").glob("*.sh"))
    scripts = [script(file) for file in files]
    if not scripts:
        return None
    return {
        "trial": trial,
        "folder": f"trials/{trial}/commands",
        "set": [one for one in scripts if one["step"] == "set"],
        "other": [one for one in scripts if one["step"] != "set"],
    }


def script(file: Path) -> Json:
    """Read one script, and from the record beside it what came of it."""
    record = read_json(file.with_suffix(".json"), optional=True)
    text = file.read_text(encoding="utf-8", errors="replace").rstrip()
    ended = [f"exit code {record['exit_code']}"] if "exit_code" in record else []
    ended += [f"{float(record['seconds']):.2f} s"] if "seconds" in record else []
    return {
        "name": file.name,
        "host": str(record.get("host", "")),
        "step": str(record.get("step", "")),
        "lines": shortened(wrapped(own(text).splitlines())),
        "ended": ", ".join(ended),
    }


def own(text: str) -> str:
    """Leave out the functions that every script starts with; they are in the files."""
    _, body, rest = text.partition(BODY)
    return body + rest if body else text


def wrapped(lines: Iterable[str]) -> list[str]:
    """Break lines that a page cannot hold; what goes on is marked."""
    return [piece for line in lines for piece in pieces(line.expandtabs(4))]


def pieces(line: str) -> Iterable[str]:
    """Cut one line to the width of the page, at a space where there is one in the last third."""
    mark = ""
    while len(mark + line) > MOST_COLUMNS:
        room = MOST_COLUMNS - len(mark)
        cut = line.rfind(" ", room * 2 // 3, room) + 1 or room
        yield mark + line[:cut].rstrip()
        mark, line = "  ↳ ", line[cut:]
    yield mark + line


def shortened(lines: list[str]) -> list[str]:
    """Leave out the middle of a script that is longer than a page, and say so there."""
    if len(lines) <= MOST_LINES:
        return lines
    head, tail = MOST_LINES * 3 // 4, MOST_LINES // 4
    return [*lines[:head], f"  … {len(lines) - head - tail} lines left out …", *lines[-tail:]]
