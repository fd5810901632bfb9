"""A thread whose end can be told, and awaited, also when Ctrl-C breaks off the wait for it."""

from __future__ import annotations

import threading
from collections.abc import Callable


class Worker:
    """Work in a thread of its own; keeps what ended it, and tells it to `failed`.

    Not by Thread.join and is_alive: in Python 3.11 a join that a signal breaks off takes the thread for
    ended, while it goes on (https://github.com/python/cpython/issues/90882).
    """

    def __init__(
        self, name: str, work: Callable[[], object], failed: Callable[[BaseException], object]
    ) -> None:
        self.error: BaseException | None = None
        self._work, self._failed = work, failed
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)

    def start(self) -> None:
        """Begin."""
        self._thread.start()

    @property
    def is_at_work(self) -> bool:
        """Whether it has not ended yet."""
        return not self._over.is_set()

    def wait(self, seconds: float) -> None:
        """Wait for its end, so long at most."""
        self._over.wait(seconds)

    def _run(self) -> None:
        try:
            self._work()
        except BaseException as error:
            self.error = error
            self._failed(error)
        finally:
            self._over.set()
