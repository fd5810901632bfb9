"""Plan the virtual machines of a lab, write their seed disks, and set them up through their consoles."""

from __future__ import annotations

import json
import os
import platform
import re
import select
import shutil
import socket
import subprocess
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from samovar.errors import LabError
from samovar.experiment import Testbed
from samovar.lab.kernel import require_programs
from samovar.lab.topology import Node, Topology
from samovar.recipes import shell_environment

QEMU = "qemu-system-x86_64"
PACKAGES = {QEMU: "qemu-system-x86", "unshare": "util-linux", "nsenter": "util-linux", "ip": "iproute2"}
PACKAGES |= {"ssh-keygen": "openssh-client"}
KVM, TUN = Path("/dev/kvm"), Path("/dev/net/tun")
CPUINFO, MEMINFO = Path("/proc/cpuinfo"), Path("/proc/meminfo")
MAGIC = {b"QFI\xfb": "qcow2", b"\xfd7zXZ": "xz", b"\x1f\x8b": "gz", b"\x28\xb5\x2f\xfd": "zst"}
OVERHEAD_BYTES = 192 * 2**20
"""A QEMU process takes this much memory in addition to that of its machine, for devices and translated code
(tb-size)."""
BOOT_S = {"KVM": 20, "TCG": 90}
"""The boot time in seconds of a virtual machine that has a processor for itself, by accelerator."""
PATIENCE = 9
"""The time limit of a boot is this many times the estimated boot time."""
FREEBSD_CARDS = {"em": "e1000", "vtnet": "virtio-net-pci", "re": "rtl8139", "igb": "igb", "vmx": "vmxnet3"}
"""Maps each FreeBSD driver to the QEMU device that it drives. FreeBSD names interfaces after drivers, such as
em0."""
READY = "samovar lab: the host is set up"
FIRST_SLOT = 8
ENDED = "QEMU has ended"
PANIC = "end Kernel panic - not syncing"
FREEBSD_SETUP = "mount -t msdosfs -o ro /dev/msdosfs/CIDATA /mnt && sh /mnt/setup.sh"
LOGIN_STEPS = (
    (re.compile(r"^\S* ?login: ", re.MULTILINE), "root\n"),
    (re.compile(r"^root@.*[#%] |^[#%] \Z", re.MULTILINE), f"{FREEBSD_SETUP}\n"),
)
"""Patterns of console output, each with the text to type when it appears. The login is skipped if the console
logs root in by itself."""
PASSWORD = re.compile(r"^Password:", re.MULTILINE)
CONTROL_CODES = re.compile(r"\r|\x1b\[[0-9;?]*[A-Za-z]|\x1b[c78]")
CONSOLE_DEADLINE_S = 5.0


@dataclass(frozen=True)
class NetworkCard:
    """A network card of a virtual machine.

    The card is connected to `bridge` by the TAP device `tap`, or to another machine's card by a pair of
    sockets: `local` is this card's socket, and `remote` is the socket of the other card.
    """

    interface: str
    device: str
    mac: str
    bridge: str = ""
    tap: str = ""
    local: str = ""
    remote: str = ""

    @property
    def backend(self) -> str:
        """The value of QEMU's option -netdev for this card, without the id."""
        if self.tap:
            return f"tap,ifname={self.tap},script=no,downscript=no"
        sockets = (f"{end}.type=unix,{end}.path={getattr(self, end)}" for end in ("local", "remote"))
        return f"dgram,{','.join(sockets)}"


