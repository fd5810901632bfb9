"""Leases on a real host: one holder at a time, errors that name the holder, and takeovers only if they are safe."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from samovar.campaign.availability import LeaseRequest, Leases
from samovar.campaign.availability.leases import leases_of, require_free, require_idle
from samovar.campaign.journal import JOURNAL, Journal
from samovar.errors import RemoteError, TestbedError
from samovar.events import silent
from samovar.hosts import LeaseError, Session, Sessions, SshTarget
from tests.lab.sshd import Sshd, free_port
from tests.lab.test_ssh import await_that, left_behind, lines_of, pid_in, run, serving

REPOSITORY = Path(__file__).parents[2]


@pytest.fixture
def target(sshd: Sshd, host: str, tmp_path: Path) -> Iterator[SshTarget]:
    made = replace(sshd.target(host), lease=str(tmp_path / "lease"))
    yield made
    for sessions in OPENED:
        sessions.close()
    OPENED.clear()
    await_that(lambda: all(map(failed, left_behind(f"{made.host}*"))), "no folder of a shell in /tmp")
    for folder in left_behind(f"{made.host}*"):
        shutil.rmtree(folder)


def failed(folder: Path) -> bool:
    """Return whether a shell's folder was left by a failed clean-up, which keeps its log."""
    return (folder / "on-loss.log").exists() and not (folder / "ending").exists()


OPENED: list[Sessions | Session] = []


def new_session(target: SshTarget) -> Session:
    """Make a session, which is closed at the end of the test."""
    OPENED.append(session := Session(target))
    return session


class MemoryJournal:
    """A journal in memory."""

    def __init__(self) -> None:
        self.events: list[dict[str, Any]] = []

    def __call__(self, event: str, **values: object) -> None:
        self.events.append({"event": event, **values})


def leases(
    target: SshTarget, folder: Path, journal: MemoryJournal | None = None, force: bool = False
) -> Leases:
    claimant = LeaseRequest(folder, "bench", force=force)
    OPENED.append(sessions := Sessions([target]))
    return Leases(sessions, claimant, journal or MemoryJournal(), silent)


def campaign(tmp_path: Path, name: str) -> Path:
    folder = tmp_path / "results" / "demo" / name
    folder.mkdir(parents=True)
    Journal(folder / JOURNAL).close()
    return folder


def files(target: SshTarget) -> list[str]:
    lease = Path(target.lease)
    return sorted(path.name for path in lease.parent.glob(f"{lease.name}*"))


def test_a_second_campaign_on_a_host_is_refused_with_an_error_that_names_the_holder(
    target: SshTarget, tmp_path: Path
) -> None:
    first, second = (leases(target, campaign(tmp_path, name)) for name in ("first", "second"))
    with first.held(), pytest.raises(LeaseError) as caught, second.held():
        pytest.fail("held twice")
    said = str(caught.value)
    assert said.startswith(f"{target.host}: held by fab run of ")
    assert f"(process {os.getpid()}), campaign demo/first on testbed bench, for " in said
    assert "last heartbeat" in said
    assert said.endswith("or use --force, which ends its trial and restores the host")
    assert files(target) == [], "the lease was released"
    with leases(target, campaign(tmp_path, "third")).held():
        assert Path(target.lease).read_text().startswith("token ")


def test_two_names_of_one_machine_share_one_lease(target: SshTarget, tmp_path: Path) -> None:
    other = replace(target, host=f"{target.host}-by-another-name")
    first, second = (leases(one, campaign(tmp_path, one.host)) for one in (target, other))
    with first.held(), pytest.raises(LeaseError, match=f"campaign demo/{target.host}"):
        second.take(new_session(other))


