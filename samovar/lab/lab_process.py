"""The first process of a lab, which holds all of it: started, waited for, and ended."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from samovar.errors import LabError
from samovar.events import Emit, Event
from samovar.lab.access import Access, OsProcess, children, process
from samovar.lab.dialer import answers
from samovar.lab.kernel import MAP_ROOT, NAMESPACES

CONSOLE = "console.log"
TAIL_LINES = 15
TRACE = (" ", "Stack:", "Call Trace:", "CPU: ")
"""First characters of lines that a kernel adds to a panic, and that would hide its cause."""
FIRST_PROCESS_DEADLINE_S = 10.0
BOOT_DEADLINE_S = 60.0
HOST_DEADLINE_S = 5.0
END_DEADLINE_S = 20.0
STEP_S = 2.0
ENVIRONMENT = {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "LC_ALL": "C"}


@dataclass(frozen=True)
class FirstProcess:
    """The first process of a lab, which waits at a pipe until it may set up the lab."""

    process: OsProcess
    gate: int

    def set_up_lab(self) -> None:
        """Let the process set up the lab."""
        os.write(self.gate, b"go\n")


@contextmanager
def first_process(folder: Path, user_namespace: bool) -> Iterator[FirstProcess]:
    """Start the first process of a lab in namespaces of its own; it ends unless it may set up the lab.

    Raises LabError with its output if it does not start.
    """
    inlet, gate = os.pipe()
    try:
        yield FirstProcess(_start(folder, user_namespace, inlet), gate)
    finally:
        os.close(inlet)
        os.close(gate)


def _start(folder: Path, user_namespace: bool, inlet: int) -> OsProcess:
    """Start `unshare` in a session of its own, out of reach of Ctrl-C; return its child."""
    user = MAP_ROOT if user_namespace else ()
    command = ["unshare", *user, *NAMESPACES, "sh", str(folder / "boot" / "lab-init.sh")]
    flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_APPEND
    parent = os.posix_spawnp(
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
    """Wait until the SSH servers of all hosts answer.

    Raises LabError with the end of the console if the lab ends, which is noticed within STEP_S, or if a host
    does not answer.
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
    """Return the last lines of the console of a lab's kernel and scripts."""
    try:
        text = (folder / CONSOLE).read_text(encoding="utf-8", errors="replace")
    except FileNotFoundError:
        return ""
    lines = [line for line in text.splitlines() if not line.startswith(TRACE)]
    return "\n".join(lines[-TAIL_LINES:])


def end_process(first: OsProcess) -> None:
    """Kill the first process of a lab, and wait for it and its parent. Raises LabError after 20 s.

    The kernel ends all other processes of the PID namespace before the first is gone (pid_namespaces(7)).
    """
    if not first.is_running:
        return
    parent = first.parent
    os.kill(first.pid, 9)
    pending = [one for one in (first, parent) if one is not None]
    end_s = time.monotonic() + END_DEADLINE_S
    while any(one.is_running for one in pending):
        if time.monotonic() > end_s:
            raise LabError(f"lab: process {first.pid}: still there {END_DEADLINE_S:g} s after it was killed")
        time.sleep(0.01)
    if parent is not None and parent == process(parent.pid):
        with suppress(ChildProcessError):  # it is not our child if another controller started the lab
            os.waitpid(parent.pid, 0)
