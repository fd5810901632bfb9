"""Which kernel a lab runs on: the machine's own when it has what is asked for, user-mode Linux otherwise."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from samovar.errors import LabError
from samovar.lab.access import Kernel
from samovar.lab.usermode import SBIN

CONGESTION = Path("/proc/sys/net/ipv4/tcp_available_congestion_control")
PACKAGES = {
    "unshare": "util-linux",
    "nsenter": "util-linux",
    "taskset": "util-linux",
    "ip": "iproute2",
    "tc": "iproute2",
    "sshd": "openssh-server",
    "ssh-keygen": "openssh-client",
}
UML_PACKAGES = {"ethtool": "ethtool", "modprobe": "kmod"}
NAMESPACES = ("--net", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc")
MAP_ROOT = ("--user", "--map-root-user")
QDISC_ARGUMENTS: Mapping[str, str] = {
    "tbf": "rate 1mbit burst 10kb limit 10kb",
    "red": "limit 100kb avpkt 1000",
    "choke": "limit 100 bandwidth 1mbit",
    "netem": "delay 1ms",
}
"""What tc insists on before it asks the kernel."""
LINKS = frozenset({"ifb"})
"""Kernel features that are kinds of devices, and no queue disciplines."""
NATIVE_NEEDS_ROOT = (
    "kernel native needs root, since sshd changes to another user number and an ordinary user's namespace "
    "holds only one; accepted: root, or kernel uml"
)
SETTINGS = (
    "see sysctl kernel.unprivileged_userns_clone, kernel.apparmor_restrict_unprivileged_userns and "
    "user.max_user_namespaces"
)


@dataclass(frozen=True)
class KernelNeeds:
    """What experiments ask of a kernel, in the kernel's own names (`reno`, `netem`)."""

    congestion_controls: frozenset[str] = frozenset()
    qdiscs: frozenset[str] = frozenset()


def choose_kernel(wanted: str, needs: KernelNeeds) -> Kernel:
    """Choose the lab's kernel: what the testbed asks for, or for `auto` native if it can and uml otherwise.

    Raises LabError when native is asked for and this user cannot have it.
    """
    root = os.geteuid() == 0 and not needs_user_namespace()
    if wanted == "native" and not root:
        raise LabError(f"lab: {NATIVE_NEEDS_ROOT}")
    if wanted == "auto":
        return "native" if root and not machine_lacks(needs) else "uml"
    return "native" if wanted == "native" else "uml"


def machine_lacks(needs: KernelNeeds) -> list[str]:
    """Name what the machine's own kernel does not offer of what is needed."""
    offered = CONGESTION.read_text(encoding="ascii").split() if CONGESTION.exists() else []
    unknown = sorted(needs.congestion_controls - set(offered))
    controls = [cc for cc in unknown if not _has_module(f"tcp_{cc}")]
    return controls + [qdisc for qdisc in sorted(needs.qdiscs) if not _has_qdisc(qdisc)]


def _has_module(name: str) -> bool:
    return _succeeds(["modprobe", "--dry-run", "--quiet", name])


def _has_qdisc(name: str) -> bool:
    """Ask the kernel itself, in a network namespace that ends with the question."""
    arguments = QDISC_ARGUMENTS.get(name, "").split()
    if name in LINKS:
        return _succeeds(["unshare", "--net", "ip", "link", "add", "sv-try", "type", name])
    return _succeeds(["unshare", "--net", "tc", "qdisc", "add", "dev", "lo", "root", name, *arguments])


def needs_user_namespace() -> bool:
    """Tell whether namespaces take a user namespace here: for ordinary users, and for root in a container.

    Raises LabError when the machine offers neither.
    """
    if os.geteuid() == 0 and _succeeds(["unshare", *NAMESPACES, "true"]):
        return False
    if _succeeds(["unshare", *MAP_ROOT, *NAMESPACES, "true"]):
        return True
    raise LabError(f"lab: this user may not make namespaces; accepted: root, or user namespaces ({SETTINGS})")


def require_programs(kernel: Kernel) -> None:
    """Raise LabError naming the Debian packages of every program that is missing for this kernel."""
    programs = {**PACKAGES, **(UML_PACKAGES if kernel == "uml" else {})}
    path = f"{os.environ.get('PATH', '')}:{SBIN}"
    missing = {name: package for name, package in programs.items() if shutil.which(name, path=path) is None}
    if missing:
        packages = " ".join(sorted(set(missing.values())))
        raise LabError(f"lab: not installed: {', '.join(missing)}; apt install {packages}")


def _succeeds(command: list[str]) -> bool:
    environment = {**os.environ, "PATH": f"{os.environ.get('PATH', '')}:{SBIN}"}
    try:
        done = subprocess.run(command, capture_output=True, timeout=10, env=environment, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return False
    return done.returncode == 0
