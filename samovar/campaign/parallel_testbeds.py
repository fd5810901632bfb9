"""Several testbeds at work on one campaign, each in a thread of its own."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from samovar.campaign.testbed_runner import TestbedRunner
from samovar.campaign.trial_queue import TrialQueue
from samovar.campaign.worker import Worker
from samovar.errors import TestbedError
from samovar.events import Event

LOOK_S = 0.5


def work_together(stations: Sequence[TestbedRunner], pool: TrialQueue) -> None:
    """Have each testbed run trials until none is left. Raises what ended one of them.

    Ctrl-C, which the main thread gets, has each testbed end its trial and clean up, as on one alone.
    """
    workers = [_worker(station, pool) for station in stations]
    for worker in workers:
        worker.start()
    try:
        _wait(workers)
    except KeyboardInterrupt:
        pool.stop("interrupted by the user")
        _break_off(stations, workers)
        raise
    errors = [worker.error for worker in workers if worker.error is not None]
    if errors:
        raise errors[0]


def _worker(station: TestbedRunner, pool: TrialQueue) -> Worker:
    name = station.crew.testbed

    def failed(error: BaseException) -> None:
        pool.stop(f"{name}: {error}" if str(error) else f"{name} was stopped")

    return Worker(name, partial(station.work, pool), failed)


def _wait(workers: Sequence[Worker]) -> None:
    for worker in workers:
        while worker.is_at_work:
            worker.wait(LOOK_S)


def _break_off(stations: Sequence[TestbedRunner], workers: Sequence[Worker]) -> None:
    """End what runs on each testbed again and again: a step may have been on its way to a host only."""
    for station in stations:
        station.context.stopping.ask()
    each = list(zip(stations, workers, strict=True))
    while running := [(station, worker) for station, worker in each if worker.is_at_work]:
        for station, _ in running:
            _interrupt(station)
        running[0][1].wait(LOOK_S)


def _interrupt(station: TestbedRunner) -> None:
    try:
        station.context.stopping.interrupt(station.context.sessions)
    except TestbedError as error:
        station.context.emit(Event("warning", {"text": str(error)}))
