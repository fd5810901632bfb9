"""Run a campaign, cause one fault, check the hosts, run the same command again, and check the campaign."""

from __future__ import annotations

from dataclasses import dataclass

from samovar.campaign.journal import fold
from tests.faults import judge
from tests.faults.fault import Fault
from tests.faults.hosts import WAIT_S, wait_for
from tests.faults.moment import Moment
from tests.faults.on_controller import CONTROLLER_FAULTS
from tests.faults.on_files import FILE_FAULTS
from tests.faults.on_links import LINK_FAULTS
from tests.faults.on_programs import PROGRAM_FAULTS
from tests.faults.scene import Bench, CommandResult, Scene

FAULTS: tuple[Fault, ...] = (*CONTROLLER_FAULTS, *LINK_FAULTS, *PROGRAM_FAULTS, *FILE_FAULTS)
TRIALS = 3
"""Most faults happen in the second of three trials: the first is complete by then, and the third follows."""


@dataclass(frozen=True)
class Outcome:
    """The result of a fault."""

    trials: int
    ended: str
    again: int

    def __str__(self) -> str:
        """Return the result as a line of text."""
        rerun = f", {self.again} run again" if self.again else ""
        return f"{self.trials} trials, struck one {self.ended}{rerun}, 0 lost"


def survive(fault: Fault, bench: Bench) -> Outcome:
    """Cause a fault in a campaign, check that no data are lost, and return the outcome. Fails with the violated conditions."""
    scene = Scene(bench, fault.name)
    bench.configure(fault.retries)
    bench.define(fault.name, TRIALS, fault.more)
    try:
        fault.prepare(scene)
        scene.start(*(Moment(fault.trial, phase) for phase in (fault.phase, *fault.then)))
        scene.catch()
        return _survive(fault, scene)
    finally:
        scene.abandon()


def _survive(fault: Fault, scene: Scene) -> Outcome:
    victim = scene.victim
    try:
        fault.strike(scene)
        result = scene.end()
    except BaseException:
        fault.mend(scene)
        raise
    _check_result(result, fault)
    ended = judge.endings(scene.journal(), victim)[0]
    # A virtual machine cannot be inspected while its link is cut, so the fault is undone first; by then, the controller has ended.
    mended_first = fault.mended_first or scene.bench.kernel == "vm"
    if not mended_first:
        await_hosts(scene, fault.may_stay)
    fault.mend(scene)
    if mended_first:
        await_hosts(scene, fault.may_stay)
    before = judge.complete_trials(scene.campaign)
    assert ended in fault.ends, (
        f"the struck trial ended {ended}, not {' or '.join(fault.ends)}; {result.text}"
    )
    assert not [*judge.damaged_files(before)], [*judge.damaged_files(before)]
    result = scene.again()
    assert result.code == 0, f"the same command ended with {result.code}: {result.text}"
    return _judge(scene, victim, before, ended)


def _check_result(result: CommandResult, fault: Fault) -> None:
    assert result.code in fault.codes, f"the controller ended with {result.code}: {result.text}"
    assert "Traceback (most" not in result.text, result.text


def await_hosts(scene: Scene, may_stay: tuple[str, ...] = ()) -> None:
    """Wait until every host has restored itself, except for files that may stay."""
    left: list[str] = []

    def restored() -> bool:
        left[:] = scene.lab.differences(may_stay)
        return not left

    try:
        wait_for("the restoration of the hosts", restored, WAIT_S)
    except AssertionError as error:
        raise AssertionError(f"left on hosts: {'; '.join(left)}") from error


def _judge(scene: Scene, victim: str, before: dict[str, judge.CompleteTrial], ended: str) -> Outcome:
    after = judge.complete_trials(scene.campaign)
    assert not [*judge.lost_trials(before, after)]
    assert not [*judge.damaged_files(after)]
    assert len(after) == TRIALS and all(trial.counts for trial in after.values()), sorted(after)
    journal = scene.journal()
    assert not [*judge.inconsistencies(journal, scene.campaign)]
    await_hosts(scene)
    attempts = sum(trial.attempts for trial in fold(journal).trials.values())
    return Outcome(TRIALS, ended, attempts - TRIALS)
