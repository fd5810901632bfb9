"""The testbed as typed, frozen values."""

from __future__ import annotations

import re
from collections.abc import Mapping
from ipaddress import (
    IPv4Interface,
    IPv4Network,
    IPv6Interface,
    IPv6Network,
    ip_address,
    ip_interface,
    ip_network,
)
from typing import Annotated, Literal, TypeVar

from pydantic import BeforeValidator, Field, PrivateAttr, WrapValidator, model_validator

from samovar.experiment.keys import notation
from samovar.experiment.keys.devices import Adapter, Wlan
from samovar.experiment.keys.field_types import (
    Duration,
    Interface,
    Memory,
    Name,
    Port,
    Sentence,
    Strict,
    Word,
    choice,
    scalar,
)
from samovar.experiment.keys.host_settings import Settings
from samovar.experiment.keys.power_keys import Power
from samovar.experiment.yaml.tree import Map
from samovar.units import UnitError

OSES = ("linux", "freebsd")
T = TypeVar("T")
ROLES = ("sender", "receiver", "router", "observer")
KERNELS = ("auto", "uml", "native")
_LABEL = r"[A-Za-z0-9]([A-Za-z0-9-]{0,61}[A-Za-z0-9])?"  # RFC 1123, section 2.1
_HOST_NAME = re.compile(rf"(?=.{{1,253}}$){_LABEL}(\.{_LABEL})*")
_USER = re.compile(r"[A-Za-z_][A-Za-z0-9_.-]{0,31}")
_RELEASE = re.compile(r"[0-9]{1,4}(\.[0-9]{1,4}){0,3}")


def _address(text: str) -> IPv4Interface | IPv6Interface:
    expected = "expected an address with its prefix length, such as 172.16.10.2/24"
    if "/" not in text:
        raise UnitError(f"'{text}' has no prefix length; {expected}")
    try:
        interface = ip_interface(text)
    except ValueError:
        raise UnitError(f"'{text}' is no address; {expected}") from None
    network = interface.network
    if network.num_addresses > 2 and interface.ip in (network.network_address, network.broadcast_address):
        raise UnitError(f"'{text}' is the network's own or broadcast address; expected a host's in {network}")
    return interface


def _subnet(text: str) -> IPv4Network | IPv6Network:
    try:
        return ip_network(text)
    except ValueError:
        raise UnitError(f"'{text}' is no subnet; expected one such as 172.16.10.0/24") from None


def _control_address(text: str) -> str:
    expected = "expected an address such as 10.64.0.11, or a host name"
    if re.fullmatch(r"[0-9.]+", text) or ":" in text:
        try:
            return str(ip_address(text))
        except ValueError:
            raise UnitError(f"'{text}' is no address; {expected}") from None
    if not _HOST_NAME.fullmatch(text):
        raise UnitError(f"'{text}' is no address; {expected}")
    return text


def _user(text: str) -> str:
    if not _USER.fullmatch(text):
        raise UnitError(f"'{text}' is no user name; expected one such as root")
    return text


def _release(text: str) -> str:
    if not _RELEASE.fullmatch(text):
        raise UnitError(f"'{text}' is no release; expected a number such as 11 or 13.2")
    return text


Address = Annotated[IPv4Interface | IPv6Interface, BeforeValidator(scalar(_address)), notation.ADDRESS]
Subnet = Annotated[IPv4Network | IPv6Network, BeforeValidator(scalar(_subnet)), notation.SUBNET]
ControlAddress = Annotated[str, BeforeValidator(scalar(_control_address)), notation.CONTROL_ADDRESS]
User = Annotated[str, BeforeValidator(scalar(_user)), notation.USER]
Release = Annotated[str, BeforeValidator(scalar(_release)), notation.RELEASE]


