"""Campaign policy: verdict thresholds, retry limits and path calibration, and the testbed's network.

The verdict needs to know the number of routers between two addresses, and the addresses on each side of the
bottleneck; both are derived from the testbed's links.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from samovar.experiment import Config, Experiment, Testbed, keys
from samovar.plan import shortest_path

DEFAULT_THRESHOLDS = keys.Thresholds()
LOOSER_BELOW = frozenset({"duration", "window", "disk_bytes", "capture_packets"})
"""Thresholds for which a smaller value is less strict. For others, a larger value is less strict."""
ONE_ATTEMPT = Config.model_construct(retries=0, backoff_s=0.0, backoff_most_s=0.0, free_space=0)


@dataclass(frozen=True)
class Policy:
    """The policy of a campaign on one testbed.

    `config` is config.yaml, except that `thresholds` and `calibrate` replace its keys `verdict` and
    `calibrate`. `routers` maps pairs of addresses to the number of routers between them. `behind` maps each
    direction of the bottleneck, `down` and `up`, to the addresses on its receiving side. `control_ports` are
    the ports of SSH, whose packets are not traffic of the experiment.
    """

    config: Config = ONE_ATTEMPT
    thresholds: keys.Thresholds = DEFAULT_THRESHOLDS
    calibrate: bool = False
    routers: Mapping[tuple[str, str], int] = field(default_factory=dict)
    behind: Mapping[str, frozenset[str]] = field(default_factory=dict)
    control_ports: frozenset[int] = frozenset({22})

    @property
    def loosened(self) -> Mapping[str, object]:
        """The profile of thresholds, and all looser than their defaults, for manifest.json; may be empty."""
        bounds = {}
        for key, one in keys.keys_of(keys.Thresholds).items():
            bound, default = (getattr(own, one.attribute) for own in (self.thresholds, DEFAULT_THRESHOLDS))
            if key != "profile" and (bound < default if one.attribute in LOOSER_BELOW else bound > default):
                bounds[key] = {"bound": one.type.write(bound) if one.type else bound, "default": one.default}
        profile = {"profile": self.thresholds.profile} if self.thresholds.profile else {}
        return {**profile, "loosened": bounds} if profile or bounds else {}

    def pause_s(self, attempts: int) -> float:
        """Return the pause in seconds before the next attempt; it doubles with each attempt up to a limit."""
        return min(self.config.backoff_most_s, self.config.backoff_s * 2.0 ** min(attempts - 1, 62))


DEFAULT_POLICY = Policy()


def policy_of(experiment: Experiment, testbed: Testbed, config: Config) -> Policy:
    """Return the policy of an experiment on a testbed.

    Thresholds in the experiment override those in the testbed, which override those in config.yaml.
    """
    calibrate = experiment.calibrate or config.calibrate
    return Policy(
        config=config,
        thresholds=config.verdict.under(testbed.verdict).under(experiment.verdict).with_profile(),
        calibrate=testbed.lab is None if calibrate == "auto" else calibrate == "on",
        routers=dict(_routers(testbed)),
        behind=_behind(testbed),
        control_ports=frozenset({testbed.ssh_of(host).port for host in testbed.hosts}),
    )


def _routers(testbed: Testbed) -> Iterator[tuple[tuple[str, str], int]]:
    """Yield the addresses of each pair of hosts, and the number of routers between them."""

    def address(host: str, interface: str) -> str:
        return str(testbed.hosts[host].interfaces[interface].address.ip)

    for start in testbed.hosts:
        for end in testbed.hosts:
            hops = shortest_path(testbed, start, end)
            if hops:
                ends = address(start, hops[0].out_interface), address(end, hops[-1].in_interface)
                yield ends, len(hops) - 1


def _behind(testbed: Testbed) -> Mapping[str, frozenset[str]]:
    """Return the addresses on the receiving side of the bottleneck for each direction, `down` and `up`."""
    place = testbed.bottleneck
    if place is None:
        return {}
    sides: dict[str, set[str]] = {place.to_interface: set(), place.from_interface: set()}
    for host, machine in testbed.hosts.items():
        hops = shortest_path(testbed, place.router, host)
        if hops and hops[0].out_interface in sides:
            sides[hops[0].out_interface] |= {str(one.address.ip) for one in machine.interfaces.values()}
    return {"down": frozenset(sides[place.to_interface]), "up": frozenset(sides[place.from_interface])}
