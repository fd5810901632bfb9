"""`fab verify`: every later change of a campaign's folder is found, and nothing else is reported."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from samovar.campaign.availability import DiskReserve
from samovar.campaign.collection import commit_trial, digests, set_aside, sums_digest, verify
from samovar.campaign.collection.checksums import SUMS, names_in, read_sums, sha256_of, write_sums
from samovar.campaign.collection.verify import printable
from samovar.campaign.journal import JOURNAL, Journal
from samovar.errors import CampaignError
from samovar.events import Event

END = {"outcome": "completed", "verdict": "valid", "reasons": [], "overhead_s": 1.0}


def write(file: Path, content: bytes) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(content)


def trial_in_progress(folder: Path, id_: str) -> Path:
    """Make a trial in progress with the files that a run writes."""
    trial = folder / "in-progress" / id_
    trace = os.urandom(5000)
    write(trial / "traces" / "src-eth1.pcap.gz", trace)
    write(trial / "commands" / "001-src-set.sh", b"true\n")
    write(trial / "facts" / "src-before.json", b"{}\n")
    entry = {"path": "traces/src-eth1.pcap.gz", "sha256": hashlib.sha256(trace).hexdigest()}
    write(trial / "manifest.json", json.dumps({"files": [entry]}).encode())
    return trial


@pytest.fixture
def campaign(tmp_path: Path) -> Path:
    """A campaign with two trials, one of them at the second attempt, and a bundle."""
    folder = tmp_path / "results" / "x" / "full-1"
    for name in ("plan.json", "experiment.yaml", "testbed.yaml", "definition/base.yaml", "provenance.json"):
        write(folder / name, name.encode())
    with Journal(folder / JOURNAL) as journal:
        journal.append("campaign-started", 1.0, trials=2)
        journal.append("files-recorded", 1.0, files=digests(folder, "*.json", "*.yaml", "definition/*"))
        for number, (id_, attempt) in enumerate((("a", 1), ("b", 1), ("b", 2))):
            if attempt == 2:
                aside = set_aside(folder / "trials" / id_, folder / "set-aside")
                where = str(aside.relative_to(folder))
                journal.append("trial-set-aside", number, id=id_, folder=where, **sums_digest(aside))
            journal.append("trial-started", number, id=id_, attempt=attempt)
            there = commit_trial(trial_in_progress(folder, id_), folder / "trials")
            journal.append("trial-finished", number, id=id_, **END, **sums_digest(there))
        write(folder / "bundle" / "provenance" / JOURNAL, (folder / JOURNAL).read_bytes())
        journal.append("campaign-finished", 9.0, completed=2, failed=[])
    write(folder / "bundle" / "x.pdf", b"%PDF")
    write_sums(folder / "bundle")
    write(folder / "tables" / "metrics.csv", b"trial,metric\n")
    return folder


def findings(folder: Path) -> list[str]:
    return [str(finding) for finding in verify(folder).findings]


def test_an_unchanged_campaign_has_no_finding_and_all_its_files_with_checksums_are_read(
    campaign: Path,
) -> None:
    result = verify(campaign)
    assert (result.findings, result.notes) == ([], [])
    unread = {"tables/metrics.csv", JOURNAL, f"bundle/{SUMS}"}
    assert result.files == len(set(names_in(campaign)) - unread)


def test_sha256sum_accepts_the_checksums_of_a_trial_and_they_list_every_file(campaign: Path) -> None:
    trial = campaign / "trials" / "a"
    subprocess.run(["sha256sum", "--quiet", "--strict", "-c", SUMS], cwd=trial, check=True)
    listed = read_sums((trial / SUMS).read_bytes())
    assert set(listed) == set(names_in(trial)) - {SUMS}


def flip_a_bit(file: Path) -> None:
    data = bytearray(file.read_bytes())
    data[len(data) // 2] ^= 1
    file.write_bytes(data)


def remove_last_byte(file: Path) -> None:
    file.write_bytes(file.read_bytes()[:-1])


def replace_with_link(file: Path) -> None:
    same = file.parent / "elsewhere"
    while "results" in same.parts:
        same = same.parent.with_name("elsewhere")
    same.write_bytes(file.read_bytes())
    file.unlink()
    file.symlink_to(same)


def replace_with_pipe(file: Path) -> None:
    file.unlink()
    os.mkfifo(file)


CHANGES: list[tuple[Callable[[Path], None], str]] = [
    (flip_a_bit, "changed since it was written"),
    (remove_last_byte, "changed since it was written"),
    (Path.unlink, "missing"),
    (replace_with_link, "is no longer a plain file"),
    (replace_with_pipe, "is no longer a plain file"),
]


@pytest.mark.parametrize(("change", "message"), CHANGES, ids=lambda one: getattr(one, "__name__", ""))
def test_any_change_of_any_file_is_one_finding_that_names_it(
    campaign: Path, change: Callable[[Path], None], message: str
) -> None:
    passed_over = ("tables/", JOURNAL, f"bundle/{SUMS}")
    paths = [path for path in names_in(campaign) if not path.startswith(passed_over)]
    assert len(paths) > 20
    kept = campaign.with_name("kept")
    for path in paths:
        shutil.copy2(campaign / path, kept)
        change(campaign / path)
        result = findings(campaign)
        assert f"{path}: {message}" in result, path
        assert len(result) == 1 or path.endswith((SUMS, JOURNAL)), path
        (campaign / path).unlink(missing_ok=True)
        shutil.move(kept, campaign / path)
    assert findings(campaign) == []


def test_an_event_without_a_value_is_one_finding_among_others(campaign: Path) -> None:
    journal = campaign / JOURNAL
    journal.write_bytes(journal.read_bytes().replace(b'"id": "a", "attempt"', b'"ie": "a", "attempt"'))
    (campaign / "plan.json").unlink()
    result = findings(campaign)
    assert f"{JOURNAL}: line 3: trial-started: value missing or wrong: KeyError: 'id'" in result
    assert f"{JOURNAL}: line 4: the lines before it have changed since they were written" in result
    assert "plan.json: missing" in result


@pytest.mark.parametrize(
    "path",
    [
        "trials/a/traces/b.gz",
        "trials/a/new/x",
        "set-aside/b-1/x",
        "bundle/x",
        "note.txt",
        "definition/more.yaml",
    ],
)
def test_an_added_file_is_a_finding(campaign: Path, path: str) -> None:
    write(campaign / path, b"")
    assert findings(campaign) == [
        f"{path}: was added after the {'bundle was made' if path[:6] == 'bundle' else 'campaign was written'}"
    ]


def test_the_disk_reserve_of_a_running_campaign_and_exported_files_are_not_findings(campaign: Path) -> None:
    DiskReserve().hold(campaign)
    write(campaign / "export" / "metrics.csv", b"trial,metric\n")
    assert findings(campaign) == []


def test_a_trial_that_is_not_in_the_journal_is_a_finding(campaign: Path) -> None:
    shutil.copytree(campaign / "trials" / "a", campaign / "trials" / "c")
    assert findings(campaign) == ["trials/c: is not in the journal"]


def test_a_manifest_that_was_edited_together_with_its_checksum_is_a_finding(campaign: Path) -> None:
    """The journal has a checksum of each trial's list of checksums, and checksums of its own earlier lines."""
    trial = campaign / "trials" / "a"
    flip_a_bit(trial / "manifest.json")
    write_sums(trial)
    assert findings(campaign) == [f"trials/a/{SUMS}: changed since it was written"]
    text = (campaign / JOURNAL).read_text()
    old = next(line for line in text.splitlines() if '"id": "a"' in line and "sums_sha256" in line)
    new = old.replace(json.loads(old)["sums_sha256"], sha256_of(trial / SUMS))
    (campaign / JOURNAL).write_text(text.replace(old, new))
    result = findings(campaign)
    assert f"{JOURNAL}: line 6: the lines before it have changed since they were written" in result
    assert f"{JOURNAL}: lines have changed or are missing since they were copied to the bundle" in result


