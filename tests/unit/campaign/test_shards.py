"""Shards of a plan, and merging their campaigns into one."""

from __future__ import annotations

import errno
import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from samovar.atomic_files import write_json
from samovar.campaign.collection import ARCHIVE, commit_trial, digests, set_aside, sums_digest, verify
from samovar.campaign.folder import begin_campaign, find_resume_point, newest_campaign, read_plan, read_state
from samovar.campaign.journal import JOURNAL, Journal
from samovar.campaign.merge_campaigns import Merged, latest_shards, merge_shards
from samovar.campaign.run import OWN_FILES, note_pick, summarise
from samovar.cli.show_status import CampaignStatus, status_json, status_lines
from samovar.errors import CampaignError, DefinitionError, PlanError
from samovar.events import silent
from samovar.plan import Pick, Plan, Shard
from tests.unit.plan_values import plan_of, trial
from tests.unit.plans import planned, study

PLAN = plan_of([trial(cc, replicate) for replicate in (1, 2, 3, 4) for cc in ("cubic", "cdg", "newreno")])
END = {"outcome": "completed", "verdict": "valid", "reasons": [], "overhead_s": 1.0}
LAB = {"kernel": "uml", "release": "6.1.1"}


def of_shard(shard: str, plan: Plan = PLAN) -> Plan:
    return plan.model_copy(update={"shard": shard})


def run_shard(
    results: Path,
    shard: str,
    *,
    node: str = "n1",
    t_s: float = 1.0,
    trials: int | None = None,
    samovar: str = "1.0",
    plan: Plan = PLAN,
) -> Path:
    """Write the campaign of a shard. If `trials` is given, the controller was killed after this number of trials.

    The first trial has an interrupted attempt before its complete one.
    """
    own = of_shard(shard, plan)
    sources = {"experiment.yaml": b"experiment: x\n", "testbed.yaml": b"testbed: lab\n"}
    folder = begin_campaign(own, results, sources, silent)
    picked = find_resume_point(own, results).picked
    write_json(folder / "provenance.json", {"testbed": "lab", "lab": LAB, "recipes": {"a.sh.j2": "1"}})
    with Journal(folder / JOURNAL) as journal:
        journal.append("campaign-started", t_s, trials=12, node=node, node_kernel="6.1", samovar=samovar)
        note_pick(picked, read_state(folder), journal.note)
        journal.append("files-recorded", t_s, files=digests(folder, *OWN_FILES))
        (folder / "calibration").mkdir()
        measured = folder / "calibration" / "c0ffee.json"
        measured.write_text(f'"{node}"')
        found = {"trial": picked.ids[0], "seconds": 1.0, "missed": [], "refused": [], "left_out": []}
        file = digests(folder, "calibration/*")
        journal.append(
            "path-measured", t_s, **found, file="calibration/c0ffee.json", sha256=next(iter(file.values()))
        )
        for number, id_ in enumerate(picked.ids):
            at_s = t_s + 10.0 * number
            attempt = 1
            if number == 0:
                journal.append("trial-started", at_s, id=id_, attempt=1, testbed="lab")
                write_trial(folder, id_, node)
                aside = set_aside(folder / "in-progress" / id_, folder / "set-aside")
                where = str(aside.relative_to(folder))
                journal.append("trial-set-aside", at_s, id=id_, folder=where, **sums_digest(aside))
                attempt = 2
            journal.append("trial-started", at_s + 1, id=id_, attempt=attempt, testbed="lab")
            write_trial(folder, id_, node)
            if number == trials:
                return folder
            there = commit_trial(folder / "in-progress" / id_, folder / "trials")
            journal.append("trial-finished", at_s + 2, id=id_, **END, **sums_digest(there))
        journal.append("campaign-finished", t_s + 1000, completed=len(picked.ids), failed=[])
    return folder


def write_trial(folder: Path, id_: str, node: str) -> None:
    place = folder / "in-progress" / id_
    place.mkdir(parents=True)
    (place / "manifest.json").write_text(json.dumps({"id": id_, "files": [], "ran on": node}))
    (place / "trace").write_bytes(os.urandom(100))


