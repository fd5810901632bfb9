"""What a plan costs: trials, hours, bytes on the hosts and here."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import astuple, dataclass, field, replace
from statistics import fmean

from samovar.plan import cache_keys
from samovar.plan.groups import RECORDED, Kinds
from samovar.plan.plan import Plan
from samovar.plan.volume import host_bytes, kept_bytes


def _source(measured: int) -> str:
    if measured:
        return f"median of {measured} measured on this testbed"
    return "assumed, none measured on this testbed yet"


@dataclass(frozen=True)
class Overhead:
    """What a trial takes beyond its traffic: the median over so many that were measured, or assumed."""

    seconds: float = 2.5
    measured: int = 0

    def __str__(self) -> str:
        """Say it, and where it is from."""
        return f"{self.seconds:.1f} s a trial ({_source(self.measured)})"


@dataclass(frozen=True)
class EachTime:
    """How long something takes each time: the median of those measured, or assumed."""

    seconds: float
    measured: int = 0

    def __str__(self) -> str:
        """Say it, and where it is from."""
        return f"{self.seconds:.0f} s each ({_source(self.measured)})"


@dataclass(frozen=True)
class BootTime(EachTime):
    """How long a reboot takes, until the host answers."""

    seconds: float = 120.0


@dataclass(frozen=True)
class PathTime(EachTime):
    """How long it takes to measure a path both ways, before it is used."""

    seconds: float = 15.0


@dataclass(frozen=True)
class Again:
    """Attempts beside the one that counts, of so many trials, and the seconds that they and those took."""

    attempts: int = 0
    trials: int = 0
    lost_s: float = 0.0
    taken_s: float = 0.0

    @property
    def share(self) -> float:
        """Return the time of attempts that did not count as a share of that of those that did."""
        return self.lost_s / self.taken_s if self.taken_s else 0.0

    def __str__(self) -> str:
        """Say it, and where it is from."""
        return (
            f"{self.share:.0%} more: {self.trials} trials took {self.trials + self.attempts} attempts before"
        )


@dataclass(frozen=True)
class Known:
    """What earlier campaigns on a testbed have shown of its times."""

    overhead: Overhead = field(default_factory=Overhead)
    boot: BootTime = field(default_factory=BootTime)
    path: PathTime = field(default_factory=PathTime)
    again: Again = field(default_factory=Again)


@dataclass(frozen=True)
class Cost:
    """The estimate of a plan or of what is left of it.

    `host_bytes` are, by host, what the largest trial leaves there until it is collected: one at a time.
    `controller_bytes` are all trials' as they are kept here, compressed. `boots` is how often hosts that
    reboot are waited for; of a plan of which some is left it is their share of the trials. Of `testbeds` that
    share the trials, each orders its own reboots. `paths` counts the paths that are measured before use.
    """

    trials: int
    traffic_s: float
    overhead: Overhead = field(default_factory=Overhead)
    host_bytes: Mapping[str, int] = field(default_factory=dict)
    controller_bytes: int = 0
    boots: int = 0
    boot: BootTime = field(default_factory=BootTime)
    testbeds: int = 1
    paths: int = 0
    path: PathTime = field(default_factory=PathTime)
    again: Again = field(default_factory=Again)

    @property
    def again_s(self) -> float:
        """Return the time of trials that are run again, in seconds, as often as was so before."""
        return self.again.share * (self.traffic_s + self.overhead_s)

    @property
    def reboot_s(self) -> float:
        """Return the time that hosts take to reboot, in seconds."""
        return self.boots * self.boot.seconds

    @property
    def path_s(self) -> float:
        """Return the time that paths are measured, in seconds."""
        return self.paths * self.path.seconds

    @property
    def overhead_s(self) -> float:
        """Return the time of all trials that is not traffic, in seconds."""
        return self.overhead.seconds * self.trials

    @property
    def total_s(self) -> float:
        """Return the time that the campaign takes, in seconds."""
        whole_s = self.traffic_s + self.overhead_s + self.again_s
        work_s = shared_out_s(whole_s, self.trials, self.testbeds)
        return work_s + self.reboot_s + self.path_s

    @property
    def hours(self) -> float:
        """Return the time that the campaign takes, in hours."""
        return self.total_s / 3600


def shared_out_s(work_s: float, trials: int, testbeds: int, longest_s: float = 0.0) -> float:
    """Return how long so much work takes in seconds, each trial whole on one testbed at a time."""
    return max(longest_s, work_s / max(1, min(testbeds, trials)))


def shared(costs: Sequence[Cost]) -> Cost:
    """Return the cost of trials that testbeds share, each as slow as they are on average."""
    seconds = fmean(cost.overhead.seconds for cost in costs)
    overhead = Overhead(seconds, sum(cost.overhead.measured for cost in costs))
    columns = zip(*(astuple(cost.again) for cost in costs), strict=True)
    again = Again(*(sum(column) for column in columns))
    return replace(costs[0], overhead=overhead, again=again, testbeds=len(costs))


def estimate_cost(
    plan: Plan, known: Known | None = None, only: Collection[str] | None = None, calibrates: bool = False
) -> Cost:
    """Estimate a plan's cost, or that of some of its trials; what is `known` was measured before.

    Where it `calibrates`, each path through a router is measured once.
    """
    known = known or Known()
    kinds = Kinds(plan.table, RECORDED)
    trials, traffic_s, here_bytes = 0, 0.0, 0
    largest: dict[str, int] = {}
    for kind, number in sorted(kinds.trials(only).items()):
        resolved = kinds.resolved(kind)
        trials += number
        traffic_s += number * resolved.duration_s
        here_bytes += number * kept_bytes(resolved)
        for host, size in host_bytes(resolved).items():
            largest[host] = max(size, largest.get(host, 0))
    boots = _boots(plan.changes.boots, trials, len(plan.trials))
    cost = Cost(trials, traffic_s, known.overhead, largest, here_bytes, boots, known.boot, again=known.again)
    return replace(cost, paths=_paths(plan, only), path=known.path) if calibrates else cost


def _paths(plan: Plan, only: Collection[str] | None) -> int:
    """Count the paths that are told apart: by what they are set to, and the MTUs of the hosts."""
    kinds = Kinds(plan.table, {"path": None, "run": cache_keys.mtu, "hosts": cache_keys.mtu})
    paths = (kinds.resolved(kind).path for kind in kinds.trials(only))
    return sum(1 for path in paths if path is not None and path.router)


def _boots(boots: int, trials: int, every: int) -> int:
    """Return the share of the reboots that some of the trials take, one at least where any is to come."""
    return max(1, round(boots * trials / every)) if boots and trials else 0
