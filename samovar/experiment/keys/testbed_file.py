"""Keys of a testbed file: hosts with SSH access and power control, links and the bottleneck."""

from __future__ import annotations

import ipaddress
import re
import shlex
from collections.abc import Mapping
from functools import cached_property
from ipaddress import IPv4Interface, IPv4Network, IPv6Interface, IPv6Network
from typing import Annotated, TypeVar

from pydantic import Field, WrapValidator, model_validator

from samovar.errors import unknown
from samovar.experiment.keys import value_types as types
from samovar.experiment.keys.factor_keys import NetworkPath
from samovar.experiment.keys.key_table import SourceFile, Strict, entry, keys_of
from samovar.experiment.keys.levels import Settings
from samovar.experiment.keys.operating_systems import OPERATING_SYSTEMS
from samovar.experiment.keys.recipe_parameters import ParameterInfo, as_parameter
from samovar.experiment.keys.thresholds import Thresholds
from samovar.experiment.keys.value_types import Duration, Interface, Name, Port, Sentence, Share, Word
from samovar.experiment.values import Buffer
from samovar.units import UnitError, quoted

ROLES = ("sender", "receiver", "router", "observer")
_DSSS_BPS = (1000000, 2000000, 5500000, 11000000)
_OFDM_BPS = tuple(mbit * 1000000 for mbit in (6, 9, 12, 18, 24, 36, 48, 54))
WLAN_RATES_BPS: Mapping[str, tuple[int, ...]] = {
    "802.11a": _OFDM_BPS,
    "802.11b": _DSSS_BPS,
    "802.11g": (*_DSSS_BPS, *_OFDM_BPS),
}
"""The standards that a lab simulates, with their rates."""
MOST_STATIONS = 64  # MOST_PORTS in samovar/lab/devices/device.h, less the access point
STANDARDS = ("802.11a", "802.11b", "802.11g", "802.11n", "802.11ac", "802.11ax")
LARGEST_QUANTA = 65535  # IEEE 802.3, annex 31B: a 16-bit field, in units of 512 bit times
PLACEHOLDERS = ("host", "address", "outlet")
T = TypeVar("T")
_LABEL = r"[A-Za-z0-9](?:[A-Za-z0-9-]{0,61}[A-Za-z0-9])?"  # RFC 1123, section 2.1
_HOST_NAME = rf"(?=.{{1,253}}$){_LABEL}(?:\.{_LABEL})*"


def _address(text: str) -> IPv4Interface | IPv6Interface:
    if "/" not in text:
        raise ValueError
    interface = ipaddress.ip_interface(text)
    network = interface.network
    if network.num_addresses > 2 and interface.ip in (network.network_address, network.broadcast_address):
        what = "the network's own or broadcast address"
        raise UnitError(f"{quoted(text)} is {what}; expected the address of a host in {network}")
    return interface


def _control_address(text: str) -> str:
    if re.fullmatch(r"[0-9.]+", text) or ":" in text:
        return str(ipaddress.ip_address(text))
    if not re.fullmatch(_HOST_NAME, text):
        raise ValueError
    return text


class ProgramType(types.ValueType):
    """The type of a program with its arguments. `parse` checks each word."""

    def read(self, written: object) -> tuple[str, ...]:
        """Return the words of a list, or split a text into words like a shell. Raises UnitError."""
        expected = f"expected a program and its arguments, such as {self.examples[-1]}"
        words = written
        if isinstance(written, str):
            try:
                words = shlex.split(written)
            except ValueError as error:
                raise UnitError(f"{str(error).lower()}; {expected}") from None
        if not isinstance(words, list | tuple) or not all(isinstance(word, str) for word in words):
            raise UnitError(expected)
        if not words or not words[0]:
            raise UnitError(f"is empty; {expected}")
        return tuple(self.parse(str(word)) for word in words)


def _command_word(word: str) -> str:
    try:
        word.format_map(dict.fromkeys(PLACEHOLDERS, "x"))  # as power control does
    except KeyError as error:
        raise UnitError(unknown("placeholder", error.args[0], PLACEHOLDERS)) from None
    except (ValueError, AttributeError, IndexError, TypeError):
        known = ", ".join(f"{{{name}}}" for name in PLACEHOLDERS)
        advice = f"expected one of {known}, or {{{{ or }}}} for a literal brace"
        raise UnitError(f"{quoted(word)} has a wrong placeholder or a single brace; {advice}") from None
    return word


