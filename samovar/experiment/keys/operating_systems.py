"""The operating systems that hosts may run: folders of recipes, and packages of programs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class OperatingSystem:
    """An operating system. `folders` below templates/ have its recipes; earlier folders take precedence.

    `packages` maps programs of generators to packages, and `install` is the command that installs a package.
    """

    title: str
    folders: tuple[str, ...]
    packages: Mapping[str, str]
    install: str


_PACKAGES = {name: name for name in ("iperf", "iperf3", "nuttcp", "python3")}

OPERATING_SYSTEMS: Mapping[str, OperatingSystem] = {
    "linux": OperatingSystem("Linux", ("linux", "posix"), _PACKAGES, "apt install"),
    "freebsd": OperatingSystem(
        "FreeBSD", ("freebsd", "posix"), {**_PACKAGES, "nttcp": "nttcp"}, "pkg install"
    ),
}


def canonical_cc(name: str) -> str:
    """Return `reno` for newreno, which is FreeBSD's name for Reno; return any other name unchanged."""
    return "reno" if name == "newreno" else name
