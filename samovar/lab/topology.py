"""The topology of a lab as a value: hosts, links, addresses and routes, derived from a testbed."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv4Interface, IPv4Network

from samovar.errors import LabError
from samovar.experiment import Host, Testbed

SHORTEST_CONTROL_PREFIX = 8
RESERVED_INTERFACES = ("ctl0", "lo")


@dataclass(frozen=True)
class SegmentPort:
    """One end of a segment: an interface of a host."""

    host: str
    interface: str
    address: IPv4Interface
    link: str

    @property
    def mac(self) -> str:
        """The locally administered hardware address of the interface, made of its IPv4 address."""
        return ":".join(f"{byte:02x}" for byte in (0x02, 0x54, *self.address.ip.packed))


@dataclass(frozen=True)
class Neighbour:
    """Another end of a segment, and the host's own interface that leads to it."""

    interface: str
    port: SegmentPort


@dataclass(frozen=True)
class SubnetRoute:
    """A route to a subnet that a host is not connected to, and its gateway."""

    network: IPv4Network
    gateway: IPv4Address


@dataclass(frozen=True)
class Node:
    """One host of the lab with its addresses and routes."""

    name: str
    control: IPv4Interface
    forwards: bool
    ports: tuple[SegmentPort, ...]
    routes: tuple[SubnetRoute, ...]
    neighbours: tuple[Neighbour, ...] = ()


@dataclass(frozen=True)
class Segment:
    """A link: two ends are a cable or joined by adapters, any other number is a switch."""

    name: str
    ports: tuple[SegmentPort, ...]
    has_adapters: bool = False

    @property
    def is_cable(self) -> bool:
        """Whether this link is one veth pair."""
        return len(self.ports) == 2 and not self.has_adapters


@dataclass(frozen=True)
class Topology:
    """The hosts and links from which the scripts of a lab are rendered."""

    name: str
    nodes: tuple[Node, ...]
    links: tuple[Segment, ...]
    controller: IPv4Interface

    @property
    def addresses(self) -> dict[str, str]:
        """The control address of each host, in file order."""
        return {node.name: str(node.control.ip) for node in self.nodes}


def read_topology(testbed: Testbed) -> Topology:
    """Return the links, routes and control network of a lab.

    Raises LabError if a host cannot be a namespace of a Linux kernel or two subnets overlap.
    """
    name, hosts = testbed.name, testbed.hosts
    ports = tuple(port for host, entry in hosts.items() for port in _ports(name, host, entry))
    links = _links(testbed, ports)
    controls = {host: _control_address(name, host, entry.address) for host, entry in hosts.items()}
    network, controller = _control_network(name, controls)
    _refuse_overlap(name, network, links)
    routers = frozenset(host for host, entry in hosts.items() if entry.role == "router")
    nodes = tuple(
        Node(
            name=host,
            control=IPv4Interface((controls[host], network.prefixlen)),
            forwards=host in routers,
            ports=tuple(port for port in ports if port.host == host),
            routes=tuple(shortest_routes(host, links, routers)),
            neighbours=tuple(_neighbours(host, links)),
        )
        for host in hosts
    )
    return Topology(name, nodes, links, IPv4Interface((controller, network.prefixlen)))


def _ports(name: str, host: str, entry: Host) -> Iterator[SegmentPort]:
    if entry.os != "linux":
        raise LabError(f"lab {name}: host {host}: os {entry.os} cannot be a namespace; accepted: linux")
    for interface, value in entry.interfaces.items():
        where = f"lab {name}: host {host}: interface {interface}"
        if interface in RESERVED_INTERFACES:
            reserved = ", ".join(RESERVED_INTERFACES)
            raise LabError(f"{where}: the lab uses this name itself; accepted: any other than {reserved}")
        if not isinstance(value.address, IPv4Interface):
            raise LabError(f"{where}: address {value.address}; accepted: IPv4")
        yield SegmentPort(host, interface, value.address, value.link)


def shortest_routes(host: str, links: Sequence[Segment], routers: frozenset[str]) -> Iterator[SubnetRoute]:
    """Yield a route with the fewest routers to every subnet on which the host has no interface.

    Only routers forward packets; of equally short routes, the first in the order of the file is taken.
    """
    reached = {link.name for link in links if any(port.host == host for port in link.ports)}
    edge: deque[tuple[Segment, IPv4Address | None]] = deque()
    edge.extend((link, None) for link in links if link.name in reached)
    while edge:
        link, gateway = edge.popleft()
        for port in link.ports:
            if port.host == host or port.host not in routers:
                continue
            for beyond in _other_links(port, links):
                if beyond.name not in reached:
                    reached.add(beyond.name)
                    through = gateway or port.address.ip
                    yield SubnetRoute(beyond.ports[0].address.network, through)
                    edge.append((beyond, through))