@pytest.fixture
def shards(tmp_path: Path) -> list[Path]:
    return [
        run_shard(tmp_path, "1/2", node="n1", t_s=1.0),
        run_shard(tmp_path, "2/2", node="n2", t_s=4.0),
    ]


# The trials of a shard


@pytest.mark.parametrize("of", [1, 2, 3, 4])
def test_every_trial_is_in_one_shard_and_a_replicate_is_never_divided(of: int) -> None:
    shards = [shard.ids(PLAN) for shard in Shard.all_of(of)]
    assert sorted(id_ for ids in shards for id_ in ids) == sorted(PLAN.ids)
    assert all(ids == tuple(id_ for id_ in PLAN.ids if id_ in ids) for ids in shards)
    replicates = [{PLAN.find(id_).replicate for id_ in ids} for ids in shards]
    assert sum(map(len, replicates)) == 4
    assert max(map(len, replicates)) - min(map(len, replicates)) <= 1


def test_parts_are_dealt_to_the_shards_in_turn() -> None:
    factors = "{factors: {cc: [cubic, newreno]}, captures: [{at: sender}]}"
    plan = planned(study(f"parts: {{a: {factors}, b: {factors}}}\n"))
    first, second = (shard.ids(plan) for shard in Shard.all_of(2))
    assert [plan.find(id_).part for id_ in first] == ["a", "a"]
    assert [plan.find(id_).part for id_ in second] == ["b", "b"]


def test_more_shards_than_replicates_are_refused() -> None:
    with pytest.raises(
        PlanError, match=r"--shard 1/5: x can be divided into at most 4 shards, .*or more rep"
    ):
        Shard(5, 1).ids(PLAN)


@pytest.mark.parametrize("text", ["", "2", "0/2", "3/2", "1/0", "1/2/3", "a/b", "01/2", "-1/2", "1 /2"])
def test_a_shard_must_be_given_as_its_number_and_the_number_of_shards(text: str) -> None:
    with pytest.raises(DefinitionError, match=r"not a shard; must be NUMBER/SHARDS, .*such as 2/4"):
        Shard.parse(text)


def test_the_plan_of_a_shard_has_all_trials_and_differs_from_the_whole_plan_in_one_key() -> None:
    whole, part = json.loads(PLAN.to_json()), json.loads(of_shard("2/4").to_json())
    assert part.pop("shard") == "2/4"
    assert part == whole
    assert Plan.from_json(of_shard("2/4").to_json()).shard == "2/4"


def test_a_pick_within_a_shard_has_the_trials_that_are_in_both(tmp_path: Path) -> None:
    picked = Pick(only=("cc=cubic",)).of(of_shard("2/4"))
    assert picked.text == "shard 2/4, cc=cubic"
    assert [PLAN.find(id_).replicate for id_ in picked.ids] == [2]
    with pytest.raises(PlanError, match=r"no trial of shard 2/4 of x matches"):
        Pick(only=("replicate=1",)).of(of_shard("2/4"))


# The campaign of a shard


def test_the_campaign_of_a_shard_is_resumed_only_by_this_shard_and_not_by_the_whole_plan(
    tmp_path: Path,
) -> None:
    folder = run_shard(tmp_path, "1/2", trials=2)
    assert newest_campaign(of_shard("1/2"), tmp_path) == folder
    assert newest_campaign(of_shard("2/2"), tmp_path) is None
    assert newest_campaign(of_shard("1/4"), tmp_path) is None
    assert newest_campaign(PLAN, tmp_path) is None
    assert not (folder.parent / "latest").exists()
    assert len(find_resume_point(of_shard("1/2"), tmp_path).comparison.runs) == 4
    lines = list(status_lines(CampaignStatus(folder, read_plan(folder), read_state(folder), 100.0), 100))
    assert "the others are in other shards; to merge all: fab merge x" in lines[-2]
    assert lines[-1] == "to run the missing trials: fab run x --testbed lab --shard 1/2"


# The merged campaign


