"""The user-mode kernel of a lab: its program and modules, checked to be of the same release."""

from __future__ import annotations

import os
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

from samovar.errors import LabError

SBIN = "/usr/sbin:/sbin"
HIDDEN = Path("/mnt")
"""The boot folder is mounted there when the program starts."""
PROGRAM, MODULES = "lab.uml.program", "lab.uml.modules"
ACCEPTED = "accepted: a user-mode Linux that runs here, such as `make lab-kernel` fetches"
VERSION_DEADLINE_S = 10


@dataclass(frozen=True)
class UserModeConfig:
    """The configured program of a user-mode kernel (path, or name on PATH), and its folder of modules.

    That folder has a subfolder for each release. The default is Debian's package `user-mode-linux`.
    """

    program: str = "linux.uml"
    modules: Path = Path("/usr/lib/uml/modules")

    def below(self, root: Path) -> UserModeConfig:
        """Return the configuration with relative paths below `root`, and ~ expanded."""
        named = "/" not in self.program
        program = self.program if named else str(root / Path(self.program).expanduser())
        return UserModeConfig(program, root / self.modules.expanduser())


DEBIAN_USER_MODE = UserModeConfig()


@dataclass(frozen=True)
class UserModeKernel:
    """A user-mode kernel that can be started, its modules, and its release as `uname -r` prints it there."""

    program: Path
    modules: Path
    release: str


def find_user_mode(kernel: UserModeConfig) -> UserModeKernel:
    """Return the user-mode kernel of a configuration; it is started once for its release, which takes 20 ms.

    Raises LabError if the program is missing or cannot be started, or the modules are of another release.
    """
    program = _program(kernel.program)
    release = _release(program)
    if not (kernel.modules / release).is_dir():
        there = _releases(kernel.modules)
        what = f"{PROGRAM}, {program}, is {release}; accepted: a folder that holds a folder {release}"
        raise LabError(f"{MODULES}: {kernel.modules}: {there}, and {what}")
    return UserModeKernel(program, kernel.modules.resolve(), release)


def _program(name: str) -> Path:
    place = shutil.which(name, path=f"{os.environ.get('PATH', '')}:{SBIN}")
    if place is not None:
        # Not resolved: the name may be a link to a program that acts upon its name.
        path = Path(place).absolute()
        if path.is_relative_to(HIDDEN):
            what = f"is below {HIDDEN}, where a lab has its own files"
            raise LabError(f"{PROGRAM}: {path}: {what}; accepted: a program in another place")
        return path
    if "/" not in name:
        raise LabError(f"{PROGRAM}: {name}: not on PATH; accepted after: apt install user-mode-linux")
    what = "is not a program that this user may start" if Path(name).exists() else "is not there"
    raise LabError(f"{PROGRAM}: {name}: {what}; {ACCEPTED}")


def _release(program: Path) -> str:
    command = [str(program), "--version"]
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, errors="replace", timeout=VERSION_DEADLINE_S, check=False
        )
    except FileNotFoundError:
        # The file exists, but the interpreter that it names does not.
        raise _unusable(program, "its interpreter or dynamic linker is missing") from None
    except (OSError, subprocess.TimeoutExpired) as error:
        raise _unusable(program, str(error)) from None
    words = done.stdout.split()
    if done.returncode != 0 or len(words) != 1:
        output = (done.stderr or done.stdout).strip().partition("\n")[0][:200]
        raise _unusable(program, f"`--version` ends with status {done.returncode}: {output or 'no output'}")
    return words[0]


def _unusable(program: Path, why: str) -> LabError:
    return LabError(f"{PROGRAM}: {program}: cannot be started: {why}; {ACCEPTED}")


def _releases(folder: Path) -> str:
    if not folder.is_dir():
        return "is not there" if not folder.exists() else "is not a folder"
    names = sorted(one.name for one in folder.iterdir() if one.is_dir())
    return f"has modules for {', '.join(names)}" if names else "has no modules"
