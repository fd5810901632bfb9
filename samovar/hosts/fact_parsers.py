"""Pure parsers of what programs on a host print of it; an output that is not there parses to nothing."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass

from samovar.errors import TestbedError
from samovar.hosts.script_result import ScriptResult

_OFFLOADS = {
    "tcp-segmentation-offload": "tso",
    "generic-segmentation-offload": "gso",
    "generic-receive-offload": "gro",
    "large-receive-offload": "lro",
}


@dataclass(frozen=True)
class Interface:
    """A network interface; `offloads` are those of tso, gso, gro and lro that are on."""

    name: str
    mtu_bytes: int
    addresses: tuple[str, ...] = ()
    offloads: tuple[str, ...] = ()


@dataclass(frozen=True)
class Sudo:
    """What a user who is not root may have sudo(8) do: patterns of commands; and where programs are."""

    user: str
    paths: Mapping[str, str]
    allowed: tuple[str, ...]


def parse_sudo(text: str) -> Sudo | None:
    """Parse lines of `user NAME`, `path PROGRAM PATH` and `may PATTERN`; None for root, of whom none tell."""
    lines = [line.partition(" ") for line in text.splitlines()]
    users = [rest for word, _, rest in lines if word == "user"]
    if not users:
        return None
    paths = dict(rest.split(" ", 1) for word, _, rest in lines if word == "path" and " " in rest)
    return Sudo(users[0], paths, tuple(rest for word, _, rest in lines if word == "may"))


def parse_os_release(text: str) -> str:
    """Parse os-release(5)'s PRETTY_NAME."""
    found = re.search(r"^PRETTY_NAME=\"?(.*?)\"?$", text, re.MULTILINE)
    return found[1] if found else ""


def parse_number(text: str) -> int:
    """Parse a number alone on a line."""
    return int(text) if text.strip().isdecimal() else 0


def parse_words(text: str) -> tuple[str, ...]:
    """Parse words, each once, sorted."""
    return tuple(sorted(set(text.split())))


def parse_tools(text: str) -> dict[str, str]:
    """Parse lines of a program's name and the first line that it prints of its version."""
    pairs = (line.partition(" ") for line in text.splitlines() if line)
    return {name: _version(line) for name, _, line in pairs}


def _version(line: str) -> str:
    found = re.search(r"\d+(\.\d+)+", line)
    return found[0] if found else ""


def parse_cc_available(text: str) -> tuple[str, ...]:
    """Parse net.inet.tcp.cc.available, and names one a line: words with commas, or a table since FreeBSD 14.

    reno is newreno's name on Linux, and told beside it.
    """
    rows = (re.split(r",\s*", line) if "," in line else line.split()[:1] for line in text.splitlines())
    names = {name.strip() for row in rows for name in row} - {"CCmod", ""}
    return tuple(sorted(names | ({"reno"} if "newreno" in names else set())))


def parse_qdiscs(text: str) -> tuple[str, ...]:
    """Parse the names that tc -batch was given, a line each, and after `tc:` its complaints by line number.

    What is not complained of works. Nothing works if tc was not run.
    """
    asked, _, told = text.partition("tc:\n")
    lines = told.splitlines()
    if (
        not lines
        or lines[-1] not in ("exit 0", "exit 1")
        or any(line.startswith("unshare:") for line in lines)
    ):
        return ()
    failed = {int(number) for number in re.findall(r"^Command failed -:(\d+)$", told, re.MULTILINE)}
    return tuple(name for number, name in enumerate(asked.split(), 1) if number not in failed)


def parse_interfaces(text: str) -> tuple[Interface, ...]:
    """Parse `ip -j addr show`, and after it `name:` and `ethtool -k` of each interface."""
    first, _, rest = text.partition("\n")
    offloads = {name: _offloads_on(part) for name, part in _by_interface(rest).items()}
    return tuple(
        Interface(
            link["ifname"],
            link["mtu"],
            tuple(f"{address['local']}/{address['prefixlen']}" for address in link.get("addr_info", ())),
            offloads.get(link["ifname"], ()),
        )
        for link in (json.loads(first) if first.startswith("[") else ())
    )


def parse_rings(text: str) -> tuple[str, ...]:
    """Parse `name:` and `ethtool -g` of each interface: those whose present TX setting is a number."""
    parts = _by_interface(text).items()
    return tuple(
        name for name, part in parts if re.search(r"^Current.*^TX:\s+\d+", part, re.DOTALL | re.MULTILINE)
    )


