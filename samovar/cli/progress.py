"""Progress of a campaign: a live view on a terminal, a plain line with a time stamp per event elsewhere.

`CampaignProgress` follows a campaign by its events, `EventDisplay` shows it to a person, `open_event_stream`
writes the events as JSON for programs.
"""

from __future__ import annotations

import json
import os
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from io import FileIO
from statistics import fmean
from typing import Any

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn
from rich.text import Text

from samovar.campaign.journal import CampaignState
from samovar.cli.show_status import (
    ASSUMED_OVERHEAD_S,
    FAILED,
    RUNNING,
    SYMBOLS,
    grid_lines,
    grid_of,
    remaining_s,
    trial_states,
)
from samovar.cli.text import harmless
from samovar.errors import CampaignError
from samovar.events import SCHEMA, Emit, Event, silent
from samovar.plan import Plan
from samovar.units import clock, format_rate

FEW_FAILURES = 4
GRID_SHARE = 0.6
"""Share of the terminal's height that the grid of trials may take."""
REDRAWS_PER_S = 2.0
STYLES = {"✓": "green", "✗": "red", "!": "red", "?": "yellow", "»": "bold", "↻": "yellow"}
"""Colours repeat the meaning of the first character of a line."""


@dataclass
class RunningTrial:
    """A trial that runs: its phase and when that began, its traffic time, the throughput into each host."""

    id: str
    attempt: int
    testbed: str
    traffic_s: float
    since_s: float
    phase: str = "start"
    received_bps: Mapping[str, float] = field(default_factory=dict)

    def line(self, now_s: float) -> str:
        """Return a line about the trial."""
        passed_s = now_s - self.since_s
        testbed = f" on {self.testbed}" if self.testbed else ""
        attempt = f", attempt {self.attempt}" if self.attempt > 1 else ""
        of = f" of {clock(self.traffic_s)}" if self.phase == "traffic" else ""
        rates = [f"{format_rate(round(bps), 3)}/s into {host}" for host, bps in self.received_bps.items()]
        throughput = f" · {', '.join(rates)}" if rates else ""
        return f"» {self.id}{testbed}{attempt}: {self.phase} {clock(passed_s)}{of}{throughput}"


class CampaignProgress:
    """The state of a running campaign, followed by its events."""

    def __init__(self) -> None:
        self.title = ""
        self.planned = self.done = self.testbeds = 0
        self.running: dict[str, RunningTrial] = {}
        self.failures: dict[str, str] = {}
        self._plan: Plan | None = None
        self._states: dict[str, str] = {}
        self._open_traffic_s: list[float] = []
        self._overheads_s: list[float] = []
        self._assumed_overhead_s = ASSUMED_OVERHEAD_S
        self._idle: set[str] = set()

    def expect(self, plan: Plan, state: CampaignState, overhead_s: float = ASSUMED_OVERHEAD_S) -> None:
        """Set the trials, their state before this run, and the overhead of a trial until one is measured."""
        self._assumed_overhead_s = overhead_s
        self._plan, self._states = plan, trial_states(plan, state)
        self.title = f"{plan.experiment} ({plan.profile or 'full'}) on {plan.testbed}"

    @property
    def remaining_s(self) -> float:
        """Seconds until all trials are done: planned traffic and the mean overhead of trials so far."""
        overhead_s = fmean(self._overheads_s) if self._overheads_s else self._assumed_overhead_s
        return remaining_s(self._open_traffic_s, overhead_s, self.testbeds - len(self._idle))

    def update(self, event: Event, now_s: float) -> None:
        """Take an event into account; events that do not concern progress are ignored."""
        values: Any = event.values
        id_ = str(values.get("id", ""))
        trial = self.running.get(id_)
        match event.name:
            case "trials-open":
                self.planned, self.done = values["asked"], values["asked"] - values["open"]
                self._open_traffic_s, self.testbeds = list(values["seconds"]), values.get("testbeds", 1)
            case "testbed-idle":
                self._idle.add(values["testbed"])
            case "trial-started":
                attempt, testbed = values.get("attempt", 1), values.get("testbed", "")
                self.running[id_] = RunningTrial(id_, attempt, testbed, values.get("seconds", 0.0), now_s)
                self._states[id_] = RUNNING
            case "phase" if trial:
                trial.phase, trial.since_s, trial.received_bps = values["phase"], now_s, {}
            case "throughput" if trial:
                trial.received_bps = values["received_bps"]
            case "trial-finished":
                self._finish(id_, values)
            case "trial-again":
                self._open_traffic_s.append(values["seconds"])
            case "trial-refused":
                self._states[id_] = FAILED
                self.failures[id_] = "; ".join(values["reasons"])
                self._close(None)

    def _finish(self, id_: str, values: Any) -> None:
        completed = values["outcome"] == "completed"
        usable = completed and values["verdict"] != "invalid"
        self._states[id_] = values["verdict"] if completed else values["outcome"]
        self.done += usable
        if completed:
            self._overheads_s.append(values["overhead_s"])
        if usable:
            self.failures.pop(id_, None)
        else:
            self.failures[id_] = "; ".join(values["reasons"])
        trial = self.running.pop(id_, None)
        self._close(trial.traffic_s if trial else None)

    def _close(self, traffic_s: float | None) -> None:
        """Remove one open trial, one with this traffic time if there is one."""
        if traffic_s in self._open_traffic_s:
            self._open_traffic_s.remove(traffic_s)
        elif self._open_traffic_s:
            self._open_traffic_s.pop(0)

    def lines(self, now_s: float, width: int, height: int) -> Iterator[str]:
        """Show the campaign in `height` lines; only the grid of trials depends on the width."""
        yield self._headline()
        yield from (trial.line(now_s) for trial in self.running.values())
        failures = list(self.failures.items())[-FEW_FAILURES:]
        yield from (f"✗ {id_}: {' '.join(reason.split())}" for id_, reason in failures)
        if len(failures) < len(self.failures):
            yield f"  … and {len(self.failures) - len(failures)} more that failed"
        used = 1 + len(self.running) + len(failures)
        room = max(3, min(round(height * GRID_SHARE), height - used - 2))
        yield from grid_lines(grid_of(self._plan, self._states) if self._plan else {}, width, room)

    def _headline(self) -> str:
        parts = [f"{self.done} of {self.planned} trials done"]
        if self._open_traffic_s:
            parts.append(f"{clock(self.remaining_s)} remaining")
        return " · ".join(filter(None, [*parts, self.title]))


