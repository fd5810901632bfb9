"""Check a testbed as a whole: names, addresses, links and the bottleneck."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from ipaddress import ip_address

from samovar.errors import nearest
from samovar.experiment import keys
from samovar.experiment.checks.validate import Loc, Validation
from samovar.units import counted, format_rate

Interfaces = Sequence[tuple[str, str, keys.NetworkInterface]]
"""The interfaces of a testbed as (host, name, interface)."""


def check_testbed(checked: Validation[keys.Testbed], testbed: keys.Testbed) -> None:
    """Report values of a testbed that contradict each other, such as duplicate addresses."""
    interfaces = [
        (host, name, interface)
        for host, machine in testbed.hosts.items()
        for name, interface in machine.interfaces.items()
    ]
    _check_addresses(checked, testbed, interfaces)
    if checked.intact("hosts"):
        _check_bottleneck(checked, testbed)
        _check_links(checked, testbed, interfaces)
        if checked.intact("links") and testbed.lab is not None:
            for name, link in testbed.links.items():
                if link.wlan:
                    _check_wlan(checked, testbed, name, link.wlan)
                if link.adapter and name != testbed.bottleneck_link:
                    message = (
                        f"a lab sets adapters only at the bottleneck; add bottleneck: {{link: {name}}}, "
                        "or remove this key"
                    )
                    checked.report(("links", name, "adapter"), message)


def _check_links(checked: Validation[keys.Testbed], testbed: keys.Testbed, interfaces: Interfaces) -> None:
    """Report links without interfaces, misspelt links, and a bottleneck link without a device."""
    ends = Counter(interface.link for _, _, interface in interfaces)
    for name in testbed.links:
        checked.check_name(("links", name), "link", name, ends, key=True)
    for host, name, interface in interfaces:
        link, order = interface.link, list(ends)
        others = [one for one in ends if ends[one] > 1 or order.index(one) < order.index(link)]
        near = nearest(link, others) if ends[link] == 1 and link not in testbed.links else None
        if near is not None:
            message = f"link '{link}' has only this interface; did you mean '{near}'?"
            checked.report(("hosts", host, "interfaces", name, "link"), message)
    device, where = testbed.bottleneck_link, ("bottleneck", "link")
    if device is None or not checked.intact("links"):
        return
    if checked.check_name(where, "link", device, testbed.links) and testbed.device is None:
        message = f"link '{device}' has no device; add adapter: {{rate: ..., buffer: ...}} to it"
        checked.report(where, message)
    elif testbed.device is not None and ends[device] != 2:
        checked.report(where, f"link '{device}' has {ends[device]} ends; a pair of adapters needs two")


def _check_wlan(checked: Validation[keys.Testbed], testbed: keys.Testbed, name: str, wlan: keys.Wlan) -> None:
    """Report WLANs that a lab cannot simulate: an unsupported standard or rate, or too many stations.

    A missing or unknown access point is reported as well.
    """
    where, hosts = ("links", name, "wlan"), keys.hosts_at(testbed, name)
    rates = keys.WLAN_RATES_BPS.get(wlan.standard)
    if rates is None:
        message = f"a lab cannot simulate {wlan.standard}; choose one of {', '.join(keys.WLAN_RATES_BPS)}"
        checked.report((*where, "standard"), message)
    elif wlan.rate_bps and wlan.rate_bps not in rates:
        known = ", ".join(map(format_rate, rates))
        message = f"{wlan.standard} has no rate of {format_rate(wlan.rate_bps)}; choose one of {known}"
        checked.report((*where, "rate"), message)
    if len(hosts) > keys.MOST_STATIONS + 1:
        message = f"link '{name}' has {len(hosts) - 1} stations; a lab simulates at most {keys.MOST_STATIONS}"
        checked.report(where, message)
    if wlan.access_point:
        checked.check_name((*where, "access_point"), "host at this link", wlan.access_point, hosts)
    elif keys.access_point(testbed, name) is None:
        routers = sum(testbed.hosts[host].role == "router" for host in hosts)
        message = f"link '{name}' has {counted(routers, 'router')}; add access_point: HOST to `wlan`"
        checked.report(where, message)


def _check_addresses(
    checked: Validation[keys.Testbed], testbed: keys.Testbed, interfaces: Interfaces
) -> None:
    """Report errors in addresses and images.

    Addresses must be unique and within their link's subnet; hosts of labs need an address, not a name. Only
    hosts of labs may have an image, and with `kernel: vm` every host of the lab must have one.
    """
    owners: dict[tuple[str, int], str] = {}
    subnets = {name: (link.subnet, f"link '{name}'") for name, link in testbed.links.items() if link.subnet}

    def check_owner(where: Loc, owner: str, address: str, port: int = 0) -> None:
        first = owners.get((address, 0)) or owners.setdefault((address, port), owner)
        if first != owner:
            checked.report(where, f"address {address} belongs to {first} already; choose another")

    for host, name, interface in interfaces:
        where, owner = ("hosts", host, "interfaces", name, "address"), f"{host} {name}"
        check_owner(where, owner, str(interface.address.ip))
        subnet, whose = subnets.setdefault(interface.link, (interface.address.network, owner))
        if interface.address.network != subnet:
            message = f"{interface.address} is not in the subnet of {whose}; choose an address in {subnet}"
            checked.report(where, message)
    for name, machine in testbed.hosts.items():
        if machine.image and testbed.lab is None:
            message = "only a lab boots an image; add lab: {kernel: vm} to the testbed, or remove this key"
            checked.report(("hosts", name, "image"), message)
        elif not machine.image and testbed.lab and testbed.lab.kernel == "vm":
            message = f"{name} has no image; add image: FILE.qcow2, or choose another kernel for the lab"
            checked.report(("hosts", name), message)
        check_owner(("hosts", name, "address"), name, machine.address, testbed.ssh_of(name).port)
        if testbed.lab is not None:
            try:
                ip_address(machine.address)
            except ValueError:
                message = f"'{machine.address}' is a host name; use an address, as a lab has no resolver"
                checked.report(("hosts", name, "address"), message)


def _check_bottleneck(checked: Validation[keys.Testbed], testbed: keys.Testbed) -> None:
    """Report an unknown router or interface of the bottleneck, and a `from` that equals `to`."""
    bottleneck = testbed.bottleneck
    routers = [name for name, one in testbed.hosts.items() if one.role == "router"]
    if bottleneck is None or not checked.check_name(
        ("bottleneck", "router"), "router", bottleneck.router, routers
    ):
        return
    interfaces = testbed.hosts[bottleneck.router].interfaces
    for key, interface in (("from", bottleneck.from_interface), ("to", bottleneck.to_interface)):
        checked.check_name(("bottleneck", key), f"interface of {bottleneck.router}", interface, interfaces)
    if bottleneck.from_interface == bottleneck.to_interface:
        message = (
            f"data cannot enter and leave by the same interface, {bottleneck.to_interface}; choose another"
        )
        checked.report(("bottleneck", "to"), message)
