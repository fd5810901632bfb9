"""Run scripts in one long-lived shell per host, through a text protocol whose answers all have a time limit.

The shell (shell.sh, POSIX sh only) reads commands from the SSH channel. The shell runs each script in a
background child; meanwhile it can read a command to kill the script, and notice when the channel ends because
the controller is gone. docs/decisions/0003-one-shell-per-host.md explains why.
"""

from __future__ import annotations

import re
import secrets
import shlex
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal, TypeVar

from samovar.errors import TestbedError
from samovar.hosts.target import ConnectionLostError

if TYPE_CHECKING:
    from samovar.hosts.ssh import SshConnection

OUTPUT_LIMIT_BYTES = 8 * 1024 * 1024
"""A script may write this much to standard output and this much to standard error."""
KILL_GRACE_S = 3.0
"""If a host has not killed a script this long after its deadline, the connection is closed."""
Ending = Literal["exit", "deadline", "lost", "interrupted"]
"""How a script ended: by itself, killed at its deadline, with a lost connection, or interrupted by the
user."""
KILL_TEXT = 'samovar_kill "$d"\n'
BYE_TEXT = "samovar_bye\n"
HEARTBEAT_TEXT = "samovar_alive\n"

_BLOCK_BYTES = 65536
_HOST = re.compile(r"[A-Za-z0-9][A-Za-z0-9.-]*")
_BOOT = Path(__file__).with_name("shell.sh").read_text()
_Answer = TypeVar("_Answer")


@dataclass(frozen=True)
class ShellFolder:
    """The folder that a remote shell uses on its host, and the name of its process in `ps`."""

    path: str
    name: str


@dataclass(frozen=True)
class ScriptFrame:
    """The result of a script as the shell sends it."""

    exit_code: int
    stdout: bytes
    stderr: bytes


def new_mark() -> str:
    """Return a new random mark, which separates parts of an answer and cannot occur in a script's output."""
    return f"samovar-{secrets.token_hex(16)}"


def boot_text(host: str, mark: str, before: ShellFolder | None, silence_s: int = 30) -> str:
    """Return the text that boots a new shell. The shell answers with the mark and the path of its folder.

    The shell considers its controller gone if it gets no heartbeat for two to three times `silence_s`.
    `before` is the folder of an earlier shell whose connection was lost. Before the new shell answers, it
    kills the script of the earlier shell and waits for its clean-up.
    """
    if not _HOST.fullmatch(host):
        raise TestbedError(f"host {host!r}: not a name; use letters, digits, dots and hyphens")
    shell = f"samovar_host={host} samovar_silence={silence_s:d}\n{_BOOT}\n"
    return shell + take_over_text(before, mark)


def take_over_text(before: ShellFolder | None, mark: str) -> str:
    """Return the command that ends another shell and waits for the clean-up of all shells of the host."""
    end = f"samovar_succeed {shlex.quote(before.path)} {shlex.quote(before.name)}\n" if before else ""
    return f"{end}samovar_others_end\nprintf '\\n%s %s\\n' {mark} \"$d\"\n"


def run_text(script: str, mark: str) -> str:
    """Return the command that runs a script; `mark` separates the parts of the answer."""
    written, run = _written(script, "script"), f"samovar_run {mark} {OUTPUT_LIMIT_BYTES + 1}"
    return f"if {written}; then {run}; else samovar_unwritten {mark}; fi\n"


def on_loss_text(script: str, mark: str) -> str:
    """Return the command that stores the script to run if the controller is lost.

    To remove the stored script, an empty one is stored.
    """
    return f"{_written(script, 'on-loss')}; printf '\\n%s %s\\n' {mark} \"$?\"\n"


def _written(script: str, name: str) -> str:
    # The whole script is one quoted word. Values within it were quoted by samovar.recipes.
    if "\0" in script:
        raise TestbedError(f"{name}: a script must not contain NUL bytes")
    return f'printf %s {shlex.quote(script)} >"$d/{name}"'


def find_line(buffer: bytearray, mark: str) -> str | None:
    """Return the rest of the line that starts with the mark, or None if the line is not complete yet."""
    match = re.search(rb"\n" + mark.encode() + rb" ([^\n]*)\n", buffer)
    return match[1].decode(errors="replace") if match else None


def find_frame(buffer: bytearray, mark: str) -> ScriptFrame | None:
    """Return the result of a script from received bytes, or None if a part has not arrived yet.

    The shell sends the result as `MARK CODE`, standard output, MARK, standard error, MARK.
    """
    separator = mark.encode()
    if buffer.count(separator) < 3:
        return None
    _, head, rest = bytes(buffer).split(separator, 2)
    code, _, stdout = head.partition(b"\n")
    return ScriptFrame(int(code), stdout, rest.partition(separator)[0])


