"""Place flows and recorders on a testbed: find hosts, and their routes, interfaces, addresses and ports."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from ipaddress import ip_network

from samovar.errors import PlanError
from samovar.experiment import Testbed, keys
from samovar.plan.routes import Hop, shortest_path

FIRST_PORT = 5001
LAST_PORT = 65535


@dataclass(frozen=True)
class Route:
    """The route of a flow: hosts, interfaces, addresses, and its `directions` through the bottleneck."""

    from_host: str
    to_host: str
    from_interface: str
    to_interface: str
    from_address: str
    to_address: str
    directions: frozenset[str]


class Placement:
    """Finds routes on a testbed and expands entries of traffic to flows. Results are cached."""

    def __init__(self, testbed: Testbed) -> None:
        self.testbed = testbed
        self.route = cache(self._route)
        self._members: dict[tuple[object, ...], list[keys.Member]] = {}

    def _route(self, start: str, end: str) -> Route | None:
        """Return the shortest route from one host to another, or None if they are not connected."""
        testbed = self.testbed
        hops = shortest_path(testbed, start, end)
        if not hops:
            return None
        first, last = hops[0], hops[-1]
        return Route(
            from_host=start,
            to_host=end,
            from_interface=first.out_interface,
            to_interface=last.in_interface,
            from_address=str(testbed.hosts[start].interfaces[first.out_interface].address.ip),
            to_address=str(testbed.hosts[end].interfaces[last.in_interface].address.ip),
            directions=directions_through(testbed, hops),
        )

    def members(
        self, flow: keys.Flow, start: str, end: str, count: int | None, number: int | None
    ) -> list[keys.Member]:
        """Return the flows of one entry of `traffic`, with these endpoints and this count.

        `number` is the number of random arrivals. Raises PlanError for an unknown host or role.
        """
        key = (id(flow), start, end, count, number)
        if key not in self._members:
            for name in (start, end):
                self.hosts(name)
            placed = flow.model_copy(update={"from_end": start, "to_end": end, "count": count})
            self._members[key] = list(keys.members_of(placed, self.testbed, number))
        return self._members[key]

    def hosts(self, name: str) -> tuple[str, ...]:
        """Return the hosts that a name means: one host, or all hosts of a plural role such as senders.

        Raises PlanError for an unknown name.
        """
        hosts = keys.hosts_of(self.testbed, name)
        if not hosts:
            known = ", ".join(sorted(self.testbed.hosts_by_name))
            raise PlanError(f"testbed {self.testbed.name}: unknown host or role '{name}'; known: {known}")
        return hosts

    def subnets(self, name: str) -> Iterator[str]:
        """Yield the subnets of `from` or `to` of a class: the given subnet, or each address of the hosts."""
        if "/" in name:
            yield str(ip_network(name, strict=False))
            return
        for host in keys.hosts_of(self.testbed, name):
            for interface in self.testbed.hosts[host].interfaces.values():
                yield subnet_of(str(interface.address.ip))

    def watched_interface(self, host: str, name: str | None, routes: Sequence[Route]) -> str:
        """Return the interface of a host to capture or log at; `name` is the one that the experiment names.

        At the bottleneck's router, `down` and `up` stand for the interfaces with the queues of these
        directions, and `down` is the default. At an end of a flow, the default is the interface towards the
        other end; at all other hosts, it is the first interface. Raises PlanError for a host without testbed
        interface.
        """
        testbed, bottleneck = self.testbed, self.testbed.bottleneck
        if bottleneck is not None and bottleneck.router == host:
            queues = {"down": bottleneck.to_interface, "up": bottleneck.from_interface}
            name = queues.get(name or "down", name)
        if name is not None:
            return name
        for route in routes:
            if host == route.from_host:
                return route.from_interface
            if host == route.to_host:
                return route.to_interface
        interfaces = list(testbed.hosts[host].interfaces)
        if not interfaces:
            raise PlanError(
                f"testbed {testbed.name}: host {host} has no testbed interface to record at; give it one"
            )
        return interfaces[0]


def directions_through(testbed: Testbed, hops: Sequence[Hop]) -> frozenset[str]:
    """Return the directions, `down` and `up`, in which hops pass the bottleneck."""
    bottleneck = testbed.bottleneck
    if bottleneck is not None:
        leaves = {(hop.host, hop.out_interface) for hop in hops}
        ends = (("down", bottleneck.to_interface), ("up", bottleneck.from_interface))
        return frozenset(
            direction for direction, interface in ends if (bottleneck.router, interface) in leaves
        )
    first = first_of_link(testbed)
    entered = (hop.host for hop in hops if hop.link == testbed.bottleneck_link)
    return frozenset("down" if host == first else "up" for host in entered)


def first_of_link(testbed: Testbed) -> str | None:
    """Return the host where `down` begins on the bottleneck's link; None if the bottleneck is a router."""
    link = testbed.bottleneck_link
    return next(iter(keys.hosts_at(testbed, link)), None) if link else None


def subnet_of(address: str) -> str:
    """Return the subnet that consists of one address."""
    return f"{address}/{128 if ':' in address else 32}"


def ports_of(wanted: Iterable[int | None]) -> list[int]:
    """Return a port for every flow: its own, or the next free port from 5001 up to LAST_PORT."""
    wanted = list(wanted)
    used = set(wanted)
    free = (port for port in range(FIRST_PORT, LAST_PORT + 1) if port not in used)
    return [port if port is not None else next(free, LAST_PORT + 1) for port in wanted]
