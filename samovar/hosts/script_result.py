"""The result of a script on a host: output, exit code and times; and the errors of failed scripts."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass

from samovar.errors import DeadlineError, RemoteError, TestbedError
from samovar.hosts.remote_shell import OUTPUT_LIMIT_BYTES, Ending
from samovar.hosts.target import ConnectionLostError
from samovar.secrets import redacted

NOT_ENDED = -1
"""The value of `exit_code` for a script that did not end by itself."""


@dataclass(frozen=True)
class ScriptResult:
    """The result of one script on a host. Results are stored in commands/ in the trial's folder.

    `exit_code` is NOT_ENDED unless `ending` is "exit". `t_start_s` is in seconds since the epoch by the
    controller's clock, `seconds` is the duration that the controller measured.
    """

    host: str
    step: str
    script: str
    exit_code: int
    stdout: bytes
    stderr: bytes
    t_start_s: float
    seconds: float
    ending: Ending = "exit"

    @property
    def text(self) -> str:
        """The standard output as text, with invalid UTF-8 replaced."""
        return self.stdout.decode(errors="replace")

    @property
    def error_text(self) -> str:
        """The standard error as text, with invalid UTF-8 replaced."""
        return self.stderr.decode(errors="replace")

    @property
    def output(self) -> str:
        """Standard output and then standard error as text. Messages show only the end of long output."""
        return self.text + self.error_text


Recorder = Callable[[ScriptResult], None]


def discard_result(result: ScriptResult) -> None:
    """Do nothing. Sessions get this recorder if their scripts are not to be recorded."""


def checked_result(result: ScriptResult, deadline_s: float, check: bool) -> ScriptResult:
    """Return the result of a script that ended well; otherwise raise the errors described in Session.run."""
    where = f"{result.host}: {result.step}"
    if result.ending == "deadline":
        raise DeadlineError(result.host, result.step, deadline_s)
    if result.ending == "interrupted":
        raise TestbedError(f"{where}: interrupted")
    if result.ending == "lost":
        raise ConnectionLostError(f"{where}: the connection was lost while the script ran")
    if max(len(result.stdout), len(result.stderr)) > OUTPUT_LIMIT_BYTES:
        raise TestbedError(
            f"{where}: too much output; a script may print {OUTPUT_LIMIT_BYTES} bytes; write more to files"
        )
    if check and result.exit_code:
        raise RemoteError(result.host, result.step, result.exit_code, redacted(result.output, os.environ))
    return result