def _neighbours(host: str, links: Sequence[Segment]) -> Iterator[Neighbour]:
    """Yield the other ends of a host's links.

    They become permanent neighbours: an ARP request (RFC 826) could wait in the bottleneck's queue for longer
    than the kernel waits for its answer, and flows that begin when the queue is full would find no route.
    """
    for link in links:
        own = [port for port in link.ports if port.host == host]
        yield from (Neighbour(port.interface, one) for port in own for one in link.ports if one.host != host)


def _other_links(port: SegmentPort, links: Sequence[Segment]) -> Iterator[Segment]:
    return (link for link in links if link.name != port.link and any(p.host == port.host for p in link.ports))


def _links(testbed: Testbed, ports: Sequence[SegmentPort]) -> tuple[Segment, ...]:
    name = testbed.name
    adapters = {link for link, entry in testbed.links.items() if entry.adapter}
    names = dict.fromkeys(port.link for port in ports)
    links = tuple(
        Segment(link, tuple(port for port in ports if port.link == link), link in adapters) for link in names
    )
    for link in links:
        if link.has_adapters and len(link.ports) != 2:
            what = f"{len(link.ports)} hosts at a pair of adapters"
            raise LabError(f"lab {name}: link {link.name}: {what}; accepted: 2")
        networks = {port.address.network for port in link.ports}
        if len(networks) > 1:
            seen = ", ".join(sorted(str(network) for network in networks))
            raise LabError(f"lab {name}: link {link.name}: ends in different subnets ({seen}); accepted: one")
    return links


def _control_address(name: str, host: str, text: str) -> IPv4Address:
    try:
        return IPv4Address(text)
    except ValueError as error:
        accepted = "an IPv4 address, since a lab has no name server"
        raise LabError(f"lab {name}: host {host}: address {text!r}; accepted: {accepted}") from error


def _control_network(name: str, controls: Mapping[str, IPv4Address]) -> tuple[IPv4Network, IPv4Address]:
    """Return the smallest network, /24 or larger, that contains all hosts, and a free address in it."""
    first = next(iter(controls.values()))
    for prefix in range(24, SHORTEST_CONTROL_PREFIX - 1, -1):
        network = IPv4Network((first, prefix), strict=False)
        if all(address in network for address in controls.values()):
            taken = {int(address) for address in controls.values()}
            top = int(network.broadcast_address)
            return network, IPv4Address(next(n for n in range(top - 1, 0, -1) if n not in taken))
    seen = ", ".join(str(address) for address in controls.values())
    raise LabError(
        f"lab {name}: control addresses {seen}; accepted: all within one /{SHORTEST_CONTROL_PREFIX}"
    )


def _refuse_overlap(name: str, control: IPv4Network, links: Sequence[Segment]) -> None:
    networks = [("the control network", control)]
    networks += [(f"link {link.name}", link.ports[0].address.network) for link in links]
    for index, (one, network) in enumerate(networks):
        for other, second in networks[index + 1 :]:
            if network.overlaps(second):
                both = f"{one} ({network}) and {other} ({second})"
                raise LabError(f"lab {name}: {both} overlap; accepted: separate subnets")


def unsupported_links(testbed: Testbed) -> list[str]:
    """Return descriptions of the links of a testbed that no lab can simulate."""
    return [f"link '{name}' is a WLAN" for name, link in testbed.links.items() if link.wlan]


def require_supported_links(testbed: Testbed, others: Sequence[Testbed] = ()) -> None:
    """Raise LabError if the lab of a testbed has links that it cannot simulate.

    The message names the other testbeds whose labs can run.
    """
    missing = unsupported_links(testbed)
    if testbed.lab is None or not missing:
        return
    running = ", ".join(
        sorted(one.name for one in others if one.lab is not None and not unsupported_links(one))
    )
    accepted = f"testbeds {running}, or real ones" if running else "a testbed of cables and switches"
    what = f"{', '.join(missing)}, which a lab cannot simulate yet"
    raise LabError(f"lab {testbed.name}: {what}; accepted: {accepted}; planning and explaining need no lab")
