"""Define a fault: what happens to a campaign, at which moment, and how the affected trial may end."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from tests.faults.hosts import LEASE
from tests.faults.scene import Scene

Strike = Callable[[Scene], None]


def nothing(scene: Scene) -> None:
    """Do nothing."""


@dataclass(frozen=True)
class Fault:
    """One row of the matrix of faults.

    `prepare` is called before the controller is started. The controller stops itself at the beginning of `phase`
    of the campaign's trial number `trial`; `strike` then causes the fault and lets the controller continue. At the
    beginning of each phase of `then`, the controller stops again. `ends` are the permitted ends of the first attempt
    at that trial: `cut` if its controller recorded none, `interrupted`, `failed`, or a verdict. `codes` are the
    permitted exit codes of the command. `mend` undoes the fault; the hosts are checked before that, or after it if
    `mended_first`. `more` has further lines of the experiment. `may_stay` has the beginnings of paths of files that
    may stay on hosts until the command is repeated. A fault that `damages` its lab gets a lab of its own. A fault
    that is `inside` uses the namespaces of hosts or needs Linux, and is skipped on the testbed TESTBED. A fault that is
    `short` is also tested without `make faults`.
    """

    name: str
    phase: str
    strike: Strike
    ends: tuple[str, ...]
    codes: tuple[int, ...]
    mend: Strike = nothing
    prepare: Strike = nothing
    then: tuple[str, ...] = ()
    more: str = ""
    kernel: str = "native"
    trial: int = 2
    retries: int = 0
    mended_first: bool = False
    may_stay: tuple[str, ...] = (LEASE,)
    damages: bool = False
    inside: bool = False
    short: bool = False
