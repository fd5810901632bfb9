"""Fake hosts for tests of the controller: a function returns the output of each script, without a connection."""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Callable, Iterable
from pathlib import Path

from samovar.hosts import Claim, Lease, ScriptResult, Session, Sessions, SshTarget
from samovar.recipes import Catalogue, TrialScripts
from tests.unit.trials import TRIAL

CATALOGUE = Catalogue(Path("templates"))
HOSTS = tuple(TRIAL.resolved.hosts)

Answer = Callable[[str, str], str | BaseException]
"""A function that returns what a host prints in a step, or the error that the step raises."""


def full_state(host: str) -> dict[str, str]:
    """Return a state of a host with a value for each key that the scripts of a trial use."""
    scripts, state = TrialScripts(TRIAL, CATALOGUE, "campaign"), defaultdict[str, str](lambda: "1")
    scripts.on_loss(host, state)
    scripts.set(host, state)
    return dict(state)


def unchanged_answer(host: str, step: str) -> str:
    """Answer like a host whose state never changes."""
    if step == "boot id":
        return "=fact= boot_id\nfirst boot\n"
    return "".join(f"{key}={value}\n" for key, value in full_state(host).items())


class AnsweringSession(Session):
    """A session with a fake host, whose output a function returns."""

    def __init__(self, host: str, answer: Answer, steps: list[tuple[str, str]]) -> None:
        super().__init__(SshTarget(host, host))
        self._answer, self._steps = answer, steps

    def open(self) -> None:
        """Do nothing."""

    def run(self, script: str, *, step: str, deadline_s: float, check: bool = True) -> ScriptResult:
        """Record the step; return the host's output as a result, or raise the error."""
        self._steps.append((self.host, step))
        answer = self._answer(self.host, step)
        if isinstance(answer, BaseException):
            raise answer
        result = ScriptResult(self.host, step, script, 0, answer.encode(), b"", time.time(), 0.0)
        self.record(result)
        return result

    def set_on_loss(self, script: str | None) -> None:
        """Do nothing."""

    def claim(self, claim: Claim, over: Lease | None = None) -> Lease | None:
        """Grant every lease."""
        return None


class AnsweringSessions(Sessions):
    """Sessions with fake hosts; `steps` lists the host and the step of each script that was run."""

    def __init__(self, answer: Answer, hosts: Iterable[str] = HOSTS) -> None:
        super().__init__([SshTarget(host, host) for host in hosts])
        self.steps: list[tuple[str, str]] = []
        self._sessions = {host: AnsweringSession(host, answer, self.steps) for host in self._sessions}
