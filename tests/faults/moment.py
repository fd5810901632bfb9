"""When a fault strikes: the n-th trial that a controller starts, and a phase of it."""

from __future__ import annotations

from dataclasses import dataclass

from samovar.events import Event


@dataclass(frozen=True)
class Moment:
    """The beginning of a phase of the n-th trial that is started, counted from 1."""

    trial: int
    phase: str

    def __str__(self) -> str:
        """Write it as a word."""
        return f"{self.trial}:{self.phase}"

    @staticmethod
    def parse(word: str) -> Moment:
        """Read it back."""
        trial, _, phase = word.partition(":")
        return Moment(int(trial), phase)

    def is_now(self, trial: int, event: Event) -> bool:
        """Tell whether an event is this moment, `trial` trials having been started."""
        return trial == self.trial and event.name == "phase" and event.values["phase"] == self.phase
