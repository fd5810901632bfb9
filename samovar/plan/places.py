"""Where things happen on a testbed: names to hosts, interfaces that face the traffic, addresses, ports."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from ipaddress import ip_network

from samovar.errors import PlanError
from samovar.experiment import Flow, Hop, Member, Testbed, hosts_of, members_of, shortest_path

FIRST_PORT = 5001
LAST_PORT = 65535


@dataclass(frozen=True)
class Route:
    """The ends of a flow: hosts, the interfaces that face each other, their addresses; the way it takes."""

    from_host: str
    to_host: str
    from_interface: str
    to_interface: str
    from_address: str
    to_address: str
    crosses_bottleneck: bool
    goes_up: bool = False


class Places:
    """A testbed's places, each looked up once."""

    def __init__(self, testbed: Testbed) -> None:
        self.testbed = testbed
        self.route = cache(self._route)
        self._members: dict[tuple[object, ...], list[Member]] = {}

    def _route(self, start: str, end: str) -> Route | None:
        """Return the way from one host to another by the shortest path; None when there is none."""
        testbed = self.testbed
        hops = shortest_path(testbed, start, end)
        if not hops:
            return None
        first, last = hops[0], hops[-1]
        ways = ways_through(testbed, hops)
        return Route(
            from_host=start,
            to_host=end,
            from_interface=first.out_interface,
            to_interface=last.in_interface,
            from_address=str(testbed.hosts[start].interfaces[first.out_interface].address.ip),
            to_address=str(testbed.hosts[end].interfaces[last.in_interface].address.ip),
            crosses_bottleneck="down" in ways,
            goes_up="up" in ways,
        )

    def members(
        self, flow: Flow, start: str, end: str, count: int | None, number: int | None
    ) -> list[Member]:
        """Return the flows that a line means with these ends and count; `number` of them were drawn."""
        key = (id(flow), start, end, count, number)
        if key not in self._members:
            for name in (start, end):
                if not hosts_of(self.testbed, name):
                    host_of(self.testbed, name)
            meant = flow.model_copy(update={"from_end": start, "to_end": end, "count": count})
            self._members[key] = list(members_of(meant, self.testbed, number))
        return self._members[key]

    def subnets(self, name: str) -> Iterator[str]:
        """Yield the addresses of the hosts that a name means, as subnets; a subnet is itself."""
        if "/" in name:
            yield str(ip_network(name, strict=False))
            return
        for host in hosts_of(self.testbed, name):
            for interface in self.testbed.hosts[host].interfaces.values():
                yield subnet_of(str(interface.address.ip))

    def watched_interface(self, host: str, routes: Sequence[Route]) -> str:
        """Return the interface of a host to capture or log at when none is named.

        At the bottleneck's router that is the queue's; at an end of a flow, the one that faces the other end;
        elsewhere, the host's first. Raises PlanError when the host has none.
        """
        testbed = self.testbed
        if testbed.bottleneck is not None and testbed.bottleneck.router == host:
            return testbed.bottleneck.to_interface
        for route in routes:
            if host == route.from_host:
                return route.from_interface
            if host == route.to_host:
                return route.to_interface
        interfaces = list(testbed.hosts[host].interfaces)
        if not interfaces:
            raise PlanError(f"testbed {testbed.name}: host {host} has no testbed interface; expected one")
        return interfaces[0]


def ways_through(testbed: Testbed, hops: Sequence[Hop]) -> frozenset[str]:
    """Return the ways, `down` and `up`, by which hops pass the bottleneck."""
    bottleneck = testbed.bottleneck
    if bottleneck is not None:
        leaves = {(hop.host, hop.out_interface) for hop in hops}
        ends = (("down", bottleneck.to_interface), ("up", bottleneck.from_interface))
        return frozenset(way for way, interface in ends if (bottleneck.router, interface) in leaves)
    first = first_of_link(testbed)
    over = (hop.host for hop in hops if hop.link == testbed.bottleneck_link)
    return frozenset("down" if host == first else "up" for host in over)


def first_of_link(testbed: Testbed) -> str | None:
    """Return the host where the way down begins through the bottleneck's link; None where that is no link."""
    for name, host in testbed.hosts.items():
        if any(one.link == testbed.bottleneck_link for one in host.interfaces.values()):
            return name
    return None


def host_of(testbed: Testbed, name: str) -> str:
    """Return the host that a name or role means; raises PlanError."""
    host = testbed.host_of(name)
    if host is None:
        known = ", ".join(sorted(testbed.names()))
        raise PlanError(f"testbed {testbed.name}: no host or role '{name}'; known: {known}")
    return host


def subnet_of(address: str) -> str:
    """Return an address as the subnet that holds it alone."""
    return f"{address}/{128 if ':' in address else 32}"


def ports_of(wanted: Iterable[int | None]) -> list[int]:
    """Return a port for every flow: its own, or the next one from 5001 up that no flow has.

    Ports are unique in the trial, so that a capture anywhere tells flows apart by port alone. Raises
    PlanError when a port is beyond the last, or two flows ask for the same.
    """
    asked = list(wanted)
    own = [port for port in asked if port is not None]
    if len(set(own)) < len(own):
        twice = next(port for port in own if own.count(port) > 1)
        raise PlanError(
            f"two flows have port {twice}; expected one each, as counted flows take those that follow"
        )
    taken = set(own)
    free = (port for port in range(FIRST_PORT, LAST_PORT + 1) if port not in taken)
    found = [port if port is not None else next(free, LAST_PORT + 1) for port in asked]
    if max(found, default=0) > LAST_PORT:
        raise PlanError(f"{len(found)} flows need ports up to {max(found)}; expected at most {LAST_PORT}")
    return found
