"""The process that holds a lab: started, waited for and ended."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from samovar.errors import LabError
from samovar.events import Emit, Event
from samovar.lab.access import Access, OsProcess, children, process
from samovar.lab.dial import answers
from samovar.lab.kernel import MAP_ROOT, NAMESPACES

CONSOLE = "console.log"
TAIL_LINES = 15
TRACE = (" ", "Stack:", "Call Trace:", "CPU: ")
"""How lines begin that a kernel adds to a panic; they would push out what led to it."""
FIRST_PROCESS_DEADLINE_S = 10.0
BOOT_DEADLINE_S = 60.0
HOST_DEADLINE_S = 5.0
END_DEADLINE_S = 20.0
STEP_S = 2.0
ENVIRONMENT = {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "LC_ALL": "C"}


@dataclass(frozen=True)
class FirstProcess:
    """A lab's first process, which waits to be let go."""

    first: OsProcess
    gate: int

    def let_go(self) -> None:
        """Let the first process set up the lab."""
        os.write(self.gate, b"go\n")


@contextmanager
def launched(folder: Path, user_namespace: bool) -> Iterator[FirstProcess]:
    """Start a lab's first process in namespaces of its own; it ends at once if it is not let go.

    Raises LabError when it does not come to be, with what it said.
    """
    inlet, gate = os.pipe()
    try:
        parent = _spawn(folder, user_namespace, inlet)
        yield FirstProcess(_first_process(folder, parent), gate)
    finally:
        os.close(inlet)
        os.close(gate)


def _spawn(folder: Path, user_namespace: bool, inlet: int) -> int:
    """Start `unshare` in a session of its own, so that Ctrl-C at the terminal is not the lab's."""
    user = MAP_ROOT if user_namespace else ()
    command = ["unshare", *user, *NAMESPACES, "sh", str(folder / "boot" / "outer.sh")]
    flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_APPEND
    return os.posix_spawnp(
        command[0],
        command,
        ENVIRONMENT,
        setsid=True,
        file_actions=[
            (os.POSIX_SPAWN_DUP2, inlet, 0),
            (os.POSIX_SPAWN_OPEN, 1, str(folder / CONSOLE), flags, 0o600),
            (os.POSIX_SPAWN_DUP2, 1, 2),
        ],
    )


def _first_process(folder: Path, parent: int) -> OsProcess:
    end_s = time.monotonic() + FIRST_PROCESS_DEADLINE_S
    while time.monotonic() < end_s:
        for pid in children(parent):
            first = process(pid)
            if first is not None:
                return first
        if os.waitpid(parent, os.WNOHANG)[0]:
            raise LabError(f"lab: its first process ended at once:\n{console_tail(folder)}")
        time.sleep(0.01)
    os.kill(parent, 9)
    os.waitpid(parent, 0)
    raise LabError(f"lab: no first process within {FIRST_PROCESS_DEADLINE_S:g} s:\n{console_tail(folder)}")


def wait_until_ready(folder: Path, access: Access, emit: Emit) -> None:
    """Wait until every host's SSH server greets.

    Raises LabError with the end of the console when the lab ends, within STEP_S, or a host stays silent.
    """
    began_s = time.monotonic()
    end_s = began_s + BOOT_DEADLINE_S + HOST_DEADLINE_S * len(access.hosts)
    for host, address in access.hosts.items():
        while not answers(access, address, STEP_S):
            if not access.process.is_running:
                raise LabError(f"lab {access.testbed}: ended at its start; console:\n{console_tail(folder)}")
            if time.monotonic() > end_s:
                what = f"host {host}: no SSH server within {end_s - began_s:g} s"
                raise LabError(f"lab {access.testbed}: {what}; console:\n{console_tail(folder)}")
        seconds = time.monotonic() - began_s
        emit(Event("lab-host-ready", {"host": host, "address": address, "seconds": seconds}))
    seconds = time.monotonic() - began_s
    emit(Event("lab-ready", {"testbed": access.testbed, "kernel": access.kernel, "seconds": seconds}))


def console_tail(folder: Path) -> str:
    """Return the last lines that the lab's kernel and scripts have said."""
    try:
        text = (folder / CONSOLE).read_text(encoding="utf-8", errors="replace")
    except FileNotFoundError:
        return ""
    said = [line for line in text.splitlines() if not line.startswith(TRACE)]
    return "\n".join(said[-TAIL_LINES:])


def end_process(first: OsProcess) -> None:
    """Kill a lab's first process and wait for it and for the one that started it; raises LabError after 20 s.

    The kernel ends every other process of the PID namespace before the first is gone (pid_namespaces(7)).
    """
    if not first.is_running:
        return
    parent = first.parent
    os.kill(first.pid, 9)
    waiting = [one for one in (first, parent) if one is not None]
    end_s = time.monotonic() + END_DEADLINE_S
    while any(one.is_running for one in waiting):
        if time.monotonic() > end_s:
            raise LabError(f"lab: process {first.pid}: still there {END_DEADLINE_S:g} s after it was killed")
        time.sleep(0.01)
    if parent is not None and parent == process(parent.pid):
        _reap(parent.pid)


def _reap(pid: int) -> None:
    """Collect a child of this very process; it is none of ours when another controller started the lab."""
    try:
        os.waitpid(pid, 0)
    except ChildProcessError:
        return
