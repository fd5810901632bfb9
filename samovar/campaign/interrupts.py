"""Being told to end, in two stages: the first ends in good order, the second at once."""

from __future__ import annotations

import os
import signal
import stat
import threading
import time
from collections.abc import Callable
from types import FrameType
from typing import Any

EXIT_CODE = 130
"""What a shell reports for a command that Ctrl-C has ended."""
TWICE_S = 0.5
"""Within so long two signals are one: a terminal tells all of a job, and a wrapper passes it on."""
ORDERLY = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
AT_ONCE = (signal.SIGINT, signal.SIGTERM)
"""A terminal that is closed sends SIGHUP more than once, and means no more by it."""
BREAKING_OFF = b"\nending in good order; once more leaves at once\n"


class Interrupts:
    """While in force, the first signal raises KeyboardInterrupt in the main thread, the next one leaves.

    `leave` says what is left undone; the process ends after it, whatever else it is at.
    """

    def __init__(self, leave: Callable[[], None]) -> None:
        self._leave = leave
        self._first_s: float | None = None
        self._before: dict[signal.Signals, Any] = {}

    def __enter__(self) -> Interrupts:
        if threading.current_thread() is threading.main_thread():
            for number in ORDERLY:
                if signal.getsignal(number) is not signal.SIG_IGN:  # as under nohup
                    self._before[number] = signal.signal(number, self._told)
        return self

    def __exit__(self, *error: object) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)

    def _told(self, number: int, frame: FrameType | None) -> None:
        if number == signal.SIGHUP:
            _forget_terminal()
        if self._first_s is None:
            self._first_s = time.monotonic()
            _say(BREAKING_OFF)
            raise KeyboardInterrupt
        if number in AT_ONCE and time.monotonic() - self._first_s > TWICE_S:
            try:
                self._leave()
            finally:
                os._exit(EXIT_CODE)


def _say(text: bytes) -> None:
    """Write past Python's buffers, which the signal may have come upon half written."""
    try:
        os.write(2, text)
    except OSError:
        _forget_terminal()


def _forget_terminal() -> None:
    """Write to nowhere what would go to a terminal that is gone: the clean-up is not to stumble on it."""
    for fd in (1, 2):
        if stat.S_ISCHR(os.fstat(fd).st_mode):
            with open(os.devnull, "wb") as nowhere:
                os.dup2(nowhere.fileno(), fd)
