"""Merge the campaigns of a plan's shards into one campaign. The shards' folders do not change."""

from __future__ import annotations

import hashlib
import os
import shutil
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from heapq import merge as merge_sorted
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from samovar.atomic_files import sync, write_whole
from samovar.campaign.collection import digests, require_unarchived, verify
from samovar.campaign.folder import (
    PLAN,
    new_folder,
    newest_campaign,
    point_latest,
    read_json,
    read_plan,
    shard_of,
)
from samovar.campaign.journal import (
    JOURNAL,
    LOCKED,
    STARTS,
    TRIAL_EVENTS,
    CampaignState,
    Entry,
    failed_checksums,
    fold,
    is_open,
    is_running,
    journal_bytes,
    read_journal,
)
from samovar.campaign.past_campaigns import campaigns_in
from samovar.campaign.provenance_json import PROVENANCE, RECIPES, kernels_of
from samovar.campaign.run import OWN_FILES
from samovar.errors import CampaignError
from samovar.events import Emit, silent
from samovar.plan import Plan, Shard

SHARDS = "shards"
MEASURED = ("path-measured", "window-measured")
CACHE = "tables/cache/trials"
"""The folder with cached measures of trials. The analysis finds them by a digest of each trial's files."""
DEFINITION = ("*.yaml", "definition/**/*", "testbeds/**/*")


@dataclass(frozen=True)
class Merged:
    """The campaign with the results of several shards; `is_new` is False if they had been merged before."""

    folder: Path
    is_new: bool


@dataclass(frozen=True)
class _ShardCampaign:
    """The campaign of one shard."""

    folder: Path
    plan: Plan
    shard: Shard
    journal_sha256: str
    entries: Sequence[Entry]

    @cached_property
    def state(self) -> CampaignState:
        return fold(self.entries)

    @cached_property
    def whole_plan(self) -> bytes:
        """The plan.json of the merged campaign."""
        return self.plan.model_copy(update={"shard": ""}).to_json()

    @property
    def home(self) -> str:
        """The folder in the merged campaign for the shard's own journal, provenance and calibration."""
        return f"{SHARDS}/{str(self.shard).replace('/', 'of')}"

    @property
    def versions(self) -> Mapping[str, str]:
        """The versions of samovar, the recipes and the kernels, which must be equal in all shards.

        provenance.json has only the versions of the last run; the journal has earlier versions of samovar and
        earlier kernels of hosts.
        """
        recorded: Mapping[str, Any] = read_json(self.folder / PROVENANCE)
        now, samovar = "unknown", set[str]()
        for entry in self.entries:
            if entry.event in STARTS:
                now = str(entry.values.get("samovar", "unknown"))
            elif entry.event == "trial-started":
                samovar.add(now)
        recipes = "".join(sorted(f"{name} {sha256}\n" for name, sha256 in recorded.get(RECIPES, {}).items()))
        found = {
            "samovar": " and ".join(sorted(samovar)) or now,
            "recipes": hashlib.sha256(recipes.encode()).hexdigest()[:12],
        }
        if lab := recorded.get("lab"):
            found[f"kernel of lab {recorded.get('testbed')}"] = f"{lab['kernel']} {lab['release']}"
        for (testbed, host), kernel in kernels_of(recorded).items():
            names = (host, f"{host}@{testbed}")
            before = [one.before for one in self.state.kernel_changes if one.host in names]
            found[f"kernel of {host} at {testbed}"] = ", then ".join([*before, kernel])
        return found

    def merged_entries(self) -> Iterator[Entry]:
        """Yield the events of the shard's trials, of its calibrations and of changed kernels.

        The event that starts an attempt gets the node of this attempt.
        Attempts that have not ended are left out, since only the shard itself can close them.
        """
        ids, node = set(self.shard.ids(self.plan)), dict[str, Any]()
        begin: dict[str, int] = {}
        for place, entry in enumerate(self.entries):
            if entry.event == "trial-started":
                begin[str(entry.values["id"])] = place
        cut_off = {trial.id: begin[trial.id] for trial in self.state.with_status("in flight")}
        for place, entry in enumerate(self.entries):
            values, id_ = entry.values, str(entry.values.get("id"))
            if entry.event in STARTS:
                node = {key: values[key] for key in ("node", "node_kernel", "samovar") if key in values}
            elif entry.event in MEASURED and "file" in values:
                yield Entry(entry.t_s, entry.event, {**values, "file": f"{self.home}/{values['file']}"})
            elif entry.event == "kernel-changed":
                yield entry
            elif entry.event in TRIAL_EVENTS and id_ in ids and place < cut_off.get(id_, len(self.entries)):
                own = node if entry.event == "trial-started" else {}
                yield Entry(entry.t_s, entry.event, {**values, **own})


