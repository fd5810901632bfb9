"""Parse the output of programs that describe a host, such as ethtool.

The parsers return an empty value for empty output.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

_OFFLOADS = {
    "tcp-segmentation-offload": "tso",
    "generic-segmentation-offload": "gso",
    "generic-receive-offload": "gro",
    "large-receive-offload": "lro",
}


@dataclass(frozen=True)
class Interface:
    """A network interface; `offloads` lists which of tso, gso, gro and lro are enabled.

    `max_mtu_bytes` is the largest MTU that the interface's driver accepts, or None if it is unknown.
    """

    name: str
    mtu_bytes: int
    addresses: tuple[str, ...] = ()
    offloads: tuple[str, ...] = ()
    max_mtu_bytes: int | None = None


@dataclass(frozen=True)
class Sudo:
    """The commands that sudo(8) allows a user, as patterns, and the paths of programs on the host."""

    user: str
    paths: Mapping[str, str]
    allowed: tuple[str, ...]


def parse_sudo(text: str) -> Sudo | None:
    """Parse the lines `user NAME`, `path PROGRAM PATH` and `may PATTERN` of the fact `sudo`.

    Returns None if the line `user` is missing, which means that root logs in and needs no sudo.
    """
    lines = [line.partition(" ") for line in text.splitlines()]
    users = [rest for word, _, rest in lines if word == "user"]
    if not users:
        return None
    paths = dict(rest.split(" ", 1) for word, _, rest in lines if word == "path" and " " in rest)
    return Sudo(users[0], paths, tuple(rest for word, _, rest in lines if word == "may"))


def parse_number(text: str) -> int:
    """Parse a number on a line of its own; return 0 for anything else."""
    return int(text) if text.strip().isdecimal() else 0


def parse_tools(text: str) -> dict[str, str]:
    """Parse lines with a program's name and the first line of its version output; return versions by name."""
    tools = {}
    for line in filter(None, text.splitlines()):
        name, _, output = line.partition(" ")
        version = re.search(r"\d+(\.\d+)+", output)
        tools[name] = version[0] if version else ""
    return tools


def parse_cc_available(text: str) -> tuple[str, ...]:
    """Parse a list of congestion controls: FreeBSD's sysctl net.inet.tcp.cc.available, or one name per line.

    The sysctl's value is a comma-separated list up to FreeBSD 13, and a table in later releases. If newreno
    is listed, the result also has its Linux name, reno.
    """
    rows = (re.split(r",\s*", line) if "," in line else line.split()[:1] for line in text.splitlines())
    names = {name.strip() for row in rows for name in row} - {"CCmod", ""}
    return tuple(sorted(names | ({"reno"} if "newreno" in names else set())))


def parse_qdiscs(text: str) -> tuple[str, ...]:
    """Parse the result of creating queue disciplines with `tc -batch`; return the names of those created.

    The text has the names of the queue disciplines, then `tc:` and the errors of tc, which have line numbers.
    If tc could not be run, the result is empty.
    """
    names, _, output = text.partition("tc:\n")
    lines = output.splitlines()
    if not lines or lines[-1] not in ("exit 0", "exit 1") or any(one.startswith("unshare:") for one in lines):
        return ()
    failed = {int(number) for number in re.findall(r"^Command failed -:(\d+)$", output, re.MULTILINE)}
    return tuple(name for number, name in enumerate(names.split(), 1) if number not in failed)


def parse_interfaces(text: str) -> tuple[Interface, ...]:
    """Parse the output of `ip -d -j addr show`.

    The first line of the text is this output. The further lines are, for each interface, a line `NAME:` and
    the output of `ethtool -k`.
    """
    first, _, rest = text.partition("\n")
    offloads = {name: _offloads_on(part) for name, part in _by_interface(rest).items()}
    return tuple(
        Interface(
            link["ifname"],
            link["mtu"],
            tuple(f"{address['local']}/{address['prefixlen']}" for address in link.get("addr_info", ())),
            offloads.get(link["ifname"], ()),
            link.get("max_mtu") or None,
        )
        for link in (json.loads(first) if first.startswith("[") else ())
    )


def parse_ethtool(pattern: str, text: str) -> tuple[str, ...]:
    """Return the interfaces for which the output of ethtool matches a pattern.

    For each interface, the text has a line `NAME:`, followed by the output of ethtool.
    """
    parts = _by_interface(text).items()
    return tuple(name for name, part in parts if re.search(pattern, part, re.DOTALL | re.MULTILINE))


