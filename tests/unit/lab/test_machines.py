"""Virtual machines of a lab: cards and links, QEMU's command, the seed disk, errors, and the login at a console."""

from __future__ import annotations

import json
import re
import select
import shutil
import socket
import subprocess
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from samovar.errors import DefinitionError, LabError
from samovar.experiment import Testbed, load_testbed
from samovar.lab.boot_files import TEMPLATES
from samovar.lab.machines import (
    READY,
    MachineSetup,
    VirtualMachine,
    cost_of,
    plan_machines,
    require_qemu,
    write_seed,
)
from samovar.lab.topology import Topology, read_topology

QCOW2 = b"QFI\xfb" + bytes(508)
Change = Callable[[str], str]


def load(folder: Path, text: str) -> Testbed:
    file = folder / "freebsd-lab.yaml"
    file.write_text(text)
    return load_testbed(file)


@pytest.fixture
def text(root: Path, tmp_path: Path) -> str:
    """Return the testbed of three FreeBSD machines, whose image is in the temporary folder."""
    (tmp_path / "images").mkdir()
    (tmp_path / "images" / "FreeBSD-14.3-RELEASE-amd64-BASIC-CLOUDINIT-ufs.qcow2").write_bytes(QCOW2)
    return (root / "hosts" / "freebsd-lab.yaml").read_text()


def plan_lab(folder: Path, text: str) -> tuple[Topology, dict[str, VirtualMachine]]:
    testbed = load(folder, text)
    topology = read_topology(testbed)
    return topology, {one.name: one for one in plan_machines(testbed, topology, folder)}


def with_linux(text: str) -> str:
    """Return the testbed with Linux on all hosts, and with interfaces named eth instead of em."""
    return re.sub(r"\bem([0-9])", r"eth\1", text.replace("os: freebsd", "os: linux")).replace(
        '    release: "14.3"\n', ""
    )


def option(machine: VirtualMachine, name: str) -> list[str]:
    words = machine.command
    return [words[index + 1] for index, word in enumerate(words) if word == name]


def test_a_link_of_two_machines_is_a_pair_of_sockets_that_name_each_other(tmp_path: Path, text: str) -> None:
    _, machines = plan_lab(tmp_path, text)
    left = [option(machines[name], "-netdev")[1] for name in ("src", "rtr")]
    ends = [dict(word.split("=") for word in one.split(",")[1:]) for one in left]
    assert all(one.startswith("dgram,local.type=unix,") for one in left)
    assert ends[0]["local.path"] == ends[1]["remote.path"] != ends[1]["local.path"] == ends[0]["remote.path"]


def test_the_control_network_and_a_link_of_three_machines_are_bridges(tmp_path: Path, text: str) -> None:
    third = text.replace(
        "      em1: {address: 172.16.31.2/24, link: right}",
        "      em1: {address: 172.16.31.2/24, link: right}\n      em2: {address: 172.16.30.9/24, link: left}",
    )
    _, machines = plan_lab(tmp_path, third)
    bridges = {card.interface: card.bridge for card in machines["dst"].cards}
    assert bridges == {"em0": "ctl", "em1": "", "em2": "sw1"}
    assert len({card.tap for one in machines.values() for card in one.cards if card.tap}) == 6


def test_a_machine_and_a_host_in_a_namespace_share_a_bridge(tmp_path: Path, text: str) -> None:
    mixed = with_linux(text).replace("kernel: vm", "kernel: uml")
    head, _, tail = mixed.partition("  dst:")
    tail = "\n".join(line for line in tail.splitlines() if "image:" not in line)
    topology, machines = plan_lab(tmp_path, f"{head}  dst:{tail}\n")
    assert set(machines) == {"src", "rtr"}
    assert [card.bridge for card in machines["rtr"].cards] == ["ctl", "", "sw2"]
    assert [link.name for link in topology.shared_links] == ["right"]