class Ssh(Strict):
    """How hosts are logged in to; paths may start with ~."""

    user: User = Field("root", description="User to log in as; root in a lab.")
    port: Port = Field(22, description="Port of the SSH servers.")
    key: Word | None = Field(
        None, description="File of the private key, such as ~/.ssh/id_ed25519; else the agent's."
    )
    known_hosts: Word | None = Field(
        None, description="File of known host keys, other hosts being refused; else ~/.ssh/known_hosts."
    )


class HostSsh(Strict):
    """What one host does differently from the testbed's ssh."""

    user: User | None = Field(None, description="User to log in as on this host.")
    port: Port | None = Field(None, description="Port of this host's SSH server.")
    key: Word | None = Field(None, description="File of the private key for this host.")
    known_hosts: Word | None = Field(None, description="File that knows this host's key.")


class Lab(Strict):
    """The virtual lab that stands for the testbed."""

    kernel: Annotated[Literal["auto", "uml", "native"], choice("kernel", *KERNELS)] = Field(
        "auto",
        description="uml: user-mode Linux; native: the machine's own kernel; auto: native where it can be.",
    )
    memory_bytes: Memory = Field(
        512_000_000, alias="memory", description="Memory of the virtual machine, such as 1GB."
    )


class NetworkInterface(Strict):
    """An interface on the testbed's own network."""

    address: Address = Field(description="Address with the length of its prefix, such as 172.16.10.2/24.")
    link: Name = Field(description="Link that it is on: interfaces of the same one are a cable or a switch.")


class Link(Strict):
    """What is said of a link beyond its name."""

    subnet: Subnet | None = Field(
        None, description="Subnet of its interfaces, such as 172.16.10.0/24; else theirs."
    )
    adapter: Adapter | None = Field(
        None, description="A pair of adapters between two hosts: what they are where an experiment is silent."
    )
    wlan: Wlan | None = Field(None, description="A wireless network of the hosts on this link.")
    description: Sentence = Field("", description="What the link is, for the report.")

    @model_validator(mode="after")
    def _is_one_thing(self) -> Link:
        if self.adapter is not None and self.wlan is not None:
            raise ValueError("the link is an adapter and a wlan; expected one of them")
        return self


class Host(Strict):
    """One machine: `address` is on the control network, its interfaces on the testbed's.

    The release of its system chooses recipes made for that one; without it, the system's own serve.
    """

    os: Annotated[Literal["linux", "freebsd"], choice("os", *OSES)] = Field(
        description="Operating system: where its recipes are looked for."
    )
    release: Release | None = Field(
        None, description="Release of the system, such as 11.4: recipes made for it are taken first."
    )
    role: Annotated[Literal["sender", "receiver", "router", "observer"], choice("role", *ROLES)] = Field(
        description="Part it plays; experiments name hosts by it: sender, sender2, senders."
    )
    address: ControlAddress = Field(
        description="Address or name on the control network, where SSH reaches it; an address in a lab."
    )
    interfaces: Mapping[Interface, NetworkInterface] = Field(
        default_factory=dict, description="Interfaces on the testbed's own network, by their names."
    )
    ssh: HostSsh = Field(HostSsh(), description="What this host does differently from the testbed's ssh.")
    settings: Settings = Field(
        default_factory=dict, description="What this host is set to, over the testbed's settings."
    )
    boot_timeout_s: Duration = Field(
        300.0, alias="boot_timeout", description="How long it may take to answer again after a reboot."
    )
    power: Power | None = Field(
        None, description="How it is switched on and off from outside, should a reboot not bring it back."
    )
    description: Sentence = Field("", description="What the machine is, for the report.")

    @property
    def system(self) -> str:
        """The system as the catalogue of recipes knows it: linux, or freebsd-11 of release 11.4."""
        return f"{self.os}-{self.release.partition('.')[0]}" if self.release else self.os


class Bottleneck(Strict):
    """Where the queue is: data enters the router at one interface and queues at the egress of the other."""

    router: Name = Field(description="Host whose queue is the bottleneck's.")
    from_interface: Interface = Field(
        alias="from", description="Interface of the router at which data enters."
    )
    to_interface: Interface = Field(alias="to", description="Interface at whose egress data queues.")


