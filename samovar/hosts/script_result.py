"""What is kept of every script that ran on a host."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from samovar.errors import DeadlineError, RemoteError, TestbedError
from samovar.experiment import redacted
from samovar.hosts.remote_shell import ConnectionLostError
from samovar.hosts.shell_protocol import OUTPUT_LIMIT_BYTES

NOT_ENDED = -1
"""The exit code of a script that did not come to one."""


@dataclass(frozen=True)
class ScriptResult:
    """One script that ran on a host, as it is kept with the trial.

    `ending` says how: by exit, by deadline, with a lost connection, or interrupted; `exit_code` is NOT_ENDED
    unless it is exit. `t_start_s` is the controller's epoch, `seconds` what the run cost as the controller
    saw it, `host_seconds` as the host did (in steps of 10 ms; None where the host does not tell it for free).
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
    ending: Literal["exit", "deadline", "lost", "interrupted"] = "exit"

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
        """Both outputs as text, the standard error last, where the reason of a failure is."""
        return self.text + self.error_text


Recorder = Callable[[ScriptResult], None]


def discard_result(completed: ScriptResult) -> None:
    """Take a run and keep nothing of it."""


def judged(done: ScriptResult, deadline_s: float, check: bool) -> ScriptResult:
    """Return a run that came to its end. Raises the error that says how another did, see Session.run."""
    if done.ending == "deadline":
        raise DeadlineError(done.host, done.step, deadline_s)
    if done.ending == "interrupted":
        raise TestbedError(f"{done.host}: {done.step}: interrupted")
    if done.ending == "lost":
        raise ConnectionLostError(
            f"{done.host}: {done.step}: the connection was lost; accepted: one that lasts for the script"
        )
    if max(len(done.stdout), len(done.stderr)) > OUTPUT_LIMIT_BYTES:
        limit = OUTPUT_LIMIT_BYTES
        raise TestbedError(
            f"{done.host}: {done.step}: too much output; accepted: {limit} bytes, more in files"
        )
    if check and done.exit_code:
        raise RemoteError(done.host, done.step, done.exit_code, redacted(done.output, os.environ))
    return done
