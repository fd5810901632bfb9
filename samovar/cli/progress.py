"""Show the progress of a campaign: a live view on a terminal, otherwise a line for each event."""

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
    place_text,
    remaining_s,
    trial_states,
)
from samovar.cli.text import harmless
from samovar.errors import CampaignError
from samovar.events import SCHEMA, Emit, Event, silent
from samovar.plan import Plan
from samovar.units import clock, format_rate

FEW_FAILURES = 4
REDRAWS_PER_S = 2.0
STYLES = {"✓": "green", "✗": "red", "!": "red", "?": "yellow", "»": "bold", "↻": "yellow"}
"""Maps the first symbol of a line to the style of the line."""


@dataclass
class RunningTrial:
    """A running trial: its phase and when this began, planned traffic time, and receive rate of each host."""

    id: str
    attempt: int
    testbed: str
    traffic_s: float
    since_s: float
    phase: str = "start"
    received_bps: Mapping[str, float] = field(default_factory=dict)

    def line(self, now_s: float) -> str:
        """Return the line that the live view shows for this trial."""
        of = f" of {clock(self.traffic_s)}" if self.phase == "traffic" else ""
        rates = [f"{format_rate(round(bps), 3)}/s into {host}" for host, bps in self.received_bps.items()]
        throughput = f" · {', '.join(rates)}" if rates else ""
        passed = f"{self.phase} {clock(now_s - self.since_s)}"
        return f"» {self.id}{place_text(self.testbed, self.attempt)}: {passed}{of}{throughput}"


class CampaignProgress:
    """The state of a running campaign, which is updated with each event."""

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
        """Set the run's trials, their states, and the overhead to assume until one is measured."""
        self._assumed_overhead_s = overhead_s
        self._plan, self._states = plan, trial_states(plan, state)
        self.title = f"{plan.experiment} ({plan.profile or 'full'}) on {plan.testbed}"

    @property
    def remaining_s(self) -> float:
        """The estimated seconds until all trials are done, from the mean overhead of the trials so far."""
        testbeds = self.testbeds - len(self._idle)
        return remaining_s(self._open_traffic_s, self._overheads_s, testbeds, self._assumed_overhead_s)

    def update(self, event: Event, now_s: float) -> None:
        """Update the state from an event. Events that do not concern progress are ignored."""
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
                self._close(self.running.pop(id_, None))
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

    def _close(self, trial: RunningTrial | None) -> None:
        """Remove the traffic time of an ended trial from the times of the trials that are still to run.

        If the trial was not started, its traffic time is not known, and the first time in the list is
        removed.
        """
        times_s = self._open_traffic_s
        if times_s:
            times_s.remove(trial.traffic_s if trial and trial.traffic_s in times_s else times_s[0])

    def lines(self, now_s: float, width: int, height: int) -> Iterator[str]:
        """Yield at most `height` lines of the live view.

        `width` is used only for the grid of trials.
        """
        remaining = f"{clock(self.remaining_s)} remaining" if self._open_traffic_s else ""
        done = f"{self.done} of {self.planned} trials done"
        yield " · ".join(filter(None, (done, remaining, self.title)))
        yield from (trial.line(now_s) for trial in self.running.values())
        failures = list(self.failures.items())[-FEW_FAILURES:]
        yield from (f"✗ {id_}: {' '.join(reason.split())}" for id_, reason in failures)
        if len(failures) < len(self.failures):
            yield f"  … and {len(self.failures) - len(failures)} more that failed"
        room = max(3, height - 3 - len(self.running) - len(failures))
        yield from grid_lines(grid_of(self._plan, self._states) if self._plan else {}, width, room)


MESSAGES: Mapping[str, str] = {
    "lab-starting": "lab {testbed}: starting {hosts} hosts on the {kernel} kernel {release} …",
    "lab-machines": "lab {testbed}: {machines} virtual machines ({accelerator}) with {cpus} processors "
    "take {memory} of memory and about {boot} to boot",
    "lab-ready": "lab {testbed}: ready after {seconds:.1f} s",
    "lab-stopped": "lab {testbed}: stopped",
    "campaign-created": "campaign {folder}",
    "campaign-resumed": "resuming campaign {folder}",
    "trials-open": "{open} of {asked} trials to run, about {remaining}",
    "trial-started": "» {id}: started{place}",
    "trial-finished": "{symbol} {count} {id}: {state}, {times}{why}",
    "trial-refused": "✗ {id}: not started{why}",
    "path-measured": "path of {trial} measured in {seconds:.1f} s: {found}",
    "window-measured": "window of {host} towards {sender} measured in {seconds:.1f} s: {found}",
    "compiling": "compiling {text} into {folder}, once for this version …",
    "analysis-started": "analysis of {trials} trials …",
    "testbed-idle": "{testbed}: no trials left to run",
    "campaign-stopped": "✗ campaign stopped: {reason}",
    "lease-taken": "? {host}: taken over from {owner}: {reason}",
    "host-recovered": "{host}: restored to its state before {trial}, which was cut off",
    "host-rebooting": "{host}: rebooting",
    "host-power-cycled": "{host}: does not come back; cycling its power",
    "host-switched-on": "{host}: does not answer; switching it on",
    "host-not-switched": "? {host}: power could not be switched: {reason}",
    "host-rebooted": "{host}: back after {seconds:.0f} s",
    "kernel-changed": "? {host}: runs {kernel_now}, but this campaign's {completed} complete trials ran on "
    "{kernel_before}; `--new` measures everything again",
    "host-lost": "✗ {host}: lost: {reason}",
    "host-back": "✓ {host}: back after {seconds:.0f} s",
    "host-quarantined": "✗ {host}: quarantined: {reason}",
    "host-released": "✓ {host}: used again",
    "trial-again": "↻ {id}: attempt {attempt} of {of} follows",
    "warning": "? {text}",
}
"""The line that is printed for an event. Placeholders are values of the event, or added by `_message`."""
BARS: Mapping[str, str] = {
    "analysis-started": "analysis",
    "analysed": "analysis {trial}",
    "figures": "figures {figure}",
    "verifying": "verify",
    "exported": "export {file}",
}
"""The label of the progress bar, for each event that moves the bar."""


