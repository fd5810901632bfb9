"""The inventory of a campaign's folder, derived from its journal: what it should contain."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from samovar.campaign.journal import Entry


@dataclass
class Inventory:
    """The content of a campaign's folder.

    `folders` maps the paths of trials, complete or set aside, to the SHA-256 of their SHA256SUMS; None for a
    folder that was set aside when the disk was full. `files` maps the campaign's own files to their SHA-256.
    `running` has the trials that were started and not finished.
    """

    folders: dict[str, str | None] = field(default_factory=dict)
    files: dict[str, str] = field(default_factory=dict)
    running: set[str] = field(default_factory=set)


def inventory_of(entries: Iterable[Entry]) -> Inventory:
    """Derive from a journal what the folder contains."""
    inventory = Inventory()
    folders, running = inventory.folders, inventory.running
    for entry in entries:
        values = entry.values
        if entry.event == "trial-started":
            folders.pop(f"trials/{values['id']}", None)
            running.add(str(values["id"]))
        elif entry.event == "trial-finished":
            running.discard(str(values["id"]))
            if values.get("outcome") == "completed":
                folders[f"trials/{values['id']}"] = values.get("sums_sha256")
        elif entry.event == "trial-set-aside":
            moved = folders.pop(f"trials/{values['id']}", None)
            folders[str(values["folder"])] = values.get("sums_sha256") or moved
        elif entry.event == "files-recorded":
            inventory.files = dict(values["files"])
        elif entry.event in ("path-measured", "window-measured") and "sha256" in values:
            inventory.files[str(values["file"])] = str(values["sha256"])
    return inventory