@pytest.mark.parametrize(
    ("interfaces", "cards"),
    [
        (["em1", "em2"], "em0=e1000 em1=e1000 em2=e1000"),
        (["vtnet1", "em0"], "vtnet0=virtio-net-pci em0=e1000 vtnet1=virtio-net-pci"),
        (["em0", "em1"], "vtnet0=virtio-net-pci em0=e1000 em1=e1000"),
        (["em1", "em3"], "interface em3: FreeBSD numbers interfaces without gaps; use em0, em1"),
        (["eth1", "em1"], "interface eth1: not named after a FreeBSD driver; accepted: em1, vtnet1"),
    ],
)
def test_interface_names_of_freebsd_are_a_driver_and_a_number_without_gaps(
    tmp_path: Path, text: str, interfaces: list[str], cards: str
) -> None:
    head, _, tail = text.partition("  rtr:")
    router, _, rest = tail.partition("  dst:")
    router = router.replace("em1:", f"{interfaces[0]}:").replace("em2:", f"{interfaces[1]}:")
    rest = rest.replace("from: em1, to: em2", f"from: {interfaces[0]}, to: {interfaces[1]}")
    try:
        machine = plan_lab(tmp_path, f"{head}  rtr:{router}  dst:{rest}")[1]["rtr"]
        found = " ".join(f"{card.interface}={card.device}" for card in machine.cards)
    except LabError as error:
        found = str(error)
    assert cards in found


def test_a_machine_boots_from_a_snapshot_of_its_image_or_directly_into_a_given_kernel(
    tmp_path: Path, text: str
) -> None:
    direct = "    machine: {kernel: images/kernel, append: vfs.root.mountfrom=ufs:/dev/vtbd0, memory: 256MB, cpus: 2}\n"
    (tmp_path / "images" / "kernel").write_bytes(b"\x7fELF")
    _, machines = plan_lab(tmp_path, text.replace("    interfaces:\n", direct + "    interfaces:\n", 1))
    source, router = machines["src"], machines["rtr"]
    assert all("snapshot=on" in drive for one in machines.values() for drive in option(one, "-drive"))
    assert "format=qcow2" in option(source, "-drive")[0]
    assert "label=CIDATA" in option(source, "-drive")[1]  # nuageinit mounts it for writing
    assert option(source, "-kernel") == ["/mnt/hosts/src/kernel"]
    assert option(source, "-append") == ["vfs.root.mountfrom=ufs:/dev/vtbd0"]
    assert option(source, "-smp") + option(source, "-m") == ["2", "245M"]
    assert option(router, "-kernel") == []
    assert source.files["kernel"] == tmp_path / "images" / "kernel"


def test_the_memory_cpus_and_boot_time_of_machines_are_known_before_they_start(
    tmp_path: Path, text: str
) -> None:
    cost = cost_of(list(plan_lab(tmp_path, text)[1].values()))
    assert (cost.machines, cost.cpus) == (3, 3)
    assert 3 * 512_000_000 < cost.memory_bytes < 3 * 768_000_000
    assert cost.seconds >= 20


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda text: text.replace("RELEASE", "RC1", 1), "host src: image {folder}/images/FreeBSD-14.3-RC1"),
        (
            lambda text: text.replace("512MB", "9000GB"),
            r"3 virtual machines need 2700[01]\.[0-9] GB of memory",
        ),
    ],
)
def test_a_missing_image_and_too_little_memory_are_refused(
    tmp_path: Path, text: str, change: Change, message: str
) -> None:
    with pytest.raises(LabError, match=message.format(folder=tmp_path)):
        plan_lab(tmp_path, change(text))


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"\xfd7zXZ\x00", r"is compressed \(xz\); unpack it to a qcow2 or raw"),
        (b"QFI\xfb\0\0\0\3\0\0\0\0\0\0\1\0", "is an overlay of another image; make an independent one"),
    ],
)
def test_an_image_that_is_compressed_or_an_overlay_is_refused(
    tmp_path: Path, text: str, content: bytes, message: str
) -> None:
    (tmp_path / "images" / "FreeBSD-14.3-RELEASE-amd64-BASIC-CLOUDINIT-ufs.qcow2").write_bytes(content)
    with pytest.raises(LabError, match=message):
        plan_lab(tmp_path, text)


