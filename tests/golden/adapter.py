"""Return the bytes of a plan and the scripts of a trial by calling samovar's modules.

Everything else goes through the public commands. If an imported module or name changes, only this file has to be edited.
"""

from __future__ import annotations

import zlib
from functools import cache
from pathlib import Path
from typing import Any

from samovar.cli.project import Project, Request
from samovar.recipes import TrialScripts

CAMPAIGN = "full-20260101-000000"
T0_NS = 1_800_000_000 * 10**9
"""The start of the traffic in rendered scripts, in nanoseconds since the epoch."""


@cache
def project(root: Path) -> Project:
    """Return the project of a checkout."""
    return Project(root)


@cache
def plan_of(root: Path, experiment: str, profile: str, testbed: str) -> Any:
    """Plan an experiment."""
    return project(root).plan(Request(experiment, profile, testbed)).plan


def plan_bytes(root: Path, experiment: str, profile: str, testbed: str) -> bytes:
    """Return the content that plan.json has in a campaign of this plan."""
    content: bytes = plan_of(root, experiment, profile, testbed).to_json()
    return content


def scripts(root: Path, experiment: str, profile: str, testbed: str, trial: str) -> dict[str, dict[str, str]]:
    """Return the text of each script of a trial, by host and phase; the phases are named as in golden files."""
    plan = plan_of(root, experiment, profile, testbed)
    (found,) = (one for one in plan.trials if one.id == trial)
    made = TrialScripts(found, project(root).catalogue, CAMPAIGN)
    return {host: _of_host(made, host) for host in found.resolved.hosts}


def _of_host(made: TrialScripts, host: str) -> dict[str, str]:
    was = State()
    texts = {
        "read": made.read(host),
        "read lasting": made.read(host, lasting=True),
        "set": made.set(host, was),
        "set lasting": made.set(host, was, lasting=True),
        "expected state": "".join(f"{line}\n" for line in made.wanted(host)),
        "offer": made.offer(host),
        "arm": made.arm(host),
        "clock": made.clock(host),
        "traffic": made.traffic(host, T0_NS),
        "continue watching": made.follow(host, T0_NS),
        "stop": made.stop(host),
        "stop after an interrupt": made.stop(host, broken_off=True),
        "finish": made.finish(host, was),
        "restore": made.restore(host, was),
        "restore after an interrupt": made.restore(host, was, deletes=True),
        "restore lasting": made.restore(host, was, lasting=True),
        "restore without a controller": made.on_loss(host, was),
        "sweep": made.sweep(host),
        "reboot": made.reboot(host),
    }
    return {phase: text for phase, text in texts.items() if text is not None}


VALUES = {
    "cc": "cubic",
    "cc.backoff_beta": "724",
    "tcp_rmem": "4096 131072 6291456",
    "adapter.rate_down_bps": "100000000",
    "net.inet.tcp.hostcache.enable": "1",
    "wlan.rates": "0xfff",
}
BEGINNINGS = {
    "offload.": "on",
    "duplex.": "full",
    "autoneg.": "on",
    "pause.": "on",
    "shaper.": "noqueue 0: ",
    "route.": "10.9.8.7 via 10.9.8.1 dev eth9",
}


class State(dict[str, str]):
    """The state of a host before a trial: a fixed value for any key."""

    def __init__(self) -> None:
        super().__init__(VALUES)

    def __missing__(self, key: str) -> str:
        for beginning, value in BEGINNINGS.items():
            if key.startswith(beginning):
                return value
        return str(zlib.crc32(key.encode()) % 9000 + 1000)

    def get(self, key: str, default: Any = None) -> Any:
        """Return the value of a key; no key is missing."""
        return self[key]

    def __contains__(self, key: object) -> bool:
        return True