def shards_of(plan: Plan, results: Path, of: int) -> list[Path]:
    """Return the newest campaign of each of the `of` shards of a plan.

    Shards without a campaign are left out.
    """
    plans = (plan.model_copy(update={"shard": str(shard)}) for shard in Shard.all_of(of))
    found = (newest_campaign(one, results) for one in plans)
    return [folder for folder in found if folder]


def latest_shards(experiment: str, results: Path) -> list[Path]:
    """Return the campaigns of an experiment's shards, for the plan and number of shards used last.

    Raises CampaignError if the experiment has no shards.
    """
    for folder in campaigns_in(results):
        if folder.parent.name == experiment and (shard := shard_of(folder)):
            return shards_of(read_plan(folder), results, Shard.parse(shard).of)
    raise CampaignError(
        f"{results / experiment}: no shard; `fab run {experiment} --shard 1/2` makes the first of two"
    )


def merge_shards(folders: Iterable[Path], results: Path, force: bool = False, emit: Emit = silent) -> Merged:
    """Merge the campaigns of a plan's shards into a new campaign, and return it.

    If a campaign with exactly these results exists, it is returned instead. Files of trials are hard links to
    the shards' files, or copies if the file system differs. With `force`, shards may be missing, and the
    versions of shards may differ. Raises CampaignError if the campaigns are not shards of one plan, if one of
    them is running or was changed, or if a shard is named twice.
    """
    shards = sorted(map(_read_shard, dict.fromkeys(map(Path.resolve, folders))), key=lambda one: one.shard)
    _require_one_plan(shards)
    given = [str(one.shard) for one in shards]
    missing = [str(one) for one in Shard.all_of(shards[0].shard.of) if str(one) not in given]
    if missing and not force:
        raise CampaignError(
            f"{shards[0].folder.parent}: shard {', '.join(missing)} is missing among {', '.join(given)}; "
            "name all shards, or use --force and then run the missing trials with `fab run`"
        )
    if not force:
        _require_equal_versions(shards)
    plan = Plan.from_json(shards[0].whole_plan)
    target = new_folder(plan, results)
    for known in target.parent.glob(f"*/{SHARDS}/"):
        if _sources(known.parent) == {one.journal_sha256 for one in shards}:
            return Merged(known.parent.resolve(), False)
    for one in shards:
        _require_unchanged(one, emit)
    if target.exists():
        raise CampaignError(f"{target}: was created just now by another process; run the command again")
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        with TemporaryDirectory(prefix=".merging-", dir=target.parent) as place:
            folder = Path(place) / target.name
            _write_campaign(folder, plan, shards)
            folder.rename(target)
            sync(target.parent)
    except OSError as error:
        raise CampaignError(f"{target}: cannot be written: {error}") from error
    point_latest(target)
    return Merged(target, True)


def _read_shard(folder: Path) -> _ShardCampaign:
    plan, file = read_plan(folder), folder / JOURNAL
    if not plan.shard:
        raise CampaignError(
            f"{folder}: not a shard; must be a campaign that `fab run {plan.experiment} --shard 1/2` made"
        )
    if not file.is_file():
        raise CampaignError(f"{folder}: journal.jsonl is missing; must be a campaign that has started")
    require_unarchived(folder)
    if is_running(file):
        raise CampaignError(f"{file}: {LOCKED}")
    data = file.read_bytes()
    if changed := next(failed_checksums(data), None):
        raise CampaignError(f"{file}:{changed}: the lines before it have changed since they were written")
    sha256 = hashlib.sha256(data).hexdigest()
    return _ShardCampaign(folder, plan, Shard.parse(plan.shard), sha256, read_journal(file))


def _require_one_plan(shards: Sequence[_ShardCampaign]) -> None:
    first, seen = shards[0], dict[Shard, Path]()
    for one in shards:
        if one.shard.of != first.shard.of:
            raise CampaignError(
                f"{one.folder}: shard {one.shard}, but {first.folder} is shard {first.shard}; "
                f"must be shards of one division, such as 1/{first.shard.of} and 2/{first.shard.of}"
            )
        if one.whole_plan != first.whole_plan:
            raise CampaignError(
                f"{one.folder}: its plan differs from the plan of {first.folder}; must be shards of one plan "
                "(after a change of the experiment, use `fab run` with the same --shard)"
            )
        if one.shard in seen:
            raise CampaignError(
                f"{one.folder}: shard {one.shard} was run twice, also in {seen[one.shard]}; "
                "name only one of the two"
            )
        seen[one.shard] = one.folder


