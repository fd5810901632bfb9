"""Files between a host and here by SFTP: whole and verified, or not there."""

from __future__ import annotations

import hashlib
import os
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from samovar.errors import DeadlineError, TestbedError

_BLOCK_BYTES = 255 * 1024
"""What one request asks for; OpenSSH's sftp-server answers no larger ones whole (SFTP_MAX_READ_LENGTH)."""

_WINDOW_BLOCKS = 16
"""How many requests are under way at once. paramiko sends them from a thread, which would fail with a
traceback of its own if it had many and the transfer was broken off; a few are gone in a millisecond."""


@dataclass(frozen=True)
class Wanted:
    """A file on a host, where it goes here, and what the host says that it holds."""

    remote: str
    local: Path
    sha256: str
    size_bytes: int


class Clock:
    """A deadline shared by the steps of one transfer, which may also be interrupted between them."""

    def __init__(
        self, host: str, step: str, deadline_s: float, interrupted: Callable[[], bool] = lambda: False
    ) -> None:
        self._host, self._step, self._deadline_s = host, step, deadline_s
        self._interrupted = interrupted
        self._until = time.monotonic() + deadline_s

    def left_s(self) -> float:
        """Return the seconds left. Raises DeadlineError when none are, TestbedError when interrupted."""
        if self._interrupted():
            raise TestbedError(f"{self._host}: {self._step}: interrupted")
        left = self._until - time.monotonic()
        if left <= 0:
            raise self.missed()
        return left

    def missed(self) -> DeadlineError:
        """Return the error that says that the deadline has passed."""
        return DeadlineError(self._host, self._step, self._deadline_s)


def fetch_in_turn(sftp: Any, host: str, files: Sequence[Wanted], clock: Clock) -> None:
    """Copy files one after another, small ones first: what is wrong shows early."""
    for wanted in sorted(files, key=lambda f: f.size_bytes):
        try:
            _fetch(sftp, host, wanted, clock)
        except TimeoutError as error:
            raise clock.missed() from error
        except OSError as error:
            reason = error.strerror or error
            raise TestbedError(
                f"{host}: {wanted.remote}: cannot be copied to {wanted.local}: {reason}"
            ) from error


def _fetch(sftp: Any, host: str, wanted: Wanted, clock: Clock) -> None:
    part = wanted.local.with_name(wanted.local.name + ".part")
    part.parent.mkdir(parents=True, exist_ok=True)
    try:
        with part.open("wb") as file:
            arrived = _receive(sftp, wanted, file, clock)
            file.flush()
            os.fsync(file.fileno())
        _verify(host, wanted, *arrived)
        part.rename(wanted.local)
    finally:
        part.unlink(missing_ok=True)


def _receive(sftp: Any, wanted: Wanted, file: IO[bytes], clock: Clock) -> tuple[int, str]:
    digest, size_bytes = hashlib.sha256(), 0
    sftp.get_channel().settimeout(clock.left_s())
    with sftp.open(wanted.remote, "rb") as source:
        for block in _blocks(source, wanted.size_bytes):
            file.write(block)
            digest.update(block)
            size_bytes += len(block)
            sftp.get_channel().settimeout(clock.left_s())
    return size_bytes, digest.hexdigest()


def _blocks(source: Any, size_bytes: int) -> Iterator[bytes]:
    """Read a file of a size that the host told, and what it has beyond that, if anything."""
    source.MAX_REQUEST_SIZE = _BLOCK_BYTES
    step = _WINDOW_BLOCKS * _BLOCK_BYTES
    for start in range(0, size_bytes, step):
        end = min(start + step, size_bytes)
        yield from source.readv([(at, min(_BLOCK_BYTES, end - at)) for at in range(start, end, _BLOCK_BYTES)])
    source.seek(size_bytes)
    yield source.read(1)


def _verify(host: str, wanted: Wanted, size_bytes: int, sha256: str) -> None:
    if (size_bytes, sha256) != (wanted.size_bytes, wanted.sha256):
        raise TestbedError(
            f"{host}: {wanted.remote}: arrived as {size_bytes} bytes with SHA-256 {sha256}; "
            f"accepted: {wanted.size_bytes} bytes with {wanted.sha256}, as counted on the host"
        )


def put_whole(sftp: Any, host: str, data: bytes, remote: str, mode: int, clock: Clock) -> None:
    """Write a file on the host under another name, then rename it."""
    part = remote + ".part"
    try:
        sftp.get_channel().settimeout(clock.left_s())
        with sftp.open(part, "wb") as file:
            file.chmod(mode)
            file.write(data)
        sftp.posix_rename(part, remote)
    except TimeoutError as error:
        raise clock.missed() from error
    except OSError as error:
        raise TestbedError(f"{host}: {remote}: cannot be written: {error.strerror or error}") from error
