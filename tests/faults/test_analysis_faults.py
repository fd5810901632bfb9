"""Faults of the analysis and of the journal, which need a campaign but no hosts."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from samovar.campaign.journal import JOURNAL, Journal, fold, read_journal
from tests.faults import judge
from tests.faults.moment import Moment
from tests.faults.scene import Bench, Scene, bench
from tests.lab.campaigns import ROOT, SAMOVAR

pytestmark = [pytest.mark.lab, pytest.mark.proof]
Record = Callable[[str, object], None]
START_AND_WAIT = '@REAL@ "$@" & r=$!; until grep -q samovar.so /proc/$r/maps || ! grep -q . /proc/$r/maps; do sleep 0.01; done'
"""Starts R, and waits until it has loaded its libraries or has ended."""
TROUBLES = {
    "rscript-crashes": f"{START_AND_WAIT}; kill -s SEGV $r; wait $r",
    "rscript-killed": f"{START_AND_WAIT}; kill -s KILL $r; wait $r",
    "rscript-out-of-memory": 'ulimit -v 120000; exec @REAL@ "$@"',
    "rscript-ends-early": "exit 0",
}
"""Maps each fault to the script that replaces Rscript."""
MISSING, TORN = "rscript-missing", "journal-cut-at-every-byte"
ALL = (*TROUBLES, MISSING, TORN)


@pytest.fixture(scope="module")
def native(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bench]:
    """A checkout with its lab."""
    with bench("native", tmp_path_factory.mktemp("bench")) as made:
        made.configure(retries=0)
        yield made


@pytest.fixture(scope="module")
def whole(native: Bench) -> Scene:
    """A campaign without a fault."""
    scene = Scene(native, "analysed")
    native.define(scene.name, 2)
    said = scene.again()
    assert said.code == 0, said.text
    return scene


def _analyse(scene: Scene, path: str) -> subprocess.CompletedProcess[str]:
    """Run `fab analyse` with this PATH."""
    return subprocess.run(
        [*SAMOVAR, str(scene.bench.checkout.folder), "analyse", scene.name],
        cwd=ROOT,
        env={**os.environ, "PATH": path},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )


def _survives(scene: Scene, path: str) -> str:
    """Check that an analysis with this PATH fails and changes no trial, and that the next one succeeds; return a summary."""
    before = judge.complete_trials(scene.campaign)
    if (tables := scene.campaign / "tables").is_dir():
        shutil.rmtree(tables)  # otherwise the analysis has little to do, and may end before it is killed
    failed = _analyse(scene, path)
    assert failed.returncode == 1, failed.stdout + failed.stderr
    assert "Traceback (most" not in failed.stdout + failed.stderr, failed.stderr
    assert judge.complete_trials(scene.campaign) == before
    again = _analyse(scene, os.environ["PATH"])
    assert again.returncode == 0, again.stdout + again.stderr
    assert (scene.campaign / "tables" / "metrics.csv").stat().st_size
    assert judge.complete_trials(scene.campaign) == before
    return f"{len(before)} trials, 0 lost, tables made by the same command"


@pytest.mark.parametrize("name", TROUBLES)
def test_a_campaign_is_unchanged_after_a_failed_analysis(
    name: str, whole: Scene, tmp_path: Path, record_property: Record
) -> None:
    record_property("fault", name)
    real = shutil.which("Rscript")
    assert real
    (tmp_path / "Rscript").write_text(f"#!/bin/sh\n{TROUBLES[name].replace('@REAL@', real)}\n")
    (tmp_path / "Rscript").chmod(0o755)
    record_property("outcome", _survives(whole, f"{tmp_path}:{os.environ['PATH']}"))


def test_a_campaign_is_unchanged_after_an_analysis_without_r(
    whole: Scene, tmp_path: Path, record_property: Record
) -> None:
    record_property("fault", MISSING)
    record_property("outcome", _survives(whole, str(tmp_path)))


def test_a_journal_may_end_at_any_byte_of_its_last_record(native: Bench, record_property: Record) -> None:
    record_property("fault", TORN)
    scene = Scene(native, "torn")
    native.define(scene.name, 2)
    try:
        scene.start(Moment(2, "traffic"))
        scene.catch()
        scene.kill()
        scene.end()
        cuts = _cut_everywhere(scene.campaign / JOURNAL)
        before = judge.complete_trials(scene.campaign)
        _cut(scene.campaign / JOURNAL, cuts // 2)
        said = scene.again()
    finally:
        scene.abandon()
    assert said.code == 0, said.text
    after = judge.complete_trials(scene.campaign)
    assert len(after) == 2
    assert not [
        *judge.lost_trials(before, after),
        *judge.damaged_files(after),
        *judge.inconsistencies(scene.journal(), scene.campaign),
    ]
    assert list(scene.campaign.glob("journal.torn-*")), "the torn event is kept"
    record_property("outcome", f"{cuts} places, 2 trials, 0 lost")


def _cut(journal: Path, left: int) -> None:
    """Cut the journal's last record to this number of bytes."""
    whole = journal.read_bytes()
    start = whole.rindex(b"\n", 0, -1) + 1
    journal.write_bytes(whole[: start + left])


def _cut_everywhere(journal: Path) -> int:
    """Cut copies of a journal at every byte of the last record; return the number of copies.

    Check that the earlier records are read, and that an event can be appended.
    """
    whole = journal.read_bytes()
    known = read_journal(journal)
    size = len(whole) - whole.rindex(b"\n", 0, -1) - 1
    for left in range(size):
        copy = journal.with_name(f"cut-{left}.jsonl")
        copy.write_bytes(whole)
        _cut(copy, left)
        with Journal(copy) as opened:
            assert [*opened.entries] == known[:-1], f"after {left} bytes of the last record"
            opened.append("campaign-resumed", known[-1].t_s)
        assert fold(read_journal(copy)).controllers == 2, f"after {left} bytes of the last record"
        for file in journal.parent.glob(f"cut-{left}*"):
            file.unlink()
    return size
