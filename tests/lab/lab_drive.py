"""Start, use, inspect and stop a lab; a test also runs this file as a program of another user."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from samovar import lab
from samovar.events import silent
from samovar.experiment import load_testbed

NEEDS = lab.KernelNeeds(frozenset({"cdg"}), frozenset({"netem"}))
KINDS = ("net", "mnt", "pid", "uts", "user")
GONE_DEADLINE_S = 10.0


def on_host(access: lab.Access, host: str, script: str) -> str:
    """Run a script on a host with ssh; return its output. Fails if the script or ssh fails."""
    command = [*lab.shell_command(access, host), script]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, f"{host}: exit code {done.returncode}: {done.stdout}{done.stderr}"
    return done.stdout


@dataclass(frozen=True)
class Footprint:
    """The processes of a lab, and the namespaces that it does not share with this process."""

    processes: frozenset[int]
    namespaces: frozenset[str]


def footprint(access: lab.Access) -> Footprint:
    """Find the processes in a lab's PID namespace, the process that started the lab, and their namespaces."""
    own = {_namespace("self", kind) for kind in KINDS}
    pid_namespace = _namespace(str(access.pid), "pid")
    pids = [pid for pid in _pids() if _namespace(pid, "pid") == pid_namespace]
    parent = access.process.parent
    assert parent is not None
    namespaces = {_namespace(pid, kind) for pid in pids for kind in KINDS}
    return Footprint(frozenset({*map(int, pids), parent.pid}), frozenset(namespaces - own - {""}))


def remains(before: Footprint, state_folder: Path) -> list[str]:
    """Return the remains of a lab after the kernel has had time to clean up."""
    end_s = time.monotonic() + GONE_DEADLINE_S
    while (found := list(still_there(before, state_folder))) and time.monotonic() < end_s:
        time.sleep(0.05)
    return found


def still_there(before: Footprint, state_folder: Path) -> Iterator[str]:
    """Yield the processes, namespaces, mounts and interfaces of a lab that exist now."""
    for pid in _pids():
        if int(pid) in before.processes and _state(pid) != "Z":
            yield f"process {pid}"
        for kind in KINDS:
            if _namespace(pid, kind) in before.namespaces:
                yield f"namespace {_namespace(pid, kind)} of process {pid}"
    mounts = Path("/proc/self/mountinfo").read_text(encoding="utf-8")
    yield from (f"mount {word}" for word in re.findall(r"\b(?:net|mnt|pid|uts|user):\[\d+\]", mounts))
    yield from (f"mount of {state_folder}" for _ in re.findall(re.escape(_escaped(state_folder)), mounts))
    interfaces = {"lab0", "lab1", "ctl", "ctl0", "sw1"} & set(os.listdir("/sys/class/net"))
    yield from (f"interface {name}" for name in interfaces)


def _escaped(path: Path) -> str:
    """Write a path as proc_pid_mountinfo(5) does."""
    return str(path).replace(" ", r"\040")


def _pids() -> list[str]:
    return [name for name in os.listdir("/proc") if name.isdigit()]


def _namespace(pid: str, kind: str) -> str:
    try:
        return os.readlink(f"/proc/{pid}/ns/{kind}")
    except OSError:
        return ""


def _state(pid: str) -> str:
    try:
        return (
            Path(f"/proc/{pid}/stat")
            .read_text(encoding="utf-8", errors="replace")
            .rpartition(")")[2]
            .split()[0]
        )
    except OSError:
        return "Z"


def main(testbed_file: str, state: str) -> None:
    """Start a lab, inspect it from a host, stop it, and print the observations as JSON."""
    state_folder = Path(state)
    access = lab.up(load_testbed(Path(testbed_file)), state_folder, NEEDS, silent)
    host = next(iter(access.hosts))
    seen = {
        "user": os.geteuid(),
        "user_namespace": access.user_namespace,
        "kernel": access.kernel,
        "answered": lab.answering_hosts(access),
        "whoami": on_host(access, host, "id -un").strip(),
        "offered": on_host(access, host, "cat /proc/sys/net/ipv4/tcp_available_congestion_control").split(),
        "pinged": on_host(access, host, "ping -c 1 -W 2 172.16.11.2"),
        "written": on_host(access, host, "echo kept > /root/file; cat /root/file").strip(),
    }
    before = footprint(access)
    seen["processes"] = len(before.processes)
    seen["namespaces"] = len(before.namespaces)
    seen["stopped"] = lab.down(state_folder, silent)
    seen["remains"] = remains(before, state_folder)
    sys.stdout.write(json.dumps(seen))


if __name__ == "__main__":
    main(*sys.argv[1:])
