"""Distribute the open trials of a campaign among the testbeds that run it."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from itertools import islice
from typing import Literal

from samovar.plan import Trial

CanRun = Callable[[Trial], bool]
"""A function that returns whether a testbed can run a trial with the hosts that are usable now."""
TrialEnd = Literal["done", "failed", "returned"]
"""How a trial ended on the testbed that took it. "returned" means that another testbed may run it."""
LOOKAHEAD = 64
"""To balance treatments between testbeds, the next trial is chosen among this many open trials."""


def treatment_of(trial: Trial) -> Hashable:
    """Return a hashable key that is equal for two trials if their treatments are equal."""
    return trial.part, *sorted(trial.treatment.items())


def choose(
    ready: Sequence[Trial], here: Mapping[Hashable, int], elsewhere: Mapping[Hashable, int]
) -> Trial | None:
    """Choose the next trial for one of several testbeds, from the first block that has open trials.

    `here` counts the trials of each treatment that this testbed has run, `elsewhere` those that the other
    testbeds have run. The treatment with the smallest difference (`here` minus `elsewhere`) is chosen. If two
    testbeds took trials in order, each would get the same half of the treatments in every block.
    """
    if not ready:
        return None
    first = ready[0]
    block = [trial for trial in ready if (trial.part, trial.block) == (first.part, first.block)]
    return min(block, key=lambda one: here.get(treatment_of(one), 0) - elsewhere.get(treatment_of(one), 0))


class TrialQueue:
    """The open trials of a campaign. Each testbed takes trials and reports their end from its own thread.

    `can_run` maps each testbed to the function that returns whether it can run a trial. `attempts` maps
    trials to the number of attempts in earlier runs. With `fail_fast`, the first failed trial stops the
    queue. Once stopped, the queue hands out no trials, and `stopped` is the reason.
    """

    def __init__(
        self,
        trials: Iterable[Trial],
        can_run: Mapping[str, CanRun],
        attempts: Mapping[str, int],
        *,
        fail_fast: bool = False,
    ) -> None:
        self._open = {trial.id: trial for trial in trials}
        self._can_run, self._attempts, self._fail_fast = can_run, dict(attempts), fail_fast
        self._ran = {testbed: Counter[Hashable]() for testbed in can_run}  # trials run of each treatment
        self._running: dict[str, Trial] = {}
        self._change = threading.Condition()
        self.stopped = ""

    def take(self, testbed: str) -> Trial | None:
        """Return the next trial for a testbed, or None if no trial is left that it can run.

        Waits while another testbed runs a trial that this testbed could run, because that trial may return to
        the queue.
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
        """Count a new attempt at a trial and return its number; attempts in earlier runs count too."""
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
        """Stop handing out trials. The first reason is kept if the queue is stopped several times."""
        with self._change:
            self.stopped = self.stopped or reason
            self._change.notify_all()
