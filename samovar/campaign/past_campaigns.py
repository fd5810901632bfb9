"""Find a campaign in a results folder by name, and measure how long steps took in recent campaigns."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from contextlib import suppress
from itertools import islice
from math import inf
from pathlib import Path
from statistics import median

from samovar.campaign.folder import LATEST, PLAN, read_json, read_plan, shard_of, testbeds_in, testbeds_of
from samovar.campaign.journal import JOURNAL, STARTS, fold, is_open, read_journal
from samovar.campaign.provenance_json import PROVENANCE
from samovar.errors import CampaignError, SamovarError
from samovar.plan import MeasuredTimes, Plan, Repeats, StepTime, assumed_overhead

TRAFFIC = "traffic"
LATEST_CAMPAIGNS, CANDIDATES = 4, 24
"""Durations are taken from the latest 4 campaigns on a testbed, as far as they are among the latest 24 of all
campaigns."""


def find_campaign(results: Path, name: str) -> Path:
    """Return the folder of the campaign that `name` means, or of the latest campaign if `name` is empty.

    `name` is a path, EXPERIMENT/CAMPAIGN, or EXPERIMENT for its latest campaign. Raises CampaignError with a
    list of the known campaigns if none has this name.
    """
    home = results / name
    for place in [Path(name), home, home / LATEST] if name else []:
        if (place / PLAN).is_file():
            return place.resolve()
    campaigns = campaigns_in(results)
    for folder in campaigns:
        # Copies of results can lack the link `latest`.
        if not name or (folder.parent.name == name and not shard_of(folder)):
            return folder
    known = sorted({f"{folder.parent.name}/{folder.name}" for folder in campaigns})
    listed = ", ".join(known[-8:]) or "none yet; `fab run EXPERIMENT` makes one"
    wanted = f"no campaign {name!r}" if name else "no campaign"
    raise CampaignError(f"{wanted} in {results}; known: {listed}")


def campaigns_in(results: Path) -> list[Path]:
    """Return the folders of all campaigns, the most recently used campaign first."""

    def last_change_s(folder: Path) -> float:
        files = folder / PLAN, folder / JOURNAL
        return max(file.stat().st_mtime for file in files if file.exists())

    # resolve() makes the path through a link `latest` equal to the campaign's own path.
    folders = {plan.resolve().parent for plan in results.glob(f"*/*/{PLAN}")}
    return sorted(folders, key=last_change_s, reverse=True)


def measured_times(results: Path, testbed: str, lab_hosts: int = 0) -> MeasuredTimes:
    """Return median overhead, reboot time and path calibration time in recent campaigns on a testbed.

    Older campaigns are ignored, because they may have been run with other versions of samovar. Campaigns
    whose plan or journal cannot be read are ignored too. If the testbed is a lab, `lab_hosts` is the number
    of its hosts, from which the overhead is estimated if none was measured.
    """
    recent = (
        folder
        for folder in campaigns_in(results)[:CANDIDATES]
        if testbed in testbeds_in(folder) and (folder / JOURNAL).is_file()
    )
    times_s = defaultdict[str, list[float]](list)
    for folder in islice(recent, LATEST_CAMPAIGNS):
        with suppress(SamovarError, KeyError):
            for kind, seconds in list(_durations(folder, testbed)):
                times_s[kind].append(seconds)
    lost_s, done_s = times_s.pop("lost", []), times_s.pop("done", [])
    measured = {step: StepTime(median(seconds), len(seconds)) for step, seconds in times_s.items()}
    return MeasuredTimes(
        **{"overhead": assumed_overhead(lab_hosts), **measured},
        repeats=Repeats(len(lost_s), len(done_s), sum(lost_s), sum(done_s)),
    )


def expected_overhead_s(folder: Path, plan: Plan) -> float:
    """Return the overhead in seconds to expect of each trial of a campaign that has measured none yet."""
    is_lab = read_json(folder / PROVENANCE).get("lab")
    lab_hosts = len(plan.trials[0].resolved.hosts) if is_lab else 0
    return measured_times(folder.parents[1], testbeds_of(plan.testbed)[0], lab_hosts).overhead.seconds


def _durations(folder: Path, testbed: str) -> Iterator[tuple[str, float]]:
    """Yield durations on a testbed from a campaign's journal, each as its kind and its seconds.

    `overhead` is the overhead of a completed trial, including the time by which its traffic exceeded the
    planned duration. `boot` is the duration of a reboot; `path` is the duration of a path calibration. For a
    trial that is not open any more, `done` is the duration of the last attempt; `lost` is the duration of an
    earlier attempt. Attempts whose controller was killed are left out, because their end was not recorded.
    """
    entries = read_journal(folder / JOURNAL)
    planned_s = {trial.id: trial.resolved.duration_s for trial in read_plan(folder).trials}
    trials = {id_: one for id_, one in fold(entries).trials.items() if one.testbed in ("", testbed)}
    for id_, one in trials.items():
        if one.status == "completed" and one.overhead_s is not None:
            excess_s = max(0.0, one.phases.get(TRAFFIC, 0.0) - planned_s.get(id_, inf))
            yield "overhead", one.overhead_s + excess_s
    started_s: dict[str, float] = {}
    attempts_s: dict[str, list[float]] = {id_: [] for id_, one in trials.items() if not is_open(one)}
    for entry in entries:
        values, id_ = entry.values, str(entry.values.get("id"))
        if entry.event == "host-rebooted" and values.get("testbed", testbed) == testbed:
            yield "boot", values["seconds"]
        elif entry.event == "path-measured" and values["trial"] in trials:
            yield "path", values["seconds"]
        elif entry.event in STARTS:
            started_s.clear()  # the next controller records the end of a cut-off attempt, maybe days later
        elif entry.event == "trial-started":
            started_s[id_] = entry.t_s
        elif entry.event == "trial-finished" and id_ in started_s:
            attempts_s.get(id_, []).append(entry.t_s - started_s.pop(id_))
    for *lost_s, last_s in filter(None, attempts_s.values()):
        yield from (("lost", seconds) for seconds in lost_s)
        yield "done", last_s
