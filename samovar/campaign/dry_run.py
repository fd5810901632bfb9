"""Render the scripts that a trial would run, by phase and host, without running them.

Values that only a run determines, such as the state of a host, are placeholders like `<start, in ns>`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any, NamedTuple

from samovar.campaign.calibration import render_fit, window_probes
from samovar.campaign.policy import Policy
from samovar.plan import Trial
from samovar.recipes import Catalogue, TrialScripts

CAMPAIGN = "<campaign>"


class HostScript(NamedTuple):
    """One script of a trial; `note` says when it runs, and is empty if it runs in every trial.

    `must_print` has the lines that the output of the script must contain.
    """

    trial: str
    phase: str
    host: str
    note: str
    text: str
    must_print: str = ""


class AsFound(dict[str, str]):
    """A placeholder for a host's state before a trial: it returns `<KEY as found>` for every key.

    Recipes look in `dict(was)` for states that they cannot or must not change. For a placeholder, `dict(was)`
    is empty, so that the scripts are those for an ordinary host.
    """

    def __missing__(self, key: str) -> str:
        return f"<{key} as found>"

    def get(self, key: str, default: Any = None) -> Any:
        """Return the placeholder of a key; ignore `default`."""
        return self[key]

    def __contains__(self, key: object) -> bool:
        return True


class StartTime(int):
    """A placeholder for the time at which traffic starts, in ns; adding to it gives a later time."""

    def __add__(self, other: int) -> StartTime:
        return StartTime(int(self) + other)

    def __str__(self) -> str:
        return f"<start + {int(self) / 1e9:g} s, in ns>" if self else "<start, in ns>"


class FittedBuffer(int):
    """A placeholder for the size of a receive buffer (in bytes), which calibration determines later."""

    def __str__(self) -> str:
        return "<fitted receive buffer, in bytes>"


def render_trial(trial: Trial, catalogue: Catalogue, policy: Policy) -> Iterator[HostScript]:
    """Yield the scripts of a trial in the order in which they run if nothing fails. Raises RecipeError.

    The scripts that calibrate paths and windows are left out: a campaign runs them only once, not in every
    trial. The scripts that compress and remove the files of a trial are left out too.
    """
    scripts, was = TrialScripts(trial, catalogue, CAMPAIGN), AsFound()
    hosts = tuple(trial.resolved.hosts)
    offers = {
        program.name: f"<what {program.name} offers>"
        for host in hosts
        for program in scripts.processes(host)
        if f"offer_{program.end}" in scripts.recipe_of(host, program).blocks
    }

    def rendered(
        phase: str, script: Callable[[str], str | None], note: str = "", on: Sequence[str] = hosts
    ) -> Iterator[HostScript]:
        """Yield the scripts of one phase; `script` returns the script of a host, or None if it has none."""
        for host in on:
            text = script(host)
            if text is not None:
                expected = "".join(f"{line}\n" for line in scripts.wanted(host)) if phase == "set" else ""
                yield HostScript(trial.id, phase, host, note, text, expected)

    def traffic(host: str) -> str | None:
        return scripts.traffic(host, StartTime(), policy.thresholds)

    lasting = [host for host in hosts if scripts.settings(host, True)]
    yield from rendered(
        "read lasting", partial(scripts.read, lasting=True), "settings that need a reboot", on=lasting
    )
    yield from rendered(
        "set lasting",
        partial(scripts.set, was=was, lasting=True),
        "unless the host has them already",
        on=lasting,
    )
    yield from rendered("reboot", scripts.reboot, "after these settings have changed", on=lasting)
    yield from rendered("read", scripts.read)
    alone = "the host runs it if its controller disappears"
    yield from rendered("guard", partial(scripts.on_loss, was=was), alone)
    yield from rendered("set", partial(scripts.set, was=was))
    buffer = FittedBuffer(2**30)  # more than the minimum buffer that `fit` sets, 4096 B
    for host in dict.fromkeys(probe.receiver for probe in window_probes(scripts)):
        note = "where the kernel derives windows from the buffer (Linux 6.7 and later)"
        yield HostScript(trial.id, "fit", host, note, render_fit(scripts, host, buffer))
    yield from rendered("offer", scripts.offer)
    yield from rendered("arm", partial(scripts.arm, offers=offers))
    ends = [host for host in hosts if any(one.end for one in scripts.processes(host))]
    yield from rendered("clock", scripts.clock, "several times", on=ends)
    yield from rendered("traffic", traffic)
    yield from rendered("restore", partial(scripts.finish, was=was))
    yield from rendered("stop", scripts.stop)
    once = "once after the last trial with these settings, followed by a reboot"
    yield from rendered("restore lasting", partial(scripts.restore, was=was, lasting=True), once, on=lasting)
