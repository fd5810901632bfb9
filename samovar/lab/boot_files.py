"""The boot folder: everything the lab's processes read, written before the first of them starts."""

from __future__ import annotations

import shutil
import struct
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from jinja2 import FileSystemLoader

from samovar.errors import LabError
from samovar.lab.access import Kernel
from samovar.lab.topology import Topology
from samovar.lab.usermode import UserModeKernel
from samovar.recipes.quoting import shell_environment

CHECKOUT = Path(__file__).parents[2]
TEMPLATES = CHECKOUT / "templates" / "lab"
ADAPTER = CHECKOUT / ".bin" / "adapter"
"""The program that stands for a pair of adapters; tools/bootstrap makes it."""
MODULES = (
    *("veth", "bridge", "ifb", "tun"),
    *("sch_htb", "sch_tbf", "sch_netem", "sch_fq_codel", "sch_codel"),
    *("sch_pie", "sch_cake", "sch_fq", "sch_sfq", "sch_red"),
    *("sch_ingress", "cls_u32", "act_mirred"),
)
"""Loaded at the start; any other comes when it is first asked for."""
ROOT = "root:x:0:0:root:/root:/bin/sh\n"
SHADOW = "root:*:19000:0:99999:7:::\n"
OUTGOING_DROPPED = (
    (0x30, 0, 0, 0xFFFFF004),  # load the packet's type (SKF_AD_OFF + SKF_AD_PKTTYPE)
    (0x15, 0, 1, 4),  # PACKET_OUTGOING?
    (0x06, 0, 0, 0),  # then nothing of it
    (0x06, 0, 0, 0x40000),  # else all of it
)
"""A classic BPF filter: the user-mode kernel would take what it sends itself for received, and a bridge in it
would then look for every host on the wrong side."""
DEVICE_LINKS = {"fd": "", "stdin": "/0", "stdout": "/1", "stderr": "/2"}


@dataclass(frozen=True)
class Boot:
    """How this lab starts on this machine."""

    topology: Topology
    kernel: Kernel
    user_mode: UserModeKernel | None
    user_namespace: bool
    memory_kib: int
    cpu: int
    port: int


def write_boot_folder(folder: Path, boot: Boot) -> None:
    """Write scripts, batches and system files; host keys from an earlier start stay."""
    for name in ("bin", "etc", "dev", "lib", "devices"):
        shutil.rmtree(folder / name, ignore_errors=True)
        (folder / name).mkdir(parents=True)
    _write_scripts(folder, boot)
    _write_system_files(folder / "etc", boot.topology)
    for name, end in DEVICE_LINKS.items():
        (folder / "dev" / name).symlink_to(f"/proc/self/fd{end}")
    (folder / "lib" / "modules").mkdir()  # where outer.sh mounts the modules
    filters = (struct.pack("HBBI", *instruction) for instruction in OUTGOING_DROPPED)
    (folder / "received.bpf").write_bytes(b"".join(filters))
    for program in ("mount", "umount"):
        # A plain copy has no setuid bit; see outer.sh.
        shutil.copyfile(f"/usr/bin/{program}", folder / "bin" / program)
        (folder / "bin" / program).chmod(0o755)
    if any(link.has_adapters for link in boot.topology.links):
        _copy_adapter(folder / "bin" / ADAPTER.name)


def _copy_adapter(place: Path) -> None:
    if not ADAPTER.is_file():
        raise LabError(f"lab: {ADAPTER} is missing; accepted after `make install`, which compiles it")
    shutil.copyfile(ADAPTER, place)
    place.chmod(0o755)


def _write_scripts(folder: Path, boot: Boot) -> None:
    values: dict[str, object] = {
        "boot_folder": folder,
        "kernel": boot.kernel,
        "user_mode": boot.user_mode,
        "user_namespace": boot.user_namespace,
        "memory_kib": boot.memory_kib,
        "cpu": boot.cpu,
        "port": boot.port,
        "modules": MODULES,
        "nodes": boot.topology.nodes,
        "links": boot.topology.links,
        "controller": boot.topology.controller,
    }
    _render("modprobe.sh", folder / "bin" / "modprobe", values, mode=0o755)
    _render("machine.sh", folder / "machine.sh", values, mode=0o755)
    for name in ("outer.sh", "inside.sh", "links.batch", "machine.fstab"):
        _render(name, folder / name, values)
    for node in boot.topology.nodes:
        own = folder / "hosts" / node.name
        own.mkdir(parents=True, exist_ok=True)
        for name in ("start.sh", "network.batch", "fstab", "sshd_config"):
            _render(name, own / name, {**values, "node": node})


def _render(name: str, path: Path, values: Mapping[str, object], mode: int = 0o644) -> None:
    environment = shell_environment()
    environment.loader = FileSystemLoader(TEMPLATES)
    path.write_text(environment.get_template(f"{name}.j2").render(values), encoding="utf-8")
    path.chmod(mode)


def _write_system_files(folder: Path, topology: Topology) -> None:
    """Write the account and name files that hosts see in place of the machine's."""
    accounts = Path("/etc/passwd").read_text(encoding="utf-8").splitlines(keepends=True)
    others = "".join(line for line in accounts if not line.startswith("root:"))
    (folder / "passwd").write_text(ROOT + others, encoding="utf-8")
    (folder / "shadow").write_text(SHADOW, encoding="utf-8")
    (folder / "shadow").chmod(0o600)
    (folder / "hosts").write_text(host_table(topology), encoding="utf-8")


def host_table(topology: Topology) -> str:
    """Write hosts(5) for a lab: a host is at its control address, HOST-INTERFACE under test."""
    rows = [("127.0.0.1", "localhost")]
    rows += [(str(node.control.ip), node.name) for node in topology.nodes]
    ports = (port for link in topology.links for port in link.ports)
    rows += [(str(port.address.ip), f"{port.host}-{port.interface}") for port in ports]
    return "".join(f"{address}\t{name}\n" for address, name in rows)
