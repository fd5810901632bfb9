"""Compare two campaigns, or two parts of one: changes of metrics and differences in provenance."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import NamedTemporaryFile

from samovar.analyse import AnalysedPart, run_r
from samovar.events import Emit
from samovar.plan import Trial, differences
from samovar.report.campaign_data import Campaign, Json, read_campaign, read_json
from samovar.report.comparison.changes import FAILED, NO_DATA, Change, Limit, change_of, judged
from samovar.report.number_format import number
from samovar.units import counted

RESULT = "comparison.json"
FEWEST_PAIRS = 3
"""The least number of pairs for which a change has an interval."""
VOLATILE_FACTS = ("boot_id", "disk_free_bytes", "clock_offset_s", "clock_error_s", "host")
"""Recorded facts about a host that differ between any two campaigns."""


@dataclass(frozen=True)
class Side:
    """One of the two campaigns of a comparison, or a picked part of its trials."""

    folder: Path
    part: AnalysedPart | None


@dataclass(frozen=True)
class CampaignComparison:
    """Two campaigns compared. `judged` has the verdict of each limit on each treatment of its metric."""

    campaigns: tuple[Campaign, Campaign]
    sides: tuple[Side, Side]
    changes: tuple[Change, ...]
    judged: tuple[tuple[Limit, Change, str], ...]
    differences: tuple[str, ...]
    result: Json

    @property
    def names(self) -> tuple[str, str]:
        """The names of campaigns A and B, each with how its trials were picked."""
        both = zip(self.campaigns, self.sides, strict=True)
        first, second = (one.label + (f" ({side.part.picked})" if side.part else "") for one, side in both)
        return first, second

    @property
    def exit_code(self) -> int:
        """1 if a treatment fails a limit, 2 if one cannot be judged, otherwise 0."""
        verdicts = {verdict for _, _, verdict in self.judged}
        return 1 if FAILED in verdicts else 2 if NO_DATA in verdicts else 0

    @property
    def by_metric(self) -> dict[str, list[Change]]:
        """The changes of each metric, without treatments that A or B lacks."""
        found: dict[str, list[Change]] = {}
        for change in self.changes:
            if change.n:
                found.setdefault(change.metric, []).append(change)
        return found

    @property
    def notes(self) -> list[str]:
        """Notes: how trials were matched, missing intervals, changes by chance, unmatched treatments."""
        used = [change for change in self.changes if change.n]
        present = {change.treatment for change in used}
        lacking = dict.fromkeys(one.treatment for one in self.changes if one.treatment not in present)
        matched = ", ".join(self.result["matched"]["treatments"]) or "no factor"
        found = [f"{counted(len(present), 'treatment')}, matched by {matched}", str(self.result["pairing"])]
        if few := sum(change.n < FEWEST_PAIRS for change in used):
            found.append(f"{counted(few, 'change')} of fewer than {FEWEST_PAIRS} pairs: no interval")
        if apart := sum(change.n >= FEWEST_PAIRS and change.changed is None for change in used):
            found.append(
                f"{counted(apart, 'change')} where all trials of A ran before or after B: no interval"
            )
        if risks := [1 - change.confidence for change in used if change.confidence]:
            chance = number(sum(risks), 2)
            text = f"of which up to {chance} would show a change by chance alone"
            found.append(f"{counted(len(risks), 'interval')}, {text}")
        if lacking:
            found.append(f"in one campaign only: {'; '.join(lacking)}")
        return found


def compare_campaigns(
    sides: tuple[Side, Side], by: Sequence[str], limits: Sequence[Limit], root: Path, to: Path, emit: Emit
) -> CampaignComparison:
    """Compare two campaigns in R, which writes figures and changes.csv into a folder, and judge the limits.

    Trials without measurements in the cache are measured first. Raises AnalysisError with R's message if
    the campaigns have nothing in common, ReportError for a limit on a metric that was not measured.
    """
    request: Json = {name: _as_json(side) for name, side in zip("ab", sides, strict=True)}
    request |= {"to": str(to), "by": list(by) or None}
    with NamedTemporaryFile("w", encoding="utf-8", suffix=".json") as file:
        json.dump(request, file)
        file.flush()
        run_r("compare", [file.name], root, emit)
    result = read_json(to / RESULT, dict)
    changes = tuple(change_of(row) for row in result["changes"])
    first, second = (read_campaign(side.folder) for side in sides)
    matched = [*result["matched"]["treatments"], *result["matched"]["pairs"]]
    different = tuple(_differences(first, second, sides, matched))
    verdicts = tuple(judged(limits, changes))
    return CampaignComparison((first, second), sides, changes, verdicts, different, result)


def _as_json(side: Side) -> Json:
    part = {"part": side.part._asdict()} if side.part else {}
    return {"folder": str(side.folder), **part}


def _differences(
    first: Campaign, second: Campaign, sides: tuple[Side, Side], factors: Sequence[str]
) -> Iterator[str]:
    """Yield what differs in software, hosts, testbed and settings of trials.

    Trials are matched by their levels of `factors`.
    """
    a, b = first.provenance, second.provenance
    for name in ("controller", "git", "lab"):
        yield from differences(a.get(name), b.get(name), name)
    old, new = a.get("recipes") or {}, b.get("recipes") or {}
    changed = sum(old.get(name) != new.get(name) for name in old | new)
    if changed:
        yield f"{counted(changed, 'recipe')} of {len(old | new)} changed"
    yield from _by_host(a.get("hosts") or {}, b.get("hosts") or {})
    yield from differences(first.testbed, second.testbed, "testbed")
    yield from _settings(_first_trials(first, sides[0], factors), _first_trials(second, sides[1], factors))


def _by_host(first: Json, second: Json) -> Iterator[str]:
    """Yield the differences between recorded hosts; hosts with the same difference share one text."""
    found: dict[str, list[str]] = {}
    for name in first | second:
        before, after = (
            {key: fact for key, fact in (one.get(name) or {}).items() if key not in VOLATILE_FACTS}
            for one in (first, second)
        )
        for text in differences(before, after):
            found.setdefault(text, []).append(name)
    yield from (f"{', '.join(names)}: {text}" for text, names in found.items())


Treatments = Mapping[tuple[str, ...], Trial]


def _first_trials(campaign: Campaign, side: Side, factors: Sequence[str]) -> Treatments:
    """Return the first trial of each combination of levels of some factors."""
    found: dict[tuple[str, ...], Trial] = {}
    for trial in campaign.plan.trials:
        if side.part is None or trial.id in side.part.trials:
            levels = {"part": trial.part, **trial.treatment}
            found.setdefault(tuple(levels.get(name, "") for name in factors), trial)
    return found


def _settings(first: Treatments, second: Treatments) -> Iterator[str]:
    """Yield each difference between matched treatments, with the number of treatments that have it."""
    shared = [key for key in first if key in second]
    found: dict[str, int] = {}
    for a, b in ((first[key], second[key]) for key in shared):
        levels = differences(dict(a.treatment), dict(b.treatment))
        for text in (*levels, *differences(a.resolved.as_json(), b.resolved.as_json())):
            found[text] = found.get(text, 0) + 1
    for text, amount in found.items():
        some = f" (in {amount} of {counted(len(shared), 'treatment')})" if amount < len(shared) else ""
        yield f"{text}{some}"


def split_by_change(
    metrics: Mapping[str, list[Change]],
) -> tuple[dict[str, list[Change]], dict[str, list[Change]]]:
    """Divide metrics into those with a change in any treatment, and the others."""
    changed = {metric: ones for metric, ones in metrics.items() if any(one.changed for one in ones)}
    return changed, {metric: ones for metric, ones in metrics.items() if metric not in changed}
