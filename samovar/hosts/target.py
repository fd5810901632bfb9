"""How a host is reached, and that it was not."""

from __future__ import annotations

import math
import socket
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from samovar.errors import TestbedError

LEASE = "/var/tmp/samovar-lease"
"""Kept over a reboot, unlike /tmp: a host that was changed for good is still somebody's then."""

Dialer = Callable[[str, int], socket.socket]
"""Opens a TCP socket to (address, port) where the controller's own network does not lead there."""


@dataclass(frozen=True)
class Target:
    """How one host is reached: key or agent only, its host key known beforehand.

    `known_hosts` and `key` are the user's own when None. `hint` ends the message of a host that does not
    answer. Every `keepalive_s` either side hears of the other. `lease` is the file on the host that says who
    holds it, one per machine, by whatever name testbeds call it.
    """

    host: str
    address: str
    port: int = 22
    user: str = "root"
    key: Path | None = None
    known_hosts: Path | None = None
    connect_timeout_s: float = 5.0
    keepalive_s: float = 15.0
    hint: str = ""
    lease: str = LEASE

    @property
    def silence_s(self) -> int:
        """A third of the time after which the host takes its controller for gone, in whole seconds.

        Longer than the controller needs to find that the host is gone, so that it is there first.
        """
        return max(1, math.ceil(2 * self.keepalive_s))

    @property
    def known_hosts_file(self) -> Path:
        """The file that says which host keys are right."""
        return self.known_hosts or Path.home() / ".ssh" / "known_hosts"


class UnreachableError(TestbedError):
    """No connection came about; trying again may help."""
