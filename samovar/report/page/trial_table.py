"""List trials for a page: levels, verdict, checks, and the files and scripts of each trial."""

from __future__ import annotations

import os
from collections.abc import Collection, Hashable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple, TypeVar

from samovar.experiment import redacted
from samovar.recipes import BODY
from samovar.report.campaign_data import Campaign, Json
from samovar.report.overview import reasons

FOLDERS = ("commands", "facts", "logs", "traces")
"""The folders of a trial whose files are linked."""
Value = TypeVar("Value", bound=Hashable)


class ListedCampaign(NamedTuple):
    """A campaign, its name on the page, and the ids of its trials that the page lists."""

    name: str
    campaign: Campaign
    ids: Collection[str]


class Distinct(dict[Value, int]):
    """Number distinct values in the order of their first use, so that repeated ones are stored once."""

    def place(self, value: Value) -> int:
        """Return the number of a value."""
        return self.setdefault(value, len(self))


def trial_table(campaigns: Sequence[ListedCampaign], page_folder: Path) -> Json:
    """Return the factors, and a row for each trial in the order of the plans.

    A row has the campaign, the campaign's folder relative to that of the page, the id, part, levels (empty
    for a factor that the trial's part does not have), replicate, block, state and reasons.
    """
    parts = [part for _, campaign, _ in campaigns for part in campaign.plan.parts]
    factors = list(dict.fromkeys(factor for part in parts for factor in part.factors))
    rows = [
        {
            "campaign": name,
            "folder": Path(os.path.relpath(campaign.folder, page_folder.resolve())).as_posix(),
            "id": trial.id,
            "part": trial.part,
            "levels": [trial.treatment.get(factor, "") for factor in factors],
            "replicate": trial.replicate,
            "block": trial.block,
            "state": campaign.trial_state(trial.id),
            "reasons": "; ".join(reasons(campaign, trial.id)),
            "recorded": trial.id in campaign.manifests,
        }
        for name, campaign, ids in campaigns
        for trial in campaign.plan.trials
        if trial.id in ids
    ]
    several = {"campaigns": len(campaigns) > 1, "parts": len({part.name for part in parts}) > 1}
    return {"factors": factors, **several, "rows": rows}


def trial_details(campaigns: Sequence[ListedCampaign]) -> Json:
    """Return checks, files and scripts of each listed trial, as indices of lists without duplicates.

    `scripts` has pairs of a file's name and its text, without the functions with which all scripts begin.
    """
    checks: Distinct[tuple[str, ...]] = Distinct()
    names: Distinct[str] = Distinct()
    scripts: Distinct[str] = Distinct()
    trials = [
        {
            "checks": [checks.place(one) for one in _checks(campaign.manifests.get(id_) or {})],
            "files": [names.place(one) for one in _files(campaign.folder / "trials" / id_)],
            "scripts": [
                (names.place(f"commands/{file.name}"), scripts.place(_script_text(file)))
                for file in sorted((campaign.folder / "trials" / id_ / "commands").glob("*.sh"))
            ],
        }
        for _, campaign, ids in campaigns
        for id_ in campaign.plan.ids
        if id_ in ids
    ]
    shown = [[redacted(text, {}) for text in check] for check in checks]
    return {"checks": shown, "names": list(names), "scripts": list(scripts), "trials": trials}


def _script_text(file: Path) -> str:
    """Return the text of a script from its body on; secrets were removed when it was recorded."""
    text = file.read_text(encoding="utf-8", errors="replace")
    _, body, rest = text.partition(BODY)
    return body + rest or text


def _checks(manifest: Json) -> Iterator[tuple[str, ...]]:
    """Yield result, check, host, requested and observed value of each check, failed checks first."""
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
