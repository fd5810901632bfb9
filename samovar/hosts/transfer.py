"""Files between a host and here by SFTP: whole and verified, or not there."""

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
from samovar.hosts.remote_shell import ConnectionLostError
from samovar.hosts.target import UnreachableError

STALL_S = 30.0
"""A transfer of which nothing arrives for so long is taken as cut off."""

PATIENCE_S = 90.0
"""A transfer that is cut off again and again is given up when nothing has arrived for so long."""

_POLL_S = 0.1
_PAUSE_S, _LONGEST_PAUSE_S = 0.5, 8.0

_BLOCK_BYTES = 255 * 1024
"""What one request asks for; OpenSSH's sftp-server answers no larger ones whole (SFTP_MAX_READ_LENGTH)."""

_WINDOW_BLOCKS = 16
"""How many requests are under way at once. paramiko sends them from a thread, which would fail with a
traceback of its own if it had many and the transfer was broken off; a few are gone in a millisecond."""


@dataclass(frozen=True)
class RemoteFile:
    """A file on a host, where it goes here, and what the host says that it holds."""

    remote: str
    local: Path
    sha256: str
    size_bytes: int

    @property
    def part(self) -> Path:
        """Where it is gathered until it is whole."""
        return self.local.with_name(self.local.name + ".part")


class TransferDeadline:
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

    def stall_s(self) -> float:
        """Return how long one answer may take. Raises as left_s does."""
        return min(STALL_S, self.left_s())

    def wait(self, seconds: float) -> None:
        """Let some time pass. Raises as left_s does, soon after it would."""
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            time.sleep(min(_POLL_S, max(0.0, until - time.monotonic()), self.left_s()))

    def missed(self) -> DeadlineError:
        """Return the error that says that the deadline has passed."""
        return DeadlineError(self._host, self._step, self._deadline_s)


def persevere(work: Callable[[], None], files: Sequence[RemoteFile], clock: TransferDeadline) -> None:
    """Do a transfer again when the connection was lost, from what has arrived, as long as something arrives.

    Raises what the last attempt did once nothing has arrived for PATIENCE_S; then no part stays behind.
    """
    try:
        _persevere(work, files, clock)
    except BaseException:
        for wanted in files:
            with suppress(OSError):  # the disk may be why
                wanted.part.unlink(missing_ok=True)
        raise


def _persevere(work: Callable[[], None], files: Sequence[RemoteFile], clock: TransferDeadline) -> None:
    arrived, since, pause_s = _arrived(files), time.monotonic(), _PAUSE_S
    while True:
        try:
            return work()
        except (UnreachableError, ConnectionLostError):
            before, arrived = arrived, _arrived(files)
            if arrived > before:
                since, pause_s = time.monotonic(), _PAUSE_S
            elif time.monotonic() - since > PATIENCE_S:
                raise
        clock.wait(pause_s)
        pause_s = min(2 * pause_s, _LONGEST_PAUSE_S)


def _arrived(files: Sequence[RemoteFile]) -> int:
    places = (place for wanted in files for place in (wanted.local, wanted.part))
    return sum(place.stat().st_size for place in places if place.is_file())


def fetch_in_turn(sftp: Any, host: str, files: Sequence[RemoteFile], clock: TransferDeadline) -> None:
    """Copy files one after another, small ones first: what is wrong shows early.

    What an earlier attempt has fetched is not fetched again, but verified whole. Raises UnreachableError when
    the connection is lost or silent for STALL_S; then what has arrived stays for the next attempt.
    """
    for wanted in sorted(files, key=lambda f: f.size_bytes):
        try:
            _fetch(sftp, host, wanted, clock)
        except TimeoutError as error:
            clock.left_s()
            raise UnreachableError(f"{host}: {wanted.remote}: nothing arrived for {STALL_S:g} s") from error
        except OSError as error:
            if sftp.get_channel().closed:
                raise UnreachableError(f"{host}: {wanted.remote}: the connection was lost") from error
            reason = error.strerror or error
            raise TestbedError(
                f"{host}: {wanted.remote}: cannot be copied to {wanted.local}: {reason}"
            ) from error


def _fetch(sftp: Any, host: str, wanted: RemoteFile, clock: TransferDeadline) -> None:
    wanted.local.parent.mkdir(parents=True, exist_ok=True)
    if wanted.local.is_file() and _sum(wanted.local) == (wanted.size_bytes, wanted.sha256):
        return
    resumed = wanted.part.is_file()
    arrived = _receive(sftp, wanted, clock)
    if resumed and arrived != (wanted.size_bytes, wanted.sha256):
        wanted.part.unlink()  # what was here may be of another file: once more from its beginning
        arrived = _receive(sftp, wanted, clock)
    if arrived != (wanted.size_bytes, wanted.sha256):
        wanted.part.unlink()
        raise _changed(host, wanted, *arrived)
    wanted.part.rename(wanted.local)


def _receive(sftp: Any, wanted: RemoteFile, clock: TransferDeadline) -> tuple[int, str]:
    """Add to the part that is here what lacks, on disk when this returns; return size and sum of it all."""
    size_bytes, digest = _begun(wanted.part)
    if size_bytes > wanted.size_bytes:
        wanted.part.unlink()
        size_bytes, digest = 0, hashlib.sha256()
    channel = sftp.get_channel()
    channel.settimeout(clock.stall_s())
    with wanted.part.open("ab") as file, sftp.open(wanted.remote, "rb") as source:
        for block in _blocks(source, size_bytes, wanted.size_bytes):
            file.write(block)
            digest.update(block)
            size_bytes += len(block)
            if size_bytes > wanted.size_bytes:
                break  # more than was told: wrong already, and it may never end
            channel.settimeout(clock.stall_s())
        file.flush()
        os.fsync(file.fileno())
    return size_bytes, digest.hexdigest()


def _begun(part: Path) -> tuple[int, Any]:
    digest, size_bytes = hashlib.sha256(), 0
    if part.is_file():
        with part.open("rb") as file:
            while block := file.read(1 << 20):
                digest.update(block)
                size_bytes += len(block)
    return size_bytes, digest


def _sum(file: Path) -> tuple[int, str]:
    size_bytes, digest = _begun(file)
    return size_bytes, digest.hexdigest()


def _blocks(source: Any, start_byte: int, size_bytes: int) -> Iterator[bytes]:
    """Read a file of a size that the host told from a place on, and what it has beyond that, if anything."""
    source.MAX_REQUEST_SIZE = _BLOCK_BYTES
    step = _WINDOW_BLOCKS * _BLOCK_BYTES
    for start in range(start_byte, size_bytes, step):
        end = min(start + step, size_bytes)
        yield from source.readv([(at, min(_BLOCK_BYTES, end - at)) for at in range(start, end, _BLOCK_BYTES)])
    source.seek(size_bytes)
    yield source.read(1)


def _changed(host: str, wanted: RemoteFile, size_bytes: int, sha256: str) -> TestbedError:
    return TestbedError(
        f"{host}: {wanted.remote}: arrived as {size_bytes} bytes with SHA-256 {sha256}; "
        f"accepted: {wanted.size_bytes} bytes with {wanted.sha256}, as counted on the host"
    )


def put_whole(sftp: Any, host: str, data: bytes, remote: str, mode: int, clock: TransferDeadline) -> None:
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
