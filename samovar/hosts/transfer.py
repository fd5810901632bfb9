"""Files between a host and the controller over SFTP: complete and verified, or absent."""

from __future__ import annotations

import hashlib
import os
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from samovar.errors import DeadlineError, TestbedError
from samovar.hosts.target import ConnectionLostError, UnreachableError

STALL_S = 30.0
"""A transfer that delivers nothing for this long has lost its connection."""
PATIENCE_S = 90.0
"""A transfer that delivers nothing for this long over several connections is given up."""

_POLL_S = 0.1
_PAUSE_S, _LONGEST_PAUSE_S = 0.5, 8.0
_BLOCK_BYTES = 255 * 1024
"""The size of one request; OpenSSH's sftp-server answers no larger one completely (SFTP_MAX_READ_LENGTH)."""
_WINDOW_BLOCKS = 16
"""Outstanding requests. paramiko sends them from a thread, which would end with a traceback if it still had
many to send when the transfer is aborted; a few are sent within a millisecond."""


@dataclass(frozen=True)
class RemoteFile:
    """A file on a host, its local path, and its size and checksum as the host computed them."""

    remote: str
    local: Path
    sha256: str
    size_bytes: int

    @property
    def part(self) -> Path:
        """The path of the incomplete file."""
        return self.local.with_name(self.local.name + ".part")


class TransferDeadline:
    """A deadline for all steps of one transfer, which may also be interrupted between them."""

    def __init__(
        self, host: str, step: str, deadline_s: float, interrupted: Callable[[], bool] = lambda: False
    ) -> None:
        self._host, self._step, self._deadline_s = host, step, deadline_s
        self._interrupted = interrupted
        self._until = time.monotonic() + deadline_s

    def left_s(self) -> float:
        """Return the seconds left. Raises DeadlineError if there are none, TestbedError if interrupted."""
        if self._interrupted():
            raise TestbedError(f"{self._host}: {self._step}: interrupted")
        left = self._until - time.monotonic()
        if left <= 0:
            raise DeadlineError(self._host, self._step, self._deadline_s)
        return left

    def wait(self, seconds: float) -> None:
        """Sleep. Raises errors soon after left_s() would."""
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            time.sleep(min(_POLL_S, max(0.0, until - time.monotonic()), self.left_s()))


def retry_transfer(
    transfer: Callable[[], None], files: Sequence[RemoteFile], deadline: TransferDeadline
) -> None:
    """Run a transfer until it succeeds; after a lost connection it resumes, as long as bytes arrive.

    Raises the last error when nothing has arrived for PATIENCE_S; then no incomplete file is left.
    """
    arrived, since, pause_s = _arrived_bytes(files), time.monotonic(), _PAUSE_S
    try:
        while True:
            try:
                return transfer()
            except ConnectionLostError:
                before, arrived = arrived, _arrived_bytes(files)
                if arrived > before:
                    since, pause_s = time.monotonic(), _PAUSE_S
                elif time.monotonic() - since > PATIENCE_S:
                    raise
            deadline.wait(pause_s)
            pause_s = min(2 * pause_s, _LONGEST_PAUSE_S)
    except BaseException:
        for file in files:
            with suppress(OSError):  # the disk may be the reason
                file.part.unlink(missing_ok=True)
        raise


def _arrived_bytes(files: Sequence[RemoteFile]) -> int:
    paths = (path for file in files for path in (file.local, file.part))
    return sum(path.stat().st_size for path in paths if path.is_file())


def fetch_files(sftp: Any, host: str, files: Sequence[RemoteFile], deadline: TransferDeadline) -> None:
    """Copy files one after another, small ones first, so that errors show early.

    Files of an earlier attempt are verified and not copied again. Raises UnreachableError if the connection
    is lost or silent for STALL_S; then incomplete files stay for the next attempt.
    """
    for file in sorted(files, key=lambda f: f.size_bytes):
        where = f"{host}: {file.remote}"
        try:
            _fetch(sftp, host, file, deadline)
        except TimeoutError as error:
            deadline.left_s()  # raises past the deadline
            raise UnreachableError(f"{where}: nothing arrived for {STALL_S:g} s") from error
        except OSError as error:
            if sftp.get_channel().closed:
                raise UnreachableError(f"{where}: the connection was lost") from error
            reason = error.strerror or error
            raise TestbedError(f"{where}: cannot be copied to {file.local}: {reason}") from error


def _fetch(sftp: Any, host: str, file: RemoteFile, deadline: TransferDeadline) -> None:
    expected = (file.size_bytes, file.sha256)
    file.local.parent.mkdir(parents=True, exist_ok=True)
    size_bytes, digest = _digest(file.local)
    if file.local.is_file() and (size_bytes, digest.hexdigest()) == expected:
        return
    resumed = file.part.is_file()
    arrived = _receive(sftp, file, deadline)
    if resumed and arrived != expected:
        file.part.unlink()  # the part may be of another file: start again
        arrived = _receive(sftp, file, deadline)
    if arrived != expected:
        file.part.unlink()
        raise TestbedError(
            f"{host}: {file.remote}: arrived as {arrived[0]} bytes with SHA-256 {arrived[1]}; "
            f"the host counted {file.size_bytes} bytes with {file.sha256}"
        )
    file.part.rename(file.local)


def _receive(sftp: Any, file: RemoteFile, deadline: TransferDeadline) -> tuple[int, str]:
    """Append the missing bytes to the incomplete file and sync it; return its size and SHA-256."""
    size_bytes, digest = _digest(file.part)
    if size_bytes > file.size_bytes:
        file.part.unlink()
        size_bytes, digest = 0, hashlib.sha256()
    channel = sftp.get_channel()
    channel.settimeout(min(STALL_S, deadline.left_s()))
    with file.part.open("ab") as part, sftp.open(file.remote, "rb") as source:
        for block in _blocks(source, size_bytes, file.size_bytes):
            part.write(block)
            digest.update(block)
            size_bytes += len(block)
            if size_bytes > file.size_bytes:
                break  # the size is wrong already, and the file may never end
            channel.settimeout(min(STALL_S, deadline.left_s()))
        part.flush()
        os.fsync(part.fileno())
    return size_bytes, digest.hexdigest()


def _digest(path: Path) -> tuple[int, Any]:
    """Return the size of a file and its SHA-256 so far; 0 and an empty digest if there is no file."""
    digest, size_bytes = hashlib.sha256(), 0
    if path.is_file():
        with path.open("rb") as file:
            while block := file.read(1 << 20):
                digest.update(block)
                size_bytes += len(block)
    return size_bytes, digest


def _blocks(source: Any, start_byte: int, size_bytes: int) -> Iterator[bytes]:
    """Yield a file from start_byte to size_bytes, then the byte after its expected end if there is one."""
    source.MAX_REQUEST_SIZE = _BLOCK_BYTES
    step = _WINDOW_BLOCKS * _BLOCK_BYTES
    for start in range(start_byte, size_bytes, step):
        end = min(start + step, size_bytes)
        yield from source.readv([(at, min(_BLOCK_BYTES, end - at)) for at in range(start, end, _BLOCK_BYTES)])
    source.seek(size_bytes)
    yield source.read(1)