class LinkBottleneck(Strict):
    """Where the queue is when a device between two hosts holds it, such as an adapter: at a link."""

    link: Name = Field(description="Link whose adapters queue.")


def _bottleneck(written: object, _: object) -> Bottleneck | LinkBottleneck:
    if not isinstance(written, dict):
        raise ValueError("expected a mapping, {router: ..., from: ..., to: ...} or {link: ...}")
    if "link" not in written:
        return Bottleneck.model_validate(written)
    if len(written) > 1:
        others = ", ".join(str(key) for key in written if key != "link")
        raise ValueError(f"is a link and has {others} beside it; expected link alone, or router, from and to")
    return LinkBottleneck.model_validate(written)


class Testbed(Strict):
    """One testbed file."""

    __test__ = False  # the name starts like a test class; pytest must not collect it

    name: Name = Field(alias="testbed", description="Name of the testbed, the same as the file's.")
    description: Sentence = Field("", description="What the testbed is, for the report.")
    lab: Lab | None = Field(None, description="Makes this testbed a virtual one, in one kernel.")
    ssh: Ssh = Field(Ssh(), description="How every host is logged in to.")
    hosts: Mapping[Name, Host] = Field(min_length=1, description="Machines by their names.")
    links: Mapping[Name, Link] = Field(
        default_factory=dict, description="What is said of links beyond what their interfaces say."
    )
    place: Annotated[Bottleneck | LinkBottleneck | None, WrapValidator(_bottleneck)] = Field(
        None, alias="bottleneck", description="Where the queue is; without it experiments have no path."
    )
    settings: Settings = Field(
        default_factory=dict,
        description="What every host is set to where no experiment says it: cc, rwnd, mtu, txd or "
        "RECIPE.PARAMETER.",
    )

    _written: Map | None = PrivateAttr(None)

    @property
    def bottleneck(self) -> Bottleneck | None:
        """The router that holds the queue; None where there is none, or a device holds it."""
        return self.place if isinstance(self.place, Bottleneck) else None

    @property
    def bottleneck_link(self) -> str | None:
        """The link whose device holds the queue; None where a router does, or nothing."""
        return self.place.link if isinstance(self.place, LinkBottleneck) else None

    @property
    def device(self) -> Adapter | None:
        """The device that holds the queue."""
        link = self.links.get(self.bottleneck_link or "")
        return link.adapter if link else None

    @property
    def written(self) -> Map | None:
        """Return the file's own tree with its places: origins of settings start from it."""
        return self._written

    def with_source(self, tree: Map) -> Testbed:
        """Return this testbed remembering the tree it was read from."""
        copy = self.model_copy()
        copy._written = tree
        return copy

    def host_of(self, name: str) -> str | None:
        """Return the host that a host's or role's name means; sender2 is the second sender of the file."""
        return self.names().get(name)

    def names(self) -> dict[str, str]:
        """Return every name that an experiment may use for a host, with the host it means."""
        meant: dict[str, str] = {}
        for role in ROLES:
            having = [name for name, host in self.hosts.items() if host.role == role]
            for index, name in enumerate(having, start=1):
                meant[role if index == 1 else f"{role}{index}"] = name
        return meant | {name: name for name in self.hosts}

    def names_of(self, host: str) -> tuple[str, ...]:
        """Return the names that mean a host, the most specific first: its own, sender2, senders."""
        numbered = [name for name, meant in self.names().items() if meant == host and name != host]
        return (host, *numbered, f"{self.hosts[host].role}s")

    def value_at(self, host: str, values: Mapping[str, T]) -> T | None:
        """Return a host's value in a mapping by host or role: that of the most specific name, or None."""
        return next((values[name] for name in self.names_of(host) if name in values), None)

    def ssh_of(self, name: str) -> Ssh:
        """Return how one host is logged in to: its own values over the testbed's."""
        own = self.hosts[name].ssh.model_dump(exclude_none=True)
        return self.ssh.model_copy(update=own)