COMMAND = ProgramType(
    "command",
    "a program with its arguments, as a list or as one text; it may contain {host}, {address} and {outlet}",
    ("wakeonlan 52:54:00:12:34:56", "[snmpset, -v3, pdu, '{outlet}', i, '2']"),
    {"type": ["string", "array"], "items": {"type": ["string", "number"]}},
    _command_word,
)
ADDRESS = types.named(
    "address/prefix",
    "an address with the length of its prefix",
    ("172.16.10.2/24",),
    rf"{types.IP}{types.PREFIX}",
    _address,
)
SUBNET = types.named(
    "subnet", "a subnet", ("172.16.10.0/24",), rf"{types.IP}(?:{types.PREFIX})?", ipaddress.ip_network
)
CONTROL_ADDRESS = types.named(
    "address or host name",
    "an address or a host name",
    ("10.64.0.11", "alpha.example.org"),
    rf"(?:{types.IP}|(?![0-9.]+$){_HOST_NAME})",
    _control_address,
)
USER = types.named("user", "a user name", ("root",), "[A-Za-z_][A-Za-z0-9_.-]{0,31}")
RELEASE = types.named("release", "a release: a number", ("11", "13.2"), r"[0-9]{1,4}(?:\.[0-9]{1,4}){0,3}")
QUANTA = types.whole_number("integer", "a number of quanta", "65535", 0, LARGEST_QUANTA)
CPUS = types.whole_number("integer", "a number of processors", "2", 1, 64)
User = Annotated[str, USER]
Rate = Annotated[int, types.RATE]
Memory = Annotated[int, types.SIZE, Field(ge=128_000_000)]  # in bytes; a kernel needs at least this much
Command = Annotated[tuple[str, ...], COMMAND]


class Ssh(Strict):
    """How to log in to hosts."""

    user: User = entry("User to log in as; root in a lab.", "root")
    port: Port = entry("Port of the SSH servers.", 22)
    key: Word | None = entry("Private key, such as ~/.ssh/id_ed25519; by default the agent's keys.", None)
    known_hosts: Word | None = entry("File of accepted host keys; by default ~/.ssh/known_hosts.", None)


class Lab(Strict):
    """Options of a testbed that is a virtual lab."""

    kernel: Annotated[str, types.choice("kernel", "auto", "uml", "native", "vm")] = entry(
        "Kernel of hosts without an image. `uml`: user-mode Linux; `native`: this machine's kernel; `auto`: "
        "`native` if possible, otherwise `uml`; `vm`: every host must have an image.",
        "auto",
    )
    memory_bytes: Memory = entry("Memory of user-mode Linux, and of each virtual machine.", 512_000_000)


class NetworkInterface(Strict):
    """One interface of a host, and the link to which it is attached."""

    address: Annotated[IPv4Interface | IPv6Interface, ADDRESS] = entry("Address, such as 172.16.10.2/24.")
    link: Name = entry(
        "Link of the interface: all interfaces of a link share a cable or switch, and a subnet."
    )


class Adapter(Strict):
    """A pair of powerline or similar adapters, each with a queue of frames in front of a slower medium."""

    rate_bps: Rate = entry("Rate of the medium.")
    buffer: Annotated[Buffer, types.BUFFER] = entry("Size of the queue in each adapter, such as 2720packets.")
    delay_s: Annotated[float, types.DELAY] = entry("One-way delay of the idle medium.", 0.0)
    medium: Annotated[str, types.choice("medium", "simplex", "duplex")] = entry(
        "`simplex`: both directions share the rate; `duplex`: each direction has the full rate.", "duplex"
    )
    access_s: Annotated[float, types.DELAY] | None = entry(
        "Mean time per transmission for access to the medium, in addition to the time of its frames.", None
    )
    burst_s: Annotated[float, types.DELAY] | None = entry(
        "Longest total time of the frames in one transmission; by default, a transmission has one frame.",
        None,
    )
    flow_control: Annotated[bool, types.SWITCH] = entry("Whether a full adapter sends PAUSE frames.", False)
    pause_quanta: Annotated[int, QUANTA] = entry(
        "Length of the pause that each PAUSE frame requests, in units of 512 bit times.", LARGEST_QUANTA
    )
    drift: Share = entry("Largest share by which the medium's rate varies over time.", 0.0)


class Wlan(Strict):
    """A wireless network whose stations share the medium."""

    standard: Annotated[str, types.choice("standard", *STANDARDS)] = entry("Standard of the network.")
    rate_bps: Rate | None = entry("Rate of every station; by default stations adapt their rates.", None)
    access_point: Name | None = entry("Host that is the access point; by default the link's router.", None)


class Link(Strict):
    """Properties of one link."""

    EXCLUSIVE = (("adapter", "wlan"),)

    subnet: Annotated[IPv4Network | IPv6Network, SUBNET] | None = entry(
        "Subnet of the interfaces, such as 172.16.10.0/24; by default the subnet of their addresses.", None
    )
    adapter: Adapter | None = entry("Pair of adapters between two hosts.", None)
    wlan: Wlan | None = entry("A wireless network of the hosts on this link.", None)
    description: Sentence = entry("Description of the link, for the report.", "")


