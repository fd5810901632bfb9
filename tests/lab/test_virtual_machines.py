"""Virtual machines in a lab: booted from a Debian image next to user-mode Linux, used over SSH, stopped without a trace."""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from samovar import lab
from samovar.errors import LabError
from samovar.events import Event, silent
from samovar.experiment import Testbed, load_testbed
from tests.lab.lab_drive import NEEDS, footprint, on_host, remains

ROOT = Path(__file__).parents[2]
CACHE = ROOT / ".bin" / "vm" / "debian.qcow2"
BUILD_DEADLINE_S = 3600
REBOOT_DEADLINE_S = 900


@pytest.fixture(scope="module")
def image() -> Path:
    """The image named by SAMOVAR_VM_IMAGE, or else one that is built once for each checkout from Debian's archive."""
    if given := os.environ.get("SAMOVAR_VM_IMAGE"):
        return Path(given)
    if not CACHE.exists():
        command = [str(ROOT / "tools" / "lab-image"), str(CACHE)]
        done = subprocess.run(command, capture_output=True, text=True, timeout=BUILD_DEADLINE_S, check=False)
        assert done.returncode == 0, done.stderr[-2000:]
    return CACHE


def machines(folder: Path, image: Path, kernel: str, hosts: tuple[str, ...]) -> Testbed:
    """Return hosts/lab.yaml with some hosts as virtual machines."""
    text = (
        (ROOT / "hosts" / "lab.yaml")
        .read_text()
        .replace("kernel: auto, memory: 1GB", f"kernel: {kernel}, memory: 384MB")
    )
    for host in hosts:
        text = text.replace(f"  {host}:\n", f"  {host}:\n    image: {image}\n")
    file = folder / "lab.yaml"
    file.write_text(text)
    return load_testbed(file)


@pytest.fixture(scope="module")
def booted(image: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[lab.Access, list[Event]]]:
    folder = tmp_path_factory.mktemp("state with a blank")
    events: list[Event] = []
    testbed = machines(folder, image, "vm", ("src", "rtr", "dst"))
    yield lab.up(testbed, folder / ".lab", NEEDS, events.append), events
    lab.down(folder / ".lab", silent)


@pytest.mark.proof
def test_virtual_machines_have_the_names_addresses_and_routes_of_the_testbed_file(
    booted: tuple[lab.Access, list[Event]],
) -> None:
    access, events = booted
    assert [event.name for event in events[:2]] == ["lab-starting", "lab-machines"]
    for name, addresses in {
        "src": {"ctl0": "10.64.0.11/24", "eth1": "172.16.10.2/24"},
        "rtr": {"ctl0": "10.64.0.12/24", "eth1": "172.16.10.1/24", "eth2": "172.16.11.1/24"},
        "dst": {"ctl0": "10.64.0.13/24", "eth1": "172.16.11.2/24"},
    }.items():
        lines = on_host(access, name, "hostname; ip -brief -4 address").splitlines()
        found = {line.split()[0]: line.split()[2] for line in lines[1:]}
        assert lines[0] == name
        assert found == {"lo": "127.0.0.1/8", **addresses}
    assert " ttl=63 " in on_host(access, "src", "ping -c 1 -W 10 172.16.11.2")
    assert len({on_host(access, name, "cat /proc/sys/kernel/random/boot_id") for name in access.hosts}) == 3


@pytest.mark.proof
def test_a_virtual_machine_keeps_its_files_over_a_reboot(
    booted: tuple[lab.Access, list[Event]],
) -> None:
    access, _ = booted
    before = on_host(access, "dst", "echo kept >/root/kept; cat /proc/sys/kernel/random/boot_id")
    on_host(access, "dst", "systemd-run --on-active=1 systemctl reboot >/dev/null 2>&1")
    after, end_s = before, time.monotonic() + REBOOT_DEADLINE_S
    while after == before and time.monotonic() < end_s:
        time.sleep(1)
        command = [*lab.shell_command(access, "dst"), "cat /proc/sys/kernel/random/boot_id"]
        done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
        after = done.stdout if done.returncode == 0 else before
    assert after != before
    assert on_host(access, "dst", "cat /root/kept") == "kept\n"
    assert " ttl=63 " in on_host(access, "src", "ping -c 1 -W 10 172.16.11.2")


@pytest.mark.proof
def test_a_virtual_machine_can_be_the_router_between_hosts_of_user_mode_linux(
    image: Path, tmp_path: Path
) -> None:
    access = lab.up(machines(tmp_path, image, "uml", ("rtr",)), tmp_path / ".lab", NEEDS, silent)
    try:
        assert " ttl=63 " in on_host(access, "src", "ping -c 1 -W 10 172.16.11.2")
        kernels = {name: on_host(access, name, "uname -r") for name in access.hosts}
        assert kernels["src"] == kernels["dst"] != kernels["rtr"]
        before = footprint(access)
    finally:
        lab.down(tmp_path / ".lab", silent)
    assert remains(before, tmp_path) == []


def test_a_virtual_machine_that_cannot_start_ends_the_lab_with_the_message_of_qemu(tmp_path: Path) -> None:
    broken = tmp_path / "broken.qcow2"
    broken.write_bytes(b"QFI\xfb" + bytes(600))
    with pytest.raises(
        LabError, match=r"(?s)host [a-z]+: QEMU has ended; console:\n.*Unsupported qcow2 version 0"
    ):
        lab.up(machines(tmp_path, broken, "vm", ("src", "rtr", "dst")), tmp_path / ".lab", NEEDS, silent)
    assert lab.read_access(tmp_path / ".lab") is None
