"""Check a testbed as a whole: names, addresses, links and the bottleneck."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from ipaddress import IPv4Network, IPv6Network, ip_address
from pathlib import Path

from samovar.experiment.checks.validate import Validation
from samovar.experiment.keys import NetworkInterface, Testbed
from samovar.experiment.nearest import nearest, unknown


def check_testbed(checked: Validation[Testbed], path: Path) -> None:
    """Report what is wrong with a testbed whose values are valid one by one."""
    testbed = checked.model
    if testbed is None:
        return
    if checked.intact("testbed") and testbed.name != path.stem:
        message = f"testbed '{testbed.name}' is in the file {path.name}; name it '{path.stem}'"
        checked.report(("testbed",), message)
    _check_addresses(checked, testbed)
    _check_subnets(checked, testbed)
    _check_control_network(checked, testbed)
    _check_bottleneck(checked, testbed)
    _check_device(checked, testbed)
    if checked.intact("hosts"):
        _check_links(checked, testbed)


def _interfaces(testbed: Testbed) -> Iterator[tuple[str, str, NetworkInterface]]:
    for host, machine in testbed.hosts.items():
        for name, interface in machine.interfaces.items():
            yield host, name, interface


def _check_links(checked: Validation[Testbed], testbed: Testbed) -> None:
    """Report links without an interface, and links with one end whose name resembles another link's."""
    ends = Counter(interface.link for _, _, interface in _interfaces(testbed))
    order = {name: number for number, name in enumerate(ends)}
    for name in testbed.links:
        if name not in ends:
            checked.report(("links", name), unknown("link", name, ends), key=True)
    for host, name, interface in _interfaces(testbed):
        alone = ends[interface.link] == 1 and interface.link not in testbed.links
        others = (one for one in ends if ends[one] > 1 or order[one] < order[interface.link])
        near = nearest(interface.link, others) if alone else None
        if near is not None:
            message = f"link '{interface.link}' has only this end; did you mean '{near}'?"
            checked.report(("hosts", host, "interfaces", name, "link"), message)


def _check_addresses(checked: Validation[Testbed], testbed: Testbed) -> None:
    seen: dict[object, str] = {}
    for host, name, interface in _interfaces(testbed):
        first = seen.setdefault(interface.address.ip, f"{host} {name}")
        if first != f"{host} {name}":
            message = f"address {interface.address.ip} is also that of {first}; choose another"
            checked.report(("hosts", host, "interfaces", name, "address"), message)


def _check_subnets(checked: Validation[Testbed], testbed: Testbed) -> None:
    first: dict[str, tuple[IPv4Network | IPv6Network, str]] = {
        name: (link.subnet, "its subnet") for name, link in testbed.links.items() if link.subnet is not None
    }
    for host, name, interface in _interfaces(testbed):
        network = interface.address.network
        known, whose = first.setdefault(interface.link, (network, f"{host} {name}"))
        if network == known:
            continue
        where = ("hosts", host, "interfaces", name, "address")
        if whose == "its subnet":
            message = f"{interface.address} is outside link '{interface.link}'; choose one within {known}"
        else:
            message = (
                f"{interface.address} on link '{interface.link}' is in another subnet than {whose}; "
                f"choose one within {known}"
            )
        checked.report(where, message)


def _check_control_network(checked: Validation[Testbed], testbed: Testbed) -> None:
    taken = {str(interface.address.ip): f"{host} {name}" for host, name, interface in _interfaces(testbed)}
    seen: dict[tuple[str, int], str] = {}
    for name, host in testbed.hosts.items():
        where = ("hosts", name, "address")
        first = seen.setdefault((host.address, testbed.ssh_of(name).port), name)
        if first != name:
            message = f"control address {host.address} is also that of {first}; choose another"
            checked.report(where, message)
        if host.address in taken:
            message = (
                f"control address {host.address} is that of {taken[host.address]} on the testbed's network"
            )
            checked.report(where, f"{message}; use one on the control network")
        if testbed.lab is not None and not _is_address(host.address):
            message = f"'{host.address}' is a name; use an address, as a lab has no resolver"
            checked.report(where, message)


def _is_address(text: str) -> bool:
    try:
        ip_address(text)
    except ValueError:
        return False
    return True


def _check_device(checked: Validation[Testbed], testbed: Testbed) -> None:
    name = testbed.bottleneck_link
    if name is None or not checked.intact("hosts") or not checked.intact("links"):
        return
    where = ("bottleneck", "link")
    ends = [interface for _, _, interface in _interfaces(testbed) if interface.link == name]
    if name not in testbed.links:
        checked.report(where, unknown("link", name, testbed.links))
    elif testbed.device is None:
        message = f"link '{name}' is not a device; add adapter: {{rate: ..., buffer: ...}} to it"
        checked.report(where, message)
    elif len(ends) != 2:
        message = f"link '{name}' has {len(ends)} ends; a pair of adapters needs two"
        checked.report(where, message)


def _check_bottleneck(checked: Validation[Testbed], testbed: Testbed) -> None:
    bottleneck = testbed.bottleneck
    if bottleneck is None or not checked.intact("hosts"):
        return
    host = testbed.hosts.get(bottleneck.router)
    if host is None:
        routers = [name for name, one in testbed.hosts.items() if one.role == "router"]
        checked.report(("bottleneck", "router"), unknown("router", bottleneck.router, routers))
        return
    if host.role != "router":
        message = f"host '{bottleneck.router}' is a {host.role}; its role must be router"
        checked.report(("bottleneck", "router"), message)
    for key, interface in (("from", bottleneck.from_interface), ("to", bottleneck.to_interface)):
        if interface not in host.interfaces:
            what = f"interface of {bottleneck.router}"
            checked.report(("bottleneck", key), unknown(what, interface, host.interfaces))
    if bottleneck.from_interface == bottleneck.to_interface:
        message = f"data cannot enter and leave by {bottleneck.to_interface}; choose another interface"
        checked.report(("bottleneck", "to"), message)
