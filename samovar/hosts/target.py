"""The address, user, keys and timeouts for SSH to a host, and the errors raised if its connection is lost."""

from __future__ import annotations

import math
import socket
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from samovar.errors import TestbedError

LEASE = "/var/tmp/samovar-lease"
"""The default path of the lease on a host. Unlike /tmp, /var/tmp survives a reboot, so that a host stays
leased while a campaign reboots it."""

Dialer = Callable[[str, int], socket.socket]
"""A function that opens a TCP connection to an address and port that the controller cannot reach directly."""


@dataclass(frozen=True)
class SshTarget:
    """How one host is reached over SSH. Passwords are not used, and the host key must be known.

    Without `key`, the keys of ssh-agent and ~/.ssh are used. Without `known_hosts`, the file
    ~/.ssh/known_hosts is used. `hint` is appended to the message if the host does not answer. Controller and
    host exchange heartbeats every `keepalive_s`. `lease` is the path of the lease file on the host; it must
    be the same in all testbeds that contain the machine.
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
        """The interval in whole seconds at which the host looks for heartbeats of its controller.

        After two intervals without a heartbeat, the host considers its controller gone. The host waits for
        the controller longer than the controller waits for the host.
        """
        return max(1, math.ceil(2 * self.keepalive_s))

    @property
    def known_hosts_file(self) -> Path:
        """The path of the file with known host keys."""
        return self.known_hosts or Path.home() / ".ssh" / "known_hosts"


class ConnectionLostError(TestbedError):
    """The connection to a host, or its shell, is lost. Another attempt may succeed."""


class UnreachableError(ConnectionLostError):
    """No SSH connection to a host could be made."""
