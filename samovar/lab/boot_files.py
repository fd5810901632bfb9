"""Write the boot folder of a lab, which has all files that the lab reads: scripts, keys, seed disks."""

from __future__ import annotations

import platform
import shutil
import struct
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from samovar import installation
from samovar.events import Emit
from samovar.lab.access import Kernel
from samovar.lab.kernel import UserModeKernel
from samovar.lab.machines import VirtualMachine, qemu_release, write_seed
from samovar.lab.topology import Topology
from samovar.recipes import shell_environment

TEMPLATES = installation.TEMPLATES / "lab"
CLIENT_KEY = "id_ed25519"
KNOWN_HOSTS = "known_hosts"
MODULES = (
    *("veth", "bridge", "ifb", "tun"),
    *("sch_htb", "sch_tbf", "sch_netem", "sch_fq_codel", "sch_codel"),
    *("sch_pie", "sch_cake", "sch_fq", "sch_sfq", "sch_red"),
    *("sch_ingress", "cls_u32", "act_mirred"),
)
"""Kernel modules that are loaded when the user-mode kernel boots. Other modules are loaded on demand."""
ROOT = "root:x:0:0:root:/root:/bin/sh\n"
SHADOW = "root:*:19000:0:99999:7:::\n"
OUTGOING_DROPPED = (
    (0x30, 0, 0, 0xFFFFF004),  # load the packet type (SKF_AD_OFF + SKF_AD_PKTTYPE)
    (0x15, 0, 1, 4),  # PACKET_OUTGOING?
    (0x06, 0, 0, 0),  # then drop it
    (0x06, 0, 0, 0x40000),  # else accept it
)
"""A classic BPF filter that drops outgoing packets. Without it, the user-mode kernel would receive the
packets that it sends, and its bridge would learn the address of every host on the wrong port."""
MACHINE_FILES = ("image", "kernel", "initrd")
MACHINE_LOGS = ("console.log", "qemu.log")
REGISTER_STATE = "register_state.so"
"""The library that the user-mode kernel needs on processors with AMX."""
LARGEST_TAP_MTU = 65521
"""The largest MTU of a TAP device: 65535 bytes minus Ethernet's header."""
USER_MODE_MTU = 9000
"""The MTU of the device between a user-mode kernel and virtual machines; larger packets are lost."""
DEVICE_LINKS = {"fd": "", "stdin": "/0", "stdout": "/1", "stderr": "/2"}


@dataclass(frozen=True)
class Boot:
    """How a lab is booted on this machine: kernel, memory, processor, virtual machines."""

    topology: Topology
    kernel: Kernel
    user_mode: UserModeKernel | None
    user_namespace: bool
    memory_kib: int
    cpu: int
    port: int
    machines: tuple[VirtualMachine, ...] = ()

    @property
    def release(self) -> str:
        """The release of the lab's kernel, or QEMU's release if all hosts are virtual machines."""
        if self.kernel == "vm":
            return f"{qemu_release()} {self.machines[0].accelerator}"
        return self.user_mode.release if self.user_mode else platform.release()


def write_boot_folder(folder: Path, boot: Boot, emit: Emit) -> None:
    """Write the scripts, batch files and system files of a lab. Host keys of an earlier boot are kept."""
    for name in ("bin", "etc", "dev", "lib", "devices", "machines"):
        shutil.rmtree(folder / name, ignore_errors=True)
        (folder / name).mkdir(parents=True)
    programs = [Path("/usr/bin/mount"), Path("/usr/bin/umount")]  # copied without setuid, see lab-init.sh
    compiled = {link.device for link in boot.topology.links if link.device}
    if boot.kernel == "uml":
        compiled.add(REGISTER_STATE)
    programs += [installation.lab_program(name, emit) for name in sorted(compiled)]
    for program in programs:
        shutil.copyfile(program, folder / "bin" / program.name)
        (folder / "bin" / program.name).chmod(0o755)
    for name, end in DEVICE_LINKS.items():
        (folder / "dev" / name).symlink_to(f"/proc/self/fd{end}")
    (folder / "lib" / "modules").mkdir()  # lab-init.sh mounts the modules there
    filters = (struct.pack("HBBI", *instruction) for instruction in OUTGOING_DROPPED)
    (folder / "received.bpf").write_bytes(b"".join(filters))
    # Lab hosts see these accounts and host names in place of the machine's own.
    accounts = Path("/etc/passwd").read_text(encoding="utf-8").splitlines(keepends=True)
    others = "".join(line for line in accounts if not line.startswith("root:"))
    (folder / "etc" / "passwd").write_text(ROOT + others, encoding="utf-8")
    (folder / "etc" / "shadow").write_text(SHADOW, encoding="utf-8")
    (folder / "etc" / "shadow").chmod(0o600)
    values = {**vars(boot), **vars(boot.topology), "boot_folder": folder, "modules": MODULES}
    values["shared_links"] = boot.topology.shared_links
    values |= {"largest_tap_mtu": LARGEST_TAP_MTU, "user_mode_mtu": USER_MODE_MTU}
    _render("hosts", folder / "etc" / "hosts", values)
    _render("modprobe.sh", folder / "bin" / "modprobe", values, mode=0o755)
    _render("kernel-init.sh", folder / "kernel-init.sh", values, mode=0o755)
    for name in ("lab-init.sh", "hosts.sh", "links.batch", "kernel.fstab", "machines.sh", "machines.batch"):
        _render(name, folder / name, values)
    for node in boot.topology.nodes:
        own = folder / "hosts" / node.name
        own.mkdir(parents=True, exist_ok=True)
        for name in (*MACHINE_FILES, *MACHINE_LOGS):
            (own / name).unlink(missing_ok=True)
        if node.is_machine:
            continue
        for name in ("host-init.sh", "host.batch", "host.fstab", "sshd_config"):
            _render(name, own / name, {**values, "node": node})


def write_seeds(folder: Path, boot: Boot) -> None:
    """Write the seed disk of each virtual machine, and empty files over which its images are mounted."""
    for machine in boot.machines:
        for name in machine.files:
            (folder / "hosts" / machine.name / name).touch()
        write_seed(folder, machine, boot.topology, boot.port, TEMPLATES)


def _render(name: str, path: Path, values: Mapping[str, object], mode: int = 0o644) -> None:
    template = shell_environment((TEMPLATES,)).get_template(f"{name}.j2")
    path.write_text(template.render(values), encoding="utf-8")
    path.chmod(mode)


def make_keys(state_folder: Path, boot_folder: Path, topology: Topology, port: int) -> None:
    """Create missing SSH keys of a lab, and write its authorized_keys and known_hosts."""
    client = _make_key(state_folder / CLIENT_KEY, f"samovar lab {topology.name}")
    (boot_folder / "authorized_keys").write_text(client, encoding="utf-8")
    lines = []
    for node in topology.nodes:
        public = _make_key(boot_folder / "hosts" / node.name / "host_key", node.name)
        kind, key = public.split()[:2]
        place = str(node.control.ip) if port == 22 else f"[{node.control.ip}]:{port}"
        lines.append(f"{place} {kind} {key}\n")
    (state_folder / KNOWN_HOSTS).write_text("".join(lines), encoding="utf-8")


def _make_key(path: Path, comment: str) -> str:
    public = path.with_name(path.name + ".pub")
    if not (path.exists() and public.exists()):
        path.unlink(missing_ok=True)
        command = ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", comment, "-f", str(path)]
        subprocess.run(command, check=True, stdin=subprocess.DEVNULL, capture_output=True)
    return public.read_text(encoding="utf-8")