MESSAGES: Mapping[str, str] = {
    "lab-starting": "lab {testbed}: starting {hosts} hosts on the {kernel} kernel {release} …",
    "lab-ready": "lab {testbed}: ready after {seconds:.1f} s",
    "lab-stopped": "lab {testbed}: stopped",
    "campaign-created": "campaign {folder}",
    "campaign-resumed": "resuming campaign {folder}",
    "testbed-idle": "{testbed}: no trials left to run",
    "campaign-stopped": "✗ campaign stopped: {reason}",
    "lease-taken": "? {host}: taken over from {owner}: {reason}",
    "host-recovered": "{host}: restored to its state before {trial}, which was cut off",
    "host-rebooting": "{host}: rebooting",
    "host-power-cycled": "{host}: does not come back; power-cycled",
    "host-switched-on": "{host}: does not answer; switched on",
    "host-not-switched": "? {host}: power could not be switched: {reason}",
    "host-rebooted": "{host}: back after {seconds:.0f} s",
    "host-lost": "✗ {host}: lost: {reason}",
    "host-back": "✓ {host}: back after {seconds:.0f} s",
    "host-quarantined": "✗ {host}: quarantined: {reason}",
    "host-released": "✓ {host}: used again",
    "trial-again": "↻ {id}: attempt {attempt} of {of} follows",
    "warning": "? {text}",
}
"""The line that is printed for an event; `_message` has those that are more than a template."""


