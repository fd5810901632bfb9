"""A fault: what happens to a campaign, when, and how the trial that it strikes may end."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from tests.faults.hosts import LEASE
from tests.faults.scene import Scene

Strike = Callable[[Scene], None]


def nothing(scene: Scene) -> None:
    """Leave things as they are."""


@dataclass(frozen=True)
class Fault:
    """One row of the matrix.

    The controller stops itself at the beginning of `phase` of the campaign's second trial, or another; `strike` then does
    what is to happen, and lets the controller go on. `ends` are the ways in which the first attempt at that
    trial may end: `cut` where its controller could not say, `interrupted`, `failed`, or a verdict. `mend`
    takes away what the fault put there; what the controller leaves is looked at before that, unless
    `mended_first`. `codes` are the exit codes that the struck command may have. `more` are further lines of the
    experiment. Files that `may_stay` on hosts until the same command is given are named by the beginning of
    their paths. At the beginning of each phase of `then` the controller stops once more; `prepare` is done before anything is started. A fault that `damages` its lab has one of its own; one that strikes `inside`
    the hosts' namespaces, or what only Linux has, does not strike another testbed.
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
