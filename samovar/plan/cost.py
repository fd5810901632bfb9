"""Estimate what a plan costs: trials, hours, bytes on the hosts and on the controller."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import astuple, dataclass, field, replace
from statistics import fmean

from samovar.plan.plan import Plan
from samovar.plan.trials import TRAFFIC_AND_RECORDING
from samovar.plan.volume import host_bytes, stored_bytes


def _source(measured: int) -> str:
    if measured:
        return f"median of {measured} measured on this testbed"
    return "assumed, none measured on this testbed yet"


@dataclass(frozen=True)
class Overhead:
    """The time of a trial beyond its traffic: the median of those that were measured, or an assumption."""

    seconds: float = 2.5
    measured: int = 0

    def __str__(self) -> str:
        """Return the time and its source."""
        return f"{self.seconds:.1f} s a trial ({_source(self.measured)})"


@dataclass(frozen=True)
class StepTime:
    """The time of a step that some trials need: the median of those that were measured, or an assumption."""

    seconds: float
    measured: int = 0

    def __str__(self) -> str:
        """Return the time and its source."""
        return f"{self.seconds:.0f} s each ({_source(self.measured)})"


ASSUMED_BOOT = StepTime(120.0)
"""A reboot, until the host answers."""
ASSUMED_PATH = StepTime(15.0)
"""The calibration of a path in both directions, before it is used."""


@dataclass(frozen=True)
class Repeats:
    """The attempts at trials besides the one that counts, and the seconds of both kinds."""

    attempts: int = 0
    trials: int = 0
    lost_s: float = 0.0
    counted_s: float = 0.0

    @property
    def share(self) -> float:
        """The time of attempts that did not count as a share of the time of those that did."""
        return self.lost_s / self.counted_s if self.counted_s else 0.0

    def __str__(self) -> str:
        """Return the share and its source."""
        attempts = self.trials + self.attempts
        return f"{self.share:.0%} more: {self.trials} trials took {attempts} attempts before"


@dataclass(frozen=True)
class MeasuredTimes:
    """The times that earlier campaigns on a testbed have measured."""

    overhead: Overhead = field(default_factory=Overhead)
    boot: StepTime = ASSUMED_BOOT
    path: StepTime = ASSUMED_PATH
    repeats: Repeats = field(default_factory=Repeats)


@dataclass(frozen=True)
class Cost:
    """The estimate of a plan, or of the trials of it that are left.

    `host_bytes` is, by host, what the largest trial leaves there until it is collected; `controller_bytes` is
    what all trials leave here, compressed. `boots` is how often trials wait for hosts that reboot; if only
    some trials are left, it is their share. `testbeds` that run trials in parallel reboot each on its own.
    `paths` is the number of paths that are calibrated before use.
    """

    trials: int
    traffic_s: float
    overhead: Overhead = field(default_factory=Overhead)
    host_bytes: Mapping[str, int] = field(default_factory=dict)
    controller_bytes: int = 0
    boots: int = 0
    boot: StepTime = ASSUMED_BOOT
    testbeds: int = 1
    paths: int = 0
    path: StepTime = ASSUMED_PATH
    repeats: Repeats = field(default_factory=Repeats)

    @property
    def repeats_s(self) -> float:
        """The time of repeated trials in seconds, if as many repeat as before."""
        return self.repeats.share * (self.traffic_s + self.overhead_s)

    @property
    def reboot_s(self) -> float:
        """The time of all reboots, in seconds."""
        return self.boots * self.boot.seconds

    @property
    def path_s(self) -> float:
        """The time of all calibrations of paths, in seconds."""
        return self.paths * self.path.seconds

    @property
    def overhead_s(self) -> float:
        """The time of all trials beyond their traffic, in seconds."""
        return self.overhead.seconds * self.trials

    @property
    def total_s(self) -> float:
        """The time of the whole campaign, in seconds."""
        work_s = self.traffic_s + self.overhead_s + self.repeats_s
        return parallel_s(work_s, self.trials, self.testbeds) + self.reboot_s + self.path_s

    @property
    def hours(self) -> float:
        """The time of the whole campaign, in hours."""
        return self.total_s / 3600


def parallel_s(work_s: float, trials: int, testbeds: int, longest_s: float = 0.0) -> float:
    """Return the seconds that work takes on several testbeds, each of which runs one trial at a time."""
    return max(longest_s, work_s / max(1, min(testbeds, trials)))


def shared_cost(costs: Sequence[Cost]) -> Cost:
    """Return the cost of trials that testbeds share, from the cost of all trials on each of them."""
    seconds = fmean(cost.overhead.seconds for cost in costs)
    overhead = Overhead(seconds, sum(cost.overhead.measured for cost in costs))
    repeats = Repeats(
        *(sum(column) for column in zip(*(astuple(cost.repeats) for cost in costs), strict=True))
    )
    return replace(costs[0], overhead=overhead, repeats=repeats, testbeds=len(costs))


def estimate_cost(
    plan: Plan,
    times: MeasuredTimes | None = None,
    only: Collection[str] | None = None,
    calibrates: bool = False,
) -> Cost:
    """Return the estimated cost of a plan, or of `only` some of its trials by their ids.

    With `calibrates`, each path through a router is measured once before it is used.
    """
    times = times or MeasuredTimes()
    trials, traffic_s, here_bytes = 0, 0.0, 0
    largest: dict[str, int] = {}
    for group in plan.groups(TRAFFIC_AND_RECORDING):
        number = _count(group.trials, only)
        if not number:
            continue
        trials += number
        traffic_s += number * group.resolved.duration_s
        here_bytes += number * stored_bytes(group.resolved)
        for host, size in host_bytes(group.resolved).items():
            largest[host] = max(size, largest.get(host, 0))
    boots = plan.changes.boots
    return Cost(
        trials=trials,
        traffic_s=traffic_s,
        overhead=times.overhead,
        host_bytes=largest,
        controller_bytes=here_bytes,
        boots=max(1, round(boots * trials / len(plan.trials))) if boots and trials else 0,
        boot=times.boot,
        paths=_paths(plan, only) if calibrates else 0,
        path=times.path if calibrates else ASSUMED_PATH,
        repeats=times.repeats,
    )


def _paths(plan: Plan, only: Collection[str] | None) -> int:
    """Count the paths that are calibrated: they differ in their settings or in the MTUs of the hosts."""
    groups = plan.groups(
        {"path": None, "run": lambda run: run.mtu_bytes, "hosts": lambda host: host.mtu_bytes}
    )
    paths = (group.resolved.path for group in groups if _count(group.trials, only))
    return sum(1 for path in paths if path is not None and path.router)


def _count(trials: Sequence[str], only: Collection[str] | None) -> int:
    return len(trials) if only is None else sum(id_ in only for id_ in trials)
