"""Ctrl-C: what happens at the first and at the second one.

The first Ctrl-C (SIGINT), SIGTERM or SIGHUP raises KeyboardInterrupt in the main thread, and the command ends
in good order: programs of the running trial are stopped on its hosts, the files that they have written so far
are fetched (`salvage` in collection/), the hosts are restored, the journal gets the outcome `interrupted`,
the incomplete trial moves to set-aside/, leases are released, and the exit code is 130. Where several
testbeds share a campaign, each runs its trials in a thread, to which the main thread passes the interrupt.
The second SIGINT or SIGTERM ends the process at once: `unrestored_lines` reports which hosts are still
changed. Each of them restores itself once it has lost its controller, and `fab restore` makes sure. Either
way, the command that resumes the campaign is printed.
"""

from __future__ import annotations

import os
import signal
import stat
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Any

from samovar.errors import SamovarError, TestbedError
from samovar.events import Emit, Event

if TYPE_CHECKING:  # every command imports this module at its start
    from samovar.campaign.context import CampaignContext
    from samovar.hosts import Sessions

EXIT_CODE = 130
"""The exit code that shells report for a command that was terminated by Ctrl-C."""
TWICE_S = 0.5
"""Signals within this time count as one: a terminal signals a whole job, and a wrapper passes it on."""
FIRST_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
SECOND_SIGNALS = (signal.SIGINT, signal.SIGTERM)
"""Without SIGHUP, which a terminal that is closed may send more than once."""
NOTICE = b"\ninterrupted: ending in good order; interrupt again to end at once\n"
POLL_S = 0.2


class Interrupts:
    """While active: raise KeyboardInterrupt in the main thread at the first signal, exit at the second.

    `last_words` is called before the process exits at the second signal, to report what has not been
    restored.
    """

    def __init__(self, last_words: Callable[[], None]) -> None:
        self._last_words = last_words
        self._first_s: float | None = None
        self._before: dict[signal.Signals, Any] = {}

    def __enter__(self) -> Interrupts:
        if threading.current_thread() is threading.main_thread():
            for number in FIRST_SIGNALS:
                if signal.getsignal(number) is not signal.SIG_IGN:  # as under nohup
                    self._before[number] = signal.signal(number, self._handle)
        return self

    def __exit__(self, *error: object) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)

    def _handle(self, number: int, frame: FrameType | None) -> None:
        if number == signal.SIGHUP:
            _detach_from_terminal()
        if self._first_s is None:
            self._first_s = time.monotonic()
            try:
                os.write(2, NOTICE)  # not print: the signal may arrive in the middle of a print
            except OSError:
                _detach_from_terminal()
            raise KeyboardInterrupt
        if number in SECOND_SIGNALS and time.monotonic() - self._first_s > TWICE_S:
            try:
                self._last_words()
            finally:
                os._exit(EXIT_CODE)


def _detach_from_terminal() -> None:
    """Discard further output to a closed terminal, so that a failing write cannot stop the clean-up."""
    for fd in (1, 2):
        if stat.S_ISCHR(os.fstat(fd).st_mode):
            with open(os.devnull, "wb") as nowhere:
                os.dup2(nowhere.fileno(), fd)


class TrialInterrupt:
    """Interrupt the trials of one testbed from another thread, unless they are already being cleaned up.

    Once `requested` is set, the running trial ends before its next phase.
    """

    def __init__(self) -> None:
        self.requested = threading.Event()
        self._lock, self._cleans_up = threading.Lock(), False

    def end_scripts(self, sessions: Sessions, emit: Emit) -> None:
        """Stop what runs on the hosts, except the clean-up. Warn of hosts that do not answer."""
        with self._lock:
            if not self._cleans_up:
                try:
                    sessions.interrupt()
                except TestbedError as error:
                    emit(Event("warning", {"text": str(error)}))

    @contextmanager
    def shielded(self) -> Iterator[None]:
        """Protect the clean-up that runs in this context from being interrupted."""
        with self._lock:
            self._cleans_up = True
        try:
            yield
        finally:
            with self._lock:
                self._cleans_up = self.requested.is_set()


def run_in_threads(
    jobs: Sequence[tuple[CampaignContext, Callable[[], object]]], stop: Callable[[str], object]
) -> None:
    """Run the job of each testbed in a thread until all have ended. Raises the error of a job that failed.

    `stop` is called with a reason when a job has failed or at Ctrl-C, which only the main thread gets; it
    keeps all jobs from starting another trial. On Ctrl-C every job ends its trial and cleans up; then
    KeyboardInterrupt is raised.
    """
    errors: list[BaseException] = []

    def run(context: CampaignContext, job: Callable[[], object]) -> None:
        try:
            job()
        except BaseException as error:
            errors.append(error)
            stop(f"{context.testbed}: {error}" if str(error) else f"{context.testbed} was stopped")

    threads = {threading.Thread(target=run, args=job, daemon=True): job[0] for job in jobs}

    def running() -> list[CampaignContext]:
        # Thread.join is not used: in Python 3.11, a join that a signal interrupts marks the thread as ended
        # although it runs (https://github.com/python/cpython/issues/90882).
        return [context for thread, context in threads.items() if thread.is_alive()]

    try:
        for thread in threads:
            thread.start()
        while running():
            time.sleep(POLL_S)
    except KeyboardInterrupt:
        stop("interrupted by the user")
        for context in threads.values():
            context.interrupt.requested.set()
        while left := running():
            for context in left:  # repeatedly: a script may have been on its way to a host
                context.interrupt.end_scripts(context.sessions, context.emit)
            time.sleep(POLL_S)
        raise
    if errors:
        raise errors[0]


def unrestored_lines(folder: Path | None, resume: str) -> Iterator[str]:
    """Return what to print when a command exits at once: the hosts of its campaign that are still changed.

    `resume` is the command that resumes the campaign.
    """
    from samovar.campaign.folder import read_state, testbeds_in

    if folder is None:
        yield "ended at once; no campaign was running, no host has been changed"
        return
    try:
        unrestored = read_state(folder).unrestored
    except SamovarError as error:
        yield f"ended at once; which hosts have to be restored is unknown: {error}"
        return
    if unrestored:
        yield "ended at once; not restored yet:"
        for host, states in unrestored.items():
            boot = ", with settings that need a reboot" if any(state.lasting for state in states) else ""
            yield f"  {host}: changed since trial {states[0].id}{boot}"
        yield "each host restores itself now that it has lost its controller; to make sure:"
        for testbed in testbeds_in(folder):
            yield f"  fab restore --testbed {testbed}"
    else:
        yield "ended at once; all hosts are restored"
    yield f"to resume: {resume}; files of the interrupted trial are kept"