def test_one_of_four_campaigns_that_claim_a_host_at_once_gets_it(target: SshTarget, tmp_path: Path) -> None:
    outcomes: list[object] = []
    sessions = [new_session(target) for _ in range(4)]
    claimants = [leases(target, campaign(tmp_path, f"{n}")) for n in range(4)]
    barrier = threading.Barrier(4)

    def ask(n: int) -> None:
        sessions[n].open()
        barrier.wait(60)
        try:
            claimants[n].take(sessions[n])
            outcomes.append("held")
        except LeaseError as error:
            outcomes.append(error)

    threads = [threading.Thread(target=ask, args=(n,)) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert outcomes.count("held") == 1
    assert len(outcomes) == 4
    for session in sessions:
        session.release()
        session.close()
    assert files(target) == []


def test_a_session_that_reconnects_after_a_lost_connection_keeps_its_lease(
    target: SshTarget, tmp_path: Path
) -> None:
    session = new_session(target)
    leases(target, campaign(tmp_path, "first")).take(session)
    os.kill(serving(session), signal.SIGKILL)
    with pytest.raises(TestbedError, match="the connection was lost"):
        run(session, "echo lost")
    assert run(session, "echo again").stdout == b"again\n"
    with pytest.raises(LeaseError):
        leases(target, campaign(tmp_path, "second")).take(new_session(target))
    session.release()
    session.close()
    assert files(target) == []


def test_a_new_connection_that_cannot_claim_its_lease_again_is_closed(
    sshd: Sshd, target: SshTarget, tmp_path: Path
) -> None:
    def heartbeats() -> set[threading.Thread]:
        return {thread for thread in threading.enumerate() if thread.name == "heartbeat"}

    connections, threads = set(sshd.connection_pids()), heartbeats()
    folder = tmp_path / "leases"
    folder.mkdir()
    target = replace(target, lease=str(folder / "lease"))
    session = new_session(target)
    leases(target, campaign(tmp_path, "first")).take(session)
    os.kill(serving(session), signal.SIGKILL)
    with pytest.raises(TestbedError, match="the connection was lost"):
        run(session, "echo lost")
    shutil.rmtree(folder)
    for _ in range(2):
        with pytest.raises(RemoteError, match=f"{target.host}: claim: exit code 73"):
            run(session, "echo again")
    await_that(lambda: set(sshd.connection_pids()) <= connections, "no connection left")
    await_that(lambda: heartbeats() <= threads, "no heartbeat left")


def test_heartbeats_are_written_to_the_lease(target: SshTarget, tmp_path: Path) -> None:
    with_short_keepalive = replace(target, keepalive_s=0.2)
    session = new_session(with_short_keepalive)
    leases(with_short_keepalive, campaign(tmp_path, "first")).take(session)
    size = Path(target.lease).stat().st_size
    await_that(lambda: Path(target.lease).stat().st_size > size + 3, "heartbeats")
    session.release()
    session.close()


HOLDER = """
import sys
from dataclasses import replace
from pathlib import Path
from samovar.events import silent
from samovar.campaign.journal import JOURNAL, Journal
from samovar.campaign.availability.leases import LeaseRequest, Leases
from samovar.hosts import Sessions, SshTarget
folder, port, user, host, lease, campaign, on_loss, *shared = sys.argv[1:]
files = Path(folder)
target = SshTarget(host, "127.0.0.1", int(port), user, files / "user_key", files / "known_hosts", lease=lease)
with Journal(Path(campaign) / JOURNAL) as journal, Sessions([target]) as sessions:
    leases = Leases(sessions, LeaseRequest(Path(campaign), "bench"), lambda *a, **k: None, silent)
    with leases.held():
        if on_loss:
            journal.append("state-read", 1.0, id="t", host=host, state={"cc": "x"}, **dict.fromkeys(shared, "bench"))
            sessions[host].set_on_loss(on_loss)
        sessions[host].run(f"echo $$ >{folder}/{host}.own; sleep 600", step="traffic", deadline_s=900)
"""


def start_holder(sshd: Sshd, target: SshTarget, folder: Path, *on_loss: str) -> subprocess.Popen[bytes]:
    """Start a process whose campaign holds the host.

    `on_loss` has the clean-up command; a second word is the key under which the journal then names the host's testbed.
    """
    words = [str(sshd.folder), str(sshd.port), target.user, target.host, target.lease, str(folder)]
    words += on_loss or [""]
    (sshd.folder / f"{target.host}.own").unlink(missing_ok=True)
    controller = subprocess.Popen([sys.executable, "-c", HOLDER, *words], cwd=REPOSITORY)
    pid_in(sshd.folder / f"{target.host}.own")
    return controller


def start_and_kill_holder(sshd: Sshd, target: SshTarget, folder: Path, *on_loss: str) -> None:
    """Start a process whose campaign holds the host, and kill it."""
    controller = start_holder(sshd, target, folder, *on_loss)
    controller.kill()
    controller.wait()
    await_that(
        lambda: "left " in Path(target.lease).read_text(), "the host's entry in the lease about its state"
    )


def test_the_lease_of_a_killed_controller_is_taken_over_and_recorded_once_the_host_is_restored(
    sshd: Sshd, target: SshTarget, tmp_path: Path
) -> None:
    start_and_kill_holder(sshd, target, campaign(tmp_path, "first"), f"echo cleaned >>{tmp_path}/cleaned")
    journal = MemoryJournal()
    with leases(target, campaign(tmp_path, "second"), journal).held():
        assert lines_of(tmp_path / "cleaned") == ["cleaned"]
    (taken,) = journal.events
    assert (taken["event"], taken["host"], taken["campaign"]) == ("lease-taken", target.host, "demo/first")
    assert taken["reason"] == "its controller is gone, and the host is restored"
    assert files(target) == []


@pytest.mark.parametrize("shared", [[], ["testbed"]], ids=["one testbed", "several testbeds"])
def test_a_host_that_a_killed_controller_left_changed_is_given_only_to_its_campaign_or_with_force(
    sshd: Sshd, target: SshTarget, tmp_path: Path, shared: list[str]
) -> None:
    first = campaign(tmp_path, "first")
    start_and_kill_holder(sshd, target, first, "exit 1", *shared)
    with pytest.raises(LeaseError, match="the host may still be changed") as caught:
        leases(target, campaign(tmp_path, "second")).take(new_session(target))
    assert "`fab restore --testbed bench` where it was run, or use --force" in str(caught.value)
    journal = MemoryJournal()
    with leases(target, first, journal).held():
        assert journal.events[0]["reason"] == "the same campaign, whose journal no other controller has open"
    start_and_kill_holder(sshd, target, first, "exit 1", *shared)
    journal = MemoryJournal()
    with leases(target, campaign(tmp_path, "third"), journal, force=True).held():
        assert (journal.events[0]["reason"], journal.events[0]["left"]) == ("--force", "changed")


def test_force_stops_the_programs_of_the_holder_and_restores_the_host_first(
    target: SshTarget, tmp_path: Path
) -> None:
    session = new_session(target)
    leases(target, campaign(tmp_path, "first")).take(session)
    session.set_on_loss(f"echo cleaned >>{tmp_path}/cleaned")
    ended: list[TestbedError] = []

    def hold() -> None:
        try:
            run(session, f"echo $$ >{tmp_path}/own; sleep 600", deadline_s=900)
        except TestbedError as error:
            ended.append(error)

    holding = threading.Thread(target=hold)
    holding.start()
    pid_in(tmp_path / "own")
    with leases(target, campaign(tmp_path, "second"), force=True).held():
        assert lines_of(tmp_path / "cleaned") == ["cleaned"]
        holding.join(30)
        assert "the connection was lost" in str(ended[0])
        with pytest.raises(LeaseError, match="has taken over its lease for campaign demo/second"):
            run(session, "echo mine")
        assert files(target) != []
    assert files(target) == []


def test_the_lease_of_an_abandoned_host_is_kept_and_records_that_the_host_was_restored(
    target: SshTarget, tmp_path: Path
) -> None:
    first = campaign(tmp_path, "first")
    OPENED.append(sessions := Sessions([target]))
    holding = Leases(sessions, LeaseRequest(first, "bench"), MemoryJournal(), silent)
    with holding.held(changed=lambda: [target.host]):
        sessions[target.host].set_on_loss(f"echo cleaned >>{tmp_path}/cleaned")
    await_that(lambda: "left restored\n" in Path(target.lease).read_text(), "the restoration of the host")
    assert lines_of(tmp_path / "cleaned") == ["cleaned"]
    with leases(target, first).held():
        pass
    assert files(target) == []


def sessions_with(target: SshTarget) -> Sessions:
    OPENED.append(sessions := Sessions([target]))
    return sessions


def test_the_holder_of_a_host_can_be_read_without_changing_the_lease(
    target: SshTarget, tmp_path: Path
) -> None:
    sessions, first = sessions_with(target), campaign(tmp_path, "first")
    assert leases_of(sessions) == {}
    with leases(target, first).held():
        said = Path(target.lease).read_text()
        assert leases_of(sessions)[target.host].values["campaign"] == "demo/first"
        with pytest.raises(LeaseError, match="campaign demo/first on testbed bench"):
            require_free(sessions, LeaseRequest(tmp_path, "bench"))
        require_free(sessions, LeaseRequest(tmp_path, "bench", force=True))
        require_free(sessions, LeaseRequest(first, "bench"))
        assert Path(target.lease).read_text() == said
    assert leases_of(sessions) == {}
    assert files(target) == []


def test_hosts_with_a_running_campaign_are_refused_except_with_force(
    sshd: Sshd, target: SshTarget, tmp_path: Path
) -> None:
    sessions = sessions_with(target)
    controller = start_holder(sshd, target, campaign(tmp_path, "first"))
    try:
        with pytest.raises(LeaseError, match=r"campaign demo/first .* --force, which spoils its trial"):
            require_idle(sessions, force=False)
        assert list(require_idle(sessions, force=True)) == [target.host]
    finally:
        controller.kill()
        controller.wait()
    assert require_idle(sessions, force=False) == {}, "its controller is gone"


def test_leases_of_reachable_hosts_are_read_although_another_host_does_not_answer(
    target: SshTarget, tmp_path: Path
) -> None:
    away = replace(target, host="away", port=free_port(), connect_timeout_s=1.0)
    OPENED.append(sessions := Sessions([away, target]))
    with leases(target, campaign(tmp_path, "first")).held():
        assert list(leases_of(sessions)) == [target.host]


@pytest.mark.parametrize("kind", ["a text", "a folder", "a link"])
def test_a_path_that_is_not_a_lease_is_refused_and_not_changed(
    target: SshTarget, tmp_path: Path, kind: str
) -> None:
    lease = Path(target.lease)
    if kind == "a text":
        lease.write_text("shell /tmp/evil samovar-0000000000000000\n")
    elif kind == "a folder":
        lease.mkdir()
    else:
        lease.symlink_to(tmp_path / "nowhere")
    with pytest.raises(TestbedError):
        leases(target, campaign(tmp_path, "first")).take(new_session(target))
    assert os.path.lexists(lease)
    assert files(target) == ["lease"]
