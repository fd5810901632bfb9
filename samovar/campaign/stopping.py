"""Breaking off a trial from another thread than the one that runs it: Ctrl-C reaches the main thread only."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from threading import Event, Lock

from samovar.hosts import Sessions


class Stopping:
    """Whether a testbed's trial is to end now, and whether it is ending already."""

    def __init__(self) -> None:
        self._asked, self._lock, self._ends = Event(), Lock(), False

    @property
    def asked(self) -> bool:
        """Whether the trial is to end."""
        return self._asked.is_set()

    def ask(self) -> None:
        """Have the trial end before its next phase."""
        self._asked.set()

    def wait(self, seconds: float) -> bool:
        """Wait until it is asked, so long at most; tell whether it was."""
        return self._asked.wait(seconds)

    def interrupt(self, sessions: Sessions) -> None:
        """End what runs on the hosts, unless that is the clean-up already. Raises TestbedError."""
        with self._lock:
            if not self._ends:
                sessions.interrupt()

    @contextmanager
    def shielded(self) -> Iterator[None]:
        """Have what runs meanwhile, which cleans up, not be interrupted."""
        with self._lock:
            self._ends = True
        try:
            yield
        finally:
            with self._lock:
                self._ends = self.asked
