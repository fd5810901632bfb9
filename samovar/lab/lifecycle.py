"""Start and stop a lab: one outer process holds all of it, so ending that process ends everything."""

from __future__ import annotations

import fcntl
import hashlib
import os
import platform
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from samovar.errors import LabError
from samovar.events import Emit, Event
from samovar.experiment import Testbed
from samovar.lab import allowed_cc
from samovar.lab.access import RECORD, Access, OsProcess, read_record, write_record
from samovar.lab.boot_files import Boot, write_boot_folder
from samovar.lab.kernel import (
    KernelNeeds,
    choose_kernel,
    machine_lacks,
    needs_user_namespace,
    require_programs,
)
from samovar.lab.lab_process import end_process, launched, wait_until_ready
from samovar.lab.ssh_keys import CLIENT_KEY, KNOWN_HOSTS, make_keys
from samovar.lab.topology import Topology, read_topology
from samovar.lab.unsupported_devices import require_supported_links
from samovar.lab.usermode import DEBIAN_USER_MODE, UserModeConfig, find_user_mode


def up(
    testbed: Testbed,
    state_folder: Path,
    needs: KernelNeeds,
    emit: Emit,
    user_mode: UserModeConfig = DEBIAN_USER_MODE,
) -> Access:
    """Start a testbed's lab, or find it running, and return once every host's SSH server answers.

    Raises LabError when the testbed is no lab, a package is missing, the user-mode kernel cannot be started,
    another lab runs in this state folder, the lab ends, or a host does not answer within 60 s and 5 s for
    each host; nothing is left running then.
    """
    topology = _lab_topology(testbed)
    fingerprint = hashlib.sha256(testbed.model_dump_json().encode()).hexdigest()[:16]
    with _locked(state_folder) as folder:
        record = read_record(folder)
        if record is not None and record.process.is_running:
            _require_same(record, fingerprint, needs, user_mode)
            # Whoever started it may have been killed before its hosts answered.
            wait_until_ready(folder, record, emit)
            return record
        _forget(folder, record)
        boot = _plan_boot(testbed, topology, needs, user_mode)
        emit(Event("lab-starting", {**_named(boot), "hosts": len(topology.nodes)}))
        return _start(folder, boot, fingerprint, needs, emit)


def down(state_folder: Path, emit: Emit) -> bool:
    """Stop a lab and wait until its processes are gone; return whether one was running.

    Raises LabError when they are still there after 20 s.
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
    """Hold a state folder for one start or stop at a time."""
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


def _named(boot: Boot) -> dict[str, str]:
    """Say whose lab it is and which kernel it has."""
    release = boot.user_mode.release if boot.user_mode else platform.release()
    return {"testbed": boot.topology.name, "kernel": boot.kernel, "release": release}


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
    """Raise LabError when a lab that runs already is not the one asked for."""
    what = _other(record, fingerprint, needs, user_mode)
    if what:
        raise LabError(f"lab {record.testbed}: {what}; accepted after it has been stopped: fab lab.down")


def _other(record: Access, fingerprint: str, needs: KernelNeeds, user_mode: UserModeConfig) -> str:
    """Say in what a lab differs from the one asked for; empty when in nothing."""
    if record.fingerprint != fingerprint:
        return "runs from another version of the testbed file"
    if record.kernel == "native":
        missing = ", ".join(machine_lacks(needs))
        return f"runs on the machine's own kernel, which lacks {missing}" if missing else ""
    wanted = find_user_mode(user_mode).release
    if record.release in ("", wanted):
        return ""
    return f"runs on user-mode Linux {record.release}, and `lab.uml` of config.yaml is {wanted}"


def _forget(folder: Path, record: Access | None) -> None:
    """Give back what a lab that is gone has borrowed, and drop its record."""
    if record is not None and record.allowed_before is not None:
        allowed_cc.restore(record.allowed_before)
    (folder / RECORD).unlink(missing_ok=True)


def _start(folder: Path, boot: Boot, fingerprint: str, needs: KernelNeeds, emit: Emit) -> Access:
    write_boot_folder(folder / "boot", boot)
    make_keys(folder, folder / "boot", boot.topology, boot.port)
    with launched(folder, boot.user_namespace) as outer:
        access = _describe(folder, boot, fingerprint, outer.first)
        write_record(folder, access)
        try:
            if boot.kernel == "native":
                allowed_cc.widen(needs.congestion_controls)
            outer.let_go()
            wait_until_ready(folder, access, emit)
        except BaseException:
            end_process(outer.first)
            _forget(folder, access)
            raise
    return access


def _describe(folder: Path, boot: Boot, fingerprint: str, first: OsProcess) -> Access:
    named = _named(boot)
    return Access(
        pid=first.pid,
        start_ticks=first.start_ticks,
        kernel=boot.kernel,
        release=named["release"],
        user_namespace=boot.user_namespace,
        key=str(folder / CLIENT_KEY),
        known_hosts=str(folder / KNOWN_HOSTS),
        testbed=named["testbed"],
        port=boot.port,
        hosts=boot.topology.addresses,
        fingerprint=fingerprint,
        allowed_before=allowed_cc.read() if boot.kernel == "native" else None,
    )
