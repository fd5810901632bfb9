"""Derive the topology of a lab from a testbed: hosts, links, addresses and routes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv4Interface, IPv4Network
from itertools import combinations

from samovar.errors import LabError
from samovar.experiment import Testbed, keys
from samovar.plan import shortest_path

SHORTEST_CONTROL_PREFIX = 8
RESERVED_INTERFACES = ("ctl0", "lo")


@dataclass(frozen=True)
class SegmentPort:
    """One end of a link: an interface of a host with its address."""

    host: str
    interface: str
    address: IPv4Interface
    link: str
    is_machine: bool = False
    """Whether the host is a virtual machine."""

    @property
    def mac(self) -> str:
        """The MAC address of the interface: locally administered, derived from its IPv4 address."""
        return ":".join(f"{byte:02x}" for byte in (0x02, 0x54, *self.address.ip.packed))


@dataclass(frozen=True)
class Node:
    """One host of the lab: its addresses, and the gateways to all subnets to which it is not connected.

    `control` is the host's address on the control network. `forwards` is True for a router. `neighbours` has
    the ports of other hosts on the same links, each with the host's own interface on that link.
    """

    name: str
    control: IPv4Interface
    forwards: bool
    ports: tuple[SegmentPort, ...]
    neighbours: tuple[tuple[str, SegmentPort], ...]
    gateways: Mapping[IPv4Network, IPv4Address]
    os: str = "linux"
    is_machine: bool = False

    @property
    def control_mac(self) -> str:
        """The MAC address of a virtual machine's interface on the control network."""
        return ":".join(f"{byte:02x}" for byte in (0x02, 0x53, *self.control.ip.packed))


@dataclass(frozen=True)
class Segment:
    """A link of the lab, which is a cable, a switch, a pair of adapters, or a WLAN.

    Without a device, two ends are joined by a cable, and more than two ends are joined by a switch. A link
    between a virtual machine and a host in a namespace is always a switch. The first port of a WLAN is its
    access point.
    """

    name: str
    ports: tuple[SegmentPort, ...]
    device: str | None = None
    """The program of the device: adapter or wlan."""

    @property
    def is_cable(self) -> bool:
        """Whether this link is a cable: a veth pair, or a pair of sockets between two virtual machines."""
        one_kind = len({port.is_machine for port in self.ports}) == 1
        return len(self.ports) == 2 and self.device is None and one_kind

    @property
    def has_machines(self) -> bool:
        """Whether an end of this link is a virtual machine."""
        return any(port.is_machine for port in self.ports)

    @property
    def has_namespaces(self) -> bool:
        """Whether an end of this link is a host in a namespace."""
        return not all(port.is_machine for port in self.ports)


@dataclass(frozen=True)
class Topology:
    """The hosts and links of a lab; the templates of its scripts are rendered with these values.

    `controller` is the controller's address on the control network.
    """

    name: str
    nodes: tuple[Node, ...]
    links: tuple[Segment, ...]
    controller: IPv4Interface

    @property
    def shared_links(self) -> tuple[Segment, ...]:
        """The links that join virtual machines and hosts in namespaces."""
        return tuple(link for link in self.links if link.has_machines and link.has_namespaces)