@dataclass(frozen=True)
class VirtualMachine:
    """A virtual machine that can be started.

    `files` maps `image`, `kernel` and `initrd` to paths. The lab mounts these files in the machine's folder,
    where QEMU opens them.
    """

    node: Node
    files: Mapping[str, Path]
    image_format: str
    memory_mib: int
    cpus: int
    accelerator: str
    append: str
    cards: tuple[NetworkCard, ...]

    @property
    def name(self) -> str:
        """The name of the machine as a host of the testbed."""
        return self.node.name

    @property
    def command(self) -> tuple[str, ...]:
        """The command line of QEMU, which runs inside the lab's namespaces."""
        own = f"/mnt/hosts/{self.name}"
        kvm = self.accelerator == "KVM"
        words = [QEMU, "-name", self.name, "-no-user-config", "-nodefaults", "-sandbox", "on"]
        words += ["-display", "none", "-vga", "none", "-rtc", "base=utc"]
        words += ["-m", f"{self.memory_mib}M", "-smp", str(self.cpus)]
        words += ["-accel", "kvm" if kvm else "tcg,tb-size=128", "-cpu", "host" if kvm else "qemu64"]
        # snapshot=on: the machine's writes go to a temporary file, which QEMU deletes as soon as it is open.
        disk = f"file={own}/image,format={self.image_format},if=none,id=disk,snapshot=on,cache=unsafe"
        words += ["-drive", disk, "-device", "virtio-blk-pci,drive=disk,bootindex=1,addr=3"]
        # FreeBSD's nuageinit mounts the seed disk for writing; snapshot=on makes that possible.
        seed = f"driver=vvfat,dir={own}/seed,label=CIDATA,if=none,id=seed,snapshot=on"
        words += ["-drive", seed, "-device", "virtio-blk-pci,drive=seed,addr=4"]
        words += ["-device", "virtio-rng-pci,addr=5"]
        console = f"socket,id=console,path=/mnt/machines/{self.name},server=on,wait=off"
        words += ["-chardev", f"{console},logfile={own}/console.log", "-serial", "chardev:console"]
        for number, card in enumerate(self.cards):
            where = f"addr={FIRST_SLOT + number:x},romfile="
            words += ["-netdev", f"{card.backend},id=net{number}"]
            words += ["-device", f"{card.device},netdev=net{number},mac={card.mac},{where}"]
        for option in ("kernel", "initrd"):
            if option in self.files:
                words += [f"-{option}", f"{own}/{option}"]
        return (*words, "-append", self.append) if self.append else tuple(words)


@dataclass(frozen=True)
class MachineCost:
    """The memory, processors and boot time that all virtual machines of a lab need together."""

    machines: int
    memory_bytes: int
    cpus: int
    accelerator: str
    seconds: float


def plan_machines(testbed: Testbed, topology: Topology, project: Path) -> tuple[VirtualMachine, ...]:
    """Return the virtual machines of a lab. Paths of images in the testbed file are relative to the project.

    Raises LabError if an image cannot be used, if there is too little memory, or if FreeBSD would give a
    network card another name than the testbed file does.
    """
    nodes = [node for node in topology.nodes if node.is_machine]
    if not nodes:
        return ()
    accelerator = choose_accelerator()
    machines = tuple(_plan_machine(testbed, topology, node, project, accelerator) for node in nodes)
    needed, there = cost_of(machines).memory_bytes, available_memory()
    if needed > there:
        what = f"{len(machines)} virtual machines need {needed / 1e9:.1f} GB of memory"
        remedy = "set a smaller `memory` for the lab or its hosts"
        raise LabError(f"lab {topology.name}: {what}, but {there / 1e9:.1f} GB are free; {remedy}")
    return machines


def cost_of(machines: Sequence[VirtualMachine]) -> MachineCost:
    """Return the memory, processors and boot time that virtual machines need on this machine."""
    memory_bytes = _memory_bytes(one.memory_mib for one in machines)
    cpus, accelerator = sum(one.cpus for one in machines), machines[0].accelerator
    return MachineCost(len(machines), memory_bytes, cpus, accelerator, _boot_s(len(machines), accelerator))


def lab_memory_bytes(testbed: Testbed) -> int:
    """Return the memory that a testbed's lab needs for its kernel and virtual machines; 0 without a lab."""
    if testbed.lab is None:
        return 0
    machines = (name for name, host in testbed.hosts.items() if host.image)
    return testbed.lab.memory_bytes + _memory_bytes(_memory_mib(testbed, name) for name in machines)


def _memory_bytes(machines_mib: Iterable[int]) -> int:
    return sum(mib * 2**20 + OVERHEAD_BYTES for mib in machines_mib)