def merged(shards: list[Path], *, force: bool = False) -> Merged:
    return merge_shards(shards, shards[0].parent.parent, force)


def test_a_merged_campaign_is_one_of_the_whole_plan_and_records_the_node_of_each_trial(
    shards: list[Path], tmp_path: Path
) -> None:
    folder = merged(shards).folder
    assert (folder / "plan.json").read_bytes() == PLAN.to_json()
    found = verify(folder)
    assert (found.findings, found.notes) == ([], [])
    assert newest_campaign(PLAN, tmp_path) == folder
    assert find_resume_point(PLAN, tmp_path).nothing_to_do
    assert (folder.parent / "latest").resolve() == folder
    state = read_state(folder)
    assert {id_: one.node for id_, one in state.trials.items()} == {
        id_: f"n{(PLAN.find(id_).replicate - 1) % 2 + 1}" for id_ in PLAN.ids
    }
    assert state.nodes == {node: {"kernel": "6.1", "samovar": "1.0"} for node in ("n1", "n2")}
    assert summarise(folder, PLAN, state, PLAN.ids).complete
    status = CampaignStatus(folder, PLAN, state, 10.0)
    assert [one["node"] for one in status_json(status)["trials"]] == [  # type: ignore[attr-defined]
        state.trials[id_].node for id_ in PLAN.ids
    ]
    assert any("n2" in line for line in status_lines(status, 100, every_trial=True))


def test_a_merged_campaign_links_to_the_files_of_all_trials_and_earlier_attempts(shards: list[Path]) -> None:
    folder = merged(shards).folder
    for shard in shards:
        for ran in (*shard.glob("trials/*"), *shard.glob("set-aside/*")):
            own = folder / ran.relative_to(shard)
            assert (own / "trace").read_bytes() == (ran / "trace").read_bytes()
            assert (own / "trace").stat().st_ino == (ran / "trace").stat().st_ino
    assert len(list(folder.glob("trials/*"))) == 12
    assert len(list(folder.glob("set-aside/*"))) == 2
    measured = sorted(folder.glob("shards/*/calibration/c0ffee.json"))
    assert [file.read_text() for file in measured] == ['"n1"', '"n2"']


def test_merging_the_same_shards_again_returns_the_existing_campaign(shards: list[Path]) -> None:
    first = merged(shards)
    second = merged(shards[::-1])
    assert (first.is_new, second.is_new) == (True, False)
    assert second.folder == first.folder


def test_shards_outside_the_results_folder_are_merged_into_one_campaign_there(
    shards: list[Path], tmp_path: Path
) -> None:
    results = tmp_path / "project" / "results"
    first = merge_shards(shards, results)
    assert first.folder.parent == results / "x"
    assert merge_shards(shards, results) == Merged(first.folder, False)


