"""Fetch files from a host over SFTP, with checksums verified and lost connections resumed."""

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
"""If a transfer delivers nothing for this long, its connection is considered lost."""
PATIENCE_S = 90.0
"""A transfer fails if it delivers nothing for this long, in spite of attempts to connect again."""

_POLL_S = 0.1
_PAUSE_S, _LONGEST_PAUSE_S = 0.5, 8.0
_BLOCK_BYTES = 255 * 1024
"""The size of one read request, the largest that OpenSSH's sftp-server answers in full
(SFTP_MAX_READ_LENGTH)."""
_WINDOW_BLOCKS = 16
"""The number of read requests that are sent ahead, which limits the memory of a transfer to 4 MiB."""


@dataclass(frozen=True)
class RemoteFile:
    """A file on a host, its local path, and its size and checksum as the host computed them."""

    remote: str
    local: Path
    sha256: str
    size_bytes: int

    @property
    def part(self) -> Path:
        """The local path of the file while it is incomplete."""
        return self.local.with_name(self.local.name + ".part")


class TransferDeadline:
    """One deadline for all steps of a transfer, which can also be interrupted by another thread."""

    def __init__(
        self, host: str, step: str, deadline_s: float, interrupted: Callable[[], bool] = lambda: False
    ) -> None:
        self._host, self._step, self._deadline_s = host, step, deadline_s
        self._interrupted = interrupted
        self._until = time.monotonic() + deadline_s

    def left_s(self) -> float:
        """Return how many seconds are left.

        Raises DeadlineError after the deadline, and TestbedError if the transfer was interrupted.
        """
        if self._interrupted():
            raise TestbedError(f"{self._host}: {self._step}: interrupted")
        left = self._until - time.monotonic()
        if left <= 0:
            raise DeadlineError(self._host, self._step, self._deadline_s)
        return left

    def wait(self, seconds: float) -> None:
        """Sleep for some seconds, or raise the errors of left_s() as soon as they occur."""
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            time.sleep(min(_POLL_S, max(0.0, until - time.monotonic()), self.left_s()))


def retry_transfer(
    transfer: Callable[[], None], files: Sequence[RemoteFile], deadline: TransferDeadline
) -> None:
    """Run a transfer, and run it again after a lost connection, until it succeeds.

    Raises the last error if no byte has arrived for PATIENCE_S. If this function raises an error, it first
    removes incomplete files.
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
            with suppress(OSError):  # the disk may have caused the first error
                file.part.unlink(missing_ok=True)
        raise


def _arrived_bytes(files: Sequence[RemoteFile]) -> int:
    paths = (path for file in files for path in (file.local, file.part))
    return sum(path.stat().st_size for path in paths if path.is_file())


def fetch_files(sftp: Any, host: str, files: Sequence[RemoteFile], deadline: TransferDeadline) -> None:
    """Copy files from a host one after another, small files first, so that errors show early.

    Files that are complete from an earlier attempt are verified and not copied again. Raises UnreachableError
    if the connection is lost or delivers nothing for STALL_S; incomplete files then stay for the next
    attempt.
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
        file.part.unlink()  # the incomplete file may be of an older version: start again
        arrived = _receive(sftp, file, deadline)
    if arrived != expected:
        file.part.unlink()
        raise TestbedError(
            f"{host}: {file.remote}: received {arrived[0]} bytes with SHA-256 {arrived[1]}, "
            f"but the host reported {file.size_bytes} bytes with SHA-256 {file.sha256}"
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
                break  # the file is larger than expected, and may grow without end
            channel.settimeout(min(STALL_S, deadline.left_s()))
        part.flush()
        os.fsync(part.fileno())
    return size_bytes, digest.hexdigest()


def _digest(path: Path) -> tuple[int, Any]:
    """Return the size of a file, and a SHA-256 of it to which further data can be added.

    A missing file counts as an empty file.
    """
    digest, size_bytes = hashlib.sha256(), 0
    if path.is_file():
        with path.open("rb") as file:
            while block := file.read(1 << 20):
                digest.update(block)
                size_bytes += len(block)
    return size_bytes, digest


def _blocks(source: Any, start_byte: int, size_bytes: int) -> Iterator[bytes]:
    """Yield the content of a file in blocks, beginning at `start_byte`.

    One more byte than `size_bytes` is read, so that the caller notices if the file is larger.
    """
    source.MAX_REQUEST_SIZE = _BLOCK_BYTES
    step = _WINDOW_BLOCKS * _BLOCK_BYTES
    for start in range(start_byte, size_bytes, step):
        end = min(start + step, size_bytes)
        yield from source.readv([(at, min(_BLOCK_BYTES, end - at)) for at in range(start, end, _BLOCK_BYTES)])
    source.seek(size_bytes)
    yield source.read(1)
