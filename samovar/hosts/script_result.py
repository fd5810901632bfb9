"""The result of a script that ran on a host, as it is recorded."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass

from samovar.errors import DeadlineError, RemoteError, TestbedError
from samovar.experiment import redacted
from samovar.hosts.remote_shell import OUTPUT_LIMIT_BYTES, Ending
from samovar.hosts.target import ConnectionLostError

NOT_ENDED = -1
"""The exit code of a script that did not exit."""


@dataclass(frozen=True)
class ScriptResult:
    """The result of one script on a host, as it is stored with the trial.

    `exit_code` is NOT_ENDED unless `ending` is exit. `t_start_s` is the controller's epoch time; `seconds` is
    the duration that the controller measured, `host_seconds` that of the host (in steps of 10 ms; None where
    measuring it would cost a program).
    """

    host: str
    step: str
    script: str
    exit_code: int
    stdout: bytes
    stderr: bytes
    t_start_s: float
    seconds: float
    host_seconds: float | None = None
    ending: Ending = "exit"

    @property
    def text(self) -> str:
        """The standard output as text; bytes that are not UTF-8 are replaced."""
        return self.stdout.decode(errors="replace")

    @property
    def error_text(self) -> str:
        """The standard error as text; bytes that are not UTF-8 are replaced."""
        return self.stderr.decode(errors="replace")

    @property
    def output(self) -> str:
        """Both outputs as text; the standard error, which has the reason of a failure, comes last."""
        return self.text + self.error_text


Recorder = Callable[[ScriptResult], None]


def discard_result(result: ScriptResult) -> None:
    """Record nothing."""


def checked_result(result: ScriptResult, deadline_s: float, check: bool) -> ScriptResult:
    """Return the result of a script that exited; otherwise raise the error that Session.run documents."""
    where = f"{result.host}: {result.step}"
    if result.ending == "deadline":
        raise DeadlineError(result.host, result.step, deadline_s)
    if result.ending == "interrupted":
        raise TestbedError(f"{where}: interrupted")
    if result.ending == "lost":
        raise ConnectionLostError(f"{where}: the connection was lost while the script ran")
    if max(len(result.stdout), len(result.stderr)) > OUTPUT_LIMIT_BYTES:
        raise TestbedError(
            f"{where}: too much output; a script may print {OUTPUT_LIMIT_BYTES} bytes, more belongs in files"
        )
    if check and result.exit_code:
        raise RemoteError(result.host, result.step, result.exit_code, redacted(result.output, os.environ))
    return result
