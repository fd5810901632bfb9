"""Keep a session with one host: an SSH connection and a shell, which runs one script at a time."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Literal

from samovar.errors import TestbedError
from samovar.hosts.host_lease import DEADLINE_S, Claim, Lease, LeaseError, lease_script, parse_answer
from samovar.hosts.remote_shell import HEARTBEAT_TEXT, KILL_TEXT, RemoteShell, ShellFolder
from samovar.hosts.script_result import NOT_ENDED, Recorder, ScriptResult, checked_result, discard_result
from samovar.hosts.target import ConnectionLostError, Dialer, SshTarget
from samovar.hosts.transfer import STALL_S, RemoteFile, TransferDeadline, fetch_files, retry_transfer

if TYPE_CHECKING:
    from samovar.hosts.ssh import SshConnection

INTERRUPT_GRACE_S = 15.0
"""A host may take this long to end a script or transfer that is interrupted, because a trial may keep the
host busy."""
UNANSWERED = 4
"""A connection is closed if the host has not answered a heartbeat after this many heartbeat intervals."""
_SHELL_DEADLINE_S = 20.0
"""A shell may take this long to answer. A new shell waits up to 10 s for the clean-up of an earlier one."""


class Session:
    """A session with one host over one persistent connection.

    Several threads may use a session, but its scripts run one at a time. If the connection is lost, the host
    kills the running script; the call that notices the loss therefore raises an error instead of connecting
    again. The next call connects again, after the host has finished its clean-up.
    """

    def __init__(
        self, target: SshTarget, dialer: Dialer | None = None, record: Recorder = discard_result
    ) -> None:
        self.target = target
        self.record = record
        self._dialer = dialer
        self._lock = threading.RLock()
        self._connection: SshConnection | None = None
        self._shell: RemoteShell | None = None
        self._stop_heartbeat = threading.Event()
        self._before: ShellFolder | None = None
        self._on_loss = ""
        self._claim: Claim | None = None
        self._interrupted = threading.Event()

    @property
    def host(self) -> str:
        """The name of the host in the testbed file."""
        return self.target.host

    def open(self) -> None:
        """Connect to the host, unless the session is connected.

        Raises TestbedError if the host does not answer, if its host key is not the known one, or if it
        refuses the user's key; the message tells the reason.
        """
        with self._lock:
            self._live()

    def run(self, script: str, *, step: str, deadline_s: float, check: bool = True) -> ScriptResult:
        """Run a POSIX sh script on the host; record its result, and return it.

        Raises RemoteError if the exit code is not zero and `check` is True. Raises DeadlineError if the
        script has not ended by the deadline; its process group is killed. Raises TestbedError if the
        connection is lost, or if an output exceeds remote_shell.OUTPUT_LIMIT_BYTES.
        """
        with self._lock:
            result = self._attempt(self._live(), step, script, deadline_s)
        self.record(result)
        return checked_result(result, deadline_s, check)

    def set_on_loss(self, script: str | None) -> None:
        """Store the script that the host runs if it loses its controller; None removes it.

        If the connection ends without close(), the host kills the running script and then runs the stored
        one. Raises TestbedError if the script cannot be stored.
        """
        with self._lock:
            self._on_loss = script or ""
            known, live = self._shell, self._live()
            if live is known:  # for a new shell, _connect() has stored the script
                with self._guard():
                    live.keep_on_loss(self._on_loss, _SHELL_DEADLINE_S)

    def claim(self, claim: Claim, over: Lease | None = None) -> Lease | None:
        """Claim the lease of the host; return None on success, or the lease of another holder.

        The session holds the lease until release(), even if it reconnects. `over` is another holder's
        lease. The session takes it over after that holder's shell has cleaned up. Raises TestbedError.
        """
        with self._lock:
            live = self._live()
            if over and over.shell and over.mine:
                with self._guard():
                    live.take_over(over.shell, _SHELL_DEADLINE_S)
            lease = self._run_lease_script(live, "claim", claim, over.token if over else "")
            self._claim = None if lease else claim
            return lease

    def lease(self) -> Lease | None:
        """Return the lease of the host, or None if nobody holds one. Raises TestbedError."""
        with self._lock:
            return self._run_lease_script(self._live(), "look", Claim("", {}))

    def release(self) -> None:
        """Release the lease of the host if this session holds it. Raises TestbedError."""
        with self._lock:
            claim, self._claim = self._claim, None
            if claim:
                self._run_lease_script(self._live(), "release", claim)

    def fetch_all(self, files: Sequence[RemoteFile], *, deadline_s: float = 600.0) -> None:
        """Copy files from the host to the controller, and verify them.

        Each file is written under a name with the suffix `.part`, and renamed when its size and SHA-256 are
        right. If the connection is lost, the session reconnects and continues. Raises TestbedError at the
        first file that differs from the checksum that the host computed. Raises DeadlineError after the
        deadline.
        """
        deadline = TransferDeadline(self.host, "fetch", deadline_s, self._interrupted.is_set)

        def fetch() -> None:
            self._live()
            assert self._connection  # a live shell has a connection
            with self._guard(), self._connection.sftp(min(STALL_S, deadline.left_s())) as sftp:
                fetch_files(sftp, self.host, files, deadline)

        with self._lock:
            retry_transfer(fetch, files, deadline)

    def order(self, text: str) -> None:
        """Have the host's shell run a short command, even while another thread runs a script there.

        The command's result is not read. If the connection is lost, the thread that runs the script gets the
        error.
        """
        if shell := self._shell:
            with suppress(OSError, EOFError):
                shell.order(text)

    def peek(self, path: str, *, size_bytes: int = 64, timeout_s: float = 2.0) -> bytes | None:
        """Return the first bytes of a file on the host, or None if it cannot be read.

        Another thread may run a script at the same time.
        """
        if connection := self._connection:
            with suppress(TestbedError, OSError), connection.sftp(timeout_s, wait=False) as sftp:
                if channel := sftp.get_channel():
                    channel.settimeout(timeout_s)
                with sftp.open(path, "rb") as file:
                    return bytes(file.read(size_bytes))
        return None

    def interrupt(self) -> None:
        """End the script or transfer that another thread runs; that thread gets a TestbedError.

        Returns once the other thread has finished with the session. Raises DeadlineError if this takes longer
        than INTERRUPT_GRACE_S.
        """
        deadline = TransferDeadline(self.host, "interrupt", INTERRUPT_GRACE_S)
        self._interrupted.set()
        try:
            free = self._lock.acquire(blocking=False)
            while not free:
                self.order(KILL_TEXT)  # repeatedly: the script may have been on its way to the host
                free = self._lock.acquire(timeout=min(0.2, deadline.left_s()))
            self._lock.release()
        finally:
            self._interrupted.clear()

    def close(self) -> None:
        """Disconnect, and end the shell first, so that the host does not run the script of set_on_loss()."""
        with self._lock:
            if self._shell:
                self._shell.bye()
            self._disconnect()
            self._before = None

    def abandon(self) -> None:
        """Disconnect so that the host runs the script of set_on_loss(), and keeps its lease."""
        with self._lock:
            self._claim = None
            self._disconnect()

    def _live(self) -> RemoteShell:
        """Connect to the host unless the session is connected, and return the shell.

        If the connection is lost during this, a second attempt is made.
        """
        if self._shell is None:
            try:
                return self._connect()
            except ConnectionLostError:
                return self._connect()
        return self._shell

    def _connect(self) -> RemoteShell:
        from samovar.hosts.ssh import connect  # imports Fabric and paramiko, which takes time

        try:
            self._connection = connect(self.target, self._dialer)
            shell = RemoteShell(self._connection, self.host)
            shell.boot(self._before, _SHELL_DEADLINE_S, self.target.silence_s)
            self._before = shell.folder
            self._stop_heartbeat = threading.Event()
            arguments = (self._connection, shell, self._stop_heartbeat)
            threading.Thread(target=self._beat, args=arguments, name="heartbeat", daemon=True).start()
            lease = self._run_lease_script(shell, "claim", self._claim) if self._claim else None
            if lease:
                owner, campaign = (lease.values.get(key, "?") for key in ("owner", "campaign"))
                raise LeaseError(f"{self.host}: {owner} has taken over its lease for campaign {campaign}")
            if self._on_loss:
                shell.keep_on_loss(self._on_loss, _SHELL_DEADLINE_S)
        except TestbedError:
            self._disconnect()
            raise
        self._shell = shell
        return shell

    def _run_lease_script(
        self, shell: RemoteShell, action: Literal["claim", "look", "release"], claim: Claim, over: str = ""
    ) -> Lease | None:
        """Run a lease script, which is not recorded with the trial; return the lease that it prints."""
        assert shell.folder  # the shell has booted
        script = lease_script(action, self.target.lease, claim, shell.folder, over)
        result = self._attempt(shell, action, script, DEADLINE_S)
        return parse_answer(self.host, checked_result(result, DEADLINE_S, True).text)

    def _attempt(self, shell: RemoteShell, step: str, script: str, deadline_s: float) -> ScriptResult:
        begun_s, started_s = time.time(), time.monotonic()
        frame, ending = shell.run(script, deadline_s)
        if frame is None:
            self._disconnect()
        elif self._interrupted.is_set():
            ending = "interrupted"
        return ScriptResult(
            host=self.host,
            step=step,
            script=script,
            exit_code=frame.exit_code if frame and ending == "exit" else NOT_ENDED,
            stdout=frame.stdout if frame else b"",
            stderr=frame.stderr if frame else b"",
            t_start_s=begun_s,
            seconds=round(time.monotonic() - started_s, 4),
            ending=ending,
        )

    @contextmanager
    def _guard(self) -> Iterator[None]:
        """Disconnect if an operation in this context finds that the connection is lost."""
        try:
            yield
        except ConnectionLostError:
            self._disconnect()
            raise

    def _disconnect(self) -> None:
        connection, self._connection, self._shell = self._connection, None, None
        self._stop_heartbeat.set()
        if connection:
            connection.close()

    def _beat(self, connection: SshConnection, shell: RemoteShell, stopped: threading.Event) -> None:
        """Send heartbeats until `stopped` is set, so that controller and host notice each other's absence.

        At each interval, a command tells the host's shell that its controller is alive (samovar_listen in
        shell.sh). A request also goes to the SSH server; if the server does not answer, the connection is
        closed. TCP alone would take a quarter of an hour to notice a cut link.
        """
        while not stopped.wait(self.target.keepalive_s):
            with suppress(OSError, EOFError):  # the thread that uses a lost connection gets the error
                shell.order(HEARTBEAT_TEXT)
            if not connection.answers(UNANSWERED * self.target.keepalive_s):
                return
