"""List a campaign's trials for its page: levels, verdict, checks, and the files of each trial."""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from pathlib import Path
from typing import TypeVar

from samovar.report.campaign_data import Campaign, Json
from samovar.report.overview import reasons

FOLDERS = ("commands", "facts", "logs", "traces")
"""The folders of a trial whose files are linked."""
Value = TypeVar("Value", bound=Hashable)


class Distinct(dict[Value, int]):
    """Number distinct values in the order of their first use, so that repeated ones are stored once."""

    def place(self, value: Value) -> int:
        """Return the number of a value."""
        return self.setdefault(value, len(self))


def trial_table(campaign: Campaign) -> Json:
    """Return the factors, and a row for each planned trial in the order of the plan.

    A row has the id, part, levels (empty for a factor that the trial's part does not have), replicate, block,
    state and reasons.
    """
    factors = list(dict.fromkeys(factor for part in campaign.plan.parts for factor in part.factors))
    rows = [
        {
            "id": trial.id,
            "part": trial.part,
            "levels": [trial.treatment.get(factor, "") for factor in factors],
            "replicate": trial.replicate,
            "block": trial.block,
            "state": campaign.trial_state(trial.id),
            "reasons": "; ".join(reasons(campaign, trial.id)),
            "recorded": trial.id in campaign.manifests,
        }
        for trial in campaign.plan.trials
    ]
    return {"factors": factors, "parts": len(campaign.plan.parts) > 1, "rows": rows}


def trial_details(campaign: Campaign) -> Json:
    """Return checks and files of each planned trial, as places in tables of distinct checks and names."""
    checks: Distinct[tuple[str, ...]] = Distinct()
    names: Distinct[str] = Distinct()
    trials = [
        {
            "checks": [checks.place(one) for one in _checks(campaign.manifests.get(id_) or {})],
            "files": [names.place(one) for one in _files(campaign.folder / "trials" / id_)],
        }
        for id_ in campaign.plan.ids
    ]
    return {"checks": list(checks), "names": list(names), "trials": trials}


def _checks(manifest: Json) -> Iterator[tuple[str, ...]]:
    """Yield result, check, host, requested and observed value of each check, those that failed first."""
    rows = []
    for one in manifest.get("checks") or []:
        result = "passed" if one.get("ok") else str(one.get("severity") or "failed")
        texts = (str(one.get(key) or "") for key in ("check", "host", "requested", "observed"))
        rows.append((result, *texts))
    yield from sorted(rows, key=lambda row: row[0] == "passed")


def _files(trial: Path) -> Iterator[str]:
    """Yield the paths of a trial's files, relative to the trial's folder."""
    for folder in FOLDERS:
        yield from sorted(f"{folder}/{one.name}" for one in (trial / folder).glob("*"))