def test_a_list_of_checksums_that_leads_out_of_its_trial_is_not_followed(campaign: Path) -> None:
    line = f"{'0' * 64}  ../../../../../../etc/passwd\n{'0' * 64}  /etc/shadow\n"
    with (campaign / "trials" / "a" / SUMS).open("a") as file:
        file.write(line)
    result = findings(campaign)
    assert f"trials/a/{SUMS}: lists /etc/shadow, which is not below the folder" in result
    assert not any(one.startswith(("/etc", "trials/a/..")) for one in result)


def test_a_trial_whose_checksum_was_removed_from_the_journal_is_a_finding(campaign: Path) -> None:
    lines = [json.loads(line) for line in (campaign / JOURNAL).read_text().splitlines()]
    for one in lines:
        one.pop("sums_sha256", None)
    (campaign / JOURNAL).write_text("".join(json.dumps(one) + "\n" for one in lines))
    assert "trials/a: its checksum is missing in the journal" in findings(campaign)


def test_plan_and_definition_files_without_checksums_in_the_journal_are_noted_as_not_verified(
    campaign: Path,
) -> None:
    lines = (campaign / JOURNAL).read_text().splitlines(keepends=True)
    (campaign / JOURNAL).write_text("".join(line for line in lines if '"files-recorded"' not in line))
    assert verify(campaign).notes == [
        "not verified: plan and definition files, whose checksums the journal does not have"
    ]