def test_a_missing_program_is_named_with_its_package(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in ("unshare", "nsenter", "ip", "ssh-keygen"):
        found = shutil.which(name, path="/usr/sbin:/usr/bin:/sbin:/bin")
        assert found
        (tmp_path / name).symlink_to(found)
    monkeypatch.setenv("PATH", str(tmp_path))
    if shutil.which("qemu-system-x86_64", path="/usr/sbin:/sbin"):
        pytest.skip("QEMU is in a folder that is always searched")
    with pytest.raises(LabError, match=r"not installed: qemu-system-x86_64; apt install qemu-system-x86$"):
        require_qemu()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda text: text.replace("lab: {kernel: vm, memory: 512MB}\n", ""), "only a lab boots an image"),
        (
            lambda text: text.replace(
                "    image: images/FreeBSD-14.3-RELEASE-amd64-BASIC-CLOUDINIT-ufs.qcow2\n", "", 1
            ),
            "src has no image",
        ),
        (
            lambda text: text.replace("    image: images/", "    machine: {cpus: 2}\n    description: ", 1),
            "`machine` needs `image` beside it",
        ),
        (
            lambda text: text.replace(
                "    interfaces:", "    machine: {append: boot_verbose=1}\n    interfaces:", 1
            ),
            "`append` needs `kernel` beside it",
        ),
    ],
)
def test_keys_of_machines_are_checked_when_the_testbed_is_loaded(
    tmp_path: Path, text: str, change: Change, message: str
) -> None:
    with pytest.raises(DefinitionError, match=message):
        load(tmp_path, change(text))


def seed_of(folder: Path, text: str, host: str) -> dict[str, str]:
    """Write the seed disk of a host, with a new host key; return its files."""
    topology, machines = plan_lab(folder, text)
    own = folder / "hosts" / host
    own.mkdir(parents=True)
    (folder / "authorized_keys").write_text("ssh-ed25519 AAAAclient lab\n")
    command = ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(own / "host_key")]
    subprocess.run(command, check=True, stdin=subprocess.DEVNULL)
    write_seed(folder, machines[host], topology, 22, TEMPLATES)
    return {path.name: path.read_text() for path in (own / "seed").iterdir()}


def test_the_files_for_cloud_init_have_keys_addresses_and_routes(tmp_path: Path, text: str) -> None:
    files = seed_of(tmp_path, with_linux(text), "src")
    assert json.loads(files["meta-data"])["local-hostname"] == "src"
    first, _, rest = files["user-data"].partition("\n")
    config: dict[str, Any] = json.loads(rest)
    assert first == "#cloud-config"
    assert config["ssh_keys"]["ed25519_private"] == (tmp_path / "hosts" / "src" / "host_key").read_text()
    assert config["ssh_authorized_keys"] == ["ssh-ed25519 AAAAclient lab"]
    ethernets = json.loads(files["network-config"])["ethernets"]
    assert {name: one["addresses"] for name, one in ethernets.items()} == {
        "ctl0": ["10.64.3.11/24"],
        "eth1": ["172.16.30.2/24"],
    }
    assert ethernets["eth1"]["set-name"] == "eth1"
    assert ethernets["eth1"]["routes"] == [{"to": "172.16.31.0/24", "via": "172.16.30.1"}]
    contents = "".join(file["content"] for file in config["write_files"])
    assert "ip neighbour replace 172.16.30.1 lladdr 02:54:ac:10:1e:01 nud permanent dev eth1" in contents
    assert "net.ipv4.ip_forward = 0" in contents


