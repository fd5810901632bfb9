"""A controller or host stops responding on a connection to a real sshd: the other side notices and cleans up."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from samovar.errors import TestbedError
from samovar.hosts import Session
from tests.lab.sshd import Sshd, children
from tests.lab.test_ssh import Relay, alive, await_that, left_behind, lines_of, pid_in, run, shell_of

REPOSITORY = Path(__file__).parents[2]
SHORT_KEEPALIVE_S = 0.3


CONTROLLER = """
import sys
from pathlib import Path
from samovar.errors import TestbedError
from samovar.hosts import Session, SshTarget
folder, port, user, host = sys.argv[1:]
files = Path(folder)
session = Session(
    SshTarget(host, "127.0.0.1", int(port), user, files / "user_key", files / "known_hosts", keepalive_s=0.3)
)
session.set_on_loss(sys.stdin.read())
try:
    session.run(f"echo $$ >{folder}/{host}.own; sleep 600", step="traffic", deadline_s=900)
except TestbedError as error:
    print(error)
print(session.run("echo again", step="read", deadline_s=30).text, end="")
session.close()
"""


def test_a_stopped_controller_leaves_no_program_running_and_continues_after_sigcont(
    sshd: Sshd, host: str, tmp_path: Path
) -> None:
    folder = sshd.folder
    arguments = [str(folder), str(sshd.port), sshd.target().user, host]
    controller = subprocess.Popen(
        [sys.executable, "-c", CONTROLLER, *arguments],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        cwd=REPOSITORY,
        text=True,
    )
    assert controller.stdin
    controller.stdin.write(f"echo cleaned >>{tmp_path}/cleaned")
    controller.stdin.close()
    controller.stdin = None
    own = pid_in(folder / f"{host}.own")
    controller.send_signal(signal.SIGSTOP)
    sleeps = sleeps_of(host)
    await_that(lambda: lines_of(tmp_path / "cleaned") == ["cleaned"], "the clean-up")
    await_that(lambda: not alive(own), "the script is gone")
    await_that(lambda: not left_behind(host), "no folder of a shell in /tmp")
    await_that(lambda: not any(map(alive, sleeps)), "the listener has ended")
    controller.send_signal(signal.SIGCONT)
    said, _ = controller.communicate(timeout=60)
    assert said == (f"{host}: traffic: the connection was lost while the script ran\nagain\n")
    assert lines_of(tmp_path / "cleaned") == ["cleaned"]


def sleeps_of(host: str) -> set[int]:
    """Return the pids of the sleep processes of a shell's listener, which waits for signs of the controller."""
    (folder,) = left_behind(host)
    listener = pid_in(folder / "watch")
    return set(children(listener))


def test_after_a_cut_link_the_host_cleans_up_and_the_controller_reports_the_lost_connection(
    sshd: Sshd, host: str, tmp_path: Path
) -> None:
    relay = Relay(sshd.port)
    session = Session(replace(sshd.target(host), keepalive_s=SHORT_KEEPALIVE_S), dialer=relay.dial)
    session.set_on_loss(f"echo cleaned >>{tmp_path}/cleaned")
    old = shell_of(session)
    relay.cut()
    with pytest.raises(TestbedError, match=f"{host}: test: the connection was lost"):
        run(session, "sleep 600", deadline_s=900)
    await_that(lambda: lines_of(tmp_path / "cleaned") == ["cleaned"], "the clean-up")
    await_that(lambda: not alive(old), "the shell is gone")
    assert run(session, "echo again").stdout == b"again\n"
    session.close()
    relay.close()
    await_that(lambda: not left_behind(host), "no folder of a shell in /tmp")
    assert lines_of(tmp_path / "cleaned") == ["cleaned"]


def test_a_controller_that_waits_for_a_long_script_is_not_treated_as_lost(
    sshd: Sshd, host: str, tmp_path: Path
) -> None:
    session = Session(replace(sshd.target(host), keepalive_s=SHORT_KEEPALIVE_S))
    session.set_on_loss(f"echo cleaned >>{tmp_path}/cleaned")
    first = shell_of(session)
    assert run(session, "sleep 5; echo waited").stdout == b"waited\n"
    assert shell_of(session) == first
    session.close()
    await_that(lambda: not left_behind(host), "no folder of a shell in /tmp")
    assert lines_of(tmp_path / "cleaned") == []


def test_a_paused_host_is_not_cleaned_up_when_it_continues(sshd: Sshd, host: str, tmp_path: Path) -> None:
    """In a virtual machine that was paused, the sleeps end when it continues, and no heartbeat has arrived meanwhile."""
    session = Session(replace(sshd.target(host), keepalive_s=1.0))
    session.set_on_loss(f"echo cleaned >>{tmp_path}/cleaned")
    shell = shell_of(session)
    (folder,) = left_behind(host)
    listener = pid_in(folder / "watch")
    await_that(lambda: bool(children(listener)), "the listener sleeps")
    for pid in (shell, listener):
        os.kill(pid, signal.SIGSTOP)
    (sleeper,) = children(listener)
    await_that(lambda: not alive(sleeper), "the sleep is over")
    for pid in (listener, shell):
        os.kill(pid, signal.SIGCONT)
    assert run(session, "echo on").stdout == b"on\n"
    assert shell_of(session) == shell
    session.close()
    assert lines_of(tmp_path / "cleaned") == []
