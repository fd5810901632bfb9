"""Distribute the open trials of a campaign among the testbeds that run it."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Mapping
from typing import Literal

from samovar.plan import Trial

CanRun = Callable[[Trial], bool]
"""A function that returns whether a testbed can run a trial with the hosts that are usable now."""
TrialEnd = Literal["done", "failed", "returned"]
"""How a trial ended on the testbed that took it. "returned" means that another testbed may run it."""


def treatment_of(trial: Trial) -> Hashable:
    """Return a hashable key that is equal for two trials if their treatments are equal."""
    return trial.part, *sorted(trial.treatment.items())


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
        self._ran = {testbed: Counter[Hashable]() for testbed in can_run}  # trials done by treatment
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
        """Return the next trial for a testbed, or None if it can run no open trial.

        If several testbeds share the campaign, the trial is taken from the first block that has open trials.
        Its treatment is the one that this testbed has run least often compared with the other testbeds. If
        two testbeds took trials in order, each would get the same half of the treatments in every block.
        """
        ready = filter(self._can_run[testbed], self._open.values())
        first = next(ready, None)
        if first is None or len(self._can_run) == 1:
            return first

        def excess(trial: Trial) -> int:
            treatment = treatment_of(trial)
            elsewhere = sum(ran[treatment] for name, ran in self._ran.items() if name != testbed)
            return self._ran[testbed][treatment] - elsewhere

        block = (one for one in ready if (one.part, one.block) == (first.part, first.block))
        return min([first, *block], key=excess)

    def count_attempt(self, trial: Trial) -> int:
        """Count a new attempt at a trial and return its number; attempts in earlier runs count too."""
        with self._change:
            self._attempts[trial.id] = self._attempts.get(trial.id, 0) + 1
            return self._attempts[trial.id]

    def finish(self, testbed: str, trial: Trial, end: TrialEnd) -> None:
        """Record how a trial ended on the testbed that took it.

        A returned trial goes back to the queue if another testbed can run it. With `fail_fast`, any other
        trial that is not done stops the queue.
        """
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