def test_a_merge_neither_changes_nor_writes_to_a_shard_whose_journal_is_truncated(
    shards: list[Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with (shards[0] / JOURNAL).open("ab") as journal:
        journal.write(b'{"t_s": 1')
    before = {file: file.stat().st_mtime_ns for file in shards[0].rglob("*")}
    real_open = os.open

    def open_on_read_only_disk(path: os.PathLike[str], flags: int, *mode: int, **more: int) -> int:
        if Path(path).is_relative_to(shards[0]) and flags & (os.O_WRONLY | os.O_RDWR):
            raise OSError(errno.EROFS, os.strerror(errno.EROFS), str(path))
        return real_open(path, flags, *mode, **more)

    monkeypatch.setattr(os, "open", open_on_read_only_disk)
    assert merge_shards(shards, tmp_path / "other").is_new
    assert {file: file.stat().st_mtime_ns for file in shards[0].rglob("*")} == before


def test_a_damaged_merged_campaign_does_not_stop_a_merge(shards: list[Path], tmp_path: Path) -> None:
    damaged = tmp_path / "x" / "full-20260101-000000"
    (damaged / "shards").mkdir(parents=True)
    (damaged / JOURNAL).write_text("not an event\nnot an event\n")
    assert merged(shards).is_new


def test_the_unfinished_trials_of_a_killed_shard_are_left_to_run(tmp_path: Path) -> None:
    whole, killed = run_shard(tmp_path, "1/2"), run_shard(tmp_path, "2/2", node="n2", trials=4)
    before = {file: file.stat().st_mtime_ns for file in killed.rglob("*")}
    folder = merged([whole, killed]).folder
    assert verify(folder).findings == []
    left = find_resume_point(PLAN, tmp_path).comparison.runs
    ids = Shard(2, 2).ids(PLAN)
    assert list(left) == list(ids[4:])
    assert read_state(folder).clean
    assert {file: file.stat().st_mtime_ns for file in killed.rglob("*")} == before
    assert (killed / "in-progress" / ids[4] / "trace").exists()


def test_the_newest_shards_of_an_experiment_are_found_by_its_name(shards: list[Path], tmp_path: Path) -> None:
    assert latest_shards("x", tmp_path) == shards
    with pytest.raises(CampaignError, match=r"no shard; `fab run y --shard 1/2` makes the first of two"):
        latest_shards("y", tmp_path)


def test_a_shard_that_is_missing_is_named_and_force_merges_the_others(tmp_path: Path) -> None:
    given = [run_shard(tmp_path, "1/3"), run_shard(tmp_path, "3/3")]
    with pytest.raises(CampaignError, match=r"shard 2/3 is missing among 1/3, 3/3; name all shards, or use"):
        merged(given)
    merged(given, force=True)
    left = find_resume_point(PLAN, tmp_path).comparison.runs
    assert list(left) == list(Shard(3, 2).ids(PLAN))


def same_shard_twice(shards: list[Path]) -> None:
    copy = shards[1].with_name(f"{shards[1].name}-copy")
    shutil.copytree(shards[1], copy)
    shards.append(copy)


def whole_campaign(shards: list[Path]) -> None:
    shards.append(begin_campaign(PLAN, shards[0].parent.parent, {}, silent))


def other_division(shards: list[Path]) -> None:
    shards[1] = run_shard(shards[0].parent.parent, "2/4")


def other_plan(shards: list[Path]) -> None:
    plan = PLAN.model_copy(update={"seed": 2})
    shutil.rmtree(shards[1])
    shards[1] = run_shard(shards[0].parent.parent, "2/2", plan=plan)


def other_version(shards: list[Path]) -> None:
    shutil.rmtree(shards[1])
    shards[1] = run_shard(shards[0].parent.parent, "2/2", samovar="2.0")


def other_kernel(shards: list[Path]) -> None:
    file = shards[1] / "provenance.json"
    write_json(file, {**json.loads(file.read_bytes()), "lab": {**LAB, "release": "6.2.0"}})


def write_kernel(folder: Path, kernel: str) -> None:
    file = folder / "provenance.json"
    write_json(file, {**json.loads(file.read_bytes()), "hosts": {"src": {"kernel": kernel}}})


def other_kernel_of_a_host(shards: list[Path]) -> None:
    write_kernel(shards[0], "Linux 6.1")
    write_kernel(shards[1], "Linux 6.2")


def kernel_changed(shards: list[Path]) -> None:
    for folder in shards:
        write_kernel(folder, "Linux 6.2")
    change = {"kernel_before": "Linux 6.1", "kernel_now": "Linux 6.2", "completed": 1}
    with Journal(shards[0] / JOURNAL) as journal:
        journal.append("kernel-changed", 9.0, host="src", **change)


def samovar_upgraded(shards: list[Path]) -> None:
    with Journal(shards[0] / JOURNAL) as journal:
        journal.append("campaign-resumed", 9.0, trials=12, node="n1", node_kernel="6.1", samovar="2.0")
        id_ = next(shards[0].glob("trials/*/")).name
        journal.append("trial-started", 9.1, id=id_, attempt=9)
        end = {"outcome": "completed", "verdict": "valid", "reasons": []}
        journal.append("trial-finished", 9.2, id=id_, overhead_s=1.0, **end)


def changed_sums(shards: list[Path]) -> None:
    with next(shards[0].glob("trials/*/SHA256SUMS")).open("a") as file:
        file.write("\n")


def truncated_trace(shards: list[Path]) -> None:
    os.truncate(next(shards[0].glob("trials/*/trace")), 50)


def trace_is_a_link(shards: list[Path]) -> None:
    trace = next(shards[0].glob("trials/*/trace"))
    trace.unlink()
    trace.symlink_to("/etc/hostname")


def removed_trial(shards: list[Path]) -> None:
    shutil.rmtree(next(shards[0].glob("trials/*/")))


def changed_journal(shards: list[Path]) -> None:
    file = shards[0] / JOURNAL
    file.write_bytes(file.read_bytes().replace(b'"attempt": 2', b'"attempt": 3'))


def removed_journal(shards: list[Path]) -> None:
    (shards[0] / JOURNAL).unlink()


def archived_traces(shards: list[Path]) -> None:
    (shards[0] / ARCHIVE).touch()


UNMERGEABLE: list[tuple[Callable[[list[Path]], None], str]] = [
    (same_shard_twice, r"-copy: shard 2/2 was run twice, also in .*; name only one of the two"),
    (whole_campaign, r"not a shard; must be a campaign that `fab run x --shard 1/2` made"),
    (other_division, r"shard 2/4, but .* is shard 1/2; must be shards of one division, such as 1/2 and 2/2"),
    (other_plan, r"its plan differs from the plan of .*; must be shards of one plan"),
    (other_version, r"versions differ: samovar: 1.0 in shard 1/2, 2.0 in shard 2/2; must be equal, or use"),
    (other_kernel, r"kernel of lab lab: uml 6.1.1 in shard 1/2, uml 6.2.0 in shard 2/2"),
    (
        other_kernel_of_a_host,
        r"kernel of src at lab: Linux 6.1 in shard 1/2, Linux 6.2 in shard 2/2; must be",
    ),
    (kernel_changed, r"src at lab: Linux 6.1, then Linux 6.2 in shard 1/2, Linux 6.2 in shard 2/2"),
    (samovar_upgraded, r"samovar: 1.0 and 2.0 in shard 1/2, 1.0 in shard 2/2"),
    (
        changed_sums,
        r"SHA256SUMS: changed since it was written; not merged; `fab verify .*` lists all changes",
    ),
    (truncated_trace, r"trials/.*/trace: changed since it was written; not merged"),
    (trace_is_a_link, r"trials/.*/trace: is no longer a plain file; not merged"),
    (removed_trial, r"trials/.*/SHA256SUMS: missing; not merged"),
    (changed_journal, r"journal.jsonl:\d+: the lines before it have changed"),
    (removed_journal, r"journal.jsonl is missing; must be a campaign that has started"),
    (archived_traces, r"its traces are archived; `fab archive .* --restore` restores them"),
]


@pytest.mark.parametrize(("spoil", "message"), UNMERGEABLE, ids=lambda one: getattr(one, "__name__", ""))
def test_shards_that_cannot_be_merged_are_refused_with_the_reason_and_not_changed(
    shards: list[Path], spoil: Callable[[list[Path]], None], message: str
) -> None:
    spoil(shards)
    home = shards[0].parent
    before = {file: file.stat().st_mtime_ns for file in home.rglob("*") if file.is_file()}
    with pytest.raises(CampaignError, match=message):
        merged(shards)
    assert {file: file.stat().st_mtime_ns for file in home.rglob("*") if file.is_file()} == before


@pytest.mark.parametrize("spoil", [other_version, other_kernel])
def test_force_merges_shards_of_different_versions(
    shards: list[Path], spoil: Callable[[list[Path]], None]
) -> None:
    spoil(shards)
    folder = merged(shards, force=True).folder
    assert summarise(folder, PLAN, read_state(folder), PLAN.ids).complete


def test_a_shard_that_is_running_is_not_merged(shards: list[Path]) -> None:
    with (
        Journal(shards[1] / JOURNAL),
        pytest.raises(CampaignError, match=r"another controller is running this campaign"),
    ):
        merged(shards)