class Ipmi(Strict):
    """Access to a machine's management controller over IPMI, which can switch the machine off and on."""

    address: Annotated[str, CONTROL_ADDRESS] = entry("Address or name of the management controller.")
    user: User = entry("User to log in as.")
    password_file: Word = entry("File with the password, of mode 600, such as ~/ipmi-password.")


class Power(Strict):
    """How to switch a machine on and off."""

    EXCLUSIVE = tuple(("ipmi", command) for command in ("on", "off", "cycle", "status"))
    NEEDED = (("cycle", "on", "ipmi"), ("cycle", "off", "ipmi"))

    on: Command | None = entry("Switches the machine on.", None)
    off: Command | None = entry("Switches the machine off.", None)
    cycle: Command | None = entry("Switches the machine off and on; by default `off`, then `on`.", None)
    status: Command | None = entry("Prints whether the machine is on.", None)
    outlet: Word | None = entry("Value of {outlet} in the commands.", None)
    ipmi: Ipmi | None = entry("Management controller that ipmitool reaches, instead of commands.", None)

    @model_validator(mode="after")
    def _has_outlet(self) -> Power:
        commands = [command or () for command in (self.on, self.off, self.cycle, self.status)]
        if self.outlet is None and any("{outlet}" in word for command in commands for word in command):
            raise ValueError("a command uses {outlet}; expected outlet: ... beside it")
        return self


class MachineOptions(Strict):
    """How a lab runs a host that has an image."""

    COMPANIONS = {"initrd": "kernel", "append": "kernel"}  # noqa: RUF012

    memory_bytes: Memory | None = entry("Memory; by default the lab's `memory`.", None)
    cpus: Annotated[int, CPUS] = entry("Number of processors.", 1)
    kernel: Word | None = entry("Kernel to boot directly, for an image without a boot loader.", None)
    initrd: Word | None = entry("Initial RAM disk of the kernel in `kernel`.", None)
    append: Sentence = entry("Command line of the kernel in `kernel`.", "")


class Host(Strict):
    """One machine. `address` is on the control network, `interfaces` are on links of the testbed.

    Recipes for its release take precedence over recipes for its operating system.
    """

    COMPANIONS = {"machine": "image"}  # noqa: RUF012

    os: Annotated[str, types.choice("os", *OPERATING_SYSTEMS)] = entry(
        "Operating system, which determines the recipes."
    )
    release: Annotated[str, RELEASE] | None = entry(
        "Release of the operating system, such as 11.4; its recipes are preferred.", None
    )
    role: Annotated[str, types.choice("role", *ROLES)] = entry(
        "Role of the host, by which experiments name it: sender, sender2, senders."
    )
    address: Annotated[str, CONTROL_ADDRESS] = entry(
        "Address or host name on the control network, for SSH; labs need an address."
    )
    interfaces: Mapping[Interface, NetworkInterface] = entry(
        "Interfaces on the testbed's links, without that of the control network.", {}
    )
    ssh: Ssh = entry("SSH settings of this host, which override the testbed's.", Ssh.model_construct())
    settings: Settings = entry("Settings of this host, which override the testbed's.", {})
    image: Word | None = entry(
        "Disk image, qcow2 or raw, from which a lab boots this host as a virtual machine.", None
    )
    machine: MachineOptions = entry(
        "Options of the host's virtual machine.", MachineOptions.model_construct()
    )
    boot_timeout_s: Duration = entry("Longest time to wait for the host after a reboot.", 300.0)
    power: Power | None = entry(
        "How to switch the host on and off if it does not return from a reboot: commands that the controller "
        "runs without a shell, or IPMI.",
        None,
    )
    description: Sentence = entry("Description of the machine, for the report.", "")

    @property
    def system(self) -> str:
        """The system in the catalogue of recipes: os, or os-MAJOR if the release is given (freebsd-11)."""
        return f"{self.os}-{self.release.partition('.')[0]}" if self.release else self.os


class Bottleneck(Strict):
    """A router's queue."""

    router: Name = entry("Router that has the queue.")
    from_interface: Interface = entry("Interface through which data enters the router.", alias="from")
    to_interface: Interface = entry(
        "Interface through which data leaves the router; its egress has the queue.", alias="to"
    )


class LinkBottleneck(Strict):
    """A link as bottleneck: the device that forms the link has the queue."""

    link: Name = entry("Link whose adapters have the queue.")


def _bottleneck(written: object, _: object) -> Bottleneck | LinkBottleneck:
    if not isinstance(written, dict):
        raise ValueError("expected a mapping, {router: ..., from: ..., to: ...} or {link: ...}")
    if "link" not in written:
        return Bottleneck.model_validate(written)
    if len(written) > 1:
        others = ", ".join(f"`{key}`" for key in written if key != "link")
        raise ValueError(f"has `link` and {others}; expected `link` alone, or `router`, `from` and `to`")
    return LinkBottleneck.model_validate(written)


