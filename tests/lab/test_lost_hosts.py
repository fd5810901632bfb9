"""Hosts that are lost between trials, on a real sshd that a power switch starts: awaited, switched, given up."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Iterator
from contextlib import closing, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest

from samovar.campaign.context import CampaignContext
from samovar.campaign.host_pool import POWER_CYCLES, HostPool
from samovar.campaign.policy import ONE_ATTEMPT, Policy
from samovar.campaign.recovery import Recovery
from samovar.campaign.trial import BootSettings
from samovar.events import Event
from samovar.experiment import Power
from samovar.hosts import Machine, Sessions, SshTarget
from samovar.recipes import Catalogue, TrialScripts
from tests.lab.sshd import Sshd, free_port, running

ROOT = Path(__file__).parents[2]
# What switches the machine on: the server that was ended, started anew in a session of its own.
START = """\
import subprocess, sys
subprocess.Popen(sys.argv[2:], start_new_session=True, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
    stderr=subprocess.DEVNULL)
open(sys.argv[1], "a").write("cycled\\n")
"""

AS_ROOT = """\
mount -t tmpfs tmpfs /run && mkdir -m 755 /run/sshd && mount --bind {folder}/passwd /etc/passwd &&
mount --bind {folder}/shadow /etc/shadow && exec /usr/sbin/sshd -D -e -f {folder}/config
"""


@pytest.fixture
def sshd(tmp_path: Path) -> Iterator[Sshd]:
    (tmp_path / "sshd").mkdir()
    with running(tmp_path / "sshd") as server:
        yield server


@dataclass
class Case:
    """One host at work, and what was told of it."""

    folder: Path
    sessions: Sessions
    machine: Machine
    wait_s: float = 1.0
    told: list[tuple[str, dict[str, Any]]] = field(default_factory=list)
    shown: list[Event] = field(default_factory=list)

    def __post_init__(self) -> None:
        def none(id_: str) -> TrialScripts:
            raise AssertionError(f"no trial {id_} has left anything here")

        context = CampaignContext(
            self.folder,
            self.sessions,
            Catalogue(ROOT / "templates"),
            lambda event, **values: self.told.append((event, values)),
            self.shown.append,
            policy=Policy(ONE_ATTEMPT.model_copy(update={"host_wait_s": self.wait_s})),
            machines={"one": self.machine},
        )
        self.hosts = HostPool(context, Recovery(context, none), BootSettings(context, none), {})

    def lose(self) -> list[str]:
        """Have the host be in doubt and looked at; return what was told of it."""
        del self.told[:]
        self.hosts.check_before_next_trial({"one": "one: no answer"})
        self.hosts.make_ready({})
        return [event for event, _ in self.told]


def end(sshd: Sshd) -> None:
    """End an SSH server, whoever has started it, and all that it serves."""
    for process in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            if str(sshd.folder / "config") in (process / "cmdline").read_text():
                for victim in (
                    *map(int, (process / "task" / process.name / "children").read_text().split()),
                ):
                    os.kill(victim, signal.SIGKILL)
                os.kill(int(process.name), signal.SIGKILL)


def away(folder: Path) -> SshTarget:
    known = folder / "known_hosts"
    known.touch()
    return SshTarget("one", "127.0.0.1", free_port(), known_hosts=known, connect_timeout_s=0.5)


def test_a_host_that_stays_away_is_switched_off_and_on_and_comes_back_so_often_in_a_run(
    sshd: Sshd, tmp_path: Path
) -> None:
    command = Path(f"/proc/{sshd.process.pid}/cmdline").read_bytes().decode().split("\0")[:-1]
    if not os.geteuid():  # the server's mount namespace ends with it: enter one like it
        command = ["unshare", "-m", "sh", "-c", AS_ROOT.format(folder=sshd.folder)]
    mark = tmp_path / "mark"
    power = Power.model_validate({"cycle": [sys.executable, "-c", START, str(mark), *command]})
    with closing(Sessions([sshd.target("one")])) as sessions:
        case = Case(tmp_path / "campaign", sessions, Machine("one", "127.0.0.1", 60.0, power))
        try:
            assert case.lose() == [], "it answers"
            for _ in range(POWER_CYCLES):
                end(sshd)
                assert case.lose() == ["host-lost", "host-power-cycled", "host-back"], case.told
            end(sshd)
            assert case.lose() == ["host-lost", "host-quarantined"], "switched often enough"
        finally:
            end(sshd)
    assert mark.read_text() == "cycled\n" * POWER_CYCLES


def test_a_host_without_a_power_switch_is_given_up_when_the_wait_is_over(tmp_path: Path) -> None:
    with closing(Sessions([away(tmp_path)])) as sessions:
        case = Case(tmp_path / "campaign", sessions, Machine("one", "127.0.0.1"))
        assert case.lose() == ["host-lost", "host-quarantined"]
    assert "no answer at 127.0.0.1" in case.hosts.quarantined["one"]


def test_a_switch_that_fails_is_told_and_costs_no_longer_wait(tmp_path: Path) -> None:
    power = Power.model_validate({"cycle": ["false"]})
    with closing(Sessions([away(tmp_path)])) as sessions:
        case = Case(tmp_path / "campaign", sessions, Machine("one", "127.0.0.1", 3600.0, power))
        assert case.lose() == ["host-lost", "host-power-cycled", "host-quarantined"]
    (failed,) = (event for event in case.shown if event.name == "host-not-switched")
    assert "exit code 1" in str(failed.values["reason"])


def test_a_host_that_refuses_a_key_is_up_and_its_power_is_left_alone(sshd: Sshd, tmp_path: Path) -> None:
    mark = tmp_path / "mark"
    power = Power.model_validate({"cycle": ["touch", str(mark)]})
    with closing(Sessions([replace(sshd.stranger(), host="one")])) as sessions:
        case = Case(tmp_path / "campaign", sessions, Machine("one", "127.0.0.1", 3600.0, power))
        assert case.lose() == ["host-lost", "host-quarantined"]
    assert not mark.exists()
