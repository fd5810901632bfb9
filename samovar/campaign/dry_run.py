"""Render the scripts that a trial would run, by phase and host, without running them.

Values that only a run determines, such as the state of a host, are placeholders like `<start, in ns>`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from samovar.campaign.calibration import render_fit, window_probes
from samovar.campaign.policy import Policy
from samovar.plan import Trial
from samovar.recipes import Catalogue, TrialScripts, host_phases

CAMPAIGN = "<campaign>"


class Phase(NamedTuple):
    """A phase of a trial: its name, the key of its script in host_phases(), and a note on when it runs.

    `note` is empty if the phase runs in every trial.
    """

    name: str
    script: str
    note: str = ""


BEFORE_BOOT = (
    Phase("read lasting", "read lasting", "settings that need a reboot"),
    Phase("set lasting", "set lasting", "unless the host has them already"),
    Phase("reboot", "reboot", "after these settings have changed"),
)
SETTINGS = (
    Phase("read", "read"),
    Phase("guard", "restore without a controller", "the host runs it if its controller disappears"),
    Phase("set", "set"),
)
FIT = Phase("fit", "", "where the kernel derives windows from the buffer (Linux 6.7 and later)")
RECORDERS = (Phase("offer", "offer"), Phase("arm", "arm"))
CLOCKS = (Phase("clock", "clock", "several times"),)
TRAFFIC = (Phase("traffic", "traffic"), Phase("restore", "finish"), Phase("stop", "stop"))
AFTER_BOOT = (
    Phase(
        "restore lasting",
        "restore lasting",
        "once after the last trial with these settings, followed by a reboot",
    ),
)


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
    """A placeholder of a host's state before a trial: it returns `<KEY as found>` for every key."""

    def __missing__(self, key: str) -> str:
        return f"<{key} as found>"

    def get(self, key: str, default: Any = None) -> Any:
        """Return the placeholder of a key. `default` is never used."""
        return self[key]

    def __contains__(self, key: object) -> bool:
        return True


class StartTime(int):
    """A placeholder of the time at which traffic starts, in ns; adding to it gives a later time."""

    def __add__(self, other: int) -> StartTime:
        return StartTime(int(self) + other)

    def __str__(self) -> str:
        return f"<start + {int(self) / 1e9:g} s, in ns>" if self else "<start, in ns>"


class FittedBuffer(int):
    """A placeholder of a receive buffer in bytes that a calibration determines during the campaign."""

    def __new__(cls) -> FittedBuffer:
        """Return a placeholder of 1 GiB, which is more than the minimum buffer that `fit` sets, 4096 B."""
        return super().__new__(cls, 2**30)

    def __str__(self) -> str:
        return "<fitted receive buffer, in bytes>"


def render_trial(trial: Trial, catalogue: Catalogue, policy: Policy) -> Iterator[HostScript]:
    """Yield the scripts of a trial in the order in which they run if nothing fails. Raises RecipeError.

    The scripts that calibrate paths and windows are left out: a campaign runs them only once, not in every
    trial.
    """
    scripts, was = TrialScripts(trial, catalogue, CAMPAIGN), AsFound()
    hosts, limits = tuple(trial.resolved.hosts), policy.thresholds
    offers = {
        program.name: f"<what {program.name} offers>"
        for host in hosts
        for program in scripts.processes(host)
        if f"offer_{program.end}" in scripts.recipe_of(host, program).blocks
    }
    phases = {
        host: host_phases(
            scripts,
            host,
            was,
            StartTime(),
            offers,
            free_bytes=limits.disk_bytes,
            step_s=limits.clock_step_s,
        )
        for host in hosts
    }
    lasting = [host for host in hosts if scripts.settings(host, True)]

    def rendered(some: Sequence[Phase], on: Sequence[str] = hosts) -> Iterator[HostScript]:
        for phase in some:
            for host in on:
                text = phases[host][phase.script]()
                expected = phases[host]["expected state"]() if phase.script == "set" else ""
                if text is not None:
                    yield HostScript(trial.id, phase.name, host, phase.note, text, expected or "")

    ends = [host for host in hosts if any(one.end for one in scripts.processes(host))]
    yield from rendered(BEFORE_BOOT, lasting)
    yield from rendered(SETTINGS)
    for host in dict.fromkeys(probe.receiver for probe in window_probes(scripts)):
        text = render_fit(scripts, host, FittedBuffer())
        yield HostScript(trial.id, FIT.name, host, FIT.note, text)
    yield from rendered(RECORDERS)
    yield from rendered(CLOCKS, ends)
    yield from rendered(TRAFFIC)
    yield from rendered(AFTER_BOOT, lasting)
