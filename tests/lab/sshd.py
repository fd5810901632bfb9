"""A real sshd on loopback for tests, with its own keys and configuration instead of the machine's."""

from __future__ import annotations

import getpass
import os
import shutil
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from samovar.hosts import SshTarget

_CONFIG = """\
Port {port}
ListenAddress 127.0.0.1
HostKey {folder}/host_key
AuthorizedKeysFile {folder}/authorized_keys
PidFile none
UsePAM no
StrictModes no
PasswordAuthentication no
KbdInteractiveAuthentication no
PermitRootLogin prohibit-password
MaxStartups 100
Subsystem sftp {sftp}
"""

# For root: sshd needs /run/sshd, and refuses accounts that are locked in /etc/shadow. The test's shell replaces
# /bin/sh, so that the account's shell and its start-up files do not matter. Only this mount namespace is changed.
_AS_ROOT = """\
mount -t tmpfs tmpfs /run && mkdir -m 755 /run/sshd &&
mount --bind "$1/passwd" /etc/passwd && mount --bind "$1/shadow" /etc/shadow &&
mount --bind "$2" "$(readlink -f /bin/sh)" &&
exec /usr/sbin/sshd -D -e -f "$1/config"
"""


@dataclass(frozen=True)
class Sshd:
    """A running sshd."""

    folder: Path
    port: int
    process: subprocess.Popen[bytes]

    def target(self, host: str = "here") -> SshTarget:
        """Return the SSH target of this sshd under a host's name."""
        return SshTarget(
            host=host,
            address="127.0.0.1",
            port=self.port,
            user=getpass.getuser(),
            key=self.folder / "user_key",
            known_hosts=self.folder / "known_hosts",
        )

    def target_with_unknown_key(self) -> SshTarget:
        """Return the SSH target of this sshd with a key that is not authorized."""
        return replace(self.target(), key=make_key(self.folder / "other_key"))

    def connection_pids(self) -> list[int]:
        """Return the pids of the processes that serve one connection each."""
        return children(self.process.pid)


def children(pid: int) -> list[int]:
    """Return the pids of a process's running children."""
    return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def make_key(path: Path) -> Path:
    if not path.exists():
        subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "test", "-f", path], check=True)
    return path


def free_port() -> int:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        return int(taken.getsockname()[1])


@contextmanager
def running(folder: Path, shell: str = "/bin/sh", sftp: str = "internal-sftp") -> Iterator[Sshd]:
    """Run an sshd whose files are in a folder. If root runs this process, `shell` replaces /bin/sh for the sshd."""
    port = free_port()
    _write_files(folder, port, sftp)
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen(_command(folder, shell), stdin=subprocess.DEVNULL, stdout=log, stderr=log)
    try:
        _await_port(port, process, folder / "log")
        yield Sshd(folder, port, process)
    finally:
        for pid in [*children(process.pid), process.pid] if process.poll() is None else []:
            os.kill(pid, 9)
        process.wait()


def _write_files(folder: Path, port: int, sftp: str) -> None:
    host_key, user_key = make_key(folder / "host_key"), make_key(folder / "user_key")
    (folder / "known_hosts").write_text(f"[127.0.0.1]:{port} {host_key.with_suffix('.pub').read_text()}")
    shutil.copy(user_key.with_suffix(".pub"), folder / "authorized_keys")
    (folder / "config").write_text(_CONFIG.format(port=port, folder=folder, sftp=sftp))
    (folder / "shadow").write_text("root:*:1:0:99999:7:::\nsshd:*:1:0:99999:7:::\n")
    accounts = "root:x:0:0:root:/:/bin/sh\nsshd:x:100:65534::/run/sshd:/usr/sbin/nologin\n"
    (folder / "passwd").write_text(accounts)


def _command(folder: Path, shell: str) -> list[str]:
    if os.geteuid():
        return ["/usr/sbin/sshd", "-D", "-e", "-f", str(folder / "config")]
    return ["unshare", "-m", "sh", "-c", _AS_ROOT, "sh", str(folder), os.path.realpath(shell)]


def _await_port(port: int, process: subprocess.Popen[bytes], log: Path) -> None:
    until = time.monotonic() + 20
    while time.monotonic() < until and process.poll() is None:
        with socket.socket() as attempt:
            if attempt.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.05)
    raise RuntimeError(f"sshd does not listen: {log.read_text()}")
