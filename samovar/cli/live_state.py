"""What is known of a campaign that runs, from its events alone: values in, lines of text out."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from statistics import fmean
from typing import Any

from samovar.campaign.journal import CampaignState
from samovar.cli.trial_grid import FAILED, RUNNING, Row, matrix_lines, rows_of, words_of
from samovar.cli.wording import clock
from samovar.errors import cells
from samovar.events import Event
from samovar.plan import Plan
from samovar.plan.cost import shared_out_s
from samovar.units import format_rate

FIRST_GUESS_S = 3.0
"""What a trial costs beyond its traffic, where nothing is known of that."""
FEW_FAILURES = 4
MATRIX_SHARE = 0.6


def left_s(open_s: Collection[float], beyond_s: float, testbeds: int) -> float:
    """Return in seconds how long open trials take on so many testbeds at once: none is faster than one trial.

    `open_s` is the traffic of each, `beyond_s` what a trial takes besides.
    """
    if not open_s:
        return 0.0
    work_s = sum(open_s) + len(open_s) * beyond_s
    return shared_out_s(work_s, len(open_s), testbeds, max(open_s) + beyond_s)


@dataclass
class Running:
    """A trial that runs: its phase and since when, what its traffic takes, what flows just now, by host."""

    id: str
    attempt: int = 1
    testbed: str = ""
    traffic_s: float = 0.0
    phase: str = ""
    since_s: float = 0.0
    rates_bps: Mapping[str, float] = field(default_factory=dict)

    def left_s(self, now_s: float) -> float:
        """Seconds of traffic that are left of it."""
        if self.phase in AFTER_TRAFFIC:
            return 0.0
        passed_s = now_s - self.since_s if self.phase == "traffic" else 0.0
        return max(0.0, self.traffic_s - passed_s)


AFTER_TRAFFIC = frozenset({"restore", "stop", "collect", "judge", "clear"})


class Board:
    """The state of a campaign as its events tell it."""

    def __init__(self) -> None:
        self.title = ""
        self.asked = self.testbeds = 0
        self.done = 0
        self.running: dict[str, Running] = {}
        self.failures: dict[str, str] = {}
        self.ended = self.failed = 0
        self._plan: Plan | None = None
        self._words: dict[str, str] = {}
        self._open_s: list[float] = []
        self._overheads_s: list[float] = []
        self._beyond_s = FIRST_GUESS_S
        self._idle: set[str] = set()

    def take(self, plan: Plan, state: CampaignState, beyond_s: float = FIRST_GUESS_S) -> None:
        """Take what the trials are, how they stood, and what one is thought to take beyond its traffic."""
        self._beyond_s = beyond_s
        self._plan, self._words = plan, words_of(plan, state)
        self.title = f"{plan.experiment} ({plan.profile or 'full'}) on {plan.testbed}"

    def rows(self) -> list[Row]:
        """The trials in rows."""
        return rows_of(self._plan, self._words) if self._plan else []

    @property
    def left_s(self) -> float:
        """Seconds until all is done: planned traffic and the measured rest, shared out over the testbeds."""
        known = fmean(self._overheads_s) if self._overheads_s else self._beyond_s
        return left_s(self._open_s, known, self.testbeds - len(self._idle))

    def hear(self, event: Event, now_s: float) -> None:
        """Take in an event; one that changes nothing here is passed over."""
        heard = _HEARD.get(event.name)
        if heard:
            heard(self, event.values, now_s)

    def _trials_open(self, values: Any, now_s: float) -> None:
        self.asked, self.done = int(values["asked"]), int(values["asked"]) - int(values["open"])
        self._open_s, self.testbeds = list(values["seconds"]), int(values.get("testbeds", 1))

    def _testbed_idle(self, values: Any, now_s: float) -> None:
        self._idle.add(str(values["testbed"]))

    def _trial_started(self, values: Any, now_s: float) -> None:
        id_ = str(values["id"])
        traffic_s = float(values.get("seconds", 0.0))
        attempt, testbed = int(values.get("attempt", 1)), str(values.get("testbed", ""))
        self.running[id_] = Running(id_, attempt, testbed, traffic_s, "start", now_s)
        self._words[id_] = RUNNING

    def _phase(self, values: Any, now_s: float) -> None:
        running = self.running.get(str(values["id"]))
        if running:
            running.phase, running.since_s, running.rates_bps = str(values["phase"]), now_s, {}

    def _throughput(self, values: Any, now_s: float) -> None:
        running = self.running.get(str(values["id"]))
        if running:
            running.rates_bps = values["received_bps"]

    def _trial_finished(self, values: Any, now_s: float) -> None:
        running = self.running.pop(str(values["id"]), None)
        self.ended += 1
        completed = values["outcome"] == "completed"
        good = completed and values["verdict"] != "invalid"
        self._words[str(values["id"])] = str(values["verdict"]) if completed else str(values["outcome"])
        self.done += good
        self.failed += not good
        if completed:
            self._overheads_s.append(float(values["overhead_s"]))
        if good:
            self.failures.pop(str(values["id"]), None)
        else:
            self.failures[str(values["id"])] = "; ".join(values["reasons"])
        self._close(running.traffic_s if running else None)

    def _trial_again(self, values: Any, now_s: float) -> None:
        self._open_s.append(float(values["seconds"]))

    def _trial_refused(self, values: Any, now_s: float) -> None:
        self._words[str(values["id"])] = FAILED
        self.failures[str(values["id"])] = "; ".join(values["reasons"])
        self._close(None)

    def _close(self, traffic_s: float | None) -> None:
        """Take a trial of that length as no longer open; without one, any."""
        if traffic_s in self._open_s:
            self._open_s.remove(traffic_s)
        elif self._open_s:
            self._open_s.pop(0)

    def lines(self, now_s: float, width: int, height: int) -> Iterator[str]:
        """Show all of it in so many columns and lines."""
        yield _fit(self._head(), width)
        for running in self.running.values():
            yield _fit(_running_line(running, now_s), width)
        failures = list(self.failures.items())[-FEW_FAILURES:]
        for id_, why in failures:
            yield _fit(f"✗ {id_}: {' '.join(why.split())}", width)
        if len(failures) < len(self.failures):
            yield _fit(f"  … and {len(self.failures) - len(failures)} more that failed", width)
        used = 1 + len(self.running) + len(failures)
        room = max(3, min(round(height * MATRIX_SHARE), height - used - 2))
        yield from (_fit(line, width) for line in matrix_lines(self.rows(), width, room))

    def _head(self) -> str:
        parts = [f"{self.done} of {self.asked} trials done"]
        if self.failed:
            parts.append(f"{self.failed} of {self.ended} attempts failed ({self.failed / self.ended:.0%})")
        if self._open_s:
            parts.append(f"{self.left_s / 3600:.1f} h left, ETA {clock(self.left_s)}")
        return " · ".join(filter(None, [*parts, self.title]))


def _running_line(running: Running, now_s: float) -> str:
    where = f" on {running.testbed}" if running.testbed else ""
    again = f", attempt {running.attempt}" if running.attempt > 1 else ""
    since = f"{running.phase} {clock(now_s - running.since_s)}"
    left = f", traffic left {clock(running.left_s(now_s))}" if running.left_s(now_s) else ""
    rates = ", ".join(
        f"{format_rate(round(bps), 3)}/s into {host}" for host, bps in running.rates_bps.items()
    )
    return f"» {running.id}{where}{again}: {since}{left}{f' · {rates}' if rates else ''}"


def _fit(line: str, width: int) -> str:
    """Cut a line to the cells of a terminal."""
    while cells(line) > width:
        line = f"{line[: min(len(line) - 2, width - 1)]}…"
    return line


_HEARD = {
    "trials-open": Board._trials_open,
    "testbed-idle": Board._testbed_idle,
    "trial-started": Board._trial_started,
    "phase": Board._phase,
    "throughput": Board._throughput,
    "trial-finished": Board._trial_finished,
    "trial-again": Board._trial_again,
    "trial-refused": Board._trial_refused,
}
