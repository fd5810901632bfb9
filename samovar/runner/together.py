"""Several testbeds at work on one campaign, each in a thread of its own."""

from __future__ import annotations

import threading
from collections.abc import Sequence

from samovar.errors import TestbedError
from samovar.events import Event
from samovar.runner.sharing import OpenTrials
from samovar.runner.station import Station

LOOK_S = 0.5


class _Worker(threading.Thread):
    """One testbed's thread; keeps what ended it."""

    def __init__(self, station: Station, pool: OpenTrials) -> None:
        super().__init__(name=station.crew.testbed, daemon=True)
        self.station, self._pool = station, pool
        self.error: BaseException | None = None

    def run(self) -> None:
        try:
            self.station.work(self._pool)
        except BaseException as error:
            self.error = error
            self._pool.stop(f"{self.name}: {error}" if str(error) else f"{self.name} was stopped")


def work_together(stations: Sequence[Station], pool: OpenTrials) -> None:
    """Have each testbed run trials until none is left. Raises what ended one of them.

    Ctrl-C, which the main thread gets, has each testbed end its trial and clean up, as on one alone.
    """
    workers = [_Worker(station, pool) for station in stations]
    for worker in workers:
        worker.start()
    try:
        _join(workers)
    except KeyboardInterrupt:
        pool.stop("interrupted by the user")
        _break_off(workers)
        raise
    errors = [worker.error for worker in workers if worker.error is not None]
    if errors:
        raise errors[0]


def _join(workers: Sequence[_Worker]) -> None:
    for worker in workers:
        while worker.is_alive():
            worker.join(LOOK_S)


def _break_off(workers: Sequence[_Worker]) -> None:
    """End what runs on each testbed again and again: a step may have been on its way to a host only."""
    for worker in workers:
        worker.station.bench.stopping.ask()
    while running := [worker for worker in workers if worker.is_alive()]:
        for worker in running:
            bench = worker.station.bench
            try:
                bench.stopping.interrupt(bench.sessions)
            except TestbedError as error:
                bench.emit(Event("warning", {"text": str(error)}))
        running[0].join(LOOK_S)