class RemoteShell:
    """One long-lived shell on one host. Only one thread at a time may call its methods, except `order`."""

    def __init__(self, connection: SshConnection, host: str) -> None:
        self._host = host
        self._name = f"samovar-{secrets.token_hex(8)}"  # no other process has this name
        # this command is simple enough for any login shell, csh included
        self._channel = connection.channel(f"exec /bin/sh -s {self._name}")
        self.folder: ShellFolder | None = None
        self._sending = threading.Lock()

    def boot(self, before: ShellFolder | None, deadline_s: float, silence_s: int) -> None:
        """Start the shell, and wait until it answers and the earlier shell `before` has cleaned up.

        Raises ConnectionLostError.
        """
        path = self._request(
            lambda mark: boot_text(self._host, mark, before, silence_s), deadline_s, "/bin/sh"
        )
        self.folder = ShellFolder(path, self._name)

    def run(self, script: str, deadline_s: float) -> tuple[ScriptFrame | None, Ending]:
        """Run a script; return its result, and whether it ended by exit, deadline or a lost connection.

        After the deadline, the process group of the script is killed. If the result is None, the host has not
        confirmed that the script has ended, and the connection must not be used again.
        """
        mark, buffer = new_mark(), bytearray()
        ending: Ending = "exit"
        for text, limit_s in ((run_text(script, mark), deadline_s), (KILL_TEXT, KILL_GRACE_S)):
            try:
                until = time.monotonic() + limit_s
                self._send(text, until)
                return self._receive(find_frame, mark, buffer, until), ending
            except TimeoutError:
                ending = "deadline"
            except ConnectionLostError:
                return None, "lost"
        return None, ending

    def order(self, text: str) -> None:
        """Have the shell run a short command while its script runs. Any thread may call this."""
        with self._sending:
            self._channel.sendall(text.encode())

    def keep_on_loss(self, script: str, deadline_s: float) -> None:
        """Store a script that the host runs if its controller is lost. Raises TestbedError."""
        code = self._request(lambda mark: on_loss_text(script, mark), deadline_s, "on-loss")
        if code != "0":
            raise TestbedError(
                f"{self._host}: on-loss: the script cannot be written to {self.folder}; is the disk full?"
            )

    def take_over(self, before: ShellFolder, deadline_s: float) -> None:
        """End an earlier shell of this user on the host, and wait for its clean-up.

        Raises ConnectionLostError.
        """
        self._request(lambda mark: take_over_text(before, mark), deadline_s, "take-over")

    def bye(self) -> None:
        """End the shell. The host does not run the script stored by `keep_on_loss`."""
        until = time.monotonic() + KILL_GRACE_S
        with suppress(TimeoutError, ConnectionLostError):  # the shell is gone already
            self._send(BYE_TEXT, until)
            self._receive(lambda *_: None, "", bytearray(), until)

    def _request(self, text: Callable[[str], str], deadline_s: float, what: str) -> str:
        """Send a command with a new mark; wait for a line that starts with this mark, and return its rest."""
        mark, buffer = new_mark(), bytearray()
        until = time.monotonic() + deadline_s
        try:
            self._send(text(mark), until)
            return self._receive(find_line, mark, buffer, until)
        except TimeoutError as error:
            raise ConnectionLostError(f"{self._host}: {what}: no answer within {deadline_s:g} s") from error
        except ConnectionLostError as error:
            output = buffer.decode(errors="replace").strip()[-500:]
            raise ConnectionLostError(f"{error}{f'; its output: {output}' if output else ''}") from error

    def _send(self, text: str, until: float) -> None:
        with self._limited(until):
            self.order(text)

    def _receive(
        self, find: Callable[[bytearray, str], _Answer | None], mark: str, buffer: bytearray, until: float
    ) -> _Answer:
        """Receive bytes into the buffer until `find` finds the answer with the mark; return the answer."""
        while (answer := find(buffer, mark)) is None:
            with self._limited(until):
                data = self._channel.recv(_BLOCK_BYTES)
            if not data:
                raise ConnectionLostError(f"{self._host}: the shell has ended, or the connection was lost")
            buffer += data
        return answer

    @contextmanager
    def _limited(self, until: float) -> Iterator[None]:
        """Set a time limit for calls of the channel in this context.

        Raises TimeoutError after the limit, and ConnectionLostError if the connection is lost.
        """
        left_s = until - time.monotonic()
        if left_s <= 0:
            raise TimeoutError
        self._channel.settimeout(left_s)
        try:
            yield
        except TimeoutError:
            raise
        except (OSError, EOFError) as error:
            raise ConnectionLostError(f"{self._host}: the connection was lost ({error})") from error
