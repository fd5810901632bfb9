"""All campaigns of a results folder: found by name, and asked what trials cost before."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import astuple, dataclass
from itertools import islice
from math import inf
from pathlib import Path
from statistics import median
from typing import NamedTuple

from samovar.campaign.folder import LATEST, PLAN, read_head, read_plan, testbeds_of
from samovar.campaign.journal import NAME as JOURNAL
from samovar.campaign.journal import Entry, fold, is_open, read_journal
from samovar.errors import CampaignError
from samovar.plan import ASSUMED_BOOT, ASSUMED_PATH, MeasuredTimes, Overhead, Repeats, StepTime

TRAFFIC = "traffic"
LATEST_CAMPAIGNS, LOOKED_AT = 4, 24
"""So many campaigns of a testbed tell what a trial costs, of the latest of any: older ones ran other code."""


@dataclass(frozen=True)
class Archive:
    """The campaigns below one folder."""

    results: Path

    def known(self, testbed: str) -> MeasuredTimes:
        """Tell what trials took beyond traffic on a testbed, reboots, paths: medians of late campaigns."""
        times = [_times(plan.parent, testbed) for plan in islice(self._on(testbed), LATEST_CAMPAIGNS)]
        overheads, boots, paths = ([one for each in column for one in each] for column in _columns(times))
        return MeasuredTimes(
            Overhead(median(overheads), len(overheads)) if overheads else Overhead(),
            StepTime(median(boots), len(boots)) if boots else ASSUMED_BOOT,
            StepTime(median(paths), len(paths)) if paths else ASSUMED_PATH,
            Repeats(*(sum(column) for column in zip(*(astuple(one.repeats) for one in times), strict=True))),
        )

    def _on(self, testbed: str) -> Iterator[Path]:
        """Yield the plans of late campaigns that used a testbed and have begun, the latest first."""
        for plan in islice(reversed(self.plans()), LOOKED_AT):
            named = testbeds_of(str(read_head(plan).get("testbed")))
            if testbed in named and plan.with_name(JOURNAL).is_file():
                yield plan

    def plans(self) -> list[Path]:
        """Return the plans of all campaigns, the one worked on last at the end; `latest` links count once."""
        found = {plan.resolve() for plan in self.results.glob(f"*/*/{PLAN}")}
        return sorted(found, key=_last_touched_s)

    def find(self, name: str) -> Path:
        """Find a campaign: by path, as experiment/campaign, by experiment, or the latest.

        Raises CampaignError that names the ones there are.
        """
        home = self.results / name
        places = [Path(name), home, home / LATEST] if name else []
        for place in places:
            if (place / PLAN).is_file():
                return place.resolve()
        plans = self.plans()
        if name or not plans:
            known = sorted({f"{plan.parent.parent.name}/{plan.parent.name}" for plan in plans})
            listed = ", ".join(known[-8:]) or "none yet; `fab run EXPERIMENT` makes one"
            sought = f"no campaign {name!r}" if name else "no campaign"
            raise CampaignError(f"{sought} in {self.results}; known: {listed}")
        return plans[-1].parent


class _Times(NamedTuple):
    """What a campaign's journal tells: seconds of trials beyond traffic, of reboots, of measured paths."""

    overheads: list[float]
    boots: list[float]
    paths: list[float]
    repeats: Repeats


def _columns(times: Sequence[_Times]) -> Iterator[list[list[float]]]:
    yield from ([one.overheads for one in times], [one.boots for one in times], [one.paths for one in times])


def _times(folder: Path, testbed: str) -> _Times:
    """Collect what a campaign's journal tells of one of its testbeds.

    Traffic that took longer than planned counts as beyond it: programs start and end.
    """
    entries, planned_s = read_journal(folder / JOURNAL), read_plan(folder).durations_s()
    trials = {id_: one for id_, one in fold(entries).trials.items() if one.testbed in ("", testbed)}
    overheads = [
        one.overhead_s + max(0.0, one.phases.get(TRAFFIC, 0.0) - planned_s.get(id_, inf))
        for id_, one in trials.items()
        if one.status == "completed" and one.overhead_s is not None
    ]
    told = [
        (entry.event, entry.values) for entry in entries if entry.event in ("host-rebooted", "path-measured")
    ]
    boots = [one["seconds"] for event, one in told if event == "host-rebooted" and _at(one["host"], testbed)]
    paths = [one["seconds"] for event, one in told if event == "path-measured" and one["trial"] in trials]
    done = [id_ for id_, one in trials.items() if not is_open(one)]
    return _Times(overheads, boots, paths, _repeats(entries, done))


def _repeats(entries: Sequence[Entry], done: Collection[str]) -> Repeats:
    """Tell how many attempts at trials that are done there were, and how long: the last of each counts."""
    begun_s: dict[str, float] = {}
    took_s: dict[str, list[float]] = {id_: [] for id_ in done}
    for entry in entries:
        id_ = str(entry.values.get("id"))
        if entry.event == "trial-started":
            begun_s[id_] = entry.t_s
        elif entry.event == "trial-finished" and id_ in begun_s:
            took_s.get(id_, []).append(entry.t_s - begun_s.pop(id_))
    attempts = [one for one in took_s.values() if one]
    lost_s = [seconds for one in attempts for seconds in one[:-1]]
    return Repeats(len(lost_s), len(attempts), sum(lost_s), sum(one[-1] for one in attempts))


def _at(host: str, testbed: str) -> bool:
    """Tell whether a host as journals name it, HOST or HOST@TESTBED, is one of a testbed."""
    return host.partition("@")[2] in ("", testbed)


def _last_touched_s(plan: Path) -> float:
    journal = plan.with_name(JOURNAL)
    return max(file.stat().st_mtime for file in (plan, journal) if file.exists())
