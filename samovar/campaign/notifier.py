"""Notify the user of failures and of the end of a run by executing the `notify` command of config.yaml."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Mapping
from pathlib import Path

from samovar.errors import SamovarError
from samovar.events import Emit, Event
from samovar.experiment import Notify, Occasion
from samovar.secrets import redacted

MAX_OUTPUT = 300
"""If the command fails, the warning shows at most this many characters of its output."""
TROUBLE = {
    "host-quarantined": "{host} is not used any more: {reason}",
    "campaign-stopped": "{reason}",
    "trial-failed": "{id} failed: {reason}",
}
"""Events of which the user is notified as `trouble`, with their messages. In each run, only the first failed
trial leads to a notification."""


class Notifier:
    """Passes every event on to `emit`, and runs the user's command for events in TROUBLE.

    As a context manager, it also notifies the user of an error that ends the campaign.
    """

    def __init__(self, notify: Notify | None, campaign: Path, emit: Emit) -> None:
        self._notify, self._campaign, self._emit = notify, campaign, emit
        self._failed = False

    def __enter__(self) -> Notifier:
        return self

    def __exit__(self, kind: object, error: object, traceback: object) -> None:
        if isinstance(error, SamovarError):
            self.notify("trouble", str(error), {})

    def __call__(self, event: Event) -> None:
        """Pass an event on to `emit`; notify the user if the event is in TROUBLE."""
        self._emit(event)
        if event.name in TROUBLE and not (event.name == "trial-failed" and self._failed):
            self._failed = self._failed or event.name == "trial-failed"
            values = {name: str(value) for name, value in event.values.items()}
            self.notify("trouble", TROUBLE[event.name].format_map(values), values)

    def end(self, done: int, asked: int, failed: int) -> None:
        """Notify the user of the end of a run: how many trials are done, how many failed or did not run."""
        left = f", {failed} failed or not run" if failed else ""
        values = {"done": str(done), "asked": str(asked), "failed": str(failed)}
        self.notify("end", f"{done} of {asked} trials done{left}", values)

    def notify(self, occasion: Occasion, text: str, values: Mapping[str, str]) -> None:
        """Run the user's command if it is configured for this occasion. If the command fails, emit a warning.

        The command gets the message on its standard input, and each value in an environment variable such as
        SAMOVAR_HOST.
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


def _run(notify: Notify, message: bytes, environment: Mapping[str, str]) -> str:
    """Run the user's command in its own process group; return why it failed, or an empty string."""
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