def _require_equal_versions(shards: Sequence[_ShardCampaign]) -> None:
    found: dict[str, dict[str, list[str]]] = {}
    for one in shards:
        for name, text in one.versions.items():
            found.setdefault(name, {}).setdefault(text, []).append(str(one.shard))
    for name, texts in found.items():
        if len(texts) > 1:
            listed = ", ".join(f"{text} in shard {', '.join(which)}" for text, which in texts.items())
            raise CampaignError(
                f"{shards[0].folder.parent}: versions differ: {name}: {listed}; must be equal, "
                "or use --force (the report then compares the nodes)"
            )


def _require_unchanged(shard: _ShardCampaign, emit: Emit) -> None:
    """Raise CampaignError if a file of a trial is missing, or differs from its recorded checksum."""
    changed = [one for one in verify(shard.folder, emit).findings if one.path.startswith("trials/")]
    if changed:
        raise CampaignError(
            f"{shard.folder}/{changed[0]}; not merged; `fab verify {shard.folder}` lists all changes"
        )


def _sources(folder: Path) -> set[str]:
    """Return the checksums of the merged shards' journals; empty if the campaign's journal is unreadable."""
    try:
        entries = read_journal(folder / JOURNAL)
    except CampaignError:
        return set()
    return {str(one.values["journal_sha256"]) for one in entries if one.event == "shard-merged"}


def _write_campaign(folder: Path, plan: Plan, shards: Sequence[_ShardCampaign]) -> None:
    folder.mkdir()
    (folder / "trials").mkdir()
    for pattern in DEFINITION:
        for file in filter(Path.is_file, shards[0].folder.glob(pattern)):
            _copy(file, folder / file.relative_to(shards[0].folder))
    _copy(shards[0].folder / PROVENANCE, folder / PROVENANCE)
    for one in shards:
        for name in (JOURNAL, PROVENANCE, "calibration"):
            _copy(one.folder / name, folder / one.home / name)
        for id_ in one.shard.ids(plan):
            trial = one.state.trials.get(id_)
            done = trial is not None and trial.status == "completed"
            aside = trial.set_aside if trial else ()
            for path in (*([f"trials/{id_}"] if done else []), *aside):
                _copy(one.folder / path, folder / path, link=True)
        _copy(one.folder / CACHE, folder / CACHE, link=True)
    write_whole(folder / PLAN, plan.to_json())
    write_whole(folder / JOURNAL, journal_bytes(_merged_journal(folder, plan, shards)))


def _copy(source: Path, target: Path, link: bool = False) -> None:
    """Copy a file or a folder, if it exists; with `link`, make hard links where possible."""

    def copy_file(file: str, copy: str) -> None:
        with suppress(OSError):
            if link:
                os.link(file, copy)
                return
        shutil.copy2(file, copy)

    target.parent.mkdir(parents=True, exist_ok=True)
    if source.is_dir():
        shutil.copytree(source, target, copy_function=copy_file, dirs_exist_ok=True)
    elif source.is_file():
        copy_file(str(source), str(target))


def _merged_journal(folder: Path, plan: Plan, shards: Sequence[_ShardCampaign]) -> list[Entry]:
    t_start_s = min((one.entries[0].t_s for one in shards if one.entries), default=0.0)
    entries = [Entry(t_start_s, "campaign-started", {"trials": len(plan.trials)})]
    for one in shards:
        values = {"shard": str(one.shard), "campaign": one.folder.name, "folder": one.home}
        entries.append(Entry(t_start_s, "shard-merged", {**values, "journal_sha256": one.journal_sha256}))
    entries += merge_sorted(*(one.merged_entries() for one in shards), key=lambda entry: entry.t_s)
    t_end_s = max((one.entries[-1].t_s for one in shards if one.entries), default=t_start_s)
    state = fold(entries)
    entries.append(Entry(t_end_s, "files-recorded", {"files": dict(digests(folder, *OWN_FILES))}))
    failed = sorted(id_ for id_, trial in state.trials.items() if is_open(trial))
    counts = {"completed": state.number_done(plan.ids), "failed": failed}
    entries.append(Entry(t_end_s, "campaign-finished", counts))
    return entries
