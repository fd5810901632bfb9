"""The virtual lab on real kernels: started, used over SSH, killed in every way, stopped without a trace."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import pytest

from samovar import lab
from samovar.errors import LabError, TestbedError
from samovar.events import Event, silent
from samovar.experiment import Testbed, load_testbed
from samovar.hosts import Session, SshTarget
from samovar.lab.access import read_record
from samovar.lab.kernel import find_user_mode, read_allowed_cc
from tests.lab.lab_drive import NEEDS, footprint, on_host, remains, still_there

USER = "samovar-lab"


@pytest.fixture(scope="module")
def testbed(root: Path) -> Testbed:
    return with_lab(load_testbed(root / "hosts" / "lab.yaml"), kernel="uml", memory="256MB")


@pytest.fixture(scope="module")
def state(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    folder = tmp_path_factory.mktemp("state with a blank")
    yield folder
    lab.down(folder, silent)


@pytest.fixture
def access(testbed: Testbed, state: Path) -> lab.Access:
    """The lab, which is started if it is not running."""
    return lab.read_access(state) or lab.up(testbed, state, NEEDS, silent)


def with_lab(testbed: Testbed, **keys: str) -> Testbed:
    return testbed.model_copy(update={"lab": type(testbed.lab).model_validate(keys) if testbed.lab else None})


def test_every_host_has_the_name_addresses_and_interfaces_of_the_file(
    testbed: Testbed, access: lab.Access
) -> None:
    for name, host in testbed.hosts.items():
        lines = on_host(access, name, "hostname; ip -brief -4 address; ls /sys/class/net").split("\n")
        found = {line.split("@")[0].split()[0]: line.split()[2] for line in lines if "/" in line}
        wanted = {interface: str(value.address) for interface, value in host.interfaces.items()}
        assert lines[0] == name
        assert found == {"lo": "127.0.0.1/8", "ctl0": f"{host.address}/24", **wanted}
        assert set(found) <= set(lines), "the host's /sys shows its own interfaces"


AUTOGROUP = Path("/proc/self/autogroup")


@pytest.mark.skipif(
    not AUTOGROUP.exists() or os.geteuid() != 0,
    reason="a lab has priority over other sessions only if root starts it and the kernel has autogroups",
)
def test_the_kernel_of_a_lab_has_priority_over_other_sessions(access: lab.Access) -> None:
    leaders = set[int]()
    for pid in footprint(access).processes:
        with suppress(OSError):  # helper processes of the kernel may end at any time
            if os.getsid(pid) == pid and b"uml_dir=" in Path(f"/proc/{pid}/cmdline").read_bytes():
                leaders.add(pid)
    (kernel,) = leaders
    assert Path(f"/proc/{kernel}/autogroup").read_text().endswith(" nice -10\n")


def test_a_packet_to_the_other_side_crosses_one_router(access: lab.Access) -> None:
    assert " ttl=63 " in on_host(access, "src", "ping -c 1 -W 2 172.16.11.2")


def test_every_congestion_control_that_is_offered_can_be_set(access: lab.Access) -> None:
    offered = on_host(access, "src", "cat /proc/sys/net/ipv4/tcp_available_congestion_control").split()
    assert {"reno", "cubic", "cdg", "vegas", "bbr"} <= set(offered)
    setting = "/proc/sys/net/ipv4/tcp_congestion_control"
    script = f"read -r old < {setting}; for cc in {' '.join(offered)}; do echo $cc > {setting}; cat {setting}; done"
    assert on_host(access, "src", f"{script}; echo $old > {setting}").split() == offered


def test_a_queue_that_is_set_at_the_router_is_not_set_at_other_hosts(access: lab.Access) -> None:
    on_host(access, "rtr", "tc qdisc add dev eth2 root handle 10: netem delay 1ms limit 77")
    assert "limit 77" in on_host(access, "rtr", "tc qdisc show dev eth2; tc qdisc delete dev eth2 root")
    assert "netem" not in on_host(access, "dst", "tc qdisc show")


def test_hosts_share_neither_files_nor_processes_nor_settings(access: lab.Access) -> None:
    on_host(access, "src", "echo mine > /tmp/mine; (sleep 300 >/dev/null 2>&1 &)")
    seen = on_host(access, "dst", "ls /tmp; ps -e -o args=; cat /proc/sys/net/ipv4/ip_forward")
    assert "mine" not in seen
    assert "sleep 300" not in seen
    assert seen.endswith("0\n")
    assert on_host(access, "rtr", "cat /proc/sys/net/ipv4/ip_forward") == "1\n"


def test_a_host_cannot_write_to_the_machine(access: lab.Access) -> None:
    written = on_host(access, "src", "for f in /usr /etc /var; do touch $f/samovar-was-here 2>&1; done; true")
    assert written.count("Read-only file system") == 3


def test_a_session_runs_scripts_over_the_dialer(access: lab.Access) -> None:
    target = SshTarget(
        host="src", address="10.64.0.11", key=Path(access.key), known_hosts=Path(access.known_hosts)
    )
    session = Session(target, lab.dial(access))
    session.open()
    try:
        done = session.run("hostname", step="a test", deadline_s=20)
    finally:
        session.close()
    assert done.stdout == b"src\n"


def test_a_login_with_a_password_is_refused(access: lab.Access) -> None:
    ssh, *options = lab.shell_command(access, "src")
    methods = ["-o", "PubkeyAuthentication=no", "-o", "BatchMode=no", "-o", "NumberOfPasswordPrompts=1"]
    done = subprocess.run(
        [ssh, *methods, *options, "true"],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
        env={**os.environ, "SSH_ASKPASS": "/bin/echo", "SSH_ASKPASS_REQUIRE": "force"},
    )
    assert done.returncode == 255
    assert "Permission denied (publickey)." in done.stderr


def test_a_login_with_an_unknown_key_is_refused(access: lab.Access, tmp_path: Path) -> None:
    other = tmp_path / "key"
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", other], check=True)
    with pytest.raises(AssertionError, match=r"Permission denied \(publickey\)"):
        on_host(replace(access, key=str(other)), "src", "true")


def test_a_host_with_another_key_than_the_pinned_one_is_refused(access: lab.Access, tmp_path: Path) -> None:
    pinned = Path(access.known_hosts).read_text().splitlines()
    swapped = [f"{one.split()[0]} {' '.join(other.split()[1:])}" for one, other in pairwise(pinned)]
    (tmp_path / "known_hosts").write_text("\n".join(swapped) + "\n")
    wrong = replace(access, known_hosts=str(tmp_path / "known_hosts"))
    with pytest.raises(AssertionError, match="Host key verification failed"):
        on_host(wrong, "src", "true")
    target = SshTarget(
        host="src", address="10.64.0.11", key=Path(wrong.key), known_hosts=Path(wrong.known_hosts)
    )
    with pytest.raises(TestbedError, match="host key"):
        Session(target, lab.dial(wrong)).open()


def test_a_connection_to_an_address_that_no_host_has_is_an_error(access: lab.Access) -> None:
    with pytest.raises(LabError, match=r"10\.64\.0\.99 port 22: .*only hosts of running labs can be reached"):
        lab.dial(access)("10.64.0.99", 22)


def test_the_state_folder_is_closed_to_others(access: lab.Access, state: Path) -> None:
    assert access.process.is_running
    assert state.stat().st_mode & 0o077 == 0
    assert Path(access.key).stat().st_mode & 0o077 == 0


def test_starting_a_running_lab_again_does_not_change_it(
    testbed: Testbed, access: lab.Access, state: Path
) -> None:
    events: list[Event] = []
    assert lab.up(testbed, state, NEEDS, events.append) == access
    assert "lab-starting" not in {event.name for event in events}


def test_a_changed_testbed_file_is_refused_while_the_lab_runs(
    testbed: Testbed, access: lab.Access, state: Path
) -> None:
    assert access.process.is_running
    with pytest.raises(LabError, match=r"another version of the testbed file; stop it .*fab lab\.down"):
        lab.up(with_lab(testbed, kernel="uml", memory="300MB"), state, NEEDS, silent)


@pytest.mark.parametrize(
    "victim", ["the kernel", pytest.param("the process that started it", marks=pytest.mark.proof)]
)
def test_a_killed_lab_leaves_nothing_and_can_be_started_again(
    victim: str, testbed: Testbed, access: lab.Access, state: Path
) -> None:
    before = footprint(access)
    parent = access.process.parent
    assert parent is not None
    os.kill(access.pid if victim == "the kernel" else parent.pid, signal.SIGKILL)
    reap(parent.pid)
    assert remains(before, state) == []
    assert lab.read_access(state) is None
    again = lab.up(testbed, state, NEEDS, silent)
    assert again.pid != access.pid
    assert on_host(again, "dst", "hostname") == "dst\n"


def reap(pid: int) -> None:
    """Wait for the end of the process that started the lab, if it is a child of this process."""
    with suppress(ChildProcessError):
        os.waitpid(pid, 0)


def test_a_lab_whose_controller_was_killed_during_its_start_is_taken_over_by_the_next_start(
    root: Path, testbed: Testbed, tmp_path: Path
) -> None:
    command = [sys.executable, "-m", "tests.lab.lab_drive", "hosts/lab.yaml", str(tmp_path)]
    with subprocess.Popen(command, cwd=root, stdout=subprocess.DEVNULL) as controller:
        while read_record(tmp_path) is None:
            assert controller.poll() is None
            time.sleep(0.01)
        controller.kill()
    # A child of the controller between its fork and its exec may hold the lock for a moment.
    subprocess.run(["flock", "--wait", "10", str(tmp_path / "lock"), "true"], check=True)
    access = lab.up(load_testbed(root / "hosts" / "lab.yaml"), tmp_path, NEEDS, silent)
    before = footprint(access)
    try:
        assert lab.answering_hosts(access) == [*access.hosts]
    finally:
        lab.down(tmp_path, silent)
    assert remains(before, tmp_path) == []


def test_a_lab_that_cannot_start_reports_its_console_and_leaves_nothing(
    testbed: Testbed, tmp_path: Path
) -> None:
    assert testbed.lab is not None
    tiny = testbed.lab.model_copy(update={"memory_bytes": 6_000_000})  # less than a testbed file may state
    with pytest.raises(LabError, match=r"lab lab: ended at its start; console:\n(.*\n)*.*"):
        lab.up(testbed.model_copy(update={"lab": tiny}), tmp_path, NEEDS, silent)
    assert read_record(tmp_path) is None


def test_a_kernel_panic_at_the_start_of_a_lab_is_reported_with_the_console(
    testbed: Testbed, tmp_path: Path
) -> None:
    kernel = lab.UserModeConfig(modules=tmp_path / "modules")
    (kernel.modules / find_user_mode(lab.UserModeConfig()).release).mkdir(parents=True)
    events: list[Event] = []
    with pytest.raises(LabError, match="lab lab: ended at its start; console:") as raised:
        lab.up(testbed, tmp_path / "state", NEEDS, events.append, kernel)
    said = str(raised.value)
    assert "modprobe: WARNING: Module act_mirred not found" in said
    assert "Command failed /mnt/links.batch" in said
    assert "Kernel panic - not syncing: Attempted to kill init!" in said
    assert said.endswith("the kernel has ended with status 134"), "134 means SIGABRT"
    assert [event.name for event in events] == ["lab-starting"]
    assert read_record(tmp_path / "state") is None


def test_a_lab_on_another_kernel_than_config_yaml_names_is_not_used(
    testbed: Testbed, access: lab.Access, state: Path, tmp_path: Path
) -> None:
    other = tmp_path / "linux.uml"
    other.write_text("#!/bin/sh\necho 9.9.9\n")
    other.chmod(0o755)
    (tmp_path / "9.9.9").mkdir()
    what = rf"runs on user-mode Linux {re.escape(access.release)}, but `lab.uml` of config.yaml names 9\.9\.9"
    with pytest.raises(LabError, match=what):
        lab.up(testbed, state, NEEDS, silent, lab.UserModeConfig(str(other), tmp_path))


def test_the_recorded_kernel_release_of_a_lab_is_that_of_its_hosts(access: lab.Access, state: Path) -> None:
    assert on_host(access, "src", "uname -r").strip() == access.release


def test_stopping_leaves_no_process_namespace_interface_or_mount(access: lab.Access, state: Path) -> None:
    before = footprint(access)
    assert len(before.processes) > 10
    assert {name.split(":")[0] for name in before.namespaces} >= {"net", "mnt", "pid"}
    running = list(still_there(before, state))
    assert any(found.startswith("process") for found in running)
    assert any(found.startswith("namespace net:") for found in running)
    assert lab.down(state, silent) is True
    assert remains(before, state) == []
    assert lab.read_access(state) is None
    assert lab.down(state, silent) is False


def test_the_dumbbell_s_outermost_hosts_reach_each_other(root: Path, tmp_path: Path) -> None:
    dumbbell = with_lab(load_testbed(root / "hosts" / "dumbbell.yaml"), kernel="uml", memory="512MB")
    access = lab.up(dumbbell, tmp_path, NEEDS, silent)
    try:
        assert len(access.hosts) == 9
        assert lab.answering_hosts(access) == [*access.hosts]
        pinged = on_host(access, "src1", "ping -c 1 -W 2 172.16.11.5; ping -c 1 -W 2 172.16.10.5")
    finally:
        lab.down(tmp_path, silent)
    assert " ttl=63 " in pinged, "across the router"
    assert " ttl=64 " in pinged, "across the switch alone"


def test_a_lab_on_the_machine_s_own_kernel_works_for_root_and_is_refused_to_other_users(
    testbed: Testbed, tmp_path: Path
) -> None:
    native = with_lab(testbed, kernel="native")
    if os.geteuid() != 0:
        with pytest.raises(LabError, match="kernel native needs root"):
            lab.up(native, tmp_path, lab.KernelNeeds(), silent)
        return
    allowed_before = read_allowed_cc()
    access = lab.up(native, tmp_path, lab.KernelNeeds(), silent)
    before = footprint(access)
    try:
        assert on_host(access, "src", "uname -r").strip() == os.uname().release
        assert " ttl=63 " in on_host(access, "src", "ping -c 1 -W 2 172.16.11.2")
        with pytest.raises(AssertionError, match="Read-only file system"):
            on_host(access, "src", "touch /usr/samovar-was-here")
    finally:
        lab.down(tmp_path, silent)
    assert remains(before, tmp_path) == []
    assert read_allowed_cc() == allowed_before


def test_an_ordinary_user_can_run_the_lab(root: Path, ordinary_home: Path) -> None:
    seen = json.loads(run_as_ordinary(root, ordinary_home))
    assert seen["user"] != 0
    assert seen["user_namespace"] is True
    assert seen["kernel"] == "uml"
    assert seen["answered"] == ["src", "rtr", "dst"]
    assert seen["whoami"] == "root"
    assert "cdg" in seen["offered"]
    assert " ttl=63 " in seen["pinged"]
    assert seen["written"] == "kept"
    assert seen["processes"] > 10
    assert seen["stopped"] is True
    assert seen["remains"] == []


@pytest.fixture
def ordinary_home(tmp_path: Path) -> Iterator[Path]:
    """A folder of an ordinary user: of this user, or of a user whom root creates for the test."""
    if os.geteuid() != 0:
        yield tmp_path
        return
    subprocess.run(["userdel", "--remove", USER], capture_output=True, check=False)
    subprocess.run(["useradd", "--create-home", "--shell", "/bin/sh", USER], check=True)
    yield Path("~" + USER).expanduser()
    subprocess.run(["userdel", "--remove", USER], capture_output=True, check=True)


def run_as_ordinary(root: Path, home: Path) -> str:
    """Run lab_drive.py as an ordinary user; return its output.

    If this process is root's, it mounts the checkout in a folder that the user can enter.
    """
    python = Path(sys.executable)
    checkout = home / "checkout" if os.geteuid() == 0 else root
    program = checkout / python.relative_to(root) if python.is_relative_to(root) else python
    driver = [str(program), "-B", "-m", "tests.lab.lab_drive", "hosts/lab.yaml", str(home / "state")]
    environment = {"PATH": "/usr/bin:/bin", "HOME": str(home), "LC_ALL": "C.UTF-8"}
    if os.geteuid() == 0:
        checkout.mkdir()
        skip_without_user_namespaces()
        mount_checkout = 'mount --bind "$1" "$2" && cd "$2" && shift 2 && exec "$@"'
        driver = [
            "unshare",
            "--mount",
            "sh",
            "-c",
            mount_checkout,
            "sh",
            str(root),
            str(checkout),
            *as_user(),
            *driver,
        ]
    done = subprocess.run(
        driver, cwd=root, capture_output=True, text=True, timeout=180, check=False, env=environment
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def as_user() -> list[str]:
    return [str(shutil.which("setpriv")), "--reuid", USER, "--regid", USER, "--init-groups"]


def skip_without_user_namespaces() -> None:
    done = subprocess.run(
        [*as_user(), "unshare", "--user", "--map-root-user", "--net", "true"],
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode != 0:
        pytest.skip(f"this machine gives ordinary users no user namespaces: {done.stderr.strip()}")
