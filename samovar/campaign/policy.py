"""By what a campaign's trials are judged, how often they are tried: what is known beyond the plan."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from samovar.experiment import Config, Experiment, Testbed, Thresholds, shortest_path

DEFAULTS = Thresholds()


@dataclass(frozen=True)
class Policy:
    """Thresholds, repeats, calibration, and what the testbed's layout says.

    `routers` counts the routers between two addresses of the testbed, `behind` has the addresses that the
    bottleneck's ways `down` and `up` lead to. `boots` is what tells a host's boots apart. `control_ports`
    carry what is no experiment's. `step_timeout_s` bounds each remote step without traffic.

    A trial is run again `retries` times, after pauses from `backoff_s` to `backoff_most_s`. A host that was
    lost is waited for up to `host_wait_s`; `quarantine` trials in a row that name a host end its use.
    `free_bytes` stay free on every disk.
    """

    thresholds: Thresholds = DEFAULTS
    retries: int = 0
    backoff_s: float = 0.0
    backoff_most_s: float = 0.0
    quarantine: int = 3
    host_wait_s: float = 120.0
    free_bytes: int = 0
    calibrate: bool = False
    clock_tolerance_s: float = 1.0
    step_timeout_s: float = 60.0
    routers: Mapping[tuple[str, str], int] = field(default_factory=dict)
    behind: Mapping[str, frozenset[str]] = field(default_factory=dict)
    boots: Mapping[str, str] = field(default_factory=dict)
    control_ports: frozenset[int] = frozenset({22})

    def pause_s(self, attempts: int) -> float:
        """Return how long to wait after so many attempts at a trial in one run, in seconds."""
        return min(self.backoff_most_s, self.backoff_s * 2.0 ** min(attempts - 1, 62))


DEFAULT_POLICY = Policy()


def policy_of(experiment: Experiment, testbed: Testbed, config: Config, boots: Mapping[str, str]) -> Policy:
    """Put together by what trials are judged: the configuration, the experiment over it, the testbed."""
    asked = experiment.calibrate or config.calibrate
    return Policy(
        thresholds=config.verdict.under(experiment.verdict),
        retries=config.retries,
        backoff_s=config.backoff_s,
        backoff_most_s=config.backoff_most_s,
        quarantine=config.quarantine,
        host_wait_s=config.host_wait_s,
        free_bytes=config.free_space,
        calibrate=testbed.lab is None if asked == "auto" else asked == "on",
        clock_tolerance_s=config.clock_tolerance_s,
        step_timeout_s=config.step_timeout_s,
        routers=dict(_routers(testbed)),
        behind=_behind(testbed),
        boots=boots,
        control_ports=frozenset({testbed.ssh_of(host).port for host in testbed.hosts}),
    )


def _routers(testbed: Testbed) -> Iterator[tuple[tuple[str, str], int]]:
    """Count the routers between each two hosts, by the addresses that the way leads from and to."""
    for start in testbed.hosts:
        for end in testbed.hosts:
            hops = shortest_path(testbed, start, end)
            if hops:
                yield (
                    (
                        _address(testbed, start, hops[0].out_interface),
                        _address(testbed, end, hops[-1].in_interface),
                    ),
                    len(hops) - 1,
                )


def _behind(testbed: Testbed) -> Mapping[str, frozenset[str]]:
    """Find the addresses that each way of the bottleneck leads to."""
    place = testbed.bottleneck
    if place is None:
        return {}
    sides: dict[str, set[str]] = {place.to_interface: set(), place.from_interface: set()}
    for host, machine in testbed.hosts.items():
        hops = shortest_path(testbed, place.router, host)
        if hops and hops[0].out_interface in sides:
            sides[hops[0].out_interface] |= {str(one.address.ip) for one in machine.interfaces.values()}
    return {"down": frozenset(sides[place.to_interface]), "up": frozenset(sides[place.from_interface])}


def _address(testbed: Testbed, host: str, interface: str) -> str:
    return str(testbed.hosts[host].interfaces[interface].address.ip)
