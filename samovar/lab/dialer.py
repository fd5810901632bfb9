"""Connections from the controller into the network namespace of a lab."""

from __future__ import annotations

import socket
import subprocess
import sys
from pathlib import Path

from samovar.errors import LabError
from samovar.experiment import unknown
from samovar.hosts import Dialer
from samovar.lab.access import Access
from samovar.recipes import quote

DIAL_DEADLINE_S = 5.0
BANNER_DEADLINE_S = 5.0
START_ALLOWANCE_S = 10.0


def dial(access: Access) -> Dialer:
    """Return a function that opens TCP connections inside a lab; it raises LabError after 5 seconds."""
    return lambda address, port: connect_inside(access, address, port, DIAL_DEADLINE_S)


def connect_inside(access: Access, address: str, port: int, deadline_s: float) -> socket.socket:
    """Return a TCP connection inside a lab; attempts are repeated until the deadline.

    A helper opens it in the lab's network namespace, to which the socket belongs whatever process has it.
    Raises LabError if the lab has ended or nothing answers.
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
        ours.settimeout(deadline_s + START_ALLOWANCE_S)
        try:
            descriptors = socket.recv_fds(ours, 1, 1)[1]
        except (TimeoutError, ConnectionError):
            descriptors = []
        try:
            message = helper.communicate(timeout=1)[1]
        except subprocess.TimeoutExpired:
            helper.kill()
            message = helper.communicate()[1]
    if not descriptors:
        what = message.strip() or "no answer"
        raise LabError(f"lab: {address} port {port}: {what}; accepted: a host of a running lab")
    return socket.socket(fileno=descriptors[0])


def answers(access: Access, address: str, deadline_s: float) -> bool:
    """Return whether the SSH server of a host sends its banner before the deadline."""
    try:
        with connect_inside(access, address, access.port, deadline_s) as connection:
            connection.settimeout(BANNER_DEADLINE_S)
            return connection.recv(4) == b"SSH-"
    except (LabError, OSError):
        return False


def shell_command(access: Access, host: str) -> list[str]:
    """Return the command line of a shell on a host. Raises LabError for an unknown host."""
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
    """Return the start of a command line that runs the helper in the lab's network namespace."""
    user = ["--user", "--preserve-credentials"] if access.user_namespace else []
    helper = [sys.executable, "-I", "-S", str(Path(__file__).with_name("connect_inside.py"))]
    return ["nsenter", "--target", str(access.pid), *user, "--net", *helper]
