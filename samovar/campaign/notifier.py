"""Notify the user of trouble and of the end of a campaign by running the command that config.yaml names."""

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

MAX_OUTPUT = 300
"""How many characters of the command's output a warning about its failure shows."""
TROUBLE = {
    "host-quarantined": "{host} is not used any more: {reason}",
    "campaign-stopped": "{reason}",
    "trial-failed": "{id} failed: {reason}",
}
"""Events that are trouble, with their messages; of failed trials, only the first of a run is notified."""


class Notifier:
    """Passes events on to `emit`, and runs the user's command for those that are trouble."""

    def __init__(self, notify: Notify | None, campaign: Path, emit: Emit) -> None:
        self._notify, self._campaign, self._emit = notify, campaign, emit
        self._failed = False

    def __call__(self, event: Event) -> None:
        """Pass an event on; notify the user if it is trouble."""
        self._emit(event)
        if event.name in TROUBLE and not (event.name == "trial-failed" and self._failed):
            self._failed = self._failed or event.name == "trial-failed"
            values = {name: str(value) for name, value in event.values.items()}
            self.notify("trouble", TROUBLE[event.name].format_map(values), values)

    def end(self, done: int, asked: int, failed: int) -> None:
        """Notify the user of the end of a run, with the numbers of its trials."""
        left = f", {failed} failed or not run" if failed else ""
        values = {"done": str(done), "asked": str(asked), "failed": str(failed)}
        self.notify("end", f"{done} of {asked} trials done{left}", values)

    def notify(self, occasion: Occasion, text: str, values: Mapping[str, str]) -> None:
        """Run the user's command if it is configured for this occasion. Its failure is a warning.

        The command gets the message on its standard input, and the values as variables SAMOVAR_NAME.
        """
        notify = self._notify
        if notify is None or occasion not in notify.on:
            return
        message = f"samovar: {self._campaign.parent.name}: {text}\n{self._campaign}\n"
        values = {"event": occasion, "campaign": str(self._campaign), "text": text, **values}
        variables = {
            # execve(2) ends a value at a null byte.
            f"SAMOVAR_{name.upper().replace('-', '_')}": value.replace("\0", "")
            for name, value in values.items()
        }
        problem = _run(notify, message.encode(), {**os.environ, **variables})
        if problem:
            self._emit(Event("warning", {"text": f"notify: {notify.command[0]}: {problem}"}))


@contextmanager
def notifying(notify: Notify | None, campaign: Path, emit: Emit) -> Iterator[Notifier]:
    """Yield a notifier; an error that ends the campaign early is notified as trouble too."""
    notifier = Notifier(notify, campaign, emit)
    try:
        yield notifier
    except SamovarError as error:
        notifier.notify("trouble", str(error), {})
        raise


def _run(notify: Notify, message: bytes, environment: Mapping[str, str]) -> str:
    """Run the command in a process group of its own; return what went wrong, or an empty string."""
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
    with process:
        try:
            output, _ = process.communicate(message, timeout=notify.timeout_s)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            return f"did not end within {notify.timeout_s:g} s"
    if process.returncode:
        text = redacted(output.decode(errors="replace"), os.environ).strip()[-MAX_OUTPUT:]
        return f"exit code {process.returncode}: {text or 'no output'}"
    return ""