def _memory_mib(testbed: Testbed, host: str) -> int:
    assert testbed.lab is not None  # callers have checked this
    return -(-(testbed.hosts[host].machine.memory_bytes or testbed.lab.memory_bytes) // 2**20)


def longest_boot_s(machines: int) -> float:
    """Return the time limit in seconds for booting this number of virtual machines at the same time."""
    accelerator = choose_accelerator()
    return PATIENCE * _boot_s(machines, accelerator) if machines else 0.0


def _boot_s(machines: int, accelerator: str) -> float:
    """Return the estimated boot time of virtual machines that share this machine's processors, in seconds."""
    return BOOT_S[accelerator] * max(1.0, machines / len(os.sched_getaffinity(0)))


def choose_accelerator() -> str:
    """Return the accelerator for virtual machines: KVM if this user may use it, otherwise TCG (emulation).

    On a processor without the flag vmx or svm, KVM can run only guests with a special kernel.
    """
    flags = re.search(r"^flags\s*:.* (vmx|svm)\b", CPUINFO.read_text(encoding="utf-8"), re.MULTILINE)
    return "KVM" if flags and os.access(KVM, os.R_OK | os.W_OK) else "TCG"


def require_qemu() -> None:
    """Raise LabError if QEMU, another needed program or TAP devices are missing."""
    if platform.machine() != "x86_64":
        raise LabError(f"lab: virtual machines need an x86_64 machine; this one is {platform.machine()}")
    require_programs(PACKAGES)
    try:
        os.close(os.open(TUN, os.O_RDWR))
    except OSError as error:
        what = "the control network of virtual machines needs it; load the module tun, or allow access"
        raise LabError(f"{TUN}: {error.strerror}; {what}") from None


def qemu_release() -> str:
    """Return QEMU's version, such as `QEMU 7.2.22`."""
    done = subprocess.run([QEMU, "--version"], capture_output=True, text=True, timeout=10, check=False)
    found = re.search(r"version ([0-9.]+)", done.stdout)
    return f"QEMU {found[1]}" if found else "QEMU"


def available_memory() -> int:
    """Return how many bytes of memory new processes can use without swapping."""
    lines = MEMINFO.read_text(encoding="ascii").splitlines()
    return 1024 * next(int(line.split()[1]) for line in lines if line.startswith("MemAvailable:"))


def _plan_machine(
    testbed: Testbed, topology: Topology, node: Node, project: Path, accelerator: str
) -> VirtualMachine:
    host = testbed.hosts[node.name]
    named = {"image": host.image, "kernel": host.machine.kernel, "initrd": host.machine.initrd}
    files = {key: project / Path(path).expanduser() for key, path in named.items() if path}
    where = f"lab {topology.name}: host {node.name}"
    header = b""
    for key, path in reversed(files.items()):
        try:
            with path.open("rb") as file:
                header = file.read(16)
        except OSError as error:
            raise LabError(f"{where}: {key} {path}: {error.strerror}; give a file that can be read") from None
    kind = next((kind for start, kind in MAGIC.items() if header.startswith(start)), "raw")
    if kind not in ("qcow2", "raw"):
        what = f"image {files['image']}: is compressed ({kind})"
        raise LabError(f"{where}: {what}; unpack it to a qcow2 or raw image")
    if kind == "qcow2" and any(header[8:]):  # the offset of a backing file's name; 0 without one
        what = f"image {files['image']}: is an overlay of another image"
        raise LabError(f"{where}: {what}; make an independent one: qemu-img convert -O qcow2 FILE NEW")
    return VirtualMachine(
        node=node,
        files={key: path.resolve() for key, path in files.items()},
        image_format=kind,
        memory_mib=_memory_mib(testbed, node.name),
        cpus=host.machine.cpus,
        accelerator=accelerator,
        append=host.machine.append,
        cards=_cards(where, topology, node),
    )


def _cards(where: str, topology: Topology, node: Node) -> tuple[NetworkCard, ...]:
    """Return the network cards of a machine in PCI order, in which FreeBSD numbers them."""
    number = next(index for index, one in enumerate(topology.nodes, start=1) if one is node)
    cards = []
    for index, port in enumerate(node.ports):
        at, link = next((at, one) for at, one in enumerate(topology.links, start=1) if one.name == port.link)
        device = _device(where, port.interface) if node.os == "freebsd" else "virtio-net-pci"
        if link.is_cable:
            end = link.ports.index(port)
            local, remote = (f"/mnt/machines/{at}.{side}" for side in (end, 1 - end))
            cards.append(NetworkCard(port.interface, device, port.mac, local=local, remote=remote))
        else:
            tap = f"vm{number}p{index}"
            cards.append(NetworkCard(port.interface, device, port.mac, bridge=f"sw{at}", tap=tap))
    if node.os != "freebsd":
        return (NetworkCard("ctl0", "virtio-net-pci", node.control_mac, "ctl", f"vm{number}"), *cards)
    cards.sort(key=lambda card: (card.interface.rstrip("0123456789"), _unit(card.interface)))
    names = [card.interface for card in cards]
    drivers = list(dict.fromkeys(name.rstrip("0123456789") for name in names))
    # The card of the control network is number 0 of a driver whose interfaces in the testbed file begin at 1.
    # Without such a driver, the card gets a driver that no interface uses.
    own = next((one for one in drivers if f"{one}0" not in names), None)
    own = own or next(one for one in ("vtnet", "em", "re") if one not in drivers)
    control = NetworkCard(f"{own}0", FREEBSD_CARDS[own], node.control_mac, "ctl", f"vm{number}")
    counted = dict.fromkeys((*drivers, own), 0)
    for name in (control.interface, *names):
        driver = name.rstrip("0123456789")
        if name != f"{driver}{counted[driver]}":
            remedy = f"use {driver}0, {driver}1 and so on; {driver}0 may be left out"
            raise LabError(f"{where}: interface {name}: FreeBSD numbers interfaces without gaps; {remedy}")
        counted[driver] += 1
    return (control, *cards)


def _unit(interface: str) -> int:
    return int(re.findall(r"[0-9]*$", interface)[0] or 0)


def _device(where: str, interface: str) -> str:
    driver = interface.rstrip("0123456789")
    if driver not in FREEBSD_CARDS or driver == interface:
        accepted = ", ".join(f"{name}1" for name in FREEBSD_CARDS)
        raise LabError(
            f"{where}: interface {interface}: not named after a FreeBSD driver; accepted: {accepted}"
        )
    return FREEBSD_CARDS[driver]


def write_seed(folder: Path, machine: VirtualMachine, topology: Topology, port: int, templates: Path) -> None:
    """Write the files of a machine's NoCloud disk, which cloud-init and FreeBSD's nuageinit read.

    For FreeBSD, the disk also has a setup script. nuageinit runs the script; on an image without nuageinit,
    MachineSetup logs in and runs it.
    """
    node, seed = machine.node, folder / "hosts" / machine.name / "seed"
    shutil.rmtree(seed, ignore_errors=True)
    seed.mkdir(parents=True)
    values = {
        **vars(topology),
        "node": node,
        "control": machine.cards[0].interface if node.os == "freebsd" else "ctl0",
        "client_key": (folder / "authorized_keys").read_text(encoding="utf-8").strip(),
        "host_key": (seed.parent / "host_key").read_text(encoding="ascii"),
        "ssh_port": port,
        "ready": READY,
    }
    if node.os == "freebsd":
        config: Mapping[str, object] = {"users": [], "runcmd": [FREEBSD_SETUP]}
        setup = shell_environment((templates,)).get_template("freebsd-setup.sh.j2").render(values)
        (seed / "setup.sh").write_text(setup, encoding="utf-8")
    else:
        config = _cloud_config(folder, values, node, templates)
    addresses = {port.interface: port.address for port in node.ports}
    ethernets = {
        card.interface: {
            "match": {"macaddress": card.mac},
            **({} if node.os == "freebsd" else {"set-name": card.interface}),
            "addresses": [str(addresses.get(card.interface, node.control))],
            "routes": [
                {"to": str(network), "via": str(gateway)}
                for network, gateway in node.gateways.items()
                if card.interface in addresses and gateway in addresses[card.interface].network
            ],
        }
        for card in machine.cards
    }
    instance = {"instance-id": f"samovar-{topology.name}-{node.name}", "local-hostname": node.name}
    network_config = {"version": 2, "ethernets": ethernets}
    (seed / "meta-data").write_text(json.dumps(instance) + "\n", encoding="ascii")
    (seed / "network-config").write_text(json.dumps(network_config, indent=1) + "\n", encoding="ascii")
    (seed / "user-data").write_text(f"#cloud-config\n{json.dumps(config, indent=1)}\n", encoding="utf-8")


def _cloud_config(
    folder: Path, values: Mapping[str, object], node: Node, templates: Path
) -> Mapping[str, object]:
    """Return the configuration that cloud-init applies when a Linux machine boots for the first time.

    The configuration installs a systemd unit, which then runs at every boot.
    """
    environment = shell_environment((templates,))

    def file(path: str, template: str) -> Mapping[str, str]:
        return {"path": path, "content": environment.get_template(template).render(values)}

    public = (folder / "hosts" / node.name / "host_key.pub").read_text(encoding="ascii")
    return {
        # Only the needed modules of cloud-init are listed, because each takes seconds on an emulated machine.
        "cloud_init_modules": ["write-files", "set-hostname", "users-groups", "ssh"],
        "cloud_config_modules": ["runcmd"],
        "cloud_final_modules": ["scripts-user"],
        "disable_root": False,
        "ssh_pwauth": False,
        "users": [{"name": "root"}],
        "ssh_authorized_keys": [values["client_key"]],
        "ssh_deletekeys": True,
        "ssh_keys": {"ed25519_private": values["host_key"], "ed25519_public": public},
        "write_files": [
            file("/etc/hosts", "hosts.j2"),
            file("/etc/sysctl.d/90-samovar-lab.conf", "machine-sysctl.conf.j2"),
            file("/etc/ssh/sshd_config.d/samovar-lab.conf", "machine-sshd_config.j2"),
            file("/etc/samovar-lab.sh", "machine-boot.sh.j2"),
            file("/etc/systemd/system/samovar-lab.service", "machine-boot.service.j2"),
        ],
        "runcmd": [
            ["systemctl", "enable", "--now", "samovar-lab.service"],
            ["sh", "-c", f"echo '{READY}' >/dev/console"],
        ],
    }


class MachineSetup:
    """Follows the first boot of a virtual machine on its console until the machine is set up.

    If a FreeBSD machine shows a prompt before it is set up, its image has no nuageinit. The setup script is
    then run from the console: after a login as root, or directly if root is logged in already.
    """

    def __init__(self, folder: Path, console: Path, node: Node) -> None:
        self.is_over = False
        self.problem = ""
        """The reason why the machine cannot be set up; empty if no problem has occurred."""
        self._folder = folder
        self._console = console
        self._node = node
        self._typed_at = 0
        self._steps = list(LOGIN_STEPS) if node.os == "freebsd" else []
        self._connection: socket.socket | None = None

    def advance(self) -> None:
        """Read new console output, update `is_over` and `problem`, and type the answer to a prompt."""
        text = self._text("console.log")
        self.is_over = self.is_over or READY in text
        self._drain()
        new = text[self._typed_at :]
        if self.is_over:
            self.problem = ""
        elif ENDED in self._text("qemu.log"):
            self.problem = f"host {self._node.name}: {ENDED}"
        elif PANIC in text:
            self.problem = f"host {self._node.name}: {PANIC}"
        elif self._steps and PASSWORD.search(new):
            remedy = "use an image that has nuageinit, or whose root has no password"
            self.problem = f"host {self._node.name}: the console asks for a password; {remedy}"
        else:
            for step in reversed(range(len(self._steps))):
                shown, typed = self._steps[step]
                if shown.search(new):
                    self._typed_at = len(text)
                    del self._steps[: step + 1]
                    self._type(typed)
                    break

    def tail(self, count: int) -> str:
        """Return the last `count` lines of the console's output followed by QEMU's own output."""
        lines = (self._text("console.log") + "\n" + self._text("qemu.log")).splitlines()
        return "\n".join([line for line in lines if line.strip()][-count:])

    def _text(self, name: str) -> str:
        try:
            text = (self._folder / name).read_text(encoding="utf-8", errors="replace")
        except FileNotFoundError:
            return ""
        return CONTROL_CODES.sub("", text)

    def _type(self, text: str) -> None:
        """Send text to the console. The connection stays open: closing it could discard unread text."""
        if self._connection is None:
            self._connection = socket.socket(socket.AF_UNIX)
            self._connection.settimeout(CONSOLE_DEADLINE_S)
            self._connection.connect(str(self._console))
        self._connection.sendall(text.encode("ascii"))

    def _drain(self) -> None:
        """Discard what QEMU has sent over the socket, because the console's log has it too.

        If the socket were full, the console would stop.
        """
        if self._connection is None:
            return
        while select.select([self._connection], [], [], 0)[0] and self._connection.recv(65536):
            pass
        if self.is_over:
            self.close()

    def close(self) -> None:
        """Close the connection to the console."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None
