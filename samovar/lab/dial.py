"""Connections from the controller into a lab's network namespace."""

from __future__ import annotations

import socket
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

from samovar.errors import LabError
from samovar.experiment import unknown
from samovar.lab.access import Access
from samovar.recipes import quote

Dialer = Callable[[str, int], socket.socket]
"""Opens a TCP connection to (address, port); the same shape as samovar.hosts.ssh.Dialer."""

DIAL_DEADLINE_S = 5.0
BANNER_DEADLINE_S = 5.0
START_ALLOWANCE_S = 10.0


def dial(access: Access) -> Dialer:
    """Make a function that opens TCP connections inside the lab; it raises LabError after 5 seconds."""

    def connect(address: str, port: int) -> socket.socket:
        return connect_inside(access, address, port, DIAL_DEADLINE_S)

    return connect


def connect_inside(access: Access, address: str, port: int, deadline_s: float) -> socket.socket:
    """Open a TCP connection inside the lab, trying again until the deadline.

    Raises LabError when the lab is gone or nothing answers. The socket stays in the lab's namespace,
    whatever process holds it.
    """
    if not access.process.is_running:
        raise LabError(f"lab {access.testbed}: has ended; accepted after it has been started: fab lab.up")
    ours, theirs = socket.socketpair()
    with ours:
        with theirs:
            helper = subprocess.Popen(
                [*_enter(access), address, str(port), str(deadline_s)],
                stdin=subprocess.DEVNULL,
                stdout=theirs.fileno(),
                stderr=subprocess.PIPE,
                text=True,
            )
        descriptors = _receive(ours, deadline_s + START_ALLOWANCE_S)
        message = _end(helper)
    if not descriptors:
        what = message or "no answer"
        raise LabError(f"lab: {address} port {port}: {what}; accepted: a host of a running lab")
    return socket.socket(fileno=descriptors[0])


def _receive(channel: socket.socket, timeout_s: float) -> list[int]:
    channel.settimeout(timeout_s)
    try:
        return socket.recv_fds(channel, 1, 1)[1]
    except (TimeoutError, ConnectionError):
        return []


def _end(helper: subprocess.Popen[str]) -> str:
    try:
        message = helper.communicate(timeout=1)[1]
    except subprocess.TimeoutExpired:
        helper.kill()
        message = helper.communicate()[1]
    return message.strip()


def answers(access: Access, address: str, deadline_s: float) -> bool:
    """Tell whether a host's SSH server greets before the deadline."""
    try:
        with connect_inside(access, address, access.port, deadline_s) as connection:
            connection.settimeout(BANNER_DEADLINE_S)
            return connection.recv(4) == b"SSH-"
    except (LabError, OSError):
        return False


def shell_command(access: Access, host: str) -> list[str]:
    """Make the command line of a shell on a host; raises LabError for a host that is not there."""
    if host not in access.hosts:
        raise LabError(f"lab {access.testbed}: {unknown('host', host, access.hosts)}")
    proxy = " ".join(quote(word).replace("%", "%%") for word in _enter(access))
    options = {
        "IdentityFile": _ssh_path(access.key),
        "IdentitiesOnly": "yes",
        "BatchMode": "yes",
        "UserKnownHostsFile": _ssh_path(access.known_hosts),
        "GlobalKnownHostsFile": "/dev/null",
        "StrictHostKeyChecking": "yes",
        "ServerAliveInterval": "5",
        "LogLevel": "ERROR",
        "ProxyUseFdpass": "yes",
        "ProxyCommand": f"{proxy} %h %p {DIAL_DEADLINE_S:g}",
    }
    words = [word for name, value in options.items() for word in ("-o", f"{name}={value}")]
    return ["ssh", "-F", "/dev/null", *words, "-p", str(access.port), f"{access.user}@{access.hosts[host]}"]


def _ssh_path(path: str) -> str:
    return '"' + path.replace("%", "%%") + '"'


def _enter(access: Access) -> list[str]:
    """Return the start of a command line that runs the connecting helper in the lab's network namespace."""
    user = ["--user", "--preserve-credentials"] if access.user_namespace else []
    helper = [sys.executable, "-I", "-S", str(Path(__file__).with_name("inside.py"))]
    return ["nsenter", "--target", str(access.pid), *user, "--net", *helper]
