"""Archive the traces of a campaign and restore them byte for byte; after an error, no file is removed."""

from __future__ import annotations

import hashlib
import io
import os
import shutil
import subprocess
import tarfile
from collections.abc import Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from samovar.campaign.collection import ARCHIVE, SUMS, archive_traces, restore_traces, sha256_of, verify
from samovar.campaign.collection.checksums import names_in
from samovar.campaign.folder import ResumePoint, read_plan, read_state
from samovar.campaign.journal import JOURNAL, Journal
from samovar.cli.controller import Controller
from samovar.cli.project import RunRequest
from samovar.errors import CampaignError
from samovar.events import Event, silent
from samovar.plan import Pick, compare
from tests.golden.campaign import unpack


@pytest.fixture
def campaign(tmp_path: Path) -> Path:
    """A recorded campaign of six trials, and one attempt that was set aside."""
    folder = unpack(tmp_path / "recorded")
    shutil.rmtree(folder / "bundle")  # its PDF files are not part of the recording
    return folder


def checksums(folder: Path) -> Mapping[str, str]:
    return {name: sha256_of(folder / name) for name in names_in(folder)}


def traces(folder: Path) -> list[str]:
    return [name for name in names_in(folder) if "/traces/" in name]


def test_an_archive_is_smaller_and_restores_every_file(campaign: Path) -> None:
    before = checksums(campaign)
    done = archive_traces(campaign, silent)
    assert done.traces == 28
    assert done.before_bytes > done.after_bytes == (campaign / ARCHIVE).stat().st_size
    assert traces(campaign) == []
    archived = verify(campaign)
    assert not archived.findings
    assert any(note.startswith("not verified: 28 traces in traces.tar.zst") for note in archived.notes)
    assert restore_traces(campaign) == 28
    assert checksums(campaign) == before
    assert [one.name for one in campaign.parent.iterdir()] == [campaign.name]


def test_a_missing_trace_that_is_not_in_an_archive_is_reported(campaign: Path) -> None:
    archive_traces(campaign, silent)
    (campaign / ARCHIVE).rename(campaign.parent / "elsewhere")
    assert len(verify(campaign).findings) == 28


def test_a_trace_that_gzip_would_compress_to_other_bytes_is_archived_in_compressed_form(
    campaign: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = checksums(campaign)
    monkeypatch.setattr("samovar.campaign.collection.archive.PACK", ("gzip", "-9", "-n"))
    archive_traces(campaign, silent)
    monkeypatch.undo()
    restore_traces(campaign)
    assert checksums(campaign) == before


def test_traces_are_not_restored_if_gzip_compresses_them_to_other_bytes(
    campaign: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    archive_traces(campaign, silent)
    monkeypatch.setattr("samovar.campaign.collection.archive.PACK", ("gzip", "-9", "-n"))
    with pytest.raises(CampaignError, match=r"differs from its checksum; .* compresses in another way"):
        restore_traces(campaign)
    assert (campaign / ARCHIVE).exists()


@pytest.mark.parametrize("at", [0, 1000, -1])
def test_a_damaged_archive_is_reported_and_not_removed(campaign: Path, at: int) -> None:
    archive_traces(campaign, silent)
    data = bytearray((campaign / ARCHIVE).read_bytes())
    data[at] ^= 1
    (campaign / ARCHIVE).write_bytes(data)
    with pytest.raises(CampaignError, match=r"traces.tar.zst: "):
        restore_traces(campaign)
    assert (campaign / ARCHIVE).exists()


def add_to_archive(archive: Path, member: tarfile.TarInfo, data: bytes) -> None:
    unpacked = subprocess.run(["zstd", "-dc", archive], capture_output=True, check=True).stdout
    out = io.BytesIO()
    with tarfile.open(fileobj=io.BytesIO(unpacked)) as old, tarfile.open(fileobj=out, mode="w") as new:
        for one in old:
            new.addfile(one, old.extractfile(one))
        member.size = len(data)
        new.addfile(member, io.BytesIO(data))
    subprocess.run(["zstd", "-qf", "-o", archive], input=out.getvalue(), check=True)


@pytest.mark.parametrize("path", ["traces/../../../../profile", "traces/link/profile"])
def test_a_file_in_an_archive_whose_path_leads_out_of_its_trial_is_not_written(
    campaign: Path, path: str
) -> None:
    archive_traces(campaign, silent)
    trial, data = next(campaign.glob("trials/*/")), b"exec evil"
    with (trial / SUMS).open("a") as sums:
        sums.write(f"{hashlib.sha256(data).hexdigest()}  {path}\n")
    (trial / "traces" / "link").symlink_to(campaign.parent)
    add_to_archive(campaign / ARCHIVE, tarfile.TarInfo(f"trials/{trial.name}/{path}"), data)
    with pytest.raises(CampaignError, match=r"SHA256SUMS, leads out of its trial; nothing was done"):
        restore_traces(campaign)
    assert [one.name for one in campaign.parent.iterdir()] == [campaign.name]


@pytest.mark.parametrize("end", [b"x\n", b"0" * 64 + b"  traces/a\0\n"])
def test_a_damaged_line_in_a_list_of_checksums_is_reported_by_number(campaign: Path, end: bytes) -> None:
    sums = next(campaign.glob(f"trials/*/{SUMS}"))
    sums.write_bytes(sums.read_bytes() + end)
    lines = sums.read_bytes().count(b"\n")
    assert any(f"line {lines} is not a checksum" in str(one) for one in verify(campaign).findings)
    for act in (lambda: archive_traces(campaign, silent), lambda: restore_traces(campaign)):
        with pytest.raises(CampaignError, match=f"SHA256SUMS: line {lines} is not a checksum"):
            act()


def test_a_running_campaign_or_one_with_a_changed_trace_is_not_archived(campaign: Path) -> None:
    before = traces(campaign)
    with Journal(campaign / JOURNAL), pytest.raises(CampaignError):
        archive_traces(campaign, silent)
    changed = campaign / before[0]
    os.truncate(changed, 100)
    with pytest.raises(CampaignError, match="changed since it was written; not archived"):
        archive_traces(campaign, silent)
    assert traces(campaign) == before
    with pytest.raises(CampaignError, match="is not archived"):
        restore_traces(campaign)


def test_the_error_without_zstd_names_the_package_to_install(
    campaign: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    with pytest.raises(CampaignError, match=r"zstd is not installed; `apt-get install zstd`"):
        archive_traces(campaign, silent)


def test_a_campaign_is_not_archived_twice(campaign: Path) -> None:
    archive_traces(campaign, silent)
    with pytest.raises(CampaignError, match=r"is archived already; `fab archive --restore`"):
        archive_traces(campaign, silent)


def test_an_archived_campaign_is_not_resumed(campaign: Path, tmp_path: Path) -> None:
    archive_traces(campaign, silent)
    plan = read_plan(campaign)
    planned: Any = SimpleNamespace(plan=plan, by_testbed=())
    resume = ResumePoint(campaign, compare(plan, None, {}), read_state(campaign), Pick().of(plan))
    with pytest.raises(CampaignError, match=r"its traces are archived; `fab archive .* --restore` restores"):
        Controller(tmp_path).run(RunRequest(planned, resume), silent)


def test_a_campaign_cannot_run_while_its_traces_are_being_archived(campaign: Path) -> None:
    errors: list[CampaignError] = []

    def run_once(event: Event) -> None:
        if not errors:
            with pytest.raises(CampaignError, match="another controller is running this campaign") as caught:
                Journal(campaign / JOURNAL)
            errors.append(caught.value)

    archive_traces(campaign, run_once)
    assert errors