def test_the_setup_script_of_freebsd_has_keys_addresses_and_routes(tmp_path: Path, text: str) -> None:
    files = seed_of(tmp_path, text, "rtr")
    config = json.loads(files["user-data"].removeprefix("#cloud-config\n"))
    assert config["runcmd"] == ["mount -t msdosfs -o ro /dev/msdosfs/CIDATA /mnt && sh /mnt/setup.sh"]
    script = files["setup.sh"]
    assert script.startswith("#!/bin/sh\n")
    subprocess.run(["sh", "-n"], input=script, text=True, check=True)
    for line in (
        'ifconfig_em0="inet 10.64.3.12/24"',
        'ifconfig_em2="inet 172.16.31.1/24 up"',
        "gateway_enable=YES",
        "defaultroute_delay=0",
        'static_arp_lab1="172.16.30.2 02:54:ac:10:1e:02"',
        f"echo '{READY}' >/dev/console",
    ):
        assert f"\n{line}\n" in script
    assert (tmp_path / "hosts" / "rtr" / "host_key").read_text().strip() in script
    assert 'route_lab1="-net 172.16.31.0/24 172.16.30.1"' in seed_of(tmp_path, text, "src")["setup.sh"]


def boot_script_of(setup: str) -> str:
    """Return the script that a FreeBSD machine runs at every boot."""
    return setup.partition("cat >/etc/rc.local <<'END'\n")[2].partition("END\n")[0]


def test_a_freebsd_machine_is_set_up_once_even_if_nuageinit_runs_again_after_the_reboot(
    tmp_path: Path, text: str
) -> None:
    setup = seed_of(tmp_path, text, "rtr")["setup.sh"]
    before_changes, _, _ = setup.partition("umask")
    script = before_changes.replace("/etc/rc.local", "rc.local") + "echo set up"

    def output() -> str:
        return subprocess.run(
            ["dash", "-c", script], cwd=tmp_path, text=True, capture_output=True, check=True
        ).stdout

    first = output()
    (tmp_path / "rc.local").write_text(boot_script_of(setup))
    assert (first, output()) == ("set up\n", "")


ANSWER = """ICMP_TSTAMP
PING 10.64.3.254 (10.64.3.254): 56 data bytes
20 bytes from 10.64.3.254: icmp_seq=0 ttl=64 tso=00:03:22 tsr={0} tst={0}
wrong total length 40 instead of 96

--- 10.64.3.254 ping statistics ---
1 packets transmitted, 1 packets received, 0.0% packet loss
"""
"""The output of ping(8) of FreeBSD 15.0, which prints a wrong time of day as `tso`."""


@pytest.mark.parametrize(
    ("answers", "hour", "orders"),
    [
        (["12:42:47", "12:42:47", "12:42:48", "12:42:49"], 12, ["-u 1242.48"]),
        (
            ["23:59:59", "00:00:00"],
            23,
            [],
        ),  # date(1) would set the first second of the day that has just ended
        (["13:00:00", "13:00:01"], 12, []),
        ([], 12, []),
    ],
)
def test_a_freebsd_machine_sets_its_clock_when_the_second_changes_at_the_controller(
    tmp_path: Path, text: str, answers: list[str], hour: int, orders: list[str]
) -> None:
    script = seed_of(tmp_path, text, "rtr")["setup.sh"]
    assert script.rstrip().endswith("\nsh /etc/rc.local")
    for number, answer in enumerate(answers):
        (tmp_path / f"answer{number}").write_text(ANSWER.format(answer))
    (tmp_path / "number").write_text("0\n")
    commands = f"""
ping() {{ read -r n <number; echo $((n + 1)) >number; cat "answer$n" 2>/dev/null; }}
date() {{ if [ "$2" = +%H ]; then echo {hour}; else echo "$*" >>orders; fi; }}
: >orders
"""
    boot = commands + boot_script_of(script).replace("/dev/console", "console")
    subprocess.run(["dash", "-ec", boot], cwd=tmp_path, check=True, timeout=30)
    assert (tmp_path / "orders").read_text().splitlines() == orders
    assert (tmp_path / "console").read_text() == f"{READY}\n"


