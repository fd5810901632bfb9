"""Reach the hosts of a running lab: read the lab's record, and open connections in its network namespace."""

from __future__ import annotations

import json
import os
import platform
import socket
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Literal

from samovar.atomic_files import write_json
from samovar.errors import LabError, unknown
from samovar.hosts import Dialer
from samovar.recipes import quote

Kernel = Literal["uml", "native", "vm"]
RECORD = "access.json"
DIAL_DEADLINE_S = 5.0
BANNER_DEADLINE_S = 5.0
START_ALLOWANCE_S = 10.0


@dataclass(frozen=True)
class OsProcess:
    """A process, identified by its PID and its start time (proc(5), field 22), because PIDs are reused."""

    pid: int
    start_ticks: int

    @property
    def is_running(self) -> bool:
        """Whether this process still runs; False for a zombie."""
        fields = _stat_fields(self.pid)
        return fields is not None and fields[0] != "Z" and int(fields[19]) == self.start_ticks

    @property
    def parent(self) -> OsProcess | None:
        """The parent process, or None if this process has ended."""
        fields = _stat_fields(self.pid)
        return process(int(fields[1])) if fields is not None else None


@dataclass(frozen=True)
class Access:
    """The record of a started lab, from which its hosts can be reached: first process, keys, addresses.

    `allowed_before` has the congestion controls that the machine allowed before the lab changed this; it is
    None unless the lab uses the machine's own kernel. `fingerprint` is a hash of the testbed. `node` is the
    computer on which the lab was started.
    """

    pid: int
    start_ticks: int
    kernel: Kernel
    user_namespace: bool
    key: str
    known_hosts: str
    testbed: str = ""
    user: str = "root"
    port: int = 22
    hosts: Mapping[str, str] = field(default_factory=dict)
    fingerprint: str = ""
    release: str = ""
    allowed_before: str | None = None
    node: str = ""

    @property
    def process(self) -> OsProcess:
        """The lab's first process, with which all other processes of the lab end."""
        return OsProcess(self.pid, self.start_ticks)


def process(pid: int) -> OsProcess | None:
    """Return the process with the given PID, or None if it does not exist."""
    fields = _stat_fields(pid)
    return OsProcess(pid, int(fields[19])) if fields is not None else None


def children(pid: int) -> list[int]:
    """Return the PIDs of the children of a process."""
    numbers = [int(name) for name in os.listdir("/proc") if name.isdigit()]
    return [n for n in numbers if (fields := _stat_fields(n)) is not None and int(fields[1]) == pid]


def _stat_fields(pid: int) -> list[str] | None:
    """Return the fields of /proc/PID/stat from the third on, or None if the process does not exist.

    The second field is left out, because it may contain blanks and brackets.
    """
    try:
        text = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
    except (FileNotFoundError, ProcessLookupError):
        return None
    return text[text.rindex(")") + 2 :].split()


def read_access(state_folder: Path) -> Access | None:
    """Return the record of a lab if the lab runs, otherwise None. Raises LabError as read_record() does."""
    access = read_record(state_folder)
    return access if access is not None and access.process.is_running else None


def read_record(state_folder: Path) -> Access | None:
    """Return the record of the lab that was started last, even if it has ended; None before the first.

    Raises LabError if the record is invalid, or if another computer that shares the project started the lab.
    """
    path = state_folder / RECORD
    try:
        access = Access(**json.loads(path.read_text(encoding="utf-8")))
    except FileNotFoundError:
        return None
    except (ValueError, TypeError) as error:
        raise LabError(f"{path}: {error}; remove the file if no lab runs") from error
    if access.node not in ("", platform.node()):
        raise LabError(
            f"lab {access.testbed}: {access.node}, which shares this project, has started it; run "
            f"`fab lab.down` there, or remove {path} if the lab has ended; with `--shard`, each computer has "
            "its own lab"
        )
    return access


def write_record(state_folder: Path, access: Access) -> None:
    """Write the record of a lab atomically."""
    write_json(state_folder / RECORD, asdict(access))


def dial(access: Access) -> Dialer:
    """Return a function that opens TCP connections inside a lab.

    The function raises LabError if nothing answers for 5 seconds.
    """
    return lambda address, port: connect_inside(access, address, port, DIAL_DEADLINE_S)


def connect_inside(access: Access, address: str, port: int, deadline_s: float) -> socket.socket:
    """Return a TCP connection to an address inside a lab; failed attempts are repeated until the deadline.

    A helper process enters the lab's network namespace, opens the connection and passes the socket to this
    process. Raises LabError if the lab has ended or nothing answers.
    """
    if not access.process.is_running:
        raise LabError(f"lab {access.testbed}: has ended; start it with fab lab.up")
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
        raise LabError(f"lab: {address} port {port}: {what}; only hosts of running labs can be reached")
    return socket.socket(fileno=descriptors[0])


def answers(access: Access, address: str, deadline_s: float) -> bool:
    """Return whether a host accepts a connection before the deadline and then sends the banner of SSH."""
    try:
        with connect_inside(access, address, access.port, deadline_s) as connection:
            connection.settimeout(BANNER_DEADLINE_S)
            return connection.recv(4) == b"SSH-"
    except (LabError, OSError):
        return False


def shell_command(access: Access, host: str) -> list[str]:
    """Return the ssh command line that opens a shell on a host. Raises LabError if the host is unknown."""
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
    """Return the command, without arguments, that runs the helper in the lab's network namespace."""
    user = ["--user", "--preserve-credentials"] if access.user_namespace else []
    helper = [sys.executable, "-I", "-S", str(Path(__file__).with_name("connect_inside.py"))]
    return ["nsenter", "--target", str(access.pid), *user, "--net", *helper]
