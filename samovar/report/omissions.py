"""What the figures do not show, and why: trials that failed, were judged, or never ran."""

from __future__ import annotations

from collections.abc import Iterable

from samovar.report.campaign import NOT_RUN, Campaign, Json, ids, last_ends, standing
from samovar.report.words import count

# Beyond so many trials of one kind and reason a list of ids tells no more than their number.
MOST_LISTED = 6
TREATED_AS = {
    "suspect": "kept, flagged",
    "invalid": "excluded",
    "failed": "excluded",
    "interrupted": "excluded",
    NOT_RUN: "missing",
    "left out": "left out by the analysis",
}


def omissions(campaign: Campaign, analysis: Json) -> Json:
    """Return the trials that are not plainly valid, grouped by how they stand and why."""
    groups: dict[tuple[str, str], list[str]] = {}
    for trial, state, reason in exceptions(campaign, analysis):
        groups.setdefault((state, reason), []).append(trial)
    return {
        "groups": [group(state, reason, trials) for (state, reason), trials in groups.items()],
        "retried": retried(campaign),
        "unavailable": unavailable(analysis),
        "warnings": [str(one) for one in campaign.plan.get("warnings") or []],
    }


def group(state: str, reason: str, trials: list[str]) -> Json:
    """Describe trials that stand alike for one reason."""
    means = TREATED_AS.get(state, "")
    named = listed_trials(trials)
    return {"state": state, "means": means, "reason": reason, "amount": len(trials), "trials": named}


def exceptions(campaign: Campaign, analysis: Json) -> Iterable[tuple[str, str, str]]:
    """List id, standing and reasons of each trial that is not valid or that the analysis left out."""
    left_out: list[Json] = analysis.get("trials_left_out") or []
    skipped = {str(one.get("id")): str(one.get("reason", "")) for one in left_out}
    for trial in ids(campaign):
        state = standing(campaign, trial)
        if state != "valid":
            yield trial, state, "; ".join(reasons(campaign, trial)) or skipped.get(trial, "")
        elif trial in skipped:
            yield trial, "left out", skipped[trial]


def reasons(campaign: Campaign, trial: str) -> list[str]:
    """Return why a trial was judged or failed: from its manifest, else from the journal."""
    record = campaign.manifests.get(trial) or last_ends(campaign).get(trial) or {}
    return [str(reason) for reason in record.get("reasons") or []]


def listed_trials(trials: list[str]) -> list[str]:
    """Name the trials, or the first of them and how many there are besides."""
    if len(trials) <= MOST_LISTED:
        return trials
    return [*trials[: MOST_LISTED - 1], f"and {count(len(trials) - MOST_LISTED + 1, 'more trial')}"]


def retried(campaign: Campaign) -> str:
    """Say how many attempts were set aside, so that a completed trial's history is not hidden."""
    aside = sum(1 for event in campaign.journal if event["event"] == "trial-set-aside")
    again = sum(1 for manifest in campaign.manifests.values() if int(manifest.get("attempt", 1)) > 1)
    if not aside and not again:
        return ""
    return (
        f"{count(aside, 'attempt')} set aside unfinished; "
        f"{count(again, 'trial')} completed after more than one attempt."
    )


def unavailable(analysis: Json) -> list[Json]:
    """Return the figures and tables that the analysis could not make, with its reasons."""
    found = analysis.get("unavailable") or []
    return [{"name": str(one.get("name", "")), "reason": str(one.get("reason", ""))} for one in found]
