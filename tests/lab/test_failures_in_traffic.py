"""Failures that end a trial at once: a dead logger, a full disk, a stepped clock; on user-mode Linux, whose clock can be set."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest

from samovar import lab
from samovar.cli.project import Request
from samovar.events import silent
from tests.lab.campaigns import ROOT, make_checkout
from tests.lab.test_verdict import TEXT, FinishedTrial, Judge

LONG_S = 60
FILL = """\
left=$(df -Pk /tmp | { read -r _; read -r _ _ _ left _; echo "$left"; })
fallocate -l "$((left - 150 * 1024))k" /tmp/fill
"""


@pytest.fixture(scope="module")
def judge(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Judge]:
    checkout = make_checkout(tmp_path_factory.mktemp("checkout"))
    (checkout.folder / "hosts").unlink()
    (checkout.folder / "hosts").mkdir()
    testbed = (ROOT / "hosts" / "lab.yaml").read_text().replace("kernel: auto", "kernel: uml")
    (checkout.folder / "hosts" / "lab.yaml").write_text(testbed)
    text = TEXT.replace("duration: 3s", f"duration: {LONG_S}s").replace("late: 60s", "late: 60s, disk: 200MB")
    checkout.write("judged", text)
    study, folder = (
        checkout.controller.project.plan(Request("judged")),
        checkout.controller.connections.lab_folder("lab"),
    )
    lab.up(study.testbed, folder, lab.KernelNeeds(frozenset({"cubic"}), frozenset({"tbf"})), silent)
    try:
        with checkout.controller.connections.sessions(study.testbed) as sessions:
            yield Judge(checkout, study, sessions)
    finally:
        lab.down(folder, silent)


def _ended_at_once(ran: FinishedTrial) -> bool:
    seconds = {phase["phase"]: phase["seconds"] for phase in ran.manifest["phases"]}
    return seconds["traffic"] < LONG_S / 2 and ran.result.verdict == "invalid"


def test_a_killed_logger_on_a_host_without_a_flow_ends_the_trial_at_once(judge: Judge) -> None:
    ran = judge.run(("traffic", "rtr", "pkill -KILL -f '[r]tr-queue.ready'"))
    assert _ended_at_once(ran)
    observed = ran.failed["loggers at rtr"]
    assert re.match(r"rtr-queue ended by itself after \d+\.\d s with exit code \d+", observed)


@pytest.mark.proof
def test_a_disk_that_becomes_full_ends_the_trial_at_once(judge: Judge) -> None:
    try:
        ran = judge.run(("traffic", "dst", FILL))
    finally:
        judge.on_host("dst", "rm -f /tmp/fill")
    assert _ended_at_once(ran)
    assert re.match(r"1\d\dMB are free in /tmp/samovar/", ran.failed["disk during the traffic at dst"])


@pytest.mark.proof
def test_a_clock_that_steps_ends_the_trial_at_once(judge: Judge) -> None:
    step = "until [ -e /tmp/samovar/*/*/bulk-server.pid ]; do sleep 0.2; done; sleep 8; date -s '+7 seconds'"
    try:
        ran = judge.run(("traffic", "dst", step))
    finally:
        judge.on_host("dst", "date -s '-7 seconds'")
    assert _ended_at_once(ran)
    observed = " ".join(
        text for name, text in ran.failed.items() if name.startswith("clock during the traffic")
    )
    steps_ms = [int(step) for step in re.findall(r"stepped by (\d+) ms", observed)]
    # The reported step is the smallest that explains two readings, each of which takes part of a second on a busy machine.
    assert 5000 < max(steps_ms, default=0) < 7100, ran.failed
