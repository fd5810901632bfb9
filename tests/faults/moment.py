"""The moment of a fault: a phase of the n-th trial that a controller starts."""

from __future__ import annotations

from dataclasses import dataclass

from samovar.events import Event


@dataclass(frozen=True)
class Moment:
    """The beginning of a phase of the n-th started trial, counted from 1."""

    trial: int
    phase: str

    def __str__(self) -> str:
        """Return the moment as the word TRIAL:PHASE."""
        return f"{self.trial}:{self.phase}"

    @staticmethod
    def parse(word: str) -> Moment:
        """Return the moment that is written as a word TRIAL:PHASE."""
        trial, _, phase = word.partition(":")
        return Moment(int(trial), phase)

    def is_now(self, trial: int, event: Event) -> bool:
        """Return whether an event is this moment; `trial` is the number of trials started so far."""
        return trial == self.trial and event.name == "phase" and event.values["phase"] == self.phase
