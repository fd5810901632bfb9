"""The shell that runs on a host, seen from here: orders sent, answers awaited, each wait bounded."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Protocol, TypeVar

from samovar.errors import TestbedError
from samovar.hosts import shell_protocol

KILL_GRACE_S = 3.0
"""How long a host may take to end a script that is past its deadline before the connection is given up."""

_BLOCK_BYTES = 65536
_Answer = TypeVar("_Answer")


class Channel(Protocol):
    """The part of an SSH channel that a shell needs."""

    def settimeout(self, timeout: float | None, /) -> None:
        """Bound each of the calls that follow, in seconds."""

    def sendall(self, data: bytes, /) -> None:
        """Send all bytes."""

    def recv(self, size: int, /) -> bytes:
        """Return some bytes, none at the end."""


class ConnectionLostError(TestbedError):
    """The shell, or the connection to it, is gone."""


class UnansweredError(ConnectionLostError):
    """A script is past its deadline and the host does not say that it has ended."""


class RemoteShell:
    """One long-lived shell on one host; but for `kill` and `order`, for one thread at a time."""

    def __init__(self, channel: Channel, host: str, name: str) -> None:
        self._channel = channel
        self._host = host
        self._name = name
        self.folder: shell_protocol.ShellFolder | None = None
        self._sending = threading.Lock()

    def boot(
        self,
        before: shell_protocol.ShellFolder | None,
        deadline_s: float,
        silence_s: int = shell_protocol.SILENCE_S,
    ) -> None:
        """Wait until the shell answers and its predecessor is cleaned up. Raises ConnectionLostError."""
        mark = shell_protocol.new_mark()
        until = time.monotonic() + deadline_s
        try:
            self._send(shell_protocol.boot_text(self._host, mark, before, silence_s), until)
            path = self._line(mark, until)
        except TimeoutError as error:
            raise ConnectionLostError(f"{self._host}: /bin/sh: no answer within {deadline_s:g} s") from error
        self.folder = shell_protocol.ShellFolder(path, self._name)

    def run(self, script: str, deadline_s: float) -> tuple[shell_protocol.ScriptFrame, bool]:
        """Run a script; return its frame and whether it ended by itself.

        A script past its deadline is killed with its process group. Raises UnansweredError when the host does
        not confirm that, ConnectionLostError when the connection ends.
        """
        mark = shell_protocol.new_mark()
        reader = shell_protocol.FrameReader(mark)
        try:
            until = time.monotonic() + deadline_s
            self._send(shell_protocol.run_text(script, mark), until)
            return self._until(reader.feed, until), True
        except TimeoutError:
            return self._end(reader), False

    def kill(self) -> None:
        """End the script that is running, if one is, so that run returns; any thread may call this."""
        self.order(shell_protocol.KILL_TEXT)

    def order(self, text: str) -> None:
        """Have the shell itself do something short beside its script; any thread may call this.

        Nothing is told of what came of it.
        """
        with self._sending:
            self._channel.sendall(text.encode())

    def keep_on_loss(self, script: str, deadline_s: float) -> None:
        """Leave the script to be run when the controller is gone.

        Raises ConnectionLostError, or TestbedError when the script cannot be kept there.
        """
        mark = shell_protocol.new_mark()
        until = time.monotonic() + deadline_s
        try:
            self._send(shell_protocol.on_loss_text(script, mark), until)
            code = self._line(mark, until)
        except TimeoutError as error:
            raise ConnectionLostError(f"{self._host}: on-loss: no answer within {deadline_s:g} s") from error
        if code != "0":
            raise TestbedError(
                f"{self._host}: on-loss: the script could not be written to {self.folder}; disk full?"
            )

    def succeed(self, before: shell_protocol.ShellFolder, deadline_s: float) -> None:
        """End another shell of this user and run its clean-up. Raises ConnectionLostError."""
        mark = shell_protocol.new_mark()
        until = time.monotonic() + deadline_s
        try:
            self._send(shell_protocol.succeed_text(before, mark), until)
            self._line(mark, until)
        except TimeoutError as error:
            raise ConnectionLostError(
                f"{self._host}: succession: no answer within {deadline_s:g} s"
            ) from error

    def bye(self) -> None:
        """End the shell, which then does not run what was kept for the loss of the controller."""
        until = time.monotonic() + KILL_GRACE_S
        try:
            self._send(shell_protocol.BYE_TEXT, until)
            self._until(lambda data: None, until)
        except (TimeoutError, ConnectionLostError):
            pass  # there is nobody left to say it to

    def _end(self, reader: shell_protocol.FrameReader) -> shell_protocol.ScriptFrame:
        until = time.monotonic() + KILL_GRACE_S
        try:
            self._send(shell_protocol.KILL_TEXT, until)
            return self._until(reader.feed, until)
        except TimeoutError as error:
            raise UnansweredError(
                f"{self._host}: a script could not be ended within {KILL_GRACE_S:g} s"
            ) from error

    def _line(self, mark: str, until: float) -> str:
        buffer = bytearray()

        def feed(data: bytes) -> str | None:
            buffer.extend(data)
            return shell_protocol.find_line(buffer, mark)

        try:
            return self._until(feed, until)
        except ConnectionLostError as error:
            said = buffer.decode(errors="replace").strip()[-500:]
            raise ConnectionLostError(f"{error}{f'; it said: {said}' if said else ''}") from error

    def _send(self, text: str, until: float) -> None:
        self._bound(until)
        try:
            self.order(text)
        except TimeoutError:
            raise
        except (OSError, EOFError) as error:
            raise ConnectionLostError(f"{self._host}: the connection was lost ({error})") from error

    def _until(self, feed: Callable[[bytes], _Answer | None], until: float) -> _Answer:
        while True:
            self._bound(until)
            try:
                data = self._channel.recv(_BLOCK_BYTES)
            except TimeoutError:
                raise
            except (OSError, EOFError) as error:
                raise ConnectionLostError(f"{self._host}: the connection was lost ({error})") from error
            if not data:
                raise ConnectionLostError(f"{self._host}: the shell has ended, or the connection was lost")
            answer = feed(data)
            if answer is not None:
                return answer

    def _bound(self, until: float) -> None:
        left_s = until - time.monotonic()
        if left_s <= 0:
            raise TimeoutError
        self._channel.settimeout(left_s)
