"""Which flows a line of traffic means: counted ones, and one for each host of a plural role."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from samovar.experiment.keys.testbed_file import ROLES, Testbed
from samovar.experiment.keys.traffic_keys import Flow


@dataclass(frozen=True)
class Member:
    """One flow of a group: its index counts from 0, its port is None when the plan chooses one."""

    label: str
    group: str
    index: int
    from_host: str
    to_host: str
    port: int | None


def hosts_of(testbed: Testbed, name: str) -> tuple[str, ...]:
    """Return the hosts that an end of a flow means: all of a plural role (senders), or the one so named."""
    role = name.removesuffix("s")
    host = testbed.host_of(name)
    if host is not None or name == role or role not in ROLES:
        return () if host is None else (host,)
    return tuple(one for one, machine in testbed.hosts.items() if machine.role == role)


def places_of(testbed: Testbed, at: tuple[str, ...]) -> tuple[str, ...]:
    """Return the hosts at which something is recorded, one after the other."""
    return tuple(host for name in at for host in hosts_of(testbed, name))


def is_plural(testbed: Testbed, name: str) -> bool:
    """Say whether a name means every host of a role."""
    return testbed.host_of(name) is None and name.removesuffix("s") in ROLES


def end_names(testbed: Testbed) -> list[str]:
    """Return every name that an end of a flow may have."""
    return [*testbed.names(), *(f"{role}s" for role in ROLES if hosts_of(testbed, f"{role}s"))]


def number_of(flow: Flow, testbed: Testbed) -> int | None:
    """Return how many flows a line means, or None when it is one flow with the line's own label.

    Arrivals without a count mean as many as are drawn; here they count as one.
    """
    if flow.count is not None:
        return flow.count
    if flow.arrivals is not None:
        return flow.arrivals.count or 1
    plural = [end for end in (flow.from_end, flow.to_end) if is_plural(testbed, end)]
    return len(hosts_of(testbed, plural[0])) if plural else None


def members_of(flow: Flow, testbed: Testbed, number: int | None = None) -> Iterator[Member]:
    """Yield the flows that a line means, wrapping around the hosts of plural roles.

    `number` is given for arrivals that were drawn. Nothing is yielded when an end means no host.
    """
    sources, sinks = hosts_of(testbed, flow.from_end), hosts_of(testbed, flow.to_end)
    counted = number if number is not None else number_of(flow, testbed)
    if not sources or not sinks:
        return
    for index in range(1 if counted is None else counted):
        yield Member(
            label=flow.label if counted is None else f"{flow.label}-{index + 1}",
            group=flow.label,
            index=index,
            from_host=sources[index % len(sources)],
            to_host=sinks[index % len(sinks)],
            port=None if flow.port is None else flow.port + index,
        )
