"""Sessions with a real sshd: results of scripts, deadlines, lost and refused connections, and transfers of files."""

from __future__ import annotations

import hashlib
import os
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import pytest

from samovar.campaign.availability.survey import power_on_silent
from samovar.errors import DeadlineError, LabError, RemoteError, TestbedError
from samovar.events import Event
from samovar.experiment import Power
from samovar.hosts import (
    NOT_ENDED,
    HostsError,
    Machine,
    RemoteFile,
    ScriptResult,
    Session,
    Sessions,
    UnreachableError,
)
from samovar.hosts.remote_shell import OUTPUT_LIMIT_BYTES
from samovar.hosts.ssh import connect
from samovar.hosts.target import ConnectionLostError
from tests.lab.sshd import Sshd, children, free_port, make_key, running

REPOSITORY = Path(__file__).parents[2]


@pytest.fixture
def results() -> list[ScriptResult]:
    return []


@pytest.fixture
def session(sshd: Sshd, host: str, results: list[ScriptResult]) -> Iterator[Session]:
    fresh = Session(sshd.target(host), record=results.append)
    yield fresh
    fresh.close()
    await_that(lambda: not left_behind(host), f"nothing of {host} in /tmp")


def run(session: Session, script: str, deadline_s: float = 30.0) -> ScriptResult:
    return session.run(script, step="test", deadline_s=deadline_s)


def await_that(condition: Callable[[], object], what: str) -> None:
    until = time.monotonic() + 30
    while not condition():
        assert time.monotonic() < until, f"not in time: {what}"
        time.sleep(0.02)


def left_behind(host: str) -> list[Path]:
    return list(Path("/tmp").glob(f"samovar-{host}.*"))


def alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def pid_in(file: Path) -> int:
    await_that(lambda: file.exists() and file.read_text().endswith("\n"), f"a pid in {file}")
    return int(file.read_text())


# --- results of scripts


def test_both_outputs_and_the_exit_code_of_a_script_are_returned_separately(session: Session) -> None:
    done = session.run("echo out; echo err >&2; exit 3", step="set", deadline_s=30, check=False)
    assert (done.stdout, done.stderr, done.exit_code, done.ending) == (b"out\n", b"err\n", 3, "exit")
    assert (done.host, done.step) == (session.host, "set")


def test_a_failed_script_raises_an_error_with_its_output(session: Session) -> None:
    with pytest.raises(RemoteError, match=rf"{session.host}: set: exit code 4: no such qdisc") as caught:
        session.run("echo no such qdisc >&2; exit 4", step="set", deadline_s=30)
    assert caught.value.exit_code == 4


def test_outputs_with_any_bytes_are_returned_unchanged(session: Session, tmp_path: Path) -> None:
    data = bytes(range(256)) * 4096 + b"\n\nno newline at the end"
    (tmp_path / "data").write_bytes(data)
    done = run(session, f"cat {tmp_path}/data; cat {tmp_path}/data {tmp_path}/data >&2")
    assert done.stdout == data
    assert done.stderr == data * 2


def test_an_output_up_to_the_limit_is_returned_and_a_larger_one_is_refused(
    session: Session, results: list[ScriptResult]
) -> None:
    done = run(session, f"head -c {OUTPUT_LIMIT_BYTES} /dev/zero")
    assert done.stdout == bytes(OUTPUT_LIMIT_BYTES)
    with pytest.raises(TestbedError, match=f"too much output; a script may print {OUTPUT_LIMIT_BYTES} bytes"):
        run(session, f"head -c {3 * OUTPUT_LIMIT_BYTES} /dev/zero >&2")
    assert len(results[-1].stderr) == OUTPUT_LIMIT_BYTES + 1
    assert run(session, "echo fine").stdout == b"fine\n"


def test_a_script_of_a_megabyte_runs(session: Session) -> None:
    script = "".join(f"x{n}='{'y' * 80}'\n" for n in range(12000)) + 'echo "$x11999"\n'
    assert len(script) > 1_000_000
    assert run(session, script).stdout == b"y" * 80 + b"\n"


HOSTILE = {
    "ends a here-document": "cat <<EOF\nit's $((6 * 7)) `id`\nEOF\necho done",
    "quotes of all kinds": """echo "it's" 'a "quoted" \\'"'"'word' \\\\ '$HOME' '`id`' '!!' '%s'""",
    "reads its standard input": "cat; echo done; read x; echo done again",
    "closes its outputs": "echo before; exec >&- 2>&-; echo after",
    "exits early": "echo out; exit 0; echo not reached",
    "sets traps and options": "set -eu; trap 'echo trapped' EXIT; false; echo not reached",
    "redefines functions of the session's shell": "read() { :; }; printf() { :; }; d=/; samovar_run() { :; }; echo words",
    "prints a line like the end of a result": "printf '\\nsamovar-0123456789abcdef0123456789abcdef 0 1 2\\n'",
    "has no newline at its end": "echo last",
    "has carriage returns and other bytes": "echo '\r\n\t\x01\x7f ü €  \U0001f375'",
    "is empty": "",
    "is a comment": "# nothing",
    "starts with a hyphen": "-n",
    "ends in a backslash": "echo slash \\",
    "kills itself": "kill -KILL $$",
    "ends its process group on exit": "trap 'trap - TERM; kill -TERM 0' EXIT; echo out",
    "has a syntax error": "if then ((( ' fi",
    "leaves a child that keeps writing": "(while sleep 0.01; do echo noise; done) & echo $!",
}


