"""Start and stop a lab. When the first process of a lab ends, the kernel ends the lab's other processes."""

from __future__ import annotations

import fcntl
import hashlib
import os
import platform
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import asdict, replace
from pathlib import Path

from samovar.errors import LabError
from samovar.events import Emit, Event
from samovar.experiment import Testbed
from samovar.lab import kernel
from samovar.lab.access import (
    RECORD,
    Access,
    Kernel,
    OsProcess,
    answers,
    children,
    process,
    read_record,
    write_record,
)
from samovar.lab.boot_files import CLIENT_KEY, KNOWN_HOSTS, Boot, make_keys, write_boot_folder, write_seeds
from samovar.lab.kernel import KernelNeeds, UserModeConfig
from samovar.lab.machines import MachineSetup, cost_of, longest_boot_s, plan_machines, require_qemu
from samovar.lab.topology import Topology, read_topology

CONSOLE = "console.log"
FIRST_SCRIPT = "lab-init.sh"
"""The script of a lab's first process, in the folder boot/ of the lab's state folder."""
TAIL_LINES = 15
TRACE = (" ", "Stack:", "Call Trace:", "CPU: ")
"""Beginnings of lines that a kernel prints after a panic. Messages leave out these lines, because the cause
is printed before them."""
FIRST_PROCESS_DEADLINE_S = 10.0
BOOT_DEADLINE_S = 60.0
HOST_DEADLINE_S = 5.0
END_DEADLINE_S = 20.0
ANSWER_DEADLINE_S = 2.0
POLL_S = 0.05
ENVIRONMENT = {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "LC_ALL": "C"}


def up(
    testbed: Testbed,
    state_folder: Path,
    needs: KernelNeeds,
    emit: Emit,
    user_mode: UserModeConfig = kernel.DEBIAN_USER_MODE,
    project: Path = Path(),
    turn: int = 1,
) -> Access:
    """Start the lab of a testbed, unless it runs; return its record once the SSH servers of all hosts answer.

    Paths of images of virtual machines are relative to the project. `turn`, from 1, selects the CPU of the
    lab's user-mode kernel, so that labs started side by side with different turns use different CPUs. After
    an error, nothing is left running.

    Raises LabError if the testbed has no lab; if a package, an image or memory is missing; if the user-mode
    kernel cannot be started; if a different lab runs in this state folder, or another computer has started
    one there; if the lab ends while it starts; or if a host does not answer in time. Hosts have 60 s plus 5 s
    per host to answer; for virtual machines, a multiple of their estimated boot time is added.
    """
    topology = read_topology(testbed)
    fingerprint = hashlib.sha256(testbed.model_dump_json().encode()).hexdigest()[:16]
    with _locked(state_folder) as folder:
        record = read_record(folder)
        if record is not None and record.process.is_running:
            _require_same(record, fingerprint, needs, user_mode)
            # The command that started this lab may have been killed before the hosts answered.
            _wait_until_ready(folder, record, topology, emit)
            return record
        _forget(folder, record)
        boot = _plan_boot(testbed, topology, needs, user_mode, project, turn)
        values = {"testbed": topology.name, "kernel": boot.kernel, "release": boot.release}
        emit(Event("lab-starting", {**values, "hosts": len(topology.nodes)}))
        if boot.machines:
            emit(Event("lab-machines", {"testbed": topology.name, **asdict(cost_of(boot.machines))}))
        return _start(folder, boot, fingerprint, needs, emit)


def down(state_folder: Path, emit: Emit) -> bool:
    """Stop a lab; return whether it was running. Raises LabError if its processes still run after 20 s."""
    if not state_folder.exists():
        return False
    with _locked(state_folder) as folder:
        record = read_record(folder)
        running = record is not None and record.process.is_running
        if record is not None:
            _end_process(record.process)
        _forget(folder, record)
        if record is not None and running:
            emit(Event("lab-stopped", {"testbed": record.testbed}))
        return running