class Testbed(SourceFile):
    """One testbed file."""

    name: Name = entry("Name of the testbed, equal to the name of its file.", alias="testbed")
    description: Sentence = entry("Description of the testbed, for the report.", "")
    lab: Lab | None = entry("Makes the testbed a virtual lab on this machine, with these options.", None)
    ssh: Ssh = entry("How to log in to every host.", Ssh.model_construct())
    hosts: Mapping[Name, Host] = entry("Machines by name.", min_length=1)
    links: Mapping[Name, Link] = entry(
        "Links by name; only a link with a subnet, a device or a description needs an entry.", {}
    )
    place: Annotated[Bottleneck | LinkBottleneck | None, WrapValidator(_bottleneck)] = entry(
        "Where the bottleneck's queue is; without this key, experiments cannot have a path.",
        None,
        alias="bottleneck",
    )
    settings: Settings = entry("Settings of every host.", {})
    verdict: Thresholds = entry(
        "Limits of the verdict, which override those of config.yaml.",
        Thresholds.model_construct(),
    )

    @property
    def bottleneck(self) -> Bottleneck | None:
        """The router with the queue; None without a bottleneck, or if a device has the queue."""
        return self.place if isinstance(self.place, Bottleneck) else None

    @property
    def bottleneck_link(self) -> str | None:
        """The link whose device has the queue; None without a bottleneck, or if a router has the queue."""
        return self.place.link if isinstance(self.place, LinkBottleneck) else None

    @property
    def device(self) -> Adapter | None:
        """The device that has the queue, or None."""
        link = self.links.get(self.bottleneck_link or "")
        return link.adapter if link else None

    @cached_property
    def hosts_by_name(self) -> Mapping[str, tuple[str, ...]]:
        """Maps each name in experiments to its hosts: sender, sender2, the host's own name, senders."""
        numbered: dict[str, tuple[str, ...]] = {}
        plural: dict[str, tuple[str, ...]] = {}
        for role in ROLES:
            having = tuple(name for name, host in self.hosts.items() if host.role == role)
            for index, name in enumerate(having, start=1):
                numbered[role if index == 1 else f"{role}{index}"] = (name,)
                plural[f"{role}s"] = having
        single = numbered | {name: (name,) for name in self.hosts}
        return single | {name: hosts for name, hosts in plural.items() if name not in single}

    def names_of(self, host: str) -> tuple[str, ...]:
        """Return a host's names in experiments, most specific first: its own name, sender2, senders."""
        every = (name for name, hosts in self.hosts_by_name.items() if host in hosts and name != host)
        return (host, *every)

    def value_at(self, host: str, values: Mapping[str, T]) -> T | None:
        """Return a host's value in a mapping from hosts or roles, or None; the most specific name wins."""
        return next((values[name] for name in self.names_of(host) if name in values), None)

    def ssh_of(self, name: str) -> Ssh:
        """Return the SSH settings of one host: those of the testbed, overridden by its own."""
        return self.ssh.under(self.hosts[name].ssh)


DEVICE_PARAMETERS: Mapping[str, ParameterInfo] = {
    name: as_parameter(key) for name, key in keys_of(Adapter).items() if name not in keys_of(NetworkPath)
}
"""Keys that `path` accepts if the bottleneck is a device, besides rate, rtt, delay, buffer and loss."""


def hosts_at(testbed: Testbed, link: str) -> tuple[str, ...]:
    """Return the hosts at a link, in the order of the file."""
    hosts = testbed.hosts.items()
    return tuple(name for name, host in hosts if any(one.link == link for one in host.interfaces.values()))


def access_point(testbed: Testbed, link: str) -> str | None:
    """Return the access point of a WLAN: the host given in the file, or else the link's only router.

    Return None if the link has no router, or several.
    """
    wlan = testbed.links[link].wlan
    if wlan and wlan.access_point:
        return wlan.access_point
    routers = [name for name in hosts_at(testbed, link) if testbed.hosts[name].role == "router"]
    return routers[0] if len(routers) == 1 else None


def hosts_of(testbed: Testbed, *names: str) -> tuple[str, ...]:
    """Return the hosts with these names; the plural of a role, such as senders, stands for all its hosts."""
    return tuple(host for name in names for host in testbed.hosts_by_name.get(name, ()))


def is_plural(testbed: Testbed, name: str) -> bool:
    """Return whether a name is the plural of a role (senders), which means every host of that role."""
    return name not in testbed.hosts and name.removesuffix("s") in ROLES and name not in ROLES