@pytest.mark.parametrize("script", HOSTILE.values(), ids=HOSTILE.keys())
def test_a_script_has_the_result_that_it_has_in_sh_and_does_not_affect_the_next_one(
    session: Session, tmp_path: Path, script: str
) -> None:
    (tmp_path / "script").write_text(script, newline="")
    with (tmp_path / "out").open("wb") as out:
        alone = subprocess.run(
            ["/bin/sh", tmp_path / "script"],
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=out,
            check=False,
            start_new_session=True,
        )
    done = session.run(script, step="test", deadline_s=30, check=False)
    assert done.exit_code == (alone.returncode if alone.returncode >= 0 else 128 - alone.returncode)
    if "noise" in script:
        noisy = [int(done.stdout.split()[0]), int((tmp_path / "out").read_bytes().split()[0])]
        assert run(session, "sleep 0.1; echo next").stdout == b"next\n"
        run(session, f"kill {' '.join(map(str, noisy))}")
    elif alone.returncode == 0:
        assert done.stdout == (tmp_path / "out").read_bytes()
    assert run(session, "echo next").stdout == b"next\n"


def test_a_nul_byte_in_a_script_is_refused(session: Session) -> None:
    with pytest.raises(TestbedError, match="a script must not contain NUL bytes"):
        run(session, "echo \0")
    assert run(session, "echo next").stdout == b"next\n"


def test_a_script_does_not_inherit_the_folder_variables_or_options_of_an_earlier_one(
    session: Session,
) -> None:
    run(session, "cd /usr; export LEFT=1; set -f; ulimit -n 10; umask 0")
    done = run(session, 'echo "${LEFT-unset} $PWD $(umask) $-"')
    assert "unset" in done.text
    assert "/usr" not in done.text


def test_every_run_is_recorded_with_its_script_times_and_ending(
    session: Session, results: list[ScriptResult]
) -> None:
    before_s = time.time()
    run(session, "sleep 0.2; echo out")
    with pytest.raises(RemoteError):
        run(session, "exit 9")
    with pytest.raises(DeadlineError):
        run(session, "echo begun; sleep 60", deadline_s=0.5)
    assert [(done.ending, done.exit_code) for done in results] == [
        ("exit", 0),
        ("exit", 9),
        ("deadline", NOT_ENDED),
    ]
    first, _, last = results
    assert first.script == "sleep 0.2; echo out"
    assert before_s <= first.t_start_s <= time.time()
    assert first.seconds >= 0.2
    assert last.stdout == b"begun\n", "output before the deadline is recorded"


def test_many_runs_leave_a_bounded_number_of_files_on_the_host(session: Session) -> None:
    assert {run(session, f"echo {n}").text for n in range(205)} == {f"{n}\n" for n in range(205)}
    (folder,) = left_behind(session.host)
    assert len(list(folder.glob("out.*"))) == 6


# --- deadlines


def test_a_deadline_ends_the_processes_of_its_script_and_no_others(session: Session, tmp_path: Path) -> None:
    run(session, f"sleep 600 & echo $! >{tmp_path}/earlier")
    with pytest.raises(DeadlineError, match=f"{session.host}: test: no answer within 1 s"):
        run(
            session,
            f"sleep 600 & echo $! >{tmp_path}/child; echo $$ >{tmp_path}/own; sleep 600",
            deadline_s=1,
        )
    await_that(lambda: not alive(pid_in(tmp_path / "child")), "the child is gone")
    await_that(lambda: not alive(pid_in(tmp_path / "own")), "the script is gone")
    earlier = pid_in(tmp_path / "earlier")
    assert alive(earlier)
    assert run(session, f"kill {earlier}; echo usable").stdout == b"usable\n"


def test_a_deadline_also_ends_processes_that_left_the_process_group_of_the_script(
    session: Session, tmp_path: Path
) -> None:
    daemon = f"(setsid sh -c 'echo $$ >{tmp_path}/daemon; exec sleep 600' &)"
    with pytest.raises(DeadlineError):
        run(session, f"{daemon}; sleep 600", deadline_s=1)
    await_that(lambda: not alive(pid_in(tmp_path / "daemon")), "the daemon is gone")


