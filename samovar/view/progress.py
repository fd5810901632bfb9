"""Progress of a campaign: a bar with an ETA on a terminal, a plain line per event elsewhere."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn, TimeElapsedColumn

from samovar.events import Event
from samovar.view.text import MARKS
from samovar.view.words import clock

FIRST_GUESS_S = 3.0
"""What a trial costs beyond its traffic, until one has been measured."""


class Eta:
    """How long the rest will take: planned traffic, and the measured cost of a trial beyond it."""

    def __init__(self, traffic_s: list[float]) -> None:
        self._traffic_s = list(traffic_s)
        self._overheads_s: list[float] = []

    @property
    def left_s(self) -> float:
        """Seconds left, counted from the last trial that ended."""
        known = self._overheads_s or [FIRST_GUESS_S]
        return sum(self._traffic_s) + len(self._traffic_s) * sum(known) / len(known)

    def again(self, traffic_s: float) -> None:
        """Take a trial as open that will be run once more."""
        self._traffic_s.insert(0, traffic_s)

    def finished(self, overhead_s: float) -> None:
        """Take the first of the open trials as done."""
        if self._traffic_s:
            self._traffic_s.pop(0)
        self._overheads_s.append(overhead_s)


class Show:
    """Takes events and shows them; use as a context manager so that the terminal is left tidy."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._eta = Eta([])
        self._due_s = 0.0
        self._number = self._asked = 0
        self._bar = Progress(
            BarColumn(bar_width=24),
            MofNCompleteColumn(),
            TimeElapsedColumn(),
            TextColumn("{task.description}"),
            console=console,
            disable=not console.is_terminal,
            transient=True,
        )
        self._task: TaskID | None = None

    def __enter__(self) -> Show:
        self._bar.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._bar.stop()

    def __call__(self, event: Event) -> None:
        """Show one event; an event that nobody has a line for is passed over."""
        handler: Callable[[Any], None] | None = getattr(self, "_on_" + event.name.replace("-", "_"), None)
        if handler:
            handler(event.values)

    def line(self, text: str) -> None:
        """Show a line of its own."""
        self._console.print(text, highlight=False, markup=False, soft_wrap=True)

    def _on_lab_starting(self, values: Any) -> None:
        self.line(f"lab {values['testbed']}: {values['hosts']} hosts on the {values['kernel']} kernel …")

    def _on_lab_ready(self, values: Any) -> None:
        self.line(f"lab {values['testbed']}: ready after {values['seconds']:.1f} s")

    def _on_lab_stopped(self, values: Any) -> None:
        self.line(f"lab {values['testbed']}: stopped")

    def _on_campaign_created(self, values: Any) -> None:
        self.line(f"campaign {values['folder']}")

    def _on_campaign_resumed(self, values: Any) -> None:
        self.line(f"campaign {values['folder']} goes on")

    def _on_host_recovered(self, values: Any) -> None:
        self.line(f"{values['host']}: put back as it was before {values['trial']}, which had been cut off")

    def _on_host_rebooting(self, values: Any) -> None:
        self.line(f"{values['host']}: reboots")

    def _on_host_power_cycled(self, values: Any) -> None:
        self.line(f"{values['host']}: does not come back; its power is switched")

    def _on_host_rebooted(self, values: Any) -> None:
        self.line(f"{values['host']}: is back after {values['seconds']:.0f} s")

    def _on_warning(self, values: Any) -> None:
        self.line(f"? {values['text']}")

    def _on_trials_open(self, values: Any) -> None:
        self._eta = Eta(values["seconds"])
        self._asked, self._number = values["asked"], values["asked"] - values["open"]
        self._task = self._bar.add_task("", total=values["asked"], completed=self._number)
        self.line(f"{values['open']} of {values['asked']} trials to run, about {clock(self._eta.left_s)}")

    def _on_trial_started(self, values: Any) -> None:
        self._number += 1
        self._describe(values["id"])

    def _on_phase(self, values: Any) -> None:
        self._describe(f"{values['id']}: {values['phase']}")

    def _on_trial_finished(self, values: Any) -> None:
        self._eta.finished(values["overhead_s"])
        mark = MARKS.get(values["verdict"], "·") if values["outcome"] == "completed" else "✗"
        why = f" ({'; '.join(values['reasons'])})" if values["reasons"] else ""
        count = f"{self._number}/{self._asked}".rjust(2 * len(str(self._asked)) + 1)
        state = values["outcome"] if values["outcome"] != "completed" else values["verdict"]
        cost = f"{values['overhead_s']:.1f} s beyond traffic, ETA {clock(self._eta.left_s)}"
        self.line(f"{mark} {count} {values['id']}: {state}, {cost}{why}")
        if self._task is not None:
            self._bar.update(self._task, completed=self._number)

    def _on_path_measured(self, values: Any) -> None:
        found = "; ".join([*values["missed"], *values["left_out"]]) or "as asked for"
        self.line(f"path of {values['trial']} measured in {values['seconds']:.1f} s: {found}")

    def _on_trial_again(self, values: Any) -> None:
        self._number -= 1
        self._eta.again(values["seconds"])
        self.line(f"↻ {values['id']}: again, attempt {values['attempt']} of {values['of']}")

    def _on_trial_refused(self, values: Any) -> None:
        self._number += 1
        self._eta.finished(0.0)
        self.line(f"✗ {values['id']}: not started ({'; '.join(values['reasons'])})")

    def _on_analysis_started(self, values: Any) -> None:
        self._asked, self._number = values["trials"], 0
        self._due_s = time.monotonic()
        if self._task is not None:
            self._bar.remove_task(self._task)
        self._task = self._bar.add_task("analysis", total=values["trials"])
        self.line(f"analysis of {values['trials']} trials …")

    def _on_analysed(self, values: Any) -> None:
        done, of = int(values["done"]), int(values["of"])
        left_s = (time.monotonic() - self._due_s) / max(done, 1) * (of - done)
        if self._task is not None:
            text = f"{values['trial']} ETA {clock(left_s)}"
            self._bar.update(self._task, completed=done, total=of, description=text)

    def _on_figures(self, values: Any) -> None:
        self._describe(f"figures: {values.get('figure', '')}")

    def _describe(self, text: str) -> None:
        if self._task is not None:
            self._bar.update(self._task, description=f"{text} · ETA {clock(self._eta.left_s)}")