class EventDisplay:
    """Shows events to the user. Any thread may send events.

    Each event is first passed on to `also`. The display must be used as a context manager, so that it
    restores the terminal. `campaign.expect()` must be called before the first event about a trial.
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
        self.campaign = CampaignProgress()
        bar = (BarColumn(24), TaskProgressColumn(), TimeRemainingColumn(compact=True))
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
        """Pass an event on, update the display, and print the event's message if it has one."""
        with self._lock:
            self._also(event)
            self.campaign.update(event, self._now())
            if event.name in BARS:
                self._move_bar(event)
            text = self._message(event)
        if text:  # not under the lock: drawing takes it while it holds the console's lock
            self.line(text)

    def line(self, text: str) -> None:
        """Print a line, with a time stamp in front unless a live view is shown."""
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
            lines = list(self.campaign.lines(self._now(), width, height)) if self.campaign.planned else []
        return Group(*(styled(line) for line in lines))

    def _move_bar(self, event: Event) -> None:
        task = self._bar.tasks[0].id if self._bar.tasks else self._bar.add_task("")
        values: Any = {"figure": "", **event.values}
        label, total = BARS[event.name].format_map(values), values.get("of", values.get("trials"))
        self._bar.update(task, description=harmless(label), completed=values.get("done"), total=total)

    def _message(self, event: Event) -> str:
        """Return the line to print for an event; empty if nothing is printed for it."""
        values: Any = event.values
        campaign, reasons = self.campaign, "; ".join(values.get("reasons", ()))
        added = {
            "remaining": clock(campaign.remaining_s),
            "why": f" ({reasons})" if reasons else "",
            "place": place_text(values.get("testbed", ""), values.get("attempt", 1)),
        }
        match event.name:
            case "lab-machines":
                added |= {
                    "memory": f"{values['memory_bytes'] / 1e9:.1f} GB",
                    "boot": clock(values["seconds"]),
                }
            case "trial-started" if self._is_live:
                return ""
            case "trial-finished":
                state = values["verdict"] if values["outcome"] == "completed" else values["outcome"]
                count = f"{campaign.done}/{campaign.planned}".rjust(2 * len(str(campaign.planned)) + 1)
                times = f"{values['overhead_s']:.1f} s overhead, {added['remaining']} remaining"
                added |= {"state": state, "symbol": SYMBOLS[state], "count": count, "times": times}
            case "path-measured":
                added["found"] = "; ".join([*values["missed"], *values["left_out"]]) or "as requested"
            case "window-measured":
                by = f"{values['ratio']}/256 of the buffer" if values.get("ratio") else "set by the route"
                added["found"] = "; ".join(values["left_out"]) or by
        return MESSAGES.get(event.name, "").format_map({**values, **added})


def styled(line: str) -> Text:
    """Return a line in the style that its first character selects, cut off at the width of the terminal."""
    return Text(harmless(line), style=STYLES.get(line[:1], ""), no_wrap=True, overflow="ellipsis")


@contextmanager
def open_event_stream(where: str, now: Callable[[], float] = time.time) -> Iterator[Emit]:
    """Yield a function that appends events to a file as JSON; `-` is standard output.

    If `where` is empty, the function does nothing. Events are written without buffering. Raises CampaignError
    if the file cannot be opened. A later write error ends the stream, but not the campaign. Only one thread
    at a time may call the function; EventDisplay takes care of this.
    """
    if not where:
        yield silent
        return
    try:
        out = open(os.dup(sys.stdout.fileno()) if where == "-" else where, "ab", buffering=0)  # noqa: SIM115
    except OSError as error:
        raise CampaignError(f"{where}: events cannot be written: {error.strerror}") from error
    broken = False

    def write(event: Event) -> None:
        nonlocal broken
        record = {"schema": SCHEMA, "t_s": round(now(), 6), "event": event.name, **event.values}
        line = json.dumps(record, ensure_ascii=False, default=str).encode() + b"\n"
        try:
            while line and not broken:  # an unbuffered file may accept only a part of the line
                line = line[out.write(line) or 0 :]
        except OSError:
            broken = True  # the reader is gone or the disk is full: the campaign continues

    with out:
        yield write