def test_a_script_that_ignores_signals_is_ended_too(session: Session, tmp_path: Path) -> None:
    with pytest.raises(DeadlineError):
        run(
            session,
            f"trap '' HUP INT TERM; echo $$ >{tmp_path}/own; while :; do sleep 1; done",
            deadline_s=0.5,
        )
    await_that(lambda: not alive(pid_in(tmp_path / "own")), "the script is gone")
    assert run(session, "echo usable").stdout == b"usable\n"


def test_a_stopped_shell_misses_the_deadline_and_the_next_script_runs_in_a_new_shell(
    sshd: Sshd, host: str, results: list[ScriptResult], tmp_path: Path
) -> None:
    session = Session(sshd.target(host), record=results.append)
    shell = shell_of(session)
    os.kill(shell, signal.SIGSTOP)
    with pytest.raises(DeadlineError):
        run(session, "echo never", deadline_s=0.5)
    assert results[-1].ending == "deadline"
    assert run(session, "echo again").stdout == b"again\n"
    await_that(lambda: not alive(shell), "the stopped shell is gone")
    session.close()
    await_that(lambda: not left_behind(host), "no folder of a shell in /tmp")


# --- interruption


def in_background(work: Callable[[], object]) -> Future[object]:
    future: Future[object] = Future()

    def do() -> None:
        try:
            future.set_result(work())
        except BaseException as error:
            future.set_exception(error)

    threading.Thread(target=do, daemon=True).start()
    return future


def test_an_interrupted_script_is_ended_and_recorded_and_the_session_can_be_used_again(
    session: Session, results: list[ScriptResult], tmp_path: Path
) -> None:
    doing = in_background(lambda: run(session, f"echo $$ >{tmp_path}/own; sleep 600", deadline_s=900))
    own = pid_in(tmp_path / "own")
    session.interrupt()
    with pytest.raises(TestbedError, match=f"{session.host}: test: interrupted"):
        doing.result(30)
    assert not alive(own)
    assert (results[-1].ending, results[-1].exit_code) == ("interrupted", NOT_ENDED)
    assert run(session, "echo free").stdout == b"free\n"


def test_interrupting_an_idle_session_changes_nothing(session: Session) -> None:
    session.interrupt()
    run(session, "echo before")
    session.interrupt()
    assert run(session, "echo after").stdout == b"after\n"


def test_an_interrupted_transfer_ends(session: Session, tmp_path: Path) -> None:
    file = remote_file(bytes(100_000_000), tmp_path / "remote", tmp_path / "trial" / "local")
    doing = in_background(lambda: session.fetch_all([file]))
    await_that(lambda: (tmp_path / "trial" / "local.part").exists(), "the transfer has begun")
    session.interrupt()
    with pytest.raises(TestbedError, match=f"{session.host}: fetch: interrupted"):
        doing.result(30)
    assert list((tmp_path / "trial").iterdir()) == []


CTRL_C = """
import sys
from pathlib import Path
from samovar.errors import TestbedError
from samovar.hosts import Sessions, SshTarget
folder, port, user, host = sys.argv[1:]
files = Path(folder)
targets = [
    SshTarget(f"{host}-{n}", "127.0.0.1", int(port), user, files / "user_key", files / "known_hosts") for n in range(2)
]
with Sessions(targets) as sessions:
    script = f"echo $$ >{folder}/$host.own; sleep 600"
    try:
        sessions.map(lambda s: s.run(f"host={s.host}; {script}", step="traffic", deadline_s=900))
    except KeyboardInterrupt:
        sessions.interrupt()
        done = sessions.map(lambda s: s.run("echo swept", step="sweep", deadline_s=30).text)
        print(sorted(set(done.values())), flush=True)
"""


def test_ctrl_c_while_scripts_run_leaves_the_hosts_idle_and_usable(sshd: Sshd, host: str) -> None:
    arguments = [str(sshd.folder), str(sshd.port), sshd.target().user, host]
    controller = subprocess.Popen(
        [sys.executable, "-c", CTRL_C, *arguments], stdout=subprocess.PIPE, cwd=REPOSITORY, text=True
    )
    pids = [pid_in(sshd.folder / f"{host}-{n}.own") for n in range(2)]
    controller.send_signal(signal.SIGINT)
    said, _ = controller.communicate(timeout=60)
    assert (said, controller.returncode) == ("['swept\\n']\n", 0)
    assert not any(map(alive, pids))
    await_that(lambda: not left_behind(f"{host}-*"), "no folder of a shell in /tmp")


# --- lost connections


def shell_of(session: Session) -> int:
    """Return the pid of a session's only shell."""
    session.open()
    (folder,) = left_behind(session.host)
    return int((folder / "pid").read_text())


def serving(session: Session) -> int:
    """Return the pid of the sshd process of a session's connection: the parent of the session's shell."""
    return int(Path(f"/proc/{shell_of(session)}/stat").read_text().rpartition(")")[2].split()[1])


