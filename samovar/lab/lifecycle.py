"""Start, stop and status of a lab: one process holds all of it, and everything ends with it."""

from __future__ import annotations

import fcntl
import hashlib
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from samovar.errors import LabError
from samovar.events import Emit, Event
from samovar.experiment import Testbed
from samovar.lab.access import RECORD, Access, Kernel, read_access, read_record, write_record
from samovar.lab.boot_files import CLIENT_KEY, KNOWN_HOSTS, Boot, make_keys, write_boot_folder
from samovar.lab.dialer import answers
from samovar.lab.kernel import (
    KernelNeeds,
    allow_all_cc,
    allow_cc,
    choose_kernel,
    machine_lacks,
    needs_user_namespace,
    read_allowed_cc,
    require_programs,
)
from samovar.lab.lab_process import end_process, first_process, wait_until_ready
from samovar.lab.topology import Topology, read_topology, require_supported_links
from samovar.lab.usermode import DEBIAN_USER_MODE, UserModeConfig, find_user_mode

ANSWER_DEADLINE_S = 2.0


def up(
    testbed: Testbed,
    state_folder: Path,
    needs: KernelNeeds,
    emit: Emit,
    user_mode: UserModeConfig = DEBIAN_USER_MODE,
) -> Access:
    """Start the lab of a testbed, unless it runs already; return when the SSH servers of all hosts answer.

    Raises LabError if the testbed has no lab, a package is missing, the user-mode kernel cannot be started,
    another lab runs in this state folder, the lab ends, or a host does not answer within 60 s plus 5 s for
    each host; then nothing is left running.
    """
    topology = _lab_topology(testbed)
    fingerprint = hashlib.sha256(testbed.model_dump_json().encode()).hexdigest()[:16]
    with _locked(state_folder) as folder:
        record = read_record(folder)
        if record is not None and record.process.is_running:
            _require_same(record, fingerprint, needs, user_mode)
            # The command that started it may have been killed before the hosts answered.
            wait_until_ready(folder, record, emit)
            return record
        _forget(folder, record)
        boot = _plan_boot(testbed, topology, needs, user_mode)
        values = {"testbed": topology.name, "kernel": boot.kernel, "release": boot.release}
        emit(Event("lab-starting", {**values, "hosts": len(topology.nodes)}))
        return _start(folder, boot, fingerprint, needs, emit)


def down(state_folder: Path, emit: Emit) -> bool:
    """Stop a lab and wait until its processes are gone; return whether it was running.

    Raises LabError if they are still there after 20 s.
    """
    if not state_folder.exists():
        return False
    with _locked(state_folder) as folder:
        record = read_record(folder)
        running = record is not None and record.process.is_running
        if record is not None:
            end_process(record.process)
        _forget(folder, record)
        if record is not None and running:
            emit(Event("lab-stopped", {"testbed": record.testbed}))
        return running


@contextmanager
def _locked(state_folder: Path) -> Iterator[Path]:
    """Lock a state folder, so that one command at a time starts or stops its lab."""
    state_folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    with (state_folder / "lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise LabError(f"{state_folder}: another command starts or stops this lab; try again") from None
        yield state_folder.resolve()


def _lab_topology(testbed: Testbed) -> Topology:
    if testbed.lab is None:
        raise LabError(f"testbed {testbed.name}: no lab; accepted: a testbed file with a `lab:` key")
    require_supported_links(testbed)
    for name in testbed.hosts:
        ssh = testbed.ssh_of(name)
        if (ssh.user, ssh.port) != ("root", testbed.ssh.port):
            seen = f"ssh user {ssh.user}, port {ssh.port}"
            raise LabError(f"lab {testbed.name}: host {name}: {seen}; accepted: root, and one port for all")
    return read_topology(testbed)


def _plan_boot(testbed: Testbed, topology: Topology, needs: KernelNeeds, user_mode: UserModeConfig) -> Boot:
    assert testbed.lab is not None
    require_programs("native")
    kernel = choose_kernel(testbed.lab.kernel, needs)
    require_programs(kernel)
    return Boot(
        topology=topology,
        kernel=kernel,
        user_mode=find_user_mode(user_mode) if kernel == "uml" else None,
        user_namespace=needs_user_namespace(),
        memory_kib=testbed.lab.memory_bytes // 1024,
        cpu=max(os.sched_getaffinity(0)),
        port=testbed.ssh.port,
    )


def _require_same(record: Access, fingerprint: str, needs: KernelNeeds, user_mode: UserModeConfig) -> None:
    """Raise LabError if the running lab differs from the requested one."""
    difference = ""
    if record.fingerprint != fingerprint:
        difference = "runs from another version of the testbed file"
    elif record.kernel == "native":
        if missing := machine_lacks(needs):
            difference = f"runs on the machine's own kernel, which lacks {', '.join(missing)}"
    elif record.release not in ("", wanted := find_user_mode(user_mode).release):
        difference = f"runs on user-mode Linux {record.release}, and `lab.uml` of config.yaml is {wanted}"
    if difference:
        raise LabError(
            f"lab {record.testbed}: {difference}; accepted after it has been stopped: fab lab.down"
        )


def _forget(folder: Path, record: Access | None) -> None:
    """Restore what an ended lab has changed on the machine, and delete its record."""
    if record is not None and record.allowed_before is not None:
        allow_cc(record.allowed_before)
    (folder / RECORD).unlink(missing_ok=True)


def _start(folder: Path, boot: Boot, fingerprint: str, needs: KernelNeeds, emit: Emit) -> Access:
    write_boot_folder(folder / "boot", boot)
    make_keys(folder, folder / "boot", boot.topology, boot.port)
    with first_process(folder, boot.user_namespace) as first:
        access = Access(
            pid=first.process.pid,
            start_ticks=first.process.start_ticks,
            kernel=boot.kernel,
            release=boot.release,
            user_namespace=boot.user_namespace,
            key=str(folder / CLIENT_KEY),
            known_hosts=str(folder / KNOWN_HOSTS),
            testbed=boot.topology.name,
            port=boot.port,
            hosts=boot.topology.addresses,
            fingerprint=fingerprint,
            allowed_before=read_allowed_cc() if boot.kernel == "native" else None,
        )
        write_record(folder, access)
        try:
            if boot.kernel == "native":
                allow_all_cc(needs.congestion_controls)
            first.set_up_lab()
            wait_until_ready(folder, access, emit)
        except BaseException:
            end_process(first.process)
            _forget(folder, access)
            raise
    return access


@dataclass(frozen=True)
class HostStatus:
    """One host of a running lab."""

    name: str
    address: str
    answered: bool


@dataclass(frozen=True)
class LabStatus:
    """The state of a lab; without kernel and hosts if it does not run."""

    running: bool
    kernel: Kernel | None = None
    release: str = ""
    hosts: tuple[HostStatus, ...] = ()


def status(state_folder: Path) -> LabStatus:
    """Return whether a lab runs, on which kernel, and which of its hosts' SSH servers answer within 2 s."""
    access = read_access(state_folder)
    if access is None:
        return LabStatus(running=False)
    hosts = tuple(
        HostStatus(name, address, answers(access, address, ANSWER_DEADLINE_S))
        for name, address in access.hosts.items()
    )
    return LabStatus(True, access.kernel, access.release, hosts)