def parse_pauses(text: str) -> tuple[str, ...]:
    """Parse `name:` and `ethtool -a` of each interface: those that have flow control to set."""
    parts = _by_interface(text).items()
    return tuple(name for name, part in parts if re.search(r"^RX:\s+o(n|ff)", part, re.MULTILINE))


def parse_cc_parameters(text: str) -> dict[str, tuple[str, ...]]:
    """Parse names such as /sys/module/tcp_cdg/parameters/window and net.inet.tcp.cc.cdg.beta_delay."""
    found: dict[str, tuple[str, ...]] = {}
    pattern = r"(?:/tcp_(?=\w+/p)|\.cc\.)(\w+)(?:/parameters/|\.)(\w+)$"
    for name, parameter in re.findall(pattern, text, re.MULTILINE):
        found[name] = (*found.get(name, ()), parameter)
    return found


def parse_clock_source(text: str) -> str:
    """Parse a line of chrony, ntp or timesyncd and what that one told below it; "" where none steers."""
    source, _, told = text.partition("\n")
    steered = {"chrony": r"^[0-9A-F]{8},.*,Normal$", "ntp": r"^[*o]\S", "timesyncd": r"^NTPSynchronized=yes$"}
    return source if source in steered and re.search(steered[source], told, re.MULTILINE) else ""


def parse_ifconfig(text: str) -> tuple[Interface, ...]:
    """Parse `ifconfig -a` of FreeBSD."""
    parts = re.split(r"^(\S+): flags=", text, flags=re.MULTILINE)
    return tuple(_ifconfig(name, part) for name, part in zip(parts[1::2], parts[2::2], strict=True))


def _ifconfig(name: str, text: str) -> Interface:
    mtu = re.search(r" mtu (\d+)", text)
    four = re.findall(r"^\s+inet (\S+) (?:--> \S+ )?netmask 0x([0-9a-f]{8})", text, re.MULTILINE)
    six = re.findall(r"^\s+inet6 (\S+) prefixlen (\d+)", text, re.MULTILINE)
    addresses = [f"{address}/{int(mask, 16).bit_count()}" for address, mask in four]
    addresses += [f"{address.partition('%')[0]}/{length}" for address, length in six]
    options = re.search(r"^\s+options=[0-9a-f]+<([^>]*)>", text, re.MULTILINE)
    having = set(options[1].split(",")) if options else set()
    offloads = tuple(short for flag, short in (("TSO4", "tso"), ("LRO", "lro")) if flag in having)
    return Interface(name, int(mtu[1]) if mtu else 0, tuple(addresses), offloads)


def parse_dmesg_rings(text: str) -> tuple[str, ...]:
    """Parse what drivers say as they attach: `em1: Using 1024 TX descriptors and 1024 RX descriptors`."""
    return tuple(sorted(set(re.findall(r"^(\S+): Using \d+ TX descriptors", text, re.MULTILINE))))


def parse_disk_free_bytes(text: str) -> int:
    """Parse the available blocks that df -Pk prints of one file system."""
    found = re.search(r"\s(\d+)\s+\d+%\s", text)
    return int(found[1]) * 1024 if found else 0


def parse_clock(done: ScriptResult) -> tuple[float, float]:
    """Parse epoch nanoseconds (or seconds, where date knows no %N): the host's offset and its largest error,
    in s.

    The host read its clock at some time of the run; half way is at most half the run away. A clock that is
    told in whole seconds is half a second later on average. Raises TestbedError.
    """
    digits = re.match(r"\d+", done.text)
    half_s = done.seconds / 2
    if not digits:
        raise TestbedError(f"{done.host}: date: {done.text.strip()!r}; accepted: seconds since the epoch")
    if len(digits[0]) > 11 and not digits[0].endswith("000000000"):
        return int(digits[0]) / 1e9 - (done.t_start_s + half_s), half_s
    return int(digits[0][:10]) + 0.5 - (done.t_start_s + half_s), half_s + 0.5


def _by_interface(text: str) -> dict[str, str]:
    # The lines that `echo "$name:"` made; ethtool's own headings have blanks in them.
    parts = re.split(r"^([^\s:]+):\n", text, flags=re.MULTILINE)
    return dict(zip(parts[1::2], parts[2::2], strict=True))


def _offloads_on(text: str) -> tuple[str, ...]:
    return tuple(short for name, short in _OFFLOADS.items() if re.search(rf"^{name}: on", text, re.MULTILINE))
