"""Find a campaign in a results folder by name, and measure how long steps took in recent campaigns."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import islice
from math import inf
from pathlib import Path
from statistics import median

from samovar.campaign.folder import LATEST, PLAN, read_plan, testbeds_in
from samovar.campaign.journal import NAME as JOURNAL
from samovar.campaign.journal import fold, is_open, read_journal
from samovar.errors import CampaignError
from samovar.plan import MeasuredTimes, Repeats, StepTime

TRAFFIC = "traffic"
LATEST_CAMPAIGNS, CANDIDATES = 4, 24
"""Durations are taken from the latest 4 campaigns on a testbed. They are searched for among the latest 24
campaigns on all testbeds."""


@dataclass(frozen=True)
class Archive:
    """The campaigns in the folder `results`."""

    results: Path

    def measured_times(self, testbed: str) -> MeasuredTimes:
        """Return median overhead, reboot time and path calibration time in recent campaigns on a testbed.

        Older campaigns are ignored, because they may have been run with other versions of samovar.
        """
        found = _Durations()
        for plan in islice(self._plans_on(testbed), LATEST_CAMPAIGNS):
            found.add(plan.parent, testbed)

        steps = {"overhead": found.overheads_s, "boot": found.boots_s, "path": found.paths_s}
        return MeasuredTimes(
            **{step: StepTime(median(times), len(times)) for step, times in steps.items() if times},
            repeats=Repeats(len(found.lost_s), len(found.done_s), sum(found.lost_s), sum(found.done_s)),
        )

    def _plans_on(self, testbed: str) -> Iterator[Path]:
        """Yield the plan.json of each recent campaign that used a testbed and has a journal, latest first."""
        for plan in islice(reversed(self.plans()), CANDIDATES):
            if testbed in testbeds_in(plan.parent) and plan.with_name(JOURNAL).is_file():
                yield plan

    def plans(self) -> list[Path]:
        """Return the plan files of all campaigns, the most recently used campaign last."""

        def last_change_s(plan: Path) -> float:
            journal = plan.with_name(JOURNAL)
            return max(file.stat().st_mtime for file in (plan, journal) if file.exists())

        # resolve() makes the path through a link `latest` equal to the campaign's own path.
        return sorted({plan.resolve() for plan in self.results.glob(f"*/*/{PLAN}")}, key=last_change_s)

    def find(self, name: str) -> Path:
        """Return the folder of the campaign that `name` means, or of the latest campaign if `name` is empty.

        `name` is a path, EXPERIMENT/CAMPAIGN, or EXPERIMENT for its latest campaign. Raises CampaignError,
        which lists the known campaigns, if there is no such campaign.
        """
        home = self.results / name
        for place in [Path(name), home, home / LATEST] if name else []:
            if (place / PLAN).is_file():
                return place.resolve()
        plans = self.plans()
        if name or not plans:
            known = sorted({f"{plan.parent.parent.name}/{plan.parent.name}" for plan in plans})
            listed = ", ".join(known[-8:]) or "none yet; `fab run EXPERIMENT` makes one"
            wanted = f"no campaign {name!r}" if name else "no campaign"
            raise CampaignError(f"{wanted} in {self.results}; known: {listed}")
        return plans[-1].parent


@dataclass
class _Durations:
    """Durations in seconds from the journals of campaigns.

    `overheads_s` has the overhead of each completed trial, `boots_s` the duration of each reboot, and
    `paths_s` the duration of each path calibration. For trials that are not open any more, `done_s` has the
    duration of the last attempt, and `lost_s` the durations of the attempts before it.
    """

    overheads_s: list[float] = field(default_factory=list)
    boots_s: list[float] = field(default_factory=list)
    paths_s: list[float] = field(default_factory=list)
    lost_s: list[float] = field(default_factory=list)
    done_s: list[float] = field(default_factory=list)

    def add(self, folder: Path, testbed: str) -> None:
        """Add the durations on a testbed from a campaign's journal.

        The time by which traffic exceeds its planned duration counts as overhead.
        """
        entries = read_journal(folder / JOURNAL)
        planned_s = {trial.id: trial.resolved.duration_s for trial in read_plan(folder).trials}
        trials = {id_: one for id_, one in fold(entries).trials.items() if one.testbed in ("", testbed)}
        self.overheads_s += [
            one.overhead_s + max(0.0, one.phases.get(TRAFFIC, 0.0) - planned_s.get(id_, inf))
            for id_, one in trials.items()
            if one.status == "completed" and one.overhead_s is not None
        ]
        started_s: dict[str, float] = {}
        attempts_s: dict[str, list[float]] = {id_: [] for id_, one in trials.items() if not is_open(one)}
        for entry in entries:
            values, id_ = entry.values, str(entry.values.get("id"))
            if entry.event == "host-rebooted" and values.get("testbed", testbed) == testbed:
                self.boots_s.append(values["seconds"])
            elif entry.event == "path-measured" and values["trial"] in trials:
                self.paths_s.append(values["seconds"])
            elif entry.event == "trial-started":
                started_s[id_] = entry.t_s
            elif entry.event == "trial-finished" and id_ in started_s:
                attempts_s.get(id_, []).append(entry.t_s - started_s.pop(id_))
        for *lost_s, last_s in filter(None, attempts_s.values()):
            self.lost_s += lost_s
            self.done_s.append(last_s)
