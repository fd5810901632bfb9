"""Choose a lab's kernel: the machine's own for root if it has all needed features, else user-mode Linux."""

from __future__ import annotations

import os
import platform
import shutil
import subprocess
from collections.abc import Mapping, Set
from dataclasses import dataclass
from pathlib import Path

from samovar.errors import LabError
from samovar.hosts import QDISC_ARGUMENTS
from samovar.lab.access import Kernel

CC_AVAILABLE = Path("/proc/sys/net/ipv4/tcp_available_congestion_control")
CC_MODULES = Path("/lib/modules", platform.release(), "kernel/net/ipv4")
CC_ALLOWED = Path("/proc/sys/net/ipv4/tcp_allowed_congestion_control")
PACKAGES = {
    "unshare": "util-linux",
    "nsenter": "util-linux",
    "taskset": "util-linux",
    "ip": "iproute2",
    "tc": "iproute2",
    "sshd": "openssh-server",
    "ssh-keygen": "openssh-client",
}
UML_PACKAGES = {"ethtool": "ethtool", "modprobe": "kmod", "setsid": "util-linux"}
SBIN = "/usr/sbin:/sbin"
NAMESPACES = ("--net", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc")
MAP_ROOT = ("--user", "--map-root-user")
TAP = "tap"
LINK_TYPES = {"ifb": "link add sv-try type ifb", TAP: "tuntap add sv-try mode tap"}
"""The features that are types of network devices, each with the command of ip(8) that creates one."""
HIDDEN = Path("/mnt")
"""The mount point of a lab's boot folder. The user-mode kernel cannot see other files below it."""
PROGRAM, MODULES = "lab.uml.program", "lab.uml.modules"
REMEDY = "install a user-mode Linux that runs here: `apt install user-mode-linux`, or `make lab-kernel`"
VERSION_DEADLINE_S = 10


@dataclass(frozen=True)
class KernelNeeds:
    """The congestion controls and features that an experiment needs in a lab's kernel, by their Linux names.

    `features` are queue disciplines and types of network devices, such as `netem` and `ifb`.
    """

    congestion_controls: frozenset[str] = frozenset()
    features: frozenset[str] = frozenset()


@dataclass(frozen=True)
class UserModeConfig:
    """The user-mode kernel in config.yaml: its program (path, or name on PATH) and its folder of modules.

    The folder of modules has a subfolder for each release. The defaults are those of Debian's package
    `user-mode-linux`.
    """

    program: str = "linux.uml"
    modules: Path = Path("/usr/lib/uml/modules")


DEBIAN_USER_MODE = UserModeConfig()


@dataclass(frozen=True)
class UserModeKernel:
    """A user-mode kernel that can be started: program, folder of modules, and release as in `uname -r`."""

    program: Path
    modules: Path
    release: str


def choose_kernel(wanted: str, needs: KernelNeeds) -> Kernel:
    """Return the kernel of a lab for the testbed's key `kernel`: "native" or "uml".

    `auto` means native if root runs samovar and the machine's kernel has every needed feature, otherwise uml.
    Raises LabError if `wanted` is "native" and samovar is not run by root.
    """
    root = os.geteuid() == 0 and not needs_user_namespace()
    if wanted == "native" and not root:
        why = "sshd changes its user id, and the user namespace of an ordinary user has only one user id"
        raise LabError(f"lab: kernel native needs root, since {why}; run as root, or set kernel: uml")
    native = wanted == "native" or (wanted == "auto" and root and not machine_lacks(needs))
    return "native" if native else "uml"


def machine_lacks(needs: KernelNeeds) -> list[str]:
    """Return the names of needed features that the machine's own kernel lacks."""
    available = CC_AVAILABLE.read_text(encoding="ascii").split() if CC_AVAILABLE.exists() else []
    unknown = sorted(needs.congestion_controls - set(available))
    controls = [cc for cc in unknown if not _succeeds(["modprobe", "--dry-run", "--quiet", f"tcp_{cc}"])]
    return controls + [name for name in sorted(needs.features) if not _has_feature(name)]


def _has_feature(name: str) -> bool:
    """Try to create a link or queue discipline in a new network namespace; return whether the kernel can."""
    if name in LINK_TYPES:
        return _succeeds(["unshare", "--net", "ip", *LINK_TYPES[name].split()])
    arguments = QDISC_ARGUMENTS.get(name, "").split()
    return _succeeds(["unshare", "--net", "tc", "qdisc", "add", "dev", "lo", "root", name, *arguments])


def needs_user_namespace() -> bool:
    """Return whether this user needs a user namespace to create the other namespaces of a lab.

    Raises LabError if this user cannot create namespaces at all.
    """
    if os.geteuid() == 0 and _succeeds(["unshare", *NAMESPACES, "true"]):
        return False
    if _succeeds(["unshare", *MAP_ROOT, *NAMESPACES, "true"]):
        return True
    settings = "kernel.unprivileged_userns_clone, kernel.apparmor_restrict_unprivileged_userns"
    remedy = f"run as root, or allow user namespaces (sysctl {settings}, user.max_user_namespaces)"
    raise LabError(f"lab: this user cannot create namespaces; {remedy}")


def require_programs(packages: Mapping[str, str]) -> None:
    """Raise LabError if programs are missing; `packages` maps each to the Debian package to install."""
    path = f"{os.environ.get('PATH', '')}:{SBIN}"
    missing = {name: package for name, package in packages.items() if shutil.which(name, path=path) is None}
    if missing:
        listed = " ".join(sorted(set(missing.values())))
        raise LabError(f"lab: not installed: {', '.join(missing)}; apt install {listed}")


def read_allowed_cc() -> str:
    """Return, as names separated by blanks, the congestion controls that the kernel allows in namespaces."""
    return CC_ALLOWED.read_text(encoding="ascii").strip()


def allow_all_cc(needed: Set[str]) -> None:
    """Load all congestion controls of the machine's kernel, and allow them in namespaces.

    Those in `needed` are loaded even if their modules are in another folder. Experiments that run later in
    the same lab may need others, and a congestion control that is loaded inside a namespace is not allowed
    there.
    """
    shipped = {file.name.partition(".")[0] for file in CC_MODULES.glob("tcp_*.ko*")}
    _succeeds(["modprobe", "--all", *sorted(shipped | {f"tcp_{name}" for name in needed})])
    allow_cc(CC_AVAILABLE.read_text(encoding="ascii").strip())


def allow_cc(names: str) -> None:
    """Allow exactly these congestion controls in namespaces of the machine's kernel. Raises LabError."""
    try:
        CC_ALLOWED.write_text(names + "\n", encoding="ascii")
    except OSError as error:
        remedy = "make this file writable for root, or set kernel: uml in the testbed"
        raise LabError(f"{CC_ALLOWED}: {error.strerror}; {remedy}") from error


def find_user_mode(config: UserModeConfig) -> UserModeKernel:
    """Return the user-mode kernel of config.yaml, after starting it once (20 ms) to learn its release.

    Raises LabError if the program is missing or cannot be started, or if the modules of its release are
    missing.
    """
    found = shutil.which(config.program, path=f"{os.environ.get('PATH', '')}:{SBIN}")
    if found is None:
        raise LabError(f"{PROGRAM}: {config.program}: not a program that this user may start; {REMEDY}")
    # Links are not resolved, because the program may depend on the name with which it is called.
    program = Path(found).absolute()
    if program.is_relative_to(HIDDEN):
        what = f"is below {HIDDEN}, where a lab has its own files"
        raise LabError(f"{PROGRAM}: {program}: {what}; move the program elsewhere")
    try:
        command = [str(program), "--version"]
        done = subprocess.run(
            command, capture_output=True, text=True, errors="replace", timeout=VERSION_DEADLINE_S, check=False
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise LabError(f"{PROGRAM}: {program}: cannot be started: {error}; {REMEDY}") from None
    words = done.stdout.split()
    if done.returncode != 0 or len(words) != 1:
        output = (done.stderr or done.stdout).strip().partition("\n")[0][:200] or "no output"
        what = f"`--version` ends with status {done.returncode}: {output}"
        raise LabError(f"{PROGRAM}: {program}: {what}; {REMEDY}")
    (release,) = words
    if not (config.modules / release).is_dir():
        there = ", ".join(sorted(path.name for path in config.modules.glob("*/"))) or "none"
        what = f"no modules for {release}, the release of {program}; present: {there}"
        raise LabError(f"{MODULES}: {config.modules}: {what}")
    return UserModeKernel(program, config.modules.resolve(), release)


def _succeeds(command: list[str]) -> bool:
    environment = {**os.environ, "PATH": f"{os.environ.get('PATH', '')}:{SBIN}"}
    try:
        done = subprocess.run(command, capture_output=True, timeout=10, env=environment, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return False
    return done.returncode == 0
