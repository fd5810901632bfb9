"""Lost hosts are awaited, power-cycled or quarantined; the host is a real sshd that a power switch starts again."""

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
# The power switch: it starts the killed SSH server again, in a session of its own.
POWER_SWITCH = """\
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
    """A pool of one host, with the events in its journal and those that are shown."""

    folder: Path
    sessions: Sessions
    machine: Machine
    wait_s: float = 1.0
    journal: list[tuple[str, dict[str, Any]]] = field(default_factory=list)
    shown: list[Event] = field(default_factory=list)

    def __post_init__(self) -> None:
        def none(id_: str) -> TrialScripts:
            raise AssertionError(f"unexpected trial {id_}: no host has a state to restore")

        context = CampaignContext(
            self.folder,
            self.sessions,
            Catalogue(ROOT / "templates"),
            lambda event, **values: self.journal.append((event, values)),
            self.shown.append,
            policy=Policy(ONE_ATTEMPT.model_copy(update={"host_wait_s": self.wait_s})),
            machines={"one": self.machine},
        )
        self.hosts = HostPool(context, Recovery(context, none), BootSettings(context, none), {})

    def lose(self) -> list[str]:
        """Report that the host does not answer, and check it; return the names of the events in the journal."""
        del self.journal[:]
        self.hosts.check_before_next_trial({"one": "one: no answer"})
        self.hosts.make_ready({})
        return [event for event, _ in self.journal]


def kill_server(sshd: Sshd) -> None:
    """Kill an SSH server and the processes of its connections, whichever process started it."""
    for process in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            if str(sshd.folder / "config") in (process / "cmdline").read_text():
                for victim in (
                    *map(int, (process / "task" / process.name / "children").read_text().split()),
                ):
                    os.kill(victim, signal.SIGKILL)
                os.kill(int(process.name), signal.SIGKILL)


def unreachable(folder: Path) -> SshTarget:
    known = folder / "known_hosts"
    known.touch()
    return SshTarget("one", "127.0.0.1", free_port(), known_hosts=known, connect_timeout_s=0.5)


def test_an_unreachable_host_is_power_cycled_a_limited_number_of_times_in_a_run(
    sshd: Sshd, tmp_path: Path
) -> None:
    command = Path(f"/proc/{sshd.process.pid}/cmdline").read_bytes().decode().split("\0")[:-1]
    if not os.geteuid():  # the server's mount namespace has ended with it, so make a new one
        command = ["unshare", "-m", "sh", "-c", AS_ROOT.format(folder=sshd.folder)]
    mark = tmp_path / "mark"
    power = Power.model_validate({"cycle": [sys.executable, "-c", POWER_SWITCH, str(mark), *command]})
    with closing(Sessions([sshd.target("one")])) as sessions:
        case = Case(tmp_path / "campaign", sessions, Machine("one", "127.0.0.1", 60.0, power))
        try:
            assert case.lose() == [], "the host answers"
            for _ in range(POWER_CYCLES):
                kill_server(sshd)
                assert case.lose() == ["host-lost", "host-power-cycled", "host-back"], case.journal
            kill_server(sshd)
            assert case.lose() == ["host-lost", "host-quarantined"], "the limit of power cycles is reached"
        finally:
            kill_server(sshd)
    assert mark.read_text() == "cycled\n" * POWER_CYCLES


def test_a_host_without_a_power_switch_is_quarantined_when_the_wait_is_over(tmp_path: Path) -> None:
    with closing(Sessions([unreachable(tmp_path)])) as sessions:
        case = Case(tmp_path / "campaign", sessions, Machine("one", "127.0.0.1"))
        assert case.lose() == ["host-lost", "host-quarantined"]
    assert "no answer at 127.0.0.1" in case.hosts.quarantined["one"]


def test_a_failed_power_cycle_is_reported_and_does_not_extend_the_wait(tmp_path: Path) -> None:
    power = Power.model_validate({"cycle": ["false"]})
    with closing(Sessions([unreachable(tmp_path)])) as sessions:
        case = Case(tmp_path / "campaign", sessions, Machine("one", "127.0.0.1", 3600.0, power))
        assert case.lose() == ["host-lost", "host-power-cycled", "host-quarantined"]
    (failed,) = (event for event in case.shown if event.name == "host-not-switched")
    assert "exit code 1" in str(failed.values["reason"])


def test_a_host_that_refuses_the_key_is_not_power_cycled(sshd: Sshd, tmp_path: Path) -> None:
    mark = tmp_path / "mark"
    power = Power.model_validate({"cycle": ["touch", str(mark)]})
    with closing(Sessions([replace(sshd.target_with_unknown_key(), host="one")])) as sessions:
        case = Case(tmp_path / "campaign", sessions, Machine("one", "127.0.0.1", 3600.0, power))
        assert case.lose() == ["host-lost", "host-quarantined"]
    assert not mark.exists()