class Console:
    """A serial console like QEMU's: a socket that gets the typed text, and a log to which the test writes the output."""

    def __init__(self, folder: Path, topology: Topology) -> None:
        self.log = folder / "console.log"
        self.server = socket.socket(socket.AF_UNIX)
        self.server.bind(str(folder / "console"))
        self.server.listen()
        self.setup = MachineSetup(folder, folder / "console", topology.nodes[0])
        self.connection: socket.socket | None = None

    def show(self, text: str) -> None:
        with self.log.open("a", newline="") as log:
            log.write(text)
        self.setup.advance()

    def close(self) -> None:
        self.server.close()
        self.setup.close()
        if self.connection is not None:
            self.connection.close()

    def typed(self) -> str:
        """Return the typed text. As with QEMU, text that is unread when the connection ends is lost."""
        if self.connection is None:
            self.server.settimeout(5)
            self.connection, _ = self.server.accept()
        return self.connection.recv(200).decode()

    def has_ended(self) -> bool:
        assert self.connection is not None
        return bool(select.select([self.connection], [], [], 0)[0]) and self.connection.recv(1) == b""


@pytest.fixture
def console(tmp_path: Path, text: str) -> Iterator[Console]:
    with closing(Console(tmp_path, plan_lab(tmp_path, text)[0])) as console:
        yield console


def test_root_logs_in_at_the_console_of_a_machine_without_nuageinit(console: Console) -> None:
    console.show("Mounting local filesystems:.\r\n\r\nFreeBSD/amd64 (Amnesiac) (ttyu0)\r\n\r\nlogin: ")
    assert console.typed() == "root\n"
    console.show("root\r\nem1: link state changed to UP\r\nWelcome to FreeBSD!\r\nroot@:~ # ")
    assert console.typed() == "mount -t msdosfs -o ro /dev/msdosfs/CIDATA /mnt && sh /mnt/setup.sh\n"
    over_before_ready = console.setup.is_over
    console.show(f"{READY}\r\n")
    assert (over_before_ready, console.setup.is_over) == (False, True)
    assert console.setup.problem == ""


def test_the_connection_to_a_console_stays_open_and_is_read_until_the_machine_is_set_up(
    console: Console,
) -> None:
    console.show("FreeBSD/amd64 (Amnesiac) (ttyu0)\n\nlogin: ")
    assert console.typed() == "root\n"
    assert console.connection
    assert not console.has_ended()
    console.connection.setblocking(False)
    for _ in range(64):
        console.connection.sendall(bytes(32768))
        console.show("Welcome\n")
    console.show(f"{READY}\n")
    assert console.has_ended()


@pytest.mark.parametrize("prompt", ["# ", "root@:~ # ", "root@src:~ # em1: link state changed to UP\r\n"])
def test_a_console_that_shows_a_shell_of_root_at_once_gets_no_login(console: Console, prompt: str) -> None:
    console.show("# a line of the boot that begins like a prompt\r\nStarting sshd.\r\n")
    console.show(prompt)
    assert console.typed() == "mount -t msdosfs -o ro /dev/msdosfs/CIDATA /mnt && sh /mnt/setup.sh\n"
    console.show("root@src:~ # ")
    console.show(f"{READY}\r\n")
    assert console.setup.is_over
    assert console.has_ended()


def test_a_console_that_asks_for_a_password_is_reported_as_a_problem(console: Console) -> None:
    console.show("FreeBSD/amd64 (x) (ttyu0)\n\nlogin: ")
    assert console.typed() == "root\n"
    console.show("root\r\nPassword:")
    assert (
        "host src: the console asks for a password; use an image that has nuageinit" in console.setup.problem
    )
    assert console.setup.tail(1) == "Password:"


def test_a_qemu_that_has_ended_is_reported_with_the_last_lines_of_its_log(
    console: Console, tmp_path: Path
) -> None:
    (tmp_path / "qemu.log").write_text("qemu: no such device\nQEMU has ended with status 1\n")
    console.show("SeaBIOS\n")
    assert console.setup.problem == "host src: QEMU has ended"
    assert console.setup.tail(2) == "qemu: no such device\nQEMU has ended with status 1"
