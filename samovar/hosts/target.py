"""The SSH target of a host, and the error that it cannot be reached."""

from __future__ import annotations

import math
import socket
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from samovar.errors import TestbedError

LEASE = "/var/tmp/samovar-lease"
"""Unlike /tmp, this survives a reboot, so that a host with lasting changes still has a holder."""

Dialer = Callable[[str, int], socket.socket]
"""Opens a TCP connection to (address, port) where the controller's own network cannot reach it."""


@dataclass(frozen=True)
class SshTarget:
    """How one host is reached: with a key or agent only, and with a known host key.

    `known_hosts` and `key` default to the user's own. `hint` is appended to the message for a host that does
    not answer. Controller and host exchange heartbeats every `keepalive_s`. `lease` is the file on the host
    that names its holder: one for each machine, whatever testbeds call it.
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
        """A third of the time, in whole seconds, after which the host considers its controller gone.

        That is longer than the controller needs to notice that the host is gone.
        """
        return max(1, math.ceil(2 * self.keepalive_s))

    @property
    def known_hosts_file(self) -> Path:
        """The file of known host keys."""
        return self.known_hosts or Path.home() / ".ssh" / "known_hosts"


class ConnectionLostError(TestbedError):
    """There is no connection, or its shell is gone; another attempt may succeed."""


class UnreachableError(ConnectionLostError):
    """No connection could be made."""
