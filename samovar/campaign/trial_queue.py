"""The open trials of a campaign, distributed to the testbeds that run it."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from itertools import islice
from typing import Literal

from samovar.plan import Trial

CanRun = Callable[[Trial], bool]
"""Return whether a testbed can run a trial in the present condition of its hosts."""
TrialEnd = Literal["done", "failed", "returned"]
"""How a trial ended on the testbed that took it. A returned trial may run on another testbed."""
LOOKAHEAD = 64
"""The number of open trials among which treatments are balanced between testbeds."""


def treatment_of(trial: Trial) -> Hashable:
    """Return a key of the treatment of a trial."""
    return trial.part, *sorted(trial.treatment.items())


def choose(
    ready: Sequence[Trial], here: Mapping[Hashable, int], elsewhere: Mapping[Hashable, int]
) -> Trial | None:
    """Choose the next trial of one testbed among several, from the first block that is open.

    `here` and `elsewhere` count the trials of each treatment that this testbed and the others have run. The
    treatment that this testbed has run least often compared with the others comes first. If trials were taken
    in order, two testbeds would each get the same half of the treatments in every block.
    """
    if not ready:
        return None
    first = ready[0]
    block = [trial for trial in ready if (trial.part, trial.block) == (first.part, first.block)]
    return min(block, key=lambda one: here.get(treatment_of(one), 0) - elsewhere.get(treatment_of(one), 0))


class TrialQueue:
    """The open trials; each testbed takes and finishes them from its own thread.

    `attempts` has the number of attempts at each trial in earlier runs. With `fail_fast`, the first trial
    that fails stops the queue. `stopped` is the reason why no further trial is handed out, otherwise empty.
    """

    def __init__(
        self, trials: Iterable[Trial], attempts: Mapping[str, int], *, fail_fast: bool = False
    ) -> None:
        self._open = {trial.id: trial for trial in trials}
        self._attempts = dict(attempts)
        self._fail_fast = fail_fast
        self._can_run: dict[str, CanRun] = {}
        self._ran: dict[str, Counter[Hashable]] = {}  # how many trials of each treatment a testbed has run
        self._running: dict[str, Trial] = {}
        self._change = threading.Condition()
        self.stopped = ""

    def join(self, testbed: str, can_run: CanRun) -> None:
        """Add a testbed. All testbeds must be added before the first trial is taken."""
        self._can_run[testbed], self._ran[testbed] = can_run, Counter()

    def take(self, testbed: str) -> Trial | None:
        """Return the next trial for a testbed, or None if it has none left.

        Waits while another testbed runs a trial that it may return to the queue and that this testbed can
        run.
        """
        with self._change:
            while not self.stopped:
                trial = self._next(testbed)
                if trial is not None:
                    del self._open[trial.id]
                    self._running[testbed] = trial
                    return trial
                if not any(map(self._can_run[testbed], self._running.values())):
                    return None
                self._change.wait()
            return None

    def _next(self, testbed: str) -> Trial | None:
        ready = filter(self._can_run[testbed], self._open.values())
        if len(self._can_run) == 1:
            return next(ready, None)
        others = [ran for name, ran in self._ran.items() if name != testbed]
        return choose(list(islice(ready, LOOKAHEAD)), self._ran[testbed], sum(others, Counter()))

    def count_attempt(self, trial: Trial) -> int:
        """Return the number of the next attempt at a trial; attempts of earlier runs count."""
        with self._change:
            self._attempts[trial.id] = self._attempts.get(trial.id, 0) + 1
            return self._attempts[trial.id]

    def finish(self, testbed: str, trial: Trial, end: TrialEnd) -> None:
        """Record how a trial ended on the testbed that took it."""
        with self._change:
            self._running.pop(testbed, None)
            self._ran[testbed][treatment_of(trial)] += end == "done"
            others = (can_run for name, can_run in self._can_run.items() if name != testbed)
            if end == "returned" and any(can_run(trial) for can_run in others):
                self._open[trial.id] = trial
            elif end != "done" and self._fail_fast:
                self.stopped = self.stopped or f"{trial.id} failed, which ends the run (--fail-fast)"
            self._change.notify_all()

    def stop(self, reason: str) -> None:
        """Hand out no more trials."""
        with self._change:
            self.stopped = self.stopped or reason
            self._change.notify_all()
