"""All campaigns of a results folder: found by name, and asked what trials cost before."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from statistics import median

from samovar.errors import CampaignError
from samovar.journal import NAME as JOURNAL
from samovar.journal import fold, read_journal
from samovar.plan.cost import BootTime, Known, Overhead
from samovar.runner.folder import LATEST, PLAN, read_head

LATEST_CAMPAIGNS = 4
"""So many are looked at for what a trial costs beyond its traffic: older ones were made by other code."""


@dataclass(frozen=True)
class Archive:
    """The campaigns below one folder."""

    results: Path

    def known(self, testbed: str) -> Known:
        """Tell what trials took beyond traffic on a testbed, and reboots: medians over late campaigns."""
        overheads, boots = list[float](), list[float]()
        for plan in self.plans()[-LATEST_CAMPAIGNS:]:
            journal = plan.with_name(JOURNAL)
            if journal.is_file() and read_head(plan).get("testbed") == testbed:
                entries = read_journal(journal)
                trials = fold(entries).standing("completed")
                overheads += [trial.overhead_s for trial in trials if trial.overhead_s is not None]
                boots += [float(e.values["seconds"]) for e in entries if e.event == "host-rebooted"]
        return Known(
            Overhead(median(overheads), len(overheads)) if overheads else Overhead(),
            BootTime(median(boots), len(boots)) if boots else BootTime(),
        )

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


def _last_touched_s(plan: Path) -> float:
    journal = plan.with_name(JOURNAL)
    return max(file.stat().st_mtime for file in (plan, journal) if file.exists())
