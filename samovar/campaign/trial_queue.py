"""The trials that are still open, shared out to the testbeds that work on a campaign."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Literal

from samovar.plan import Trial

Serves = Callable[[Trial], bool]
"""Whether a testbed can run a trial, by what is known of it now."""
Coming = Literal["done", "failed", "back"]
"""What came of a trial on one testbed; one that comes back may run on another."""
AHEAD = 64
"""So many open trials are looked at for one that balances treatments: beyond it the order counts alone."""


def treatment_of(trial: Trial) -> Hashable:
    """Name the treatment of a trial."""
    return trial.part, *sorted(trial.treatment.items())


def choose(
    ready: Sequence[Trial], here: Mapping[Hashable, int], elsewhere: Mapping[Hashable, int]
) -> Trial | None:
    """Choose the next trial of one testbed among several: of the first block that is open, in order.

    Of that block, the treatment comes first that this testbed has run least often against the others. Taken
    in order only, two testbeds that take turns would each get the same half of the treatments in every block.
    """
    if not ready:
        return None
    first = ready[0]
    block = [trial for trial in ready if (trial.part, trial.block) == (first.part, first.block)]
    return min(block, key=lambda one: here.get(treatment_of(one), 0) - elsewhere.get(treatment_of(one), 0))


@dataclass
class _Testbed:
    """One testbed at work: what it serves, what it has run."""

    serves: Serves
    ran: Counter[Hashable] = field(default_factory=Counter)


class TrialQueue:
    """The open trials of a campaign; testbeds take them and give them back, each from its own thread."""

    def __init__(
        self, trials: Iterable[Trial], attempts: Mapping[str, int], *, fail_fast: bool = False
    ) -> None:
        self._open = {trial.id: trial for trial in trials}
        self._attempts = dict(attempts)
        self._fail_fast = fail_fast
        self._testbeds: dict[str, _Testbed] = {}
        self._running: dict[str, Trial] = {}
        self._change = threading.Condition()
        self.stopped = ""

    def join(self, testbed: str, serves: Serves) -> None:
        """Have a testbed take part; all join before one takes."""
        self._testbeds[testbed] = _Testbed(serves)

    def take(self, testbed: str) -> Trial | None:
        """Return the next trial for a testbed, None when there is none for it any more.

        Waits while another testbed runs what may come back and be for this one.
        """
        with self._change:
            while not self.stopped:
                trial = self._next(testbed)
                if trial is not None:
                    del self._open[trial.id]
                    self._running[testbed] = trial
                    return trial
                serves = self._testbeds[testbed].serves
                if not any(serves(one) for one in self._running.values()):
                    return None
                self._change.wait()
            return None

    def _next(self, testbed: str) -> Trial | None:
        own = self._testbeds[testbed]
        ready = (trial for trial in self._open.values() if own.serves(trial))
        if len(self._testbeds) == 1:
            return next(ready, None)
        others = [one.ran for name, one in self._testbeds.items() if name != testbed]
        return choose(list(islice(ready, AHEAD)), own.ran, sum(others, Counter()))

    def attempt(self, trial: Trial) -> int:
        """Number the next attempt at a trial, those of earlier runs counted."""
        with self._change:
            self._attempts[trial.id] = self._attempts.get(trial.id, 0) + 1
            return self._attempts[trial.id]

    def give(self, testbed: str, trial: Trial, coming: Coming) -> None:
        """Say what came of a trial that was taken."""
        with self._change:
            self._running.pop(testbed, None)
            self._testbeds[testbed].ran[treatment_of(trial)] += coming == "done"
            others = (one for name, one in self._testbeds.items() if name != testbed)
            again = coming == "back" and any(one.serves(trial) for one in others)
            if again:
                self._open[trial.id] = trial
            elif coming != "done" and self._fail_fast:
                self.stopped = self.stopped or f"{trial.id} failed, which ends it (--fail-fast)"
            self._change.notify_all()

    def stop(self, reason: str) -> None:
        """Give out no more trials."""
        with self._change:
            self.stopped = self.stopped or reason
            self._change.notify_all()