def test_a_trial_whose_end_is_not_in_the_journal_is_compared_with_its_own_checksums(
    campaign: Path,
) -> None:
    with Journal(campaign / JOURNAL) as journal:
        journal.append("trial-started", 10.0, id="c", attempt=1)
    commit_trial(trial_in_progress(campaign, "c"), campaign / "trials")
    result = verify(campaign)
    assert result.findings == []
    assert result.notes == ["trials/c: not in the journal yet; compared only with its own checksums"]
    flip_a_bit(campaign / "trials" / "c" / "manifest.json")
    assert findings(campaign) == ["trials/c/manifest.json: changed since it was written"]


def test_an_incomplete_trial_that_is_set_aside_has_checksums(campaign: Path) -> None:
    half = campaign / "in-progress" / "c"
    write(half / "commands" / "001-src-read.sh", b"true\n")
    with Journal(campaign / JOURNAL) as journal:
        journal.append("trial-started", 10.0, id="c", attempt=1)
        aside = set_aside(half, campaign / "set-aside")
        journal.append("trial-set-aside", 11.0, id="c", folder="set-aside/c-1", **sums_digest(aside))
    assert findings(campaign) == []
    flip_a_bit(aside / "commands" / "001-src-read.sh")
    assert findings(campaign) == ["set-aside/c-1/commands/001-src-read.sh: changed since it was written"]


@pytest.mark.parametrize("name", ["a\\b", "a\rb", "ü", os.fsdecode(b"a\xff")])
def test_a_file_with_any_name_can_be_listed_and_its_name_is_printed_on_one_line(
    tmp_path: Path, name: str
) -> None:
    (tmp_path / name).write_bytes(b"x")
    write_sums(tmp_path)
    assert read_sums((tmp_path / SUMS).read_bytes()) == {name: hashlib.sha256(b"x").hexdigest()}
    subprocess.run(["sha256sum", "--quiet", "-c", SUMS], cwd=tmp_path, check=True)
    assert printable(name).isprintable()
    printable(name).encode()


def test_a_file_whose_name_has_a_line_break_cannot_be_listed(tmp_path: Path) -> None:
    (tmp_path / "a\nb").write_bytes(b"x")
    with pytest.raises(CampaignError, match="must be one line"):
        write_sums(tmp_path)


def test_control_characters_in_names_are_escaped(campaign: Path) -> None:
    write(campaign / "trials" / "a" / "\x1b]0;owned\x07", b"")
    assert findings(campaign) == [r"trials/a/\x1b]0;owned\x07: was added after the campaign was written"]


def test_progress_is_reported_in_bytes(campaign: Path) -> None:
    events: list[Event] = []
    result = verify(campaign, events.append)
    assert events
    assert all(event.values["of"] == result.size_bytes for event in events)


def test_a_folder_without_a_journal_is_refused(tmp_path: Path) -> None:
    with pytest.raises(CampaignError, match=r"journal\.jsonl is missing; use the folder of a campaign"):
        verify(tmp_path)