def test_a_lost_connection_ends_the_script_and_runs_the_clean_up_before_the_next_connection(
    session: Session, results: list[ScriptResult], tmp_path: Path
) -> None:
    session.set_on_loss(f"sleep 0.5; echo cleaned >>{tmp_path}/cleaned")
    connection = serving(session)
    run(session, f"(while [ ! -e {tmp_path}/own ]; do sleep 0.05; done; kill -KILL {connection}) & :")
    with pytest.raises(TestbedError, match=rf"{session.host}: test: the connection was lost"):
        run(session, f"echo $$ >{tmp_path}/own; sleep 600")
    assert (results[-1].ending, results[-1].exit_code) == ("lost", NOT_ENDED)
    done = run(session, f"cat {tmp_path}/cleaned")
    assert done.stdout == b"cleaned\n", "the clean-up of the lost shell ends before the next script runs"
    assert not alive(pid_in(tmp_path / "own"))


def test_a_clean_up_is_set_again_on_a_new_connection(session: Session, tmp_path: Path) -> None:
    session.set_on_loss(f"echo cleaned >>{tmp_path}/cleaned")
    for count in (1, 2):
        os.kill(serving(session), signal.SIGKILL)
        await_that(lambda: lines_of(tmp_path / "cleaned"), f"clean-up {count}")
        (tmp_path / "cleaned").unlink()
        with pytest.raises(
            TestbedError, match="the connection was lost"
        ):  # reported once; the next script makes a new connection
            run(session, "echo not run")
        assert run(session, "echo again").stdout == b"again\n"


def lines_of(file: Path) -> list[str]:
    return file.read_text().splitlines() if file.exists() else []


class Relay:
    """A simulated control network: it carries bytes to sshd until it is cut, which neither end notices."""

    def __init__(self, port: int) -> None:
        self._port = port
        self._connected: set[socket.socket] = set()
        self._held: list[socket.socket] = []

    def dial(self, address: str, port: int) -> socket.socket:
        ours, theirs = socket.socketpair()
        far = socket.create_connection(("127.0.0.1", self._port))
        self._held += [theirs, far]
        self._connected |= {theirs, far}
        for source, sink in ((theirs, far), (far, theirs)):
            threading.Thread(target=self._carry, args=(source, sink), daemon=True).start()
        return ours

    def cut(self) -> None:
        self._connected.clear()

    def close(self) -> None:
        for end in self._held:
            with suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)
            end.close()

    def _carry(self, source: socket.socket, sink: socket.socket) -> None:
        with suppress(OSError):
            while data := source.recv(65536):
                if source in self._connected:
                    sink.sendall(data)
            if source in self._connected:
                sink.shutdown(socket.SHUT_WR)


def test_a_new_connection_replaces_a_shell_that_has_not_noticed_the_cut(
    sshd: Sshd, host: str, tmp_path: Path
) -> None:
    """After a cut of the control network, the host still has the old connection open."""
    relay = Relay(sshd.port)
    session = Session(replace(sshd.target(host)), dialer=relay.dial)
    session.set_on_loss(f"echo cleaned >>{tmp_path}/cleaned")
    old = shell_of(session)
    relay.cut()
    with pytest.raises(DeadlineError):
        run(session, "echo never", deadline_s=0.5)
    assert alive(old), "the host has not noticed"
    assert run(session, "echo again").stdout == b"again\n"
    assert lines_of(tmp_path / "cleaned") == ["cleaned"]
    assert not alive(old)
    session.close()
    relay.close()
    await_that(lambda: not left_behind(host), "no folder of a shell in /tmp")


CONTROLLER = """
import sys
from pathlib import Path
from samovar.hosts import Session, SshTarget
folder, port, user, host = sys.argv[1:]
files = Path(folder)
session = Session(SshTarget(host, "127.0.0.1", int(port), user, files / "user_key", files / "known_hosts"))
session.set_on_loss(sys.stdin.read())
session.run(f"sleep 600 & echo $! >{folder}/{host}.left", step="start", deadline_s=30)
session.run(f"echo $$ >{folder}/{host}.own; sleep 600", step="traffic", deadline_s=900)
"""


def test_a_killed_controller_leaves_nothing_running(sshd: Sshd, host: str, tmp_path: Path) -> None:
    folder = sshd.folder
    clean_up = f"kill $(cat {folder}/{host}.left); echo cleaned >{tmp_path}/cleaned"
    arguments = [str(folder), str(sshd.port), sshd.target().user, host]
    controller = subprocess.Popen(
        [sys.executable, "-c", CONTROLLER, *arguments], stdin=subprocess.PIPE, cwd=REPOSITORY, text=True
    )
    assert controller.stdin
    controller.stdin.write(clean_up)
    controller.stdin.close()
    own, left = pid_in(folder / f"{host}.own"), pid_in(folder / f"{host}.left")
    assert alive(own)
    assert alive(left)
    controller.kill()
    controller.wait()
    await_that(lambda: lines_of(tmp_path / "cleaned") == ["cleaned"], "the clean-up")
    await_that(lambda: not alive(own) and not alive(left), "no process left")
    await_that(lambda: not left_behind(host), "no folder of a shell in /tmp")


