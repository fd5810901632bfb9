"""A session: one host, one SSH connection, one shell, scripts one after another."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

from samovar.hosts import shell_protocol
from samovar.hosts.heartbeat import Heartbeat
from samovar.hosts.host_lease import DEADLINE_S as LEASE_DEADLINE_S
from samovar.hosts.host_lease import (
    Claim,
    Lease,
    LeaseError,
    claim_script,
    look_script,
    parse_answer,
    release_script,
)
from samovar.hosts.remote_shell import ConnectionLostError, RemoteShell, UnansweredError
from samovar.hosts.script_result import NOT_ENDED, Recorder, ScriptResult, discard_result, judged
from samovar.hosts.ssh import SshConnection, connect
from samovar.hosts.target import Dialer, Target, UnreachableError
from samovar.hosts.transfer import RemoteFile, TransferDeadline, fetch_in_turn, persevere, put_whole

INTERRUPT_GRACE_S = 15.0
"""How long a host may take to end what it is at: it may be as busy as the trial was to make it."""
_ATTEMPTS = 2
_ORDER_DEADLINE_S = 20.0  # a new shell gives the clean-up of a lost one 10 s before it answers
_Result = TypeVar("_Result")


class Session:
    """One host, reached over one persistent connection.

    Safe to use from several threads; scripts of one host run one at a time. A connection that was lost is an
    error once, in the call that notices, for whatever ran on the host was ended there. The next call connects
    anew, and first waits for the host to finish that.
    """

    def __init__(
        self, target: Target, dialer: Dialer | None = None, record: Recorder = discard_result
    ) -> None:
        self.target = target
        self.record = record
        self._dialer = dialer
        self._lock = threading.RLock()
        self._link: SshConnection | None = None
        self._shell: RemoteShell | None = None
        self._pulse: Heartbeat | None = None
        self._before: shell_protocol.ShellFolder | None = None
        self._on_loss = ""
        self._claim: Claim | None = None
        self._interrupted = threading.Event()

    @property
    def host(self) -> str:
        """The name that the testbed file gives the host."""
        return self.target.host

    def open(self) -> None:
        """Connect, unless connected.

        Raises TestbedError, saying whether the host did not answer, its key was not the known one, or ours
        was refused.
        """
        with self._lock:
            self._live()

    def run(self, script: str, *, step: str, deadline_s: float, check: bool = True) -> ScriptResult:
        """Run a POSIX sh script to its end and return what it wrote.

        Raises RemoteError for a non-zero exit when `check`; DeadlineError past the deadline, once the
        script's process group is killed; TestbedError when the connection is lost or an output exceeds
        shell_protocol.OUTPUT_LIMIT_BYTES.
        """
        with self._lock:
            live = self._live()
            begun = ScriptResult(
                self.host, step, script, NOT_ENDED, b"", b"", time.time(), 0.0, ending="lost"
            )
            done = self._attempt(live, begun, deadline_s)
        self.record(done)
        return judged(done, deadline_s, check)

    def set_on_loss(self, script: str | None) -> None:
        """Leave a script with the host, to be run there when the controller is gone; None takes it back.

        The host runs it once it sees the connection end without close(), after killing the script that runs
        then. Raises TestbedError when it cannot be kept there.
        """
        with self._lock:
            self._on_loss = script or ""
            known, live = self._shell, self._live()
            if live is known:
                self._guard(lambda: live.keep_on_loss(self._on_loss, _ORDER_DEADLINE_S))

    def claim(self, claim: Claim, over: Lease | None = None) -> Lease | None:
        """Ask to hold the host; return who else holds it, None when it is ours until release().

        A lease that may be taken over is one that was returned before; what its shell still has to do on the
        host is done first. A connection that is made anew goes on holding the host. Raises TestbedError.
        """
        with self._lock:
            live = self._live()
            if over and over.shell and over.mine:
                before = over.shell
                self._guard(lambda: live.succeed(before, _ORDER_DEADLINE_S))
            found = self._ask(live, claim, over.token if over else "")
            self._claim = None if found else claim
            return found

    def lease(self) -> Lease | None:
        """Look who holds the host, itself included; None when nobody does. Raises TestbedError."""
        with self._lock:
            said = self._aside(self._live(), "look", lambda _: look_script(self.target.lease))
            return parse_answer(self.host, said)

    def release(self) -> None:
        """Give the host back, if it is held. Raises TestbedError."""
        with self._lock:
            claim, self._claim = self._claim, None
            if claim:
                self._aside(self._live(), "release", lambda f: release_script(self.target.lease, claim, f))

    def fetch(
        self, remote: str, local: Path, *, sha256: str, size_bytes: int, deadline_s: float = 600.0
    ) -> None:
        """Copy one file from the host; see fetch_all."""
        self.fetch_all([RemoteFile(remote, local, sha256, size_bytes)], deadline_s=deadline_s)

    def fetch_all(self, files: Sequence[RemoteFile], *, deadline_s: float = 600.0) -> None:
        """Copy files from the host, each into `.part`, renamed once on disk with the right size and SHA-256.

        Connects anew and goes on from what has arrived when the connection is lost. Raises TestbedError for
        the first that is not what the host said; DeadlineError past the deadline.
        """
        clock = TransferDeadline(self.host, "fetch", deadline_s, self._interrupted.is_set)
        with self._lock:
            fetch = partial(fetch_in_turn, host=self.host, files=files, clock=clock)
            persevere(lambda: self._transfer(fetch), files, clock)

    def put(self, data: bytes, remote: str, mode: int = 0o600, *, deadline_s: float = 60.0) -> None:
        """Write a file on the host, whole or not at all. Raises TestbedError or DeadlineError."""
        clock = TransferDeadline(self.host, f"put {remote}", deadline_s, self._interrupted.is_set)
        with self._lock:
            self._transfer(lambda sftp: put_whole(sftp, self.host, data, remote, mode, clock))

    def order(self, text: str) -> None:
        """Have the host's shell do something short beside the script that another thread runs here.

        Nothing is told of what came of it; when the connection is being lost, that script's thread learns so.
        """
        live = self._shell
        if live:
            with suppress(OSError, EOFError):
                live.order(text)

    def peek(self, path: str, *, size_bytes: int = 64, timeout_s: float = 2.0) -> bytes | None:
        """Read the beginning of a small file beside the script that another thread runs here.

        None when it cannot be read, or the host is not connected.
        """
        link = self._link
        return link.peek(path, size_bytes, timeout_s) if link else None

    def interrupt(self) -> None:
        """End the script or the transfer that another thread has under way here; that thread gets a
        TestbedError.

        Returns when the session is free again. Raises DeadlineError when it is not within
        INTERRUPT_GRACE_S.
        """
        clock = TransferDeadline(self.host, "interrupt", INTERRUPT_GRACE_S)
        self._interrupted.set()
        try:
            free = self._lock.acquire(blocking=False)
            while not free:
                self._kill()
                free = self._lock.acquire(timeout=min(0.2, clock.left_s()))
            self._lock.release()
        finally:
            self._interrupted.clear()

    def close(self) -> None:
        """Say good-bye, so that the host takes the silence that follows for no loss, and disconnect."""
        with self._lock:
            if self._shell:
                self._shell.bye()
            self._drop()
            self._before = None

    def abandon(self) -> None:
        """Disconnect without a good-bye: the host does what set_on_loss has left there, and stays held."""
        with self._lock:
            self._claim = None
            self._drop()

    def _kill(self) -> None:
        # Again and again: the script may have been on its way to the host only.
        live = self._shell
        if live:
            with suppress(OSError):  # a lost connection is for the thread that uses it to find
                live.kill()

    def _live(self) -> RemoteShell:
        if self._shell is None:
            self._shell = self._connected()
        return self._shell

    def _connected(self) -> RemoteShell:
        for attempt in range(1, _ATTEMPTS + 1):
            try:
                return self._guard(self._connect)
            except (UnreachableError, ConnectionLostError):
                if attempt == _ATTEMPTS:
                    raise
        raise AssertionError("not reached")

    def _connect(self) -> RemoteShell:
        self._link = connect(self.target, self._dialer)
        name = shell_protocol.new_name()
        fresh = RemoteShell(self._link.channel(shell_protocol.start_command(name)), self.host, name)
        fresh.boot(self._before, _ORDER_DEADLINE_S, self.target.silence_s)
        self._before = fresh.folder
        self._pulse = Heartbeat(self._link, fresh, self.target.keepalive_s)
        if self._claim:
            self._hold_on(fresh, self._claim)
        if self._on_loss:
            fresh.keep_on_loss(self._on_loss, _ORDER_DEADLINE_S)
        return fresh

    def _hold_on(self, fresh: RemoteShell, claim: Claim) -> None:
        found = self._ask(fresh, claim)
        if found:
            owner, campaign = (found.values.get(key, "?") for key in ("owner", "campaign"))
            self._drop()
            raise LeaseError(f"{self.host}: {owner} took it over meanwhile, for campaign {campaign}")

    def _ask(self, live: RemoteShell, claim: Claim, over: str = "") -> Lease | None:
        said = self._aside(live, "claim", lambda folder: claim_script(self.target.lease, claim, folder, over))
        return parse_answer(self.host, said)

    def _aside(
        self, live: RemoteShell, step: str, script: Callable[[shell_protocol.ShellFolder], str]
    ) -> str:
        """Run what is about the shell itself and no part of a trial, whose record it would not be."""
        assert live.folder  # it has booted
        begun = ScriptResult(self.host, step, script(live.folder), NOT_ENDED, b"", b"", time.time(), 0.0)
        done = self._attempt(live, replace(begun, ending="lost"), LEASE_DEADLINE_S)
        return judged(done, LEASE_DEADLINE_S, True).text

    def _attempt(self, live: RemoteShell, begun: ScriptResult, deadline_s: float) -> ScriptResult:
        started = time.monotonic()
        try:
            frame, in_time = self._guard(lambda: live.run(begun.script, deadline_s))
        except UnansweredError:
            return replace(begun, ending="deadline", seconds=_since(started))
        except ConnectionLostError:
            return replace(begun, ending="lost", seconds=_since(started))
        interrupted = self._interrupted.is_set()
        return replace(
            begun,
            ending="interrupted" if interrupted else "exit" if in_time else "deadline",
            exit_code=frame.exit_code if in_time and not interrupted else NOT_ENDED,
            stdout=frame.stdout,
            stderr=frame.stderr,
            seconds=_since(started),
            host_seconds=frame.host_seconds,
        )

    def _transfer(self, work: Callable[[Any], None]) -> None:
        def lent() -> None:
            with link.sftp() as sftp:
                work(sftp)

        self._live()
        assert self._link  # the live shell is on it
        link = self._link
        self._guard(lent)

    def _guard(self, work: Callable[[], _Result]) -> _Result:
        """Do something that needs the connection; drop the connection if it proves to be lost."""
        try:
            return work()
        except (UnreachableError, ConnectionLostError):
            self._drop()
            raise

    def _drop(self) -> None:
        link, self._link, self._shell = self._link, None, None
        pulse, self._pulse = self._pulse, None
        if pulse:
            pulse.stop()
        if link:
            link.close()


def _since(started: float) -> float:
    return round(time.monotonic() - started, 4)