def parse_cc_parameters(text: str) -> dict[str, tuple[str, ...]]:
    """Parse names of files and sysctls that hold parameters; return the parameters by congestion control.

    Examples of names are /sys/module/tcp_cdg/parameters/window (Linux) and net.inet.tcp.cc.cdg.beta_delay
    (FreeBSD).
    """
    found: dict[str, tuple[str, ...]] = {}
    pattern = r"(?:/tcp_(?=\w+/p)|\.cc\.)(\w+)(?:/parameters/|\.)(\w+)$"
    for name, parameter in re.findall(pattern, text, re.MULTILINE):
        found[name] = (*found.get(name, ()), parameter)
    return found


def parse_clock_source(text: str) -> str:
    """Parse a line `chrony`, `ntp` or `timesyncd`, and the status that this program printed below it.

    Returns the program's name if the status says that the clock is synchronised, otherwise an empty string.
    """
    source, _, status = text.partition("\n")
    synced = {"chrony": r"^[0-9A-F]{8},.*,Normal$", "ntp": r"^[*o]\S", "timesyncd": r"^NTPSynchronized=yes$"}
    return source if source in synced and re.search(synced[source], status, re.MULTILINE) else ""


def parse_ifconfig(text: str) -> tuple[Interface, ...]:
    """Parse the output of FreeBSD's `ifconfig -a`."""
    parts = re.split(r"^(\S+): flags=", text, flags=re.MULTILINE)
    return tuple(_ifconfig(name, part) for name, part in zip(parts[1::2], parts[2::2], strict=True))


def _ifconfig(name: str, text: str) -> Interface:
    mtu = re.search(r" mtu (\d+)", text)
    four = re.findall(r"^\s+inet (\S+) (?:--> \S+ )?netmask 0x([0-9a-f]{8})", text, re.MULTILINE)
    six = re.findall(r"^\s+inet6 (\S+) prefixlen (\d+)", text, re.MULTILINE)
    addresses = [f"{address}/{int(mask, 16).bit_count()}" for address, mask in four]
    addresses += [f"{address.partition('%')[0]}/{length}" for address, length in six]
    options = re.search(r"^\s+options=[0-9a-f]+<([^>]*)>", text, re.MULTILINE)
    enabled = set(options[1].split(",")) if options else set()
    offloads = tuple(short for flag, short in (("TSO4", "tso"), ("LRO", "lro")) if flag in enabled)
    return Interface(name, int(mtu[1]) if mtu else 0, tuple(addresses), offloads)


def parse_dmesg_rings(text: str) -> tuple[str, ...]:
    """Parse FreeBSD's boot messages; return the interfaces whose driver reported a transmit ring.

    An example of such a message is `em1: Using 1024 TX descriptors and 1024 RX descriptors`.
    """
    return tuple(sorted(set(re.findall(r"^(\S+): Using \d+ TX descriptors", text, re.MULTILINE))))


def _first(pattern: str, text: str) -> str:
    """Return the first group of a pattern's first match in a text, or an empty string without a match."""
    match = re.search(pattern, text, re.MULTILINE)
    return match[1] if match else ""


def _by_interface(text: str) -> dict[str, str]:
    # Parts begin with a line `NAME:`. Headings of ethtool end with a colon too, but contain blanks.
    parts = re.split(r"^([^\s:]+):\n", text, flags=re.MULTILINE)
    return dict(zip(parts[1::2], parts[2::2], strict=True))


def _offloads_on(text: str) -> tuple[str, ...]:
    return tuple(short for name, short in _OFFLOADS.items() if re.search(rf"^{name}: on", text, re.MULTILINE))


FORMATS: Mapping[str, Callable[[str], Any]] = {
    "line": str.strip,
    "number": parse_number,
    "words": lambda text: tuple(sorted(set(text.split()))),
    "os-release": lambda text: _first(r'^PRETTY_NAME="?(.*?)"?$', text),
    "tools": parse_tools,
    "df": lambda text: parse_number(_first(r"\s(\d+)\s+\d+%\s", text)) * 1024,  # df -Pk, one file system
    "tc-batch": parse_qdiscs,
    "ip-json": parse_interfaces,
    "ethtool-rings": partial(parse_ethtool, r"^Current.*^TX:\s+\d+"),  # ethtool -g: the ring has a size
    "ethtool-pauses": partial(parse_ethtool, r"^RX:\s+o(n|ff)"),  # ethtool -a: n/a without flow control
    "ifconfig": parse_ifconfig,
    "dmesg-rings": parse_dmesg_rings,
    "cc-parameters": parse_cc_parameters,
    "clock-source": parse_clock_source,
    "cc-available": parse_cc_available,
    "sudo": parse_sudo,
}
"""Maps the name of each output format to its parser. The recipe of a fact names its format in the key
`leaves`."""
