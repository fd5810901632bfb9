"""The operating systems that hosts may run, with the folders of their recipes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class OperatingSystem:
    """An operating system: its title, and the folders below templates/ with its recipes, in order."""

    title: str
    folders: tuple[str, ...]


OPERATING_SYSTEMS: Mapping[str, OperatingSystem] = {
    "linux": OperatingSystem("Linux", ("linux", "posix")),
    "freebsd": OperatingSystem("FreeBSD", ("freebsd", "posix")),
}
