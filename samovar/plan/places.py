"""Where things happen on a testbed: names to hosts, interfaces that face the traffic, addresses, ports."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from samovar.definition.experiment import Flow
from samovar.definition.testbed import Testbed
from samovar.definition.topology import shortest_path
from samovar.errors import PlanError

FIRST_PORT = 5001


@dataclass(frozen=True)
class Route:
    """The ends of a flow: hosts, the interfaces that face each other, their addresses."""

    from_host: str
    to_host: str
    from_interface: str
    to_interface: str
    from_address: str
    to_address: str
    crosses_bottleneck: bool


def host_of(testbed: Testbed, name: str) -> str:
    """Return the host that a name or role means; raises PlanError."""
    host = testbed.host_of(name)
    if host is None:
        known = ", ".join(sorted(testbed.names()))
        raise PlanError(f"testbed {testbed.name}: no host or role '{name}'; known: {known}")
    return host


def route_of(testbed: Testbed, flow: Flow) -> Route:
    """Return the way of a flow by the shortest path; raises PlanError when there is none."""
    start, end = host_of(testbed, flow.from_end), host_of(testbed, flow.to_end)
    hops = shortest_path(testbed, start, end)
    if not hops:
        message = f"no links lead from {start} to {end}; expected hosts that links and routers connect"
        raise PlanError(f"flow {flow.label}: {message}")
    first, last = hops[0], hops[-1]
    bottleneck = testbed.bottleneck
    queue = (bottleneck.router, bottleneck.to_interface) if bottleneck else None
    return Route(
        from_host=start,
        to_host=end,
        from_interface=first.out_interface,
        to_interface=last.in_interface,
        from_address=str(testbed.hosts[start].interfaces[first.out_interface].address.ip),
        to_address=str(testbed.hosts[end].interfaces[last.in_interface].address.ip),
        crosses_bottleneck=any((hop.host, hop.out_interface) == queue for hop in hops),
    )


def watched_interface(testbed: Testbed, host: str, routes: Sequence[Route]) -> str:
    """Return the interface of a host to capture or log at when none is named.

    At the bottleneck's router that is the queue's; at an end of a flow, the one that faces the other end;
    elsewhere, the host's first. Raises PlanError when the host has none.
    """
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


def ports_of(flows: Sequence[Flow]) -> list[int]:
    """Return a port for every flow: its own, or the next one from 5001 up that no flow has.

    Ports are unique in the trial, so that a capture anywhere tells flows apart by port alone.
    """
    taken = {flow.port for flow in flows if flow.port is not None}
    free = (port for port in range(FIRST_PORT, 65536) if port not in taken)
    return [flow.port if flow.port is not None else next(free) for flow in flows]
