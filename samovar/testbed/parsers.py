"""Pure parsers of what programs on a host print of it; an output that is not there parses to nothing."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass

from samovar.errors import TestbedError
from samovar.testbed.completed import Completed

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


def parse_qdiscs(qdiscs: Sequence[str], text: str) -> tuple[str, ...]:
    """Parse tc -batch's complaints: what is not complained of works. Nothing works if tc was not run."""
    lines = text.splitlines()
    if (
        not lines
        or lines[-1] not in ("exit 0", "exit 1")
        or any(line.startswith("unshare:") for line in lines)
    ):
        return ()
    failed = {int(number) for number in re.findall(r"^Command failed -:(\d+)$", text, re.MULTILINE)}
    return tuple(name for number, name in enumerate(qdiscs, 1) if number not in failed)


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


def parse_disk_free_bytes(text: str) -> int:
    """Parse the available blocks that df -Pk prints of one file system."""
    found = re.search(r"\s(\d+)\s+\d+%\s", text)
    return int(found[1]) * 1024 if found else 0


def parse_clock(done: Completed) -> tuple[float, float]:
    """Parse epoch nanoseconds (or seconds, where date knows no %N): the host's offset and its largest error,
    in s.

    The host read its clock at some time of the run; half way is at most half the run away. Raises
    TestbedError.
    """
    digits = re.match(r"\d+", done.text)
    half_s = done.seconds / 2
    if not digits:
        raise TestbedError(f"{done.host}: date: {done.text.strip()!r}; accepted: seconds since the epoch")
    if len(digits[0]) > 11:
        return int(digits[0]) / 1e9 - (done.t_start_s + half_s), half_s
    return int(digits[0]) + 0.5 - (done.t_start_s + half_s), half_s + 0.5


def _by_interface(text: str) -> dict[str, str]:
    # The lines that `echo "$name:"` made; ethtool's own headings have blanks in them.
    parts = re.split(r"^([^\s:]+):\n", text, flags=re.MULTILINE)
    return dict(zip(parts[1::2], parts[2::2], strict=True))


def _offloads_on(text: str) -> tuple[str, ...]:
    return tuple(short for name, short in _OFFLOADS.items() if re.search(rf"^{name}: on", text, re.MULTILINE))
