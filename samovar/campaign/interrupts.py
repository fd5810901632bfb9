"""Handle Ctrl-C: the first ends a command in good order, the second ends it at once.

The first Ctrl-C (SIGINT), SIGTERM or SIGHUP raises KeyboardInterrupt in the main thread, and the command ends
in good order. The command stops the programs of the running trial on its hosts, fetches the files that they
have written so far (`salvage` in collection/), and restores the hosts. The journal gets the outcome
`interrupted`, the incomplete trial moves to set-aside/, leases are released, and the exit code is 130. If
several testbeds share a campaign, each testbed runs its trials in a thread of its own, and the main thread
interrupts these threads. The second SIGINT or SIGTERM ends the process at once, after printing which hosts
are still changed (`unrestored_lines`). Changed hosts restore themselves once they have lost their controller;
`fab restore` restores hosts that could not. After either signal, the command that resumes the campaign is
printed. `event_display` in cli/program.py installs the handlers.
"""

from __future__ import annotations

import os
import signal
import stat
import sys
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
"""Signals within this time count as one, because one Ctrl-C may arrive twice: a terminal sends it to every
process of a job, and a wrapper such as `make` or `timeout` may pass it on to its child."""
FIRST_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
SECOND_SIGNALS = (signal.SIGINT, signal.SIGTERM)
"""Signals that end the process at once if they follow a first signal. SIGHUP is not among them, because
closing a terminal may send it more than once."""
AGAIN_S = 0.05
"""The time after which an interrupt that Python has discarded is raised again."""
NOTICE = b"\ninterrupted: ending in good order; interrupt again to end at once\n"
POLL_S = 0.2


class Interrupts:
    """Context manager that raises KeyboardInterrupt at the first signal, and ends the process at the second.

    `last_words` is called just before the process ends at the second signal, to print which hosts have not
    been restored.

    Python discards an exception that a signal handler raises in `__del__` or in a callback of the garbage
    collector. A discarded KeyboardInterrupt is raised again until it reaches the command.
    """

    def __init__(self, last_words: Callable[[], None]) -> None:
        self._last_words = last_words
        self._first_s: float | None = None
        self._before: dict[signal.Signals, Any] = {}
        self._again: threading.Timer | None = None
        self._report_unraisable: Callable[[sys.UnraisableHookArgs], Any] = sys.unraisablehook

    def __enter__(self) -> Interrupts:
        if threading.current_thread() is threading.main_thread():
            for number in FIRST_SIGNALS:
                if signal.getsignal(number) is not signal.SIG_IGN:  # nohup sets SIG_IGN
                    self._before[number] = signal.signal(number, self._handle)
            self._report_unraisable, sys.unraisablehook = sys.unraisablehook, self._raise_again
        return self

    def __exit__(self, *error: object) -> None:
        if self._again is not None:
            self._again.cancel()
        if sys.unraisablehook == self._raise_again:
            sys.unraisablehook = self._report_unraisable
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
        if self._again is not None:
            self._again = None
            raise KeyboardInterrupt
        if number in SECOND_SIGNALS and time.monotonic() - self._first_s > TWICE_S:
            try:
                self._last_words()
            finally:
                os._exit(EXIT_CODE)

    def _raise_again(self, discarded: sys.UnraisableHookArgs) -> None:
        if discarded.exc_type is not KeyboardInterrupt:
            self._report_unraisable(discarded)
            return
        # A timer sends the signal again, because an interrupt that is raised here would be discarded, too.
        self._again = threading.Timer(AGAIN_S, os.kill, (os.getpid(), next(iter(self._before))))
        self._again.daemon = True
        self._again.start()


def _detach_from_terminal() -> None:
    """Discard further output to the closed terminal, because a write that fails would end the clean-up."""
    for fd in (1, 2):
        if stat.S_ISCHR(os.fstat(fd).st_mode):
            with open(os.devnull, "wb") as nowhere:
                os.dup2(nowhere.fileno(), fd)


class TrialInterrupt:
    """Interrupts the running trial of one testbed from another thread, unless its clean-up has begun.

    Once `requested` is set, the trial ends before its next phase.
    """

    def __init__(self) -> None:
        self.requested = threading.Event()
        self._lock, self._cleans_up = threading.Lock(), False

    def end_scripts(self, sessions: Sessions, emit: Emit) -> None:
        """Stop the script that runs on each host, unless the scripts are cleaning up (see shielded()).

        Emits a warning if hosts do not answer.
        """
        with self._lock:
            if not self._cleans_up:
                try:
                    sessions.interrupt()
                except TestbedError as error:
                    emit(Event("warning", {"text": str(error)}))

    @contextmanager
    def shielded(self) -> Iterator[None]:
        """While the context is active, scripts clean up, so end_scripts() does not stop them."""
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
    """Run the job of each testbed in a thread of its own, and return when all jobs have ended.

    When a job fails or the user presses Ctrl-C, `stop` is called with the reason, so that no job starts
    another trial. After Ctrl-C, which only the main thread receives, every job ends its trial and cleans up;
    then KeyboardInterrupt is raised. If jobs failed, the first error is raised.
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
            for context in left:  # repeated, because a script may have been on its way to a host
                context.interrupt.end_scripts(context.sessions, context.emit)
            time.sleep(POLL_S)
        raise
    if errors:
        raise errors[0]


def unrestored_lines(folder: Path | None, resume: str) -> Iterator[str]:
    """Yield lines that name a campaign's unrestored hosts, for a command that ends without restoring them.

    `resume` is the command that resumes the campaign.
    """
    from samovar.campaign.folder import read_state, testbeds_in

    if folder is None:
        yield "ended at once; no campaign was running, and no host has been changed"
        return
    try:
        unrestored = read_state(folder).unrestored
    except SamovarError as error:
        yield f"ended at once; cannot tell which hosts must be restored: {error}"
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
