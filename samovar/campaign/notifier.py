"""Telling the user by a command of theirs how a campaign fares: run here, bounded, never by a shell."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from samovar.errors import SamovarError
from samovar.events import Emit, Event
from samovar.experiment import Notify, Occasion, redacted

MOST_SAID = 300
TROUBLE = {
    "host-quarantined": "{host} is not used any more: {reason}",
    "campaign-stopped": "{reason}",
    "trial-failed": "{id} failed: {reason}",
}
"""Events that are trouble, in words; of failed trials only the first of a run is told."""


class Notifier:
    """Passes events on, and tells the user's command of the few that it is for."""

    def __init__(self, notify: Notify | None, campaign: Path, emit: Emit) -> None:
        self._notify, self._campaign, self._emit = notify, campaign, emit
        self._failed = False

    def __call__(self, event: Event) -> None:
        """Pass an event on; tell of it when it is trouble."""
        self._emit(event)
        if event.name in TROUBLE and not (event.name == "trial-failed" and self._failed):
            self._failed = self._failed or event.name == "trial-failed"
            values = {name: str(value) for name, value in event.values.items()}
            self.tell("trouble", TROUBLE[event.name].format_map(values), values)

    def end(self, done: int, asked: int, failed: int) -> None:
        """Tell of the end of a run."""
        left = f", {failed} failed or not run" if failed else ""
        values = {"done": str(done), "asked": str(asked), "failed": str(failed)}
        self.tell("end", f"{done} of {asked} trials done{left}", values)

    def tell(self, occasion: Occasion, text: str, values: Mapping[str, str]) -> None:
        """Run the command for an occasion, if it is for that; its failure is only a warning."""
        notify = self._notify
        if notify is None or occasion not in notify.on:
            return
        message = f"samovar: {self._campaign.parent.name}: {text}\n{self._campaign}\n"
        known = {"event": occasion, "campaign": str(self._campaign), "text": text, **values}
        environment = {**os.environ, **{_variable(name): _plain(value) for name, value in known.items()}}
        problem = _run(notify, message.encode(), environment)
        if problem:
            self._emit(Event("warning", {"text": f"notify: {notify.command[0]}: {problem}"}))


@contextmanager
def notifying(notify: Notify | None, campaign: Path, emit: Emit) -> Iterator[Notifier]:
    """Yield a notifier; an error that ends the campaign early is reported as trouble too."""
    notifier = Notifier(notify, campaign, emit)
    try:
        yield notifier
    except SamovarError as error:
        notifier.tell("trouble", str(error), {})
        raise


def _variable(name: str) -> str:
    return f"SAMOVAR_{name.upper().replace('-', '_')}"


def _plain(value: str) -> str:
    return value.replace("\0", "")  # execve(2) ends a value there


def _run(notify: Notify, message: bytes, environment: Mapping[str, str]) -> str:
    """Run the command with its descendants in a group of their own; say what went wrong."""
    try:
        process = subprocess.Popen(
            notify.command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            env=environment,
            start_new_session=True,
        )
    except (OSError, ValueError) as error:
        return f"cannot be run: {error}"
    try:
        said, _ = process.communicate(message, timeout=notify.timeout_s)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        return f"no end within {notify.timeout_s:g} s"
    finally:
        for pipe in (process.stdin, process.stdout):
            if pipe is not None:
                pipe.close()
    if process.returncode:
        told = redacted(said.decode(errors="replace"), os.environ).strip()[-MOST_SAID:]
        return f"exit code {process.returncode}: {told or 'it said nothing'}"
    return ""
