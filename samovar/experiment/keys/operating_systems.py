"""Operating systems of hosts: their names in files, the folders of their recipes, their titles."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class OperatingSystem:
    """A system that hosts may run: its title, and the folders below templates/ with its recipes, in order."""

    title: str
    folders: tuple[str, ...]


OPERATING_SYSTEMS: Mapping[str, OperatingSystem] = {
    "linux": OperatingSystem("Linux", ("linux", "posix")),
    "freebsd": OperatingSystem("FreeBSD", ("freebsd", "posix")),
}
