"""Faults of the controller: it is killed or interrupted, or a second controller starts."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator

from tests.faults.fault import Fault, Strike
from tests.faults.hosts import LEASE, UNCOLLECTED
from tests.faults.scene import END_S, Scene

KILLED = -signal.SIGKILL
INTERRUPTED = 130


def killed_in(phase: str) -> Strike:
    """Kill the controller in the middle of a phase."""

    def strike(scene: Scene) -> None:
        scene.into_phase(phase)
        scene.kill()

    return strike


def killed_in_traffic(scene: Scene) -> None:
    """Kill the controller while data is sent."""
    scene.into_traffic()
    scene.kill()


def killed_at_once(scene: Scene) -> None:
    """Kill the controller while it is stopped."""
    scene.kill()


def killed_in_commit(scene: Scene) -> None:
    """Kill the controller after the trial was moved to trials/, before or while the journal records it."""
    place = scene.campaign / "trials" / scene.victim
    scene.let_go()
    end_s = time.monotonic() + END_S
    while not place.exists():
        assert time.monotonic() < end_s, "the trial was not moved to trials/"
    os.kill(scene.controller.pid, signal.SIGKILL)


def signalled(number: signal.Signals) -> Strike:
    """Send the controller a signal while data is sent."""

    def strike(scene: Scene) -> None:
        scene.into_traffic()
        os.kill(scene.controller.pid, number)

    return strike


def interrupted_in(phase: str) -> Strike:
    """Press Ctrl-C in the middle of a phase."""

    def strike(scene: Scene) -> None:
        scene.into_phase(phase)
        os.kill(scene.controller.pid, signal.SIGINT)

    return strike


def interrupted_twice(scene: Scene) -> None:
    """Press Ctrl-C while data is sent, and again while the controller ends the trial."""
    scene.into_traffic()
    os.kill(scene.controller.pid, signal.SIGINT)
    scene.catch()
    os.kill(scene.controller.pid, signal.SIGINT)
    scene.let_go()


def second_controller(scene: Scene) -> None:
    """Run the same command while the first controller runs it; it must be refused."""
    _refused(scene, scene.name)


def second_campaign(scene: Scene) -> None:
    """Run another campaign on the hosts while the first controller uses them; it must be refused."""
    other = f"{scene.name}-other"
    scene.bench.define(other, 1)
    _refused(scene, other)


def _refused(scene: Scene, name: str) -> None:
    other = scene.command(name)
    try:
        said, _ = other.communicate(timeout=END_S)
    finally:
        other.kill()
    scene.let_go()
    assert other.returncode == 1, f"the second controller ended with {other.returncode}: {said}"
    assert "Traceback (most" not in said, said


def _killed() -> Iterator[Fault]:
    phases = ("read", "guard", "set", "arm", "clocks", "restore", "stop", "collect", "judge")
    for phase in phases:
        # A trial that was complete on disk when its controller was killed counts: the next run adds it to the journal.
        ends = ("cut", "valid") if phase == "judge" else ("cut",)
        # Files that were not fetched stay on their host, even if the controller loses its connection, until the same command runs again.
        may_stay = (LEASE, UNCOLLECTED) if phase == "collect" else (LEASE,)
        strike, short = killed_in(phase), phase == "collect"
        yield Fault(f"sigkill-in-{phase}", phase, strike, ends, (KILLED,), may_stay=may_stay, short=short)
    yield Fault("sigkill-in-traffic", "traffic", killed_in_traffic, ("cut",), (KILLED,))
    yield Fault("sigkill-in-commit", "judge", killed_in_commit, ("cut", "valid"), (KILLED,))
    yield Fault(
        "sigkill-in-calibrate",
        "calibrate",
        killed_in("calibrate"),
        ("cut",),
        (KILLED,),
        kernel="uml",
        more="calibrate: on",
        trial=1,  # a path is measured for the first trial that uses it
    )


CONTROLLER_FAULTS = (
    *_killed(),
    Fault(
        "sigterm-in-traffic", "traffic", signalled(signal.SIGTERM), ("cut", "interrupted"), (-15, 143, 130)
    ),
    Fault("sighup-in-traffic", "traffic", signalled(signal.SIGHUP), ("cut", "interrupted"), (-1, 129, 130)),
    Fault("ctrl-c-in-arm", "arm", interrupted_in("arm"), ("interrupted",), (INTERRUPTED,)),
    Fault("ctrl-c-in-traffic", "traffic", signalled(signal.SIGINT), ("interrupted",), (INTERRUPTED,)),
    Fault(
        "ctrl-c-in-collect", "collect", interrupted_in("collect"), ("interrupted", "valid"), (INTERRUPTED,)
    ),
    Fault(
        "ctrl-c-twice", "traffic", interrupted_twice, ("interrupted", "cut"), (INTERRUPTED,), then=("clear",)
    ),
    Fault("second-controller", "traffic", second_controller, ("valid",), (0,)),
    Fault("second-campaign", "traffic", second_campaign, ("valid",), (0,)),
)