class EventDisplay:
    """Shows events to a person; any thread may send one. Each event is passed on to `also` first.

    Use it as a context manager, so that the terminal is left in order.
    """

    def __init__(
        self,
        to_stderr: bool = False,
        also: Emit = silent,
        console: Console | None = None,
        now: Callable[[], float] = time.time,
    ) -> None:
        self._console = console or Console(stderr=to_stderr)
        self._also, self._now = also, now
        self._lock = threading.RLock()
        self._campaign = CampaignProgress()
        bar = (BarColumn(24), TaskProgressColumn(markup=False), TimeRemainingColumn(compact=True))
        text = TextColumn("{task.description}", markup=False)
        self._bar = Progress(*bar, text, console=self._console)
        self._is_live = self._console.is_terminal and not self._console.is_dumb_terminal
        self._live = Live(
            get_renderable=self._draw,
            console=self._console,
            refresh_per_second=REDRAWS_PER_S,
            transient=True,
            vertical_overflow="crop",
        )

    def __enter__(self) -> EventDisplay:
        if self._is_live:
            self._live.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self._is_live:
            self._live.stop()

    def __call__(self, event: Event) -> None:
        """Show one event; an event without a message is ignored."""
        with self._lock:
            self._also(event)
            self._campaign.update(event, self._now())
            text = self._message(event)
        if text:  # outside the lock: drawing takes it while it holds the console's
            self.line(text)

    def expect(self, plan: Plan, state: CampaignState, overhead_s: float = ASSUMED_OVERHEAD_S) -> None:
        """Set the trials that events will be about, as CampaignProgress.expect does."""
        with self._lock:
            self._campaign.expect(plan, state, overhead_s)

    def line(self, text: str) -> None:
        """Print a line, with a time stamp if the output is not a live view."""
        now = datetime.fromtimestamp(self._now()).astimezone()
        stamp = "" if self._is_live else f"{now:%Y-%m-%d %H:%M:%S} "
        style = STYLES.get(text[:1], "") if self._is_live else ""
        self._console.print(
            f"{stamp}{harmless(text)}", style=style, highlight=False, markup=False, soft_wrap=True
        )

    def _draw(self) -> RenderableType:
        with self._lock:
            if self._bar.tasks:
                return self._bar.get_renderable()
            width, height = self._console.width - 1, self._console.height
            lines = list(self._campaign.lines(self._now(), width, height)) if self._campaign.planned else []
        return Group(*(styled(line) for line in lines))

    def _show_bar(self, label: str, done: int | None = None, total: int | None = None) -> None:
        task = self._bar.tasks[0].id if self._bar.tasks else self._bar.add_task("")
        self._bar.update(task, description=harmless(label), completed=done, total=total)

    def _message(self, event: Event) -> str:
        """Return the line of an event, empty if it has none; events of an analysis move the bar."""
        values: Any = event.values
        reasons = "; ".join(values.get("reasons", ()))
        match event.name:
            case "trials-open":
                duration = clock(self._campaign.remaining_s)
                return f"{values['open']} of {values['asked']} trials to run, about {duration}"
            case "trial-started" if not self._is_live:
                attempt = values.get("attempt", 1)
                testbed = f" on {values['testbed']}" if values.get("testbed") else ""
                again = f", attempt {attempt}" if attempt > 1 else ""
                return f"» {values['id']}: started{testbed}{again}"
            case "trial-finished":
                campaign = self._campaign
                state = values["verdict"] if values["outcome"] == "completed" else values["outcome"]
                times = f"{values['overhead_s']:.1f} s overhead, {clock(campaign.remaining_s)} remaining"
                count = f"{campaign.done}/{campaign.planned}".rjust(2 * len(str(campaign.planned)) + 1)
                why = f" ({reasons})" if reasons else ""
                return f"{SYMBOLS[state]} {count} {values['id']}: {state}, {times}{why}"
            case "trial-refused":
                return f"✗ {values['id']}: not started ({reasons})"
            case "path-measured":
                found = "; ".join([*values["missed"], *values["left_out"]]) or "as requested"
                return f"path of {values['trial']} measured in {values['seconds']:.1f} s: {found}"
            case "window-measured":
                by = f"{values['ratio']}/256 of the buffer" if values.get("ratio") else "that of the route"
                found = "; ".join(values["left_out"]) or f"the receive window is {by}"
                hosts = f"{values['host']} receiving from {values['sender']}"
                return f"{hosts}, measured in {values['seconds']:.1f} s: {found}"
            case "analysis-started":
                self._show_bar("analysis", 0, values["trials"])
                return f"analysis of {values['trials']} trials …"
            case "analysed":
                self._show_bar(f"analysis {values['trial']}", values["done"], values["of"])
            case "figures":
                self._show_bar(f"figures {values.get('figure', '')}")
            case "verifying":
                self._show_bar("verify", values["done"], values["of"])
        return MESSAGES.get(event.name, "").format_map(values)


def styled(line: str) -> Text:
    """Return a line in the colour of its first character; a terminal that is too narrow cuts it."""
    return Text(harmless(line), style=STYLES.get(line[:1], ""), no_wrap=True, overflow="ellipsis")


@contextmanager
def open_event_stream(where: str, now: Callable[[], float] = time.time) -> Iterator[Emit]:
    """Open a file that events are appended to as JSON, or standard output for `-`; nothing for an empty name.

    Raises CampaignError if it cannot be opened. A write error later ends the stream, not the campaign.
    """
    if not where:
        yield silent
        return
    try:
        out = open(os.dup(sys.stdout.fileno()) if where == "-" else where, "ab", buffering=0)  # noqa: SIM115
    except OSError as error:
        raise CampaignError(f"{where}: events cannot be written: {error.strerror}") from error
    with out:
        yield EventStream(out, now)


class EventStream:
    """Writes each event at once as a line of JSON; any thread may send one."""

    def __init__(self, out: FileIO, now: Callable[[], float]) -> None:
        self._out, self._now, self._lock, self._broken = out, now, threading.Lock(), False

    def __call__(self, event: Event) -> None:
        """Write one event."""
        record = {"schema": SCHEMA, "t_s": round(self._now(), 6), "event": event.name, **event.values}
        line = json.dumps(record, ensure_ascii=False, default=str).encode() + b"\n"
        with self._lock:
            try:
                while line and not self._broken:  # a raw file may accept a part of it
                    line = line[self._out.write(line) or 0 :]
            except OSError:
                self._broken = True  # the reader is gone or the disk is full: the campaign continues