@contextmanager
def _locked(state_folder: Path) -> Iterator[Path]:
    """Lock a state folder, so that only one command at a time starts or stops its lab; yield its path."""
    state_folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    with (state_folder / "lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise LabError(f"{state_folder}: another command starts or stops this lab; try again") from None
        yield state_folder.resolve()


def _plan_boot(
    testbed: Testbed,
    topology: Topology,
    needs: KernelNeeds,
    user_mode: UserModeConfig,
    project: Path,
    turn: int,
) -> Boot:
    assert testbed.lab is not None  # read_topology has checked it
    cpus = sorted(os.sched_getaffinity(0), reverse=True)
    if any(node.is_machine for node in topology.nodes):
        require_qemu()
    machines = plan_machines(testbed, topology, project)
    chosen: Kernel = "vm"
    if len(machines) < len(topology.nodes):
        kernel.require_programs(kernel.PACKAGES)
        if any(link.device for link in topology.links):
            needs = replace(needs, features=needs.features | {kernel.TAP})
        chosen = kernel.choose_kernel(testbed.lab.kernel, needs)
        if chosen == "uml":
            kernel.require_programs(kernel.UML_PACKAGES)
    return Boot(
        topology=topology,
        kernel=chosen,
        user_mode=kernel.find_user_mode(user_mode) if chosen == "uml" else None,
        user_namespace=kernel.needs_user_namespace(),
        memory_kib=testbed.lab.memory_bytes // 1024,
        cpu=cpus[(turn - 1) % len(cpus)],
        port=testbed.ssh.port,
        machines=machines,
    )


def _require_same(record: Access, fingerprint: str, needs: KernelNeeds, user_mode: UserModeConfig) -> None:
    """Raise LabError if the running lab differs from the one that is to be started."""
    difference = ""
    if record.fingerprint != fingerprint:
        difference = "was started from another version of the testbed file"
    elif record.kernel == "native":
        if missing := kernel.machine_lacks(needs):
            difference = f"runs on the machine's own kernel, which lacks {', '.join(missing)}"
    elif record.kernel == "uml" and record.release not in (
        "",
        wanted := kernel.find_user_mode(user_mode).release,
    ):
        difference = f"runs on user-mode Linux {record.release}, but `lab.uml` of config.yaml names {wanted}"
    if difference:
        raise LabError(f"lab {record.testbed}: {difference}; stop it with fab lab.down first")


def _forget(folder: Path, record: Access | None) -> None:
    """Delete the record of a lab that has ended, and restore the machine's allowed congestion controls.

    If other labs still run on the machine's own kernel, the last of them restores the congestion controls.
    """
    try:
        if record is not None and record.allowed_before is not None and not _other_native_labs(folder):
            kernel.allow_cc(record.allowed_before)
    finally:  # if the kernel refuses the list now, it will refuse it the next time too
        (folder / RECORD).unlink(missing_ok=True)


def _other_native_labs(folder: Path) -> list[Access]:
    """Return the records of running labs on the machine's own kernel, except the lab with this state folder.

    Labs are found by the command lines of their first processes, because they may belong to other projects.
    """
    labs = []
    for file in Path("/proc").glob("[0-9]*/cmdline"):
        with suppress(OSError, LabError):  # the process has ended, or its lab has no record that can be read
            script = Path(os.fsdecode(file.read_bytes().rstrip(b"\0").rpartition(b"\0")[2]))
            home = script.parent.parent
            if script.name == FIRST_SCRIPT and home != folder and (record := read_record(home)):
                labs.append(record)
    return [one for one in labs if one.allowed_before is not None and one.process.is_running]


def _allowed_before_labs(folder: Path) -> str:
    """Return the congestion controls that the machine allowed before the running labs extended them."""
    allowed = kernel.read_allowed_cc()  # before the search: a lab is recorded before it changes the list
    return next((one.allowed_before for one in _other_native_labs(folder) if one.allowed_before), allowed)


def _start(folder: Path, boot: Boot, fingerprint: str, needs: KernelNeeds, emit: Emit) -> Access:
    write_boot_folder(folder / "boot", boot, emit)
    make_keys(folder, folder / "boot", boot.topology, boot.port)
    write_seeds(folder / "boot", boot)
    # The first process sets up the lab once it reads a line from this pipe, and ends if the pipe is closed.
    inlet, gate = os.pipe()
    try:
        first = _start_first_process(folder, boot.user_namespace, inlet)
        access = Access(
            pid=first.pid,
            start_ticks=first.start_ticks,
            kernel=boot.kernel,
            release=boot.release,
            user_namespace=boot.user_namespace,
            key=str(folder / CLIENT_KEY),
            known_hosts=str(folder / KNOWN_HOSTS),
            testbed=boot.topology.name,
            port=boot.port,
            hosts={node.name: str(node.control.ip) for node in boot.topology.nodes},
            fingerprint=fingerprint,
            allowed_before=_allowed_before_labs(folder) if boot.kernel == "native" else None,
            node=platform.node(),
        )
        write_record(folder, access)
        try:
            if boot.kernel == "native":
                kernel.allow_all_cc(needs.congestion_controls)
            os.write(gate, b"go\n")
            _wait_until_ready(folder, access, boot.topology, emit)
        except BaseException:
            _end_process(first)
            _forget(folder, access)
            raise
    finally:
        os.close(inlet)
        os.close(gate)
    return access


def _start_first_process(folder: Path, user_namespace: bool, inlet: int) -> OsProcess:
    """Start the first process of a lab with unshare(1), and return it. Raises LabError.

    This process runs in a session of its own, which Ctrl-C does not reach. Its parent is `unshare`.
    """
    user = kernel.MAP_ROOT if user_namespace else ()
    command = ["unshare", *user, *kernel.NAMESPACES, "sh", str(folder / "boot" / FIRST_SCRIPT)]
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
        for first in map(process, children(parent)):
            if first is not None:
                return first
        if os.waitpid(parent, os.WNOHANG)[0]:
            raise LabError(f"lab: its first process ended at once:\n{_console_tail(folder)}")
        time.sleep(0.01)
    os.kill(parent, 9)
    os.waitpid(parent, 0)
    raise LabError(f"lab: no first process within {FIRST_PROCESS_DEADLINE_S:g} s:\n{_console_tail(folder)}")


def _wait_until_ready(folder: Path, access: Access, topology: Topology, emit: Emit) -> None:
    """Wait until all virtual machines are set up, and the SSH servers of all hosts answer.

    Raises LabError, which shows the last lines of the console, if the lab or a machine ends, or if a host
    does not answer in time.
    """
    began_s = time.monotonic()
    machines = [node for node in topology.nodes if node.is_machine]
    limit_s = BOOT_DEADLINE_S + HOST_DEADLINE_S * len(access.hosts) + longest_boot_s(len(machines))
    sockets = Path(f"/proc/{access.pid}/root/mnt/machines")  # a tmpfs of the lab's mount namespace
    setups = {
        node.name: MachineSetup(folder / "boot" / "hosts" / node.name, sockets / node.name, node)
        for node in machines
    }
    try:
        for host, address in access.hosts.items():
            while not (_is_set_up(host, setups) and answers(access, address, ANSWER_DEADLINE_S)):
                machine = next((one for one in setups.values() if one.problem), setups.get(host))
                problem = machine.problem if machine else ""
                if not access.process.is_running:
                    problem = problem or "ended at its start"
                elif not problem and time.monotonic() > began_s + limit_s:
                    problem = f"host {host}: no SSH server within {limit_s:g} s"
                if problem:
                    console = machine.tail(TAIL_LINES) if machine else _console_tail(folder)
                    raise LabError(
                        f"lab {access.testbed}: {problem}; console:\n{console or _console_tail(folder)}"
                    )
                time.sleep(POLL_S)
            seconds = time.monotonic() - began_s
            emit(Event("lab-host-ready", {"host": host, "address": address, "seconds": seconds}))
    finally:
        for setup in setups.values():
            setup.close()
    seconds = time.monotonic() - began_s
    emit(Event("lab-ready", {"testbed": access.testbed, "kernel": access.kernel, "seconds": seconds}))


def _is_set_up(host: str, setups: Mapping[str, MachineSetup]) -> bool:
    """Continue the setup of every virtual machine; return whether the setup of `host` is complete."""
    for setup in setups.values():
        setup.advance()
    return host not in setups or setups[host].is_over


def _console_tail(folder: Path) -> str:
    """Return the last lines that the kernel and the scripts of a lab wrote to the console."""
    try:
        text = (folder / CONSOLE).read_text(encoding="utf-8", errors="replace")
    except FileNotFoundError:
        return ""
    lines = [line for line in text.splitlines() if not line.startswith(TRACE)]
    return "\n".join(lines[-TAIL_LINES:])


def _end_process(first: OsProcess) -> None:
    """Kill the first process of a lab, and wait until it and its parent have ended.

    Before the first process disappears, the kernel ends all other processes of its PID namespace
    (pid_namespaces(7)). Raises LabError if this takes more than 20 s.
    """
    if not first.is_running:
        return
    parent = first.parent
    os.kill(first.pid, 9)
    pending = [first] if parent is None else [first, parent]
    end_s = time.monotonic() + END_DEADLINE_S
    while any(one.is_running for one in pending):
        if time.monotonic() > end_s:
            raise LabError(f"lab: process {first.pid}: still runs {END_DEADLINE_S:g} s after it was killed")
        time.sleep(0.01)
    if parent is not None and parent == process(parent.pid):
        with suppress(ChildProcessError):  # not a child of this process if another controller started the lab
            os.waitpid(parent.pid, 0)


def answering_hosts(access: Access) -> list[str]:
    """Return the names of the hosts of a running lab whose SSH servers answer."""
    return [host for host, address in access.hosts.items() if answers(access, address, ANSWER_DEADLINE_S)]
