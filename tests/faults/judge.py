"""Check what every fault must leave intact: the campaign's files and journal, read without samovar's commands."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from samovar.campaign.journal import Entry, fold


@dataclass(frozen=True)
class CompleteTrial:
    """A trial in trials/: its manifest, and the SHA-256 of each file."""

    manifest: Mapping[str, Any]
    sums: Mapping[str, str]

    @property
    def counts(self) -> bool:
        """Whether the trial counts, so that it is not run again."""
        return bool(self.manifest["verdict"] != "invalid")


def complete_trials(campaign: Path) -> dict[str, CompleteTrial]:
    """Return the trials in a campaign's trials/ by id, with a checksum of each file."""
    folders = sorted(path for path in (campaign / "trials").glob("*/"))
    return {folder.name: _complete_trial(folder) for folder in folders}


def _complete_trial(folder: Path) -> CompleteTrial:
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    sums = {str(path.relative_to(folder)): _sum(path) for path in files}
    return CompleteTrial(json.loads((folder / "manifest.json").read_bytes()), sums)


def _sum(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def damaged_files(trials: Mapping[str, CompleteTrial]) -> Iterator[str]:
    """Yield the files of trials that do not match their manifest or are incomplete."""
    for id_, trial in trials.items():
        for entry in trial.manifest["files"]:
            if trial.sums.get(entry["path"]) != entry["sha256"]:
                yield f"{id_}: {entry['path']} does not match the manifest"
        yield from (f"{id_}: {name} is a partial file" for name in trial.sums if name.endswith(".part"))


def lost_trials(before: Mapping[str, CompleteTrial], after: Mapping[str, CompleteTrial]) -> Iterator[str]:
    """Yield the trials that counted before and are now missing or changed."""
    for id_, trial in before.items():
        if trial.counts and (id_ not in after or after[id_].sums != trial.sums):
            yield f"{id_}: was complete, and is {'changed' if id_ in after else 'missing'}"


def inconsistencies(journal: Sequence[Entry], campaign: Path) -> Iterator[str]:
    """Yield the inconsistencies within the journal, and between the journal and the campaign's folder."""
    yield from _inconsistent_order(journal)
    yield from _inconsistent_attempts(journal)
    yield from _inconsistent_folders(journal, campaign)
    state = fold(journal)
    if not state.clean:
        left = [f"{host}: {[read.id for read in reads]}" for host, reads in state.unrestored.items()]
        yield f"unrestored hosts or trials in flight: {left or state.with_status('in flight')}"


def _inconsistent_order(journal: Sequence[Entry]) -> Iterator[str]:
    events = [entry.event for entry in journal]
    if events[0] != "campaign-started" or events.count("campaign-started") != 1:
        yield f"the first event is {events[0]}; there are {events.count('campaign-started')} events campaign-started"
    if sorted(entry.t_s for entry in journal) != [entry.t_s for entry in journal]:
        yield "events are not in the order of their times"


def _inconsistent_attempts(journal: Sequence[Entry]) -> Iterator[str]:
    """Yield attempts that are not numbered from 1 without gaps within their trial, or do not end exactly once."""
    running: dict[str, int] = {}
    begun: Counter[str] = Counter()
    for entry in journal:
        id_ = str(entry.values.get("id", ""))
        if entry.event == "trial-started":
            begun[id_] += 1
            if id_ in running or entry.values["attempt"] != begun[id_]:
                yield f"{id_}: attempt {entry.values['attempt']} should be number {begun[id_]}; running: {running}"
            running[id_] = begun[id_]
        elif entry.event == "trial-finished" and running.pop(id_, None) is None:
            yield f"{id_}: finished {entry.values['outcome']} without having started"
    yield from (f"{id_}: attempt {number} never ended" for id_, number in running.items())


def _inconsistent_folders(journal: Sequence[Entry], campaign: Path) -> Iterator[str]:
    """Yield the trials that only the journal or only the folder has, and those whose results differ in the two."""
    listed = {str(e.values["folder"]) for e in journal if e.event == "trial-set-aside"}
    found = {str(path.relative_to(campaign)) for path in (campaign / "set-aside").glob("*/")}
    if listed != found:
        yield f"set aside: {sorted(listed)} in the journal, {sorted(found)} in the folder"
    half = [path.name for path in (campaign / "in-progress").glob("*/")]
    if half:
        yield f"left in in-progress/: {half}"
    ends = {str(e.values["id"]): e.values for e in journal if e.event == "trial-finished"}
    completed = {id_ for id_, end in ends.items() if end["outcome"] == "completed"}
    whole = complete_trials(campaign)
    if completed != whole.keys():
        yield f"completed: {sorted(completed)} in the journal, {sorted(whole)} in trials/"
    for id_ in completed & whole.keys():
        manifest = whole[id_].manifest
        for key in ("outcome", "verdict", "reasons", "overhead_s"):
            if manifest[key] != ends[id_][key]:
                yield f"{id_}: {key}: {ends[id_][key]} in the journal, {manifest[key]} in the manifest"


def endings(journal: Sequence[Entry], id_: str) -> list[str]:
    """Return for each attempt at a trial its verdict, its outcome if it did not complete, or `cut` if no end is recorded."""
    ends: list[str] = []
    for entry in journal:
        if entry.values.get("id") == id_ and entry.event == "trial-started":
            ends.append("cut")
        elif entry.values.get("id") == id_ and entry.event == "trial-finished":
            values = entry.values
            ends[-1] = str(values["verdict"] if values["outcome"] == "completed" else values["outcome"])
    return ends