def test_a_clean_up_is_not_ended_by_sighup(sshd: Sshd, host: str, tmp_path: Path) -> None:
    session = Session(sshd.target(host))
    session.set_on_loss(f"echo $$ >{tmp_path}/begun; sleep 0.5; echo cleaned >{tmp_path}/cleaned")
    shell = shell_of(session)
    os.kill(shell, signal.SIGHUP)
    os.kill(serving(session), signal.SIGKILL)
    begun = pid_in(tmp_path / "begun")
    for pid in (shell, begun):
        os.kill(pid, signal.SIGHUP)
    await_that(lambda: lines_of(tmp_path / "cleaned") == ["cleaned"], "the clean-up")
    await_that(lambda: not left_behind(host), "no folder of a shell in /tmp")


def test_the_script_of_another_controller_waits_for_the_clean_up_after_the_first(
    sshd: Sshd, host: str, tmp_path: Path
) -> None:
    first, second = Session(sshd.target(host)), Session(sshd.target(host))
    first.set_on_loss(f"echo $$ >{tmp_path}/begun; sleep 1; echo cleaned >{tmp_path}/cleaned")
    os.kill(serving(first), signal.SIGKILL)
    pid_in(tmp_path / "begun")
    assert run(second, f"cat {tmp_path}/cleaned").stdout == b"cleaned\n"
    second.close()
    await_that(lambda: not left_behind(host), "no folder of a shell in /tmp")


def test_a_failed_clean_up_leaves_its_log_and_does_not_block_the_next_controller(
    sshd: Sshd, host: str, tmp_path: Path
) -> None:
    first, second = Session(sshd.target(host)), Session(sshd.target(host))
    first.set_on_loss(f"echo no such qdisc >&2; echo $$ >{tmp_path}/begun; exit 1")
    os.kill(serving(first), signal.SIGKILL)
    pid_in(tmp_path / "begun")
    (folder,) = left_behind(host)
    assert run(second, "echo usable").stdout == b"usable\n"
    second.close()
    assert (folder / "on-loss.log").read_text() == "no such qdisc\n"
    shutil.rmtree(folder)
    assert not left_behind(host)


def test_no_clean_up_runs_after_a_session_was_closed_or_its_clean_up_was_removed(
    sshd: Sshd, host: str, tmp_path: Path
) -> None:
    session = Session(sshd.target(host))
    session.set_on_loss(f"echo cleaned >>{tmp_path}/cleaned")
    session.close()
    session.set_on_loss(None)
    os.kill(serving(session), signal.SIGKILL)
    await_that(lambda: not left_behind(host), "no folder of a shell in /tmp")
    assert lines_of(tmp_path / "cleaned") == []


# --- refused connections


def refusal(session: Session) -> str:
    with pytest.raises(TestbedError) as caught:
        session.open()
    return str(caught.value)


def test_a_host_key_that_differs_from_the_known_one_is_refused_with_the_line_of_known_hosts(
    sshd: Sshd, tmp_path: Path
) -> None:
    other = make_key(tmp_path / "other_host_key").with_suffix(".pub").read_text()
    known = tmp_path / "known_hosts"
    known.write_text(f"# the lab\n[127.0.0.1]:{sshd.port} {other}")
    said = refusal(Session(replace(sshd.target("src"), known_hosts=known)))
    assert said.startswith(
        f"src: {sshd.target().user}@127.0.0.1:{sshd.port}: the host key is not the known one"
    )
    assert f"but {known}:2 has ssh-ed25519 SHA256:" in said


def test_an_unknown_host_key_is_refused_and_not_remembered(sshd: Sshd, tmp_path: Path) -> None:
    known = tmp_path / "known_hosts"
    known.write_text("")
    said = refusal(Session(replace(sshd.target("src"), known_hosts=known)))
    fingerprint = subprocess.run(
        ["ssh-keygen", "-lf", sshd.folder / "host_key"], capture_output=True, text=True, check=True
    ).stdout.split()[1]
    assert f"src: its host key is not known (ssh-ed25519 {fingerprint})" in said
    assert "`ssh-keygen -lf /etc/ssh/ssh_host_ed25519_key.pub` prints on the host's own console" in said
    assert known.read_text() == ""
    known.write_text(said.splitlines()[-1] + "\n")
    with_it = Session(replace(sshd.target("src"), known_hosts=known))
    with_it.open()
    with_it.close()


def test_lines_of_known_hosts_that_cannot_be_parsed_are_skipped(sshd: Sshd, tmp_path: Path) -> None:
    known = tmp_path / "known_hosts"
    bad = b"h ssh-rsa AAAAB\nh ssh-rsa AAAAB3NzaC1yc2E=\nh ssh-rsa \xff\xfe\nh\n\n# h\n"
    known.write_bytes(bad + (sshd.folder / "known_hosts").read_bytes())
    session = Session(replace(sshd.target("src"), known_hosts=known))
    session.open()
    session.close()
    commented = b"#," + (sshd.folder / "known_hosts").read_bytes()
    known.write_bytes(bad + commented)
    assert "its host key is not known" in refusal(Session(replace(sshd.target("src"), known_hosts=known)))


