"""Progress of a campaign: a live view on a terminal, a plain line with its time per event elsewhere."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Any

from rich.console import Console
from rich.live import Live
from rich.text import Text

from samovar.campaign.journal import CampaignState
from samovar.cli.live_state import FIRST_GUESS_S, Board
from samovar.cli.trial_grid import GLYPHS
from samovar.cli.wording import clock, harmless, meter
from samovar.events import Emit, Event, silent
from samovar.plan import Plan

REDRAWS_PER_S = 2.0
STYLES = {"✓": "green", "✗": "red", "!": "red", "?": "yellow", "»": "bold", "↻": "yellow"}
"""Colours only repeat what the first character of a line says already."""


class Show:
    """Takes events and shows them; use as a context manager so that the terminal is left tidy.

    Every event is passed on to `also` first. Any thread may tell of one.
    """

    def __init__(self, console: Console, also: Emit = silent, now: Callable[[], float] = time.time) -> None:
        self._console, self._also, self._now = console, also, now
        self._lock = threading.RLock()
        self._board = Board()
        self._meter: tuple[str, int, int, float] | None = None
        self._is_live = console.is_terminal and not console.is_dumb_terminal
        self._live = Live(
            get_renderable=self._drawn,
            console=console,
            refresh_per_second=REDRAWS_PER_S,
            transient=True,
            vertical_overflow="crop",
        )

    def __enter__(self) -> Show:
        if self._is_live:
            self._live.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self._is_live:
            self._live.stop()

    def __call__(self, event: Event) -> None:
        """Show one event; an event that nobody has a line for is passed over."""
        with self._lock:
            self._also(event)
            self._board.hear(event, self._now())
            handler = getattr(self, "_on_" + event.name.replace("-", "_"), None)
            text: str | None = handler(event.values) if handler else None
        if text is not None:  # not under the lock: drawing takes it while it holds the console's
            self.line(text)

    def take(self, plan: Plan, state: CampaignState, beyond_s: float = FIRST_GUESS_S) -> None:
        """Take what trials events will tell of, how they stand, and what each takes beyond its traffic."""
        with self._lock:
            self._board.take(plan, state, beyond_s)

    def line(self, text: str) -> None:
        """Show a line of its own, with its time where it may be read later."""
        stamp = "" if self._is_live else f"{_moment(self._now())} "
        style = STYLES.get(text[:1], "") if self._is_live else ""
        shown = f"{stamp}{harmless(text)}"
        self._console.print(shown, style=style, highlight=False, markup=False, soft_wrap=True)

    def _drawn(self) -> Text:
        with self._lock:
            lines = [harmless(line) for line in self._lines(self._console.width, self._console.height)]
        return Text("\n").join(Text(line, style=STYLES.get(line[:1], ""), no_wrap=True) for line in lines)

    def _lines(self, width: int, height: int) -> Sequence[str]:
        if self._meter:
            label, done, of, since_s = self._meter
            return [meter(label, done, of, self._now() - since_s, width)]
        if not self._board.asked:
            return []
        return list(self._board.lines(self._now(), width - 1, height))

    def _measure(self, label: str, done: int, of: int) -> None:
        since_s = self._meter[3] if self._meter else self._now()
        self._meter = (label, done, of, since_s)

    def _on_lab_starting(self, values: Any) -> str:
        kernel = f"{values['kernel']} kernel {values['release']}"
        return f"lab {values['testbed']}: {values['hosts']} hosts on the {kernel} …"

    def _on_lab_ready(self, values: Any) -> str:
        return f"lab {values['testbed']}: ready after {values['seconds']:.1f} s"

    def _on_lab_stopped(self, values: Any) -> str:
        return f"lab {values['testbed']}: stopped"

    def _on_campaign_created(self, values: Any) -> str:
        return f"campaign {values['folder']}"

    def _on_campaign_resumed(self, values: Any) -> str:
        return f"campaign {values['folder']} goes on"

    def _on_testbed_idle(self, values: Any) -> str:
        return f"{values['testbed']}: no trial left that it could run"

    def _on_campaign_stopped(self, values: Any) -> str:
        return f"✗ campaign stopped: {values['reason']}"

    def _on_lease_taken(self, values: Any) -> str:
        return f"? {values['host']}: taken over from {values['owner']}: {values['reason']}"

    def _on_host_recovered(self, values: Any) -> str:
        return f"{values['host']}: put back as it was before {values['trial']}, which had been cut off"

    def _on_host_rebooting(self, values: Any) -> str:
        return f"{values['host']}: reboots"

    def _on_host_power_cycled(self, values: Any) -> str:
        return f"{values['host']}: does not come back; its power is switched"

    def _on_host_switched_on(self, values: Any) -> str:
        return f"{values['host']}: does not answer; it is switched on"

    def _on_host_not_switched(self, values: Any) -> str:
        return f"? {values['host']}: could not be switched: {values['reason']}"

    def _on_host_rebooted(self, values: Any) -> str:
        return f"{values['host']}: is back after {values['seconds']:.0f} s"

    def _on_host_lost(self, values: Any) -> str:
        return f"✗ {values['host']}: lost: {values['reason']}"

    def _on_host_back(self, values: Any) -> str:
        return f"✓ {values['host']}: is back after {values['seconds']:.0f} s"

    def _on_host_quarantined(self, values: Any) -> str:
        return f"✗ {values['host']}: not used any more: {values['reason']}"

    def _on_host_released(self, values: Any) -> str:
        return f"✓ {values['host']}: used again"

    def _on_warning(self, values: Any) -> str:
        return f"? {values['text']}"

    def _on_trials_open(self, values: Any) -> str:
        left = clock(self._board.left_s)
        return f"{values['open']} of {values['asked']} trials to run, about {left}"

    def _on_trial_started(self, values: Any) -> str | None:
        attempt = int(values.get("attempt", 1))
        again = f", attempt {attempt}" if attempt > 1 else ""
        where = f" on {values['testbed']}" if values.get("testbed") else ""
        return None if self._is_live else f"» {values['id']}: begins{where}{again}"

    def _on_trial_finished(self, values: Any) -> str:
        state = values["outcome"] if values["outcome"] != "completed" else values["verdict"]
        why = f" ({'; '.join(values['reasons'])})" if values["reasons"] else ""
        board = self._board
        cost = f"{values['overhead_s']:.1f} s beyond traffic, ETA {clock(board.left_s)}"
        count = f"{board.done}/{board.asked}".rjust(2 * len(str(board.asked)) + 1)
        return f"{GLYPHS.get(state, '·')} {count} {values['id']}: {state}, {cost}{why}"

    def _on_path_measured(self, values: Any) -> str:
        found = "; ".join([*values["missed"], *values["left_out"]]) or "as asked for"
        return f"path of {values['trial']} measured in {values['seconds']:.1f} s: {found}"

    def _on_window_measured(self, values: Any) -> str:
        by = f"{values['ratio']}/256 of its buffer" if values.get("ratio") else "its route's"
        found = "; ".join(values["left_out"]) or f"window is {by}"
        way = f"{values['host']} receiving from {values['sender']}"
        return f"{way}, probed in {values['seconds']:.1f} s: {found}"

    def _on_trial_again(self, values: Any) -> str:
        return f"↻ {values['id']}: again, attempt {values['attempt']} of {values['of']}"

    def _on_trial_refused(self, values: Any) -> str:
        return f"✗ {values['id']}: not started ({'; '.join(values['reasons'])})"

    def _on_analysis_started(self, values: Any) -> str:
        self._meter = None
        self._measure("analysis", 0, int(values["trials"]))
        return f"analysis of {values['trials']} trials …"

    def _on_analysed(self, values: Any) -> None:
        self._measure(f"analysis {values['trial']}", int(values["done"]), int(values["of"]))

    def _on_figures(self, values: Any) -> None:
        if self._meter:
            self._measure(f"figures {values.get('figure', '')}", self._meter[1], self._meter[2])

    def _on_verifying(self, values: Any) -> None:
        self._measure("verify", int(values["done"]), int(values["of"]))


def _moment(now_s: float) -> str:
    return datetime.fromtimestamp(now_s).astimezone().strftime("%Y-%m-%d %H:%M:%S")
