"""Run `fab run` for another checkout in a process that stops itself (SIGSTOP) at given moments of a campaign.

It recognises the moments by the events that samovar emits for the display; samovar itself is not modified.
"""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path
from typing import Any

from samovar.cli import controller
from samovar.cli.commands import run_commands
from samovar.cli.controller import Controller
from samovar.events import Emit, Event
from tests.faults.moment import Moment


class Stopping(Controller):
    """A controller that passes every event on, and stops its process at the given moments."""

    def __init__(self, root: Path, moments: list[Moment]) -> None:
        super().__init__(root)
        self._moments = moments
        self._trials = 0

    def run(self, *args: Any, **kwargs: Any) -> Any:
        """Run a campaign as `fab run` does; the last positional argument is the function that displays events."""
        *others, emit = args
        return Controller.run(self, *others, self._stopping_at_moments(emit), **kwargs)  # type: ignore[call-arg]

    def _stopping_at_moments(self, emit: Emit) -> Emit:
        def emit_and_stop(event: Event) -> None:
            emit(event)
            self._trials += event.name == "trial-started"
            if self._moments and self._moments[0].is_now(self._trials, event):
                self._moments.pop(0)
                os.kill(os.getpid(), signal.SIGSTOP)

        return emit_and_stop


def main(folder: str, experiment: str, moments: str, *flags: str) -> None:
    """Run an experiment. `moments` are words TRIAL:PHASE; `flags` are options of `fab run` that take no value."""
    # Background jobs of a shell ignore SIGINT, programs under nohup ignore SIGHUP, and their children inherit this.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGHUP, signal.SIG_DFL)
    stopping = Stopping(Path(folder), [Moment.parse(word) for word in moments.split()])
    vars(controller)["Controller"] = lambda root: stopping
    options = (f"--{flag.replace('_', '-')}" for flag in flags)
    sys.exit(run_commands(["run", experiment, *options], Path(folder)))


if __name__ == "__main__":
    main(*sys.argv[1:])