def test_a_refused_login_key_is_reported_with_its_path(sshd: Sshd) -> None:
    target = sshd.target_with_unknown_key()
    assert f"authentication refused; keys offered: {target.key}" in refusal(Session(target))


def test_a_missing_or_encrypted_key_and_a_missing_known_hosts_file_are_reported(
    sshd: Sshd, tmp_path: Path
) -> None:
    gone, encrypted = tmp_path / "gone", tmp_path / "encrypted"
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "secret", "-f", encrypted], check=True)
    assert f"no key file {gone}" in refusal(Session(replace(sshd.target(), key=gone)))
    assert f"{encrypted} has a passphrase" in refusal(Session(replace(sshd.target(), key=encrypted)))
    assert f"cannot read known host keys: {gone}" in refusal(
        Session(replace(sshd.target(), known_hosts=gone))
    )


@pytest.mark.parametrize("kind", ["none", "public", "empty", "binary", "truncated", "damaged", "folder"])
def test_an_unusable_login_key_is_reported_and_its_host_is_not_power_cycled(
    sshd: Sshd, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("SSH_AUTH_SOCK", raising=False)
    private = sshd.folder / "user_key"
    lines = private.read_bytes().split(b"\n")
    lines[2] = (
        lines[2][:30] + lines[2][30:50].swapcase() + lines[2][50:]
    )  # one of two copies of the public key
    contents = {
        "damaged": b"\n".join(lines),
        "public": private.with_suffix(".pub").read_bytes(),
        "empty": b"",
        "binary": bytes(range(256)),
        "truncated": private.read_bytes()[:100],
    }
    key = None if kind == "none" else tmp_path / "key"
    if kind in contents:
        (tmp_path / "key").write_bytes(contents[kind])
    elif key:
        key.mkdir()
    before, switched = sshd.connection_pids(), tmp_path / "switched"
    sessions = Sessions([replace(sshd.target("src"), key=key)])
    said = refusal(sessions["src"])
    assert said.startswith(f"src: {sshd.target().user}@127.0.0.1:{sshd.port}: no usable key")
    assert f"; keys tried: {key or 'those of ssh-agent and ~/.ssh'}; " in said
    power = Power.model_validate({"cycle": ["touch", str(switched)]})
    events: list[Event] = []
    power_on_silent(sessions, {"src": Machine("src", "127.0.0.1", 1.0, power)}, events.append)
    assert (events, switched.exists()) == ([], False)
    await_that(lambda: set(sshd.connection_pids()) <= set(before), "no connection left")


def test_a_host_that_does_not_answer_is_reported_with_a_hint(sshd: Sshd) -> None:
    hint = "is the lab up? `fab lab.up`"
    port = free_port()
    nobody = replace(sshd.target("src"), port=port, hint=hint)
    said = refusal(Session(nobody))
    assert said.startswith(f"src: no answer at 127.0.0.1:{port} within 5 s (Connection refused)")
    assert said.endswith(f"; {hint}")


def test_an_error_of_the_dialer_is_reported_as_a_host_that_does_not_answer(sshd: Sshd) -> None:
    def dial(address: str, port: int) -> socket.socket:
        raise LabError("lab: no route")

    said = refusal(Session(replace(sshd.target("src"), hint="is the lab up?"), dialer=dial))
    assert said.endswith("within 5 s (lab: no route); is the lab up?")


def test_a_host_that_accepts_a_connection_and_sends_nothing_is_an_error_after_the_timeout(sshd: Sshd) -> None:
    with socket.create_server(("127.0.0.1", 0)) as mute:
        target = replace(sshd.target("src"), port=mute.getsockname()[1], connect_timeout_s=0.5)
        with pytest.raises(UnreachableError, match=r"src: no answer at 127.0.0.1:\d+ within 0.5 s"):
            Session(target).open()


def test_a_connection_that_is_reset_while_a_channel_is_opened_is_lost(sshd: Sshd) -> None:
    """A host that reboots resets connections in which it has not read everything."""

    def has_unread_bytes() -> bool:
        lines = [line.split() for line in Path("/proc/net/tcp").read_text().splitlines()[1:]]
        return any(
            line[1].endswith(f":{sshd.port:04X}") and line[4].partition(":")[2] != "0" * 8 for line in lines
        )

    earlier = sshd.connection_pids()
    connection = connect(sshd.target())
    (serving,) = set(sshd.connection_pids()) - set(earlier)
    stopped = [serving, *children(serving)]

    def send(which: signal.Signals) -> None:
        for pid in stopped:
            with suppress(ProcessLookupError):  # the child that checked the login may just be ending
                os.kill(pid, which)

    send(signal.SIGSTOP)
    with ThreadPoolExecutor(1) as threads:
        channel = threads.submit(connection.channel, "true")
        await_that(has_unread_bytes, "a request that the server does not read")
        send(signal.SIGKILL)
        with pytest.raises(ConnectionLostError, match=r"^here: the connection was lost \(\[Errno 104\]"):
            channel.result(30)
    connection.close()


def test_a_host_that_does_not_answer_a_request_for_a_shell_is_lost_but_not_unreachable(
    sshd: Sshd, monkeypatch: pytest.MonkeyPatch
) -> None:
    earlier = sshd.connection_pids()
    connection = connect(sshd.target())
    (serving,) = set(sshd.connection_pids()) - set(earlier)
    stopped: list[int] = []
    create = connection._connection.create_session

    def create_and_stop() -> object:
        channel = create()
        stopped.extend([serving, *children(serving)])
        for pid in stopped:
            os.kill(pid, signal.SIGSTOP)
        return channel

    monkeypatch.setattr(connection._connection, "create_session", create_and_stop)
    with ThreadPoolExecutor(1) as threads:
        channel = threads.submit(connection.channel, "true")
        try:
            with pytest.raises(ConnectionLostError, match="no answer to a request within 5 s") as caught:
                channel.result(30)
        finally:
            for pid in stopped:
                os.kill(pid, signal.SIGCONT)
    assert not isinstance(caught.value, UnreachableError)
    connection.close()


def test_a_host_name_that_does_not_resolve_is_reported(sshd: Sshd) -> None:
    assert "no such name" in refusal(Session(replace(sshd.target("src"), address="no-such-host.invalid")))


def test_the_login_key_is_not_in_the_recorded_results(
    session: Session, sshd: Sshd, results: list[ScriptResult]
) -> None:
    run(session, "env; ps -eo args; ls /tmp")
    secret = (sshd.folder / "user_key").read_text().splitlines()[1]
    assert secret not in repr(results)


# --- files


def remote_file(data: bytes, remote: Path, local: Path) -> RemoteFile:
    remote.write_bytes(data)
    return RemoteFile(str(remote), local, hashlib.sha256(data).hexdigest(), len(data))


def test_fetched_files_equal_the_files_on_the_host(session: Session, tmp_path: Path) -> None:
    contents = [b"", b"small\n", os.urandom(5_000_000), os.urandom(32768)]
    files = [
        remote_file(data, tmp_path / f"remote-{n}", tmp_path / "trial" / "traces" / f"{n}.gz")
        for n, data in enumerate(contents)
    ]
    session.fetch_all(files)
    assert [file.local.read_bytes() for file in files] == contents
    assert {path.name for path in (tmp_path / "trial" / "traces").iterdir()} == {
        "0.gz",
        "1.gz",
        "2.gz",
        "3.gz",
    }


@pytest.mark.parametrize("change", ["a bit", "shorter", "longer"])
def test_a_file_whose_size_or_checksum_is_not_the_expected_one_is_refused(
    session: Session, tmp_path: Path, change: str
) -> None:
    data = os.urandom(200_000)
    file = remote_file(data, tmp_path / "remote", tmp_path / "trial" / "local")
    changed = {"a bit": data[:-1] + bytes([data[-1] ^ 1]), "shorter": data[:-1], "longer": data + b"x"}
    (tmp_path / "remote").write_bytes(changed[change])
    with pytest.raises(TestbedError, match=r"remote: received \d+ bytes with SHA-256"):
        session.fetch_all([file])
    assert list((tmp_path / "trial").iterdir()) == []
    assert run(session, "echo usable").stdout == b"usable\n"


def test_a_missing_file_is_reported_with_its_path(session: Session, tmp_path: Path) -> None:
    with pytest.raises(
        TestbedError, match=rf"{session.host}: {tmp_path}/gone: cannot be copied.*No such file"
    ):
        session.fetch_all([RemoteFile(f"{tmp_path}/gone", tmp_path / "local", "0" * 64, 1)])
    assert not (tmp_path / "local").exists()


def test_a_transfer_from_a_stopped_sshd_misses_the_deadline(session: Session, tmp_path: Path) -> None:
    file = remote_file(os.urandom(100_000), tmp_path / "remote", tmp_path / "local")
    session.fetch_all([file])
    connection = serving(session)
    os.kill(connection, signal.SIGSTOP)
    for child in children(connection):
        os.kill(child, signal.SIGSTOP)
    with pytest.raises(DeadlineError, match=f"{session.host}: fetch: no answer within 0.5 s"):
        session.fetch_all([replace(file, local=tmp_path / "again")], deadline_s=0.5)
    for child in children(connection):
        os.kill(child, signal.SIGCONT)
    os.kill(connection, signal.SIGCONT)
    assert not (tmp_path / "again").exists()
    session.fetch_all([replace(file, local=tmp_path / "again")])


def test_a_transfer_from_an_sftp_server_that_sends_nothing_misses_the_deadline(
    tmp_path: Path, host: str
) -> None:
    with running(tmp_path, sftp="cat >/dev/null") as mute:
        session = Session(mute.target(host))
        shell = shell_of(session)
        assert in_background(lambda: session.peek(f"{tmp_path}/log", timeout_s=0.5)).result(30) is None
        assert shell_of(session) == shell, "the failed transfer does not affect the shell"
        file = RemoteFile(f"{tmp_path}/log", tmp_path / "local", "0" * 64, 1)
        with pytest.raises(DeadlineError, match=f"{host}: fetch: no answer within 1 s"):
            in_background(lambda: session.fetch_all([file], deadline_s=1)).result(30)
        assert run(session, "echo usable").stdout == b"usable\n"
        session.close()
        await_that(lambda: not left_behind(host), "no folder of a shell in /tmp")


def test_a_login_shell_that_prints_before_sftp_begins_is_reported(tmp_path: Path, host: str) -> None:
    with running(tmp_path, sftp="echo Welcome to the testbed, please be careful") as talkative:
        session = Session(talkative.target(host))
        shell_of(session)
        assert session.peek(f"{tmp_path}/log", timeout_s=5) is None
        file = RemoteFile(f"{tmp_path}/log", tmp_path / "local", "0" * 64, 1)
        with pytest.raises(
            TestbedError,
            match=f"{host}: .*Garbage packet received.*; the user's login shell must print nothing",
        ):
            in_background(lambda: session.fetch_all([file], deadline_s=5)).result(60)
        session.close()


# --- all hosts


def test_scripts_run_on_several_hosts_at_the_same_time(sshd: Sshd, host: str, tmp_path: Path) -> None:
    targets = [sshd.target(f"{host}-{n}") for n in range(3)]
    meet = f"cd {tmp_path}; : >met-$$; until [ $(ls | grep -c met) = 3 ]; do sleep 0.05; done; echo $$"
    with Sessions(targets) as sessions:
        done = sessions.map(lambda session: run(session, meet).text)
        assert list(done) == [target.host for target in targets]
        assert len(set(done.values())) == 3
        assert list(sessions.map(lambda session: session.host, hosts=[f"{host}-1"])) == [f"{host}-1"]
    await_that(lambda: not left_behind(f"{host}-*"), "no folder of a shell in /tmp")


def test_failures_on_several_hosts_are_reported_by_host(sshd: Sshd, host: str) -> None:
    def fail(session: Session) -> None:
        if session.host != f"{host}-1":
            run(session, f"echo {session.host} says no; exit 5")

    with Sessions(sshd.target(f"{host}-{n}") for n in range(3)) as sessions:
        with pytest.raises(HostsError) as caught:
            sessions.map(fail)
        assert list(caught.value.by_host) == [f"{host}-0", f"{host}-2"]
        assert all(f"{host}-{n} says no" in str(caught.value) for n in (0, 2))
        with pytest.raises(RemoteError, match=f"{host}-0: test"):
            sessions.map(fail, hosts=[f"{host}-0", f"{host}-1"])


def test_one_host_that_cannot_be_reached_leaves_no_connection_to_the_others(sshd: Sshd, host: str) -> None:
    before = sshd.connection_pids()
    with pytest.raises(UnreachableError, match="far: no answer"):  # noqa: SIM117 - the context fails when it is entered
        with Sessions([sshd.target(host), replace(sshd.target("far"), port=free_port())]):
            pytest.fail("entered")
    await_that(lambda: set(sshd.connection_pids()) <= set(before), "no connection left")
    assert not left_behind(host)


def test_an_unknown_host_is_reported_with_the_known_hosts(sshd: Sshd) -> None:
    with pytest.raises(TestbedError, match="scr: unknown host; known: src, dst"):
        Sessions([sshd.target("src"), sshd.target("dst")])["scr"]


# --- another shell


@pytest.mark.skipif(os.geteuid() != 0, reason="puts another /bin/sh into a mount namespace")
def test_a_host_whose_sh_is_bash_works_like_one_with_dash(tmp_path: Path, host: str) -> None:
    """The scripts of sessions must not depend on dash."""
    with running(tmp_path, shell="/bin/bash") as other:
        session = Session(other.target(host))
        assert run(session, "echo $BASH_VERSION").text[0].isdigit()
        with pytest.raises(DeadlineError):
            run(session, f"sleep 600 & echo $! >{tmp_path}/child; echo $$ >{tmp_path}/own; sleep 600", 1)
        await_that(lambda: not alive(pid_in(tmp_path / "child")), "the child is gone")
        await_that(lambda: not alive(pid_in(tmp_path / "own")), "the script is gone")
        assert run(session, "echo usable").stdout == b"usable\n"
        session.set_on_loss(f"echo cleaned >{tmp_path}/cleaned")
        os.kill(serving(session), signal.SIGKILL)
        await_that(lambda: lines_of(tmp_path / "cleaned") == ["cleaned"], "the clean-up")
        await_that(lambda: not left_behind(host), "no folder of a shell in /tmp")