def read_topology(testbed: Testbed) -> Topology:
    """Return the topology of a testbed's lab: hosts, links, routes and the control network.

    Raises LabError if the testbed has no lab, if a host or link cannot be simulated, or if two subnets
    overlap.
    """
    where, hosts = f"lab {testbed.name}", testbed.hosts
    if testbed.lab is None:
        raise LabError(f"testbed {testbed.name}: no lab; name a testbed whose file has the key `lab`")
    controls: dict[str, IPv4Address] = {}
    for host, entry in hosts.items():
        at, ssh = f"{where}: host {host}", testbed.ssh_of(host)
        if (ssh.user, ssh.port) != ("root", testbed.ssh.port):
            seen = f"ssh user {ssh.user}, port {ssh.port}"
            raise LabError(f"{at}: {seen}; in a lab, all hosts need user root and the same port")
        try:
            controls[host] = IPv4Address(entry.address)
        except ValueError as error:
            remedy = "give an IPv4 address, because a lab has no name server"
            raise LabError(f"{at}: address {entry.address!r}; {remedy}") from error
    ports = tuple(_ports(where, testbed))
    links = tuple(_links(where, testbed, ports))
    network, controller = _control_network(where, tuple(controls.values()))
    networks = {"the control network": network}
    networks |= {f"link {link.name}": link.ports[0].address.network for link in links}
    for (one, first), (other, second) in combinations(networks.items(), 2):
        if first.overlaps(second):
            what = f"{one} ({first}) and {other} ({second}) overlap"
            raise LabError(f"{where}: {what}; give them separate subnets")
    nodes = tuple(
        Node(
            name=host,
            control=IPv4Interface((control, network.prefixlen)),
            forwards=hosts[host].role == "router",
            ports=tuple(port for port in ports if port.host == host),
            neighbours=tuple(
                (own.interface, port)
                for own in ports
                for port in ports
                if own.link == port.link and own.host == host != port.host
            ),
            gateways=_gateways(testbed, host, links),
            os=hosts[host].os,
            is_machine=hosts[host].image is not None,
        )
        for host, control in controls.items()
    )
    return Topology(testbed.name, nodes, links, IPv4Interface((controller, network.prefixlen)))


def _ports(where: str, testbed: Testbed) -> Iterator[SegmentPort]:
    for host, entry in testbed.hosts.items():
        if entry.os != "linux" and entry.image is None:
            what = f"os {entry.os} cannot run in a namespace"
            raise LabError(f"{where}: host {host}: {what}; use linux, or give the image of a virtual machine")
        for interface, value in entry.interfaces.items():
            at = f"{where}: host {host}: interface {interface}"
            if interface in RESERVED_INTERFACES:
                raise LabError(f"{at}: this name is reserved for the lab; choose another name")
            if not isinstance(value.address, IPv4Interface):
                raise LabError(f"{at}: address {value.address}; accepted: IPv4")
            yield SegmentPort(host, interface, value.address, value.link, entry.image is not None)


def _links(where: str, testbed: Testbed, ports: Sequence[SegmentPort]) -> Iterator[Segment]:
    for name in dict.fromkeys(port.link for port in ports):
        entry, joined = testbed.links.get(name), [port for port in ports if port.link == name]
        device = "adapter" if entry and entry.adapter else "wlan" if entry and entry.wlan else None
        if device == "wlan":
            joined.sort(key=lambda port: port.host != keys.access_point(testbed, name))
        link = Segment(name, tuple(joined), device)
        if device and link.has_machines:
            what = f"a virtual machine at {'a pair of adapters' if device == 'adapter' else 'a WLAN'}"
            raise LabError(f"{where}: link {name}: {what}; accepted: hosts without an image")
        yield link


def _gateways(testbed: Testbed, host: str, links: Sequence[Segment]) -> Mapping[IPv4Network, IPv4Address]:
    """Return, for each subnet to which a host is not connected, the gateway on the route with fewest routers.

    Only hosts with the role router forward packets. Of equally short routes, the one that comes first in the
    testbed file is taken.
    """
    addresses = {(port.host, port.interface): port.address.ip for link in links for port in link.ports}
    gateways: dict[IPv4Network, IPv4Address] = {}
    for link in links:
        routers = [port.host for port in link.ports if testbed.hosts[port.host].role == "router"]
        routes = filter(None, (shortest_path(testbed, host, router) for router in routers))
        first = min(routes, key=len, default=None)
        if first and not any(port.host == host for port in link.ports):
            gateways[link.ports[0].address.network] = addresses[first[0].next_host, first[0].in_interface]
    return gateways


def _control_network(where: str, controls: Sequence[IPv4Address]) -> tuple[IPv4Network, IPv4Address]:
    """Return the control network, and the controller's address on it.

    The network is the smallest one, /24 or larger, that contains the control addresses of all hosts. The
    controller gets the network's highest free address.
    """
    for prefix in range(24, SHORTEST_CONTROL_PREFIX - 1, -1):
        network = IPv4Network((controls[0], prefix), strict=False)
        if all(address in network for address in controls):
            free = network.broadcast_address - 1
            while free in controls:
                free -= 1
            return network, free
    seen = ", ".join(map(str, controls))
    raise LabError(f"{where}: control addresses {seen}; accepted: all within one /{SHORTEST_CONTROL_PREFIX}")
