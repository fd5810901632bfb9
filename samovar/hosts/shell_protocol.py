"""The protocol spoken with the one shell per host: pure text in, bytes out; POSIX sh only.

The shell reads its orders from the SSH channel and is never busy itself: a script runs in a background child,
so that the shell hears an order to end it, and hears the end of the channel when the controller is gone.
docs/decisions/0003 has the why.
"""

from __future__ import annotations

import re
import secrets
import shlex
from dataclasses import dataclass
from pathlib import Path

from samovar.errors import TestbedError

OUTPUT_LIMIT_BYTES = 8 * 1024 * 1024
"""The most that a script may write to each of its outputs; data of a trial belongs in files."""

SILENCE_S = 30
"""A third of the time after which a host takes a controller for gone of which it hears nothing."""

_HOST = re.compile(r"[A-Za-z0-9][A-Za-z0-9.-]*")

_BOOT = Path(__file__).with_name("shell.sh").read_text()


@dataclass(frozen=True)
class ShellFolder:
    """A remote shell's folder on its host, and the name that its process carries in `ps`."""

    path: str
    name: str


@dataclass(frozen=True)
class ScriptFrame:
    """What came back from one script; `host_seconds` is None where telling it would cost an exec."""

    exit_code: int
    stdout: bytes
    stderr: bytes
    host_seconds: float | None

    @property
    def oversized(self) -> bool:
        """Whether an output was cut at OUTPUT_LIMIT_BYTES."""
        return max(len(self.stdout), len(self.stderr)) > OUTPUT_LIMIT_BYTES


def new_name() -> str:
    """Return a name for a shell that no other process carries."""
    return f"samovar-{secrets.token_hex(8)}"


def new_mark() -> str:
    """Return a mark that cannot occur in an output by chance."""
    return f"samovar-{secrets.token_hex(16)}"


def start_command(name: str) -> str:
    """Return the SSH command that starts the shell: simple enough for any login shell, csh included."""
    return f"exec /bin/sh -s {name}"


def boot_text(host: str, mark: str, before: ShellFolder | None, silence_s: int = SILENCE_S) -> str:
    """Return what a fresh shell reads first; it answers with the mark and its folder.

    It takes the controller for gone that it has not heard for two to three times `silence_s`.

    `before` is the folder of the shell whose connection was lost: what it had running is ended, and its
    clean-up is done, before the new shell answers.
    """
    if not _HOST.fullmatch(host):
        raise TestbedError(f"host {host!r}: not a name; accepted: letters, digits, dots and hyphens")
    lines = [f"samovar_host={host} samovar_silence={silence_s:d}", _BOOT]
    if before:
        lines.append(_succeed(before))
    return "\n".join([*lines, "samovar_others_end", f"printf '\\n%s %s\\n' {mark} \"$d\"", ""])


def run_text(script: str, mark: str) -> str:
    """Return the order to run a script; its frame carries the mark."""
    written, run = _written(script, "script"), f"samovar_run {mark} {OUTPUT_LIMIT_BYTES + 1}"
    return f"if {written}; then {run}; else samovar_unwritten {mark}; fi\n"


def on_loss_text(script: str, mark: str) -> str:
    """Return the order to keep a script for the day that the controller is gone; an empty one forgets it."""
    return f"{_written(script, 'on-loss')}; printf '\\n%s %s\\n' {mark} \"$?\"\n"


def succeed_text(before: ShellFolder, mark: str) -> str:
    """Return the order to do what the shell of a folder has to do at its end, and to wait for that."""
    return f"{_succeed(before)}\nsamovar_others_end\nprintf '\\n%s %s\\n' {mark} done\n"


def _succeed(before: ShellFolder) -> str:
    return f"samovar_succeed {shlex.quote(before.path)} {shlex.quote(before.name)}"


KILL_TEXT = 'samovar_kill "$d"\n'
BYE_TEXT = "samovar_bye\n"
ALIVE_TEXT = "samovar_alive\n"
"""A sign of life: from a controller that sends none for long enough, its host takes back what it has set."""


def _written(script: str, name: str) -> str:
    # A whole text on its way to a file, not a value in a command: those are samovar.recipes.quoting's.
    if "\0" in script:
        raise TestbedError(f"{name}: a NUL byte cannot stand in a script; accepted: text")
    return f'printf %s {shlex.quote(script)} >"$d/{name}"'


def find_line(buffer: bytearray, mark: str) -> str | None:
    """Return the rest of the line that starts with the mark, or None while it is not whole."""
    found = re.search(rb"\n" + mark.encode() + rb" ([^\n]*)\n", buffer)
    return found[1].decode(errors="replace") if found else None


class FrameReader:
    """Gathers bytes from the shell until the frame that carries a mark is whole."""

    def __init__(self, mark: str) -> None:
        self._mark = mark.encode()
        self._buffer = bytearray()
        self._searched = 0
        self._cuts: list[tuple[int, int]] = []

    def feed(self, data: bytes) -> ScriptFrame | None:
        """Take more bytes; return the frame once it is whole."""
        self._buffer += data
        while len(self._cuts) < 3:
            if not self._cut():
                return None
        return self._frame()

    def _cut(self) -> bool:
        pattern = b"\n" + self._mark + b" " if not self._cuts else self._mark
        at = self._buffer.find(pattern, self._searched)
        if at < 0:
            self._searched = max(self._searched, len(self._buffer) - len(pattern))
            return False
        end = at + len(pattern)
        if not self._cuts:
            end = self._buffer.find(b"\n", end) + 1
            if not end:
                return False
        self._cuts.append((at, end))
        self._searched = end
        return True

    def _frame(self) -> ScriptFrame:
        (head, out), (out_end, err), (err_end, _) = self._cuts
        _, code, start, end = self._buffer[head:out].decode().split()
        seconds = None if "-" in (start, end) else round(float(end) - float(start), 2)
        return ScriptFrame(
            int(code), bytes(self._buffer[out:out_end]), bytes(self._buffer[err:err_end]), seconds
        )
