"""What the figures do not show, and why: trials that failed, were judged, or never ran."""

from __future__ import annotations

from collections.abc import Iterable

from samovar.campaign.journal import is_open
from samovar.report.campaign_data import NOT_RUN, Campaign, Json, ids, standing
from samovar.report.number_format import count, listed

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
        "superseded": superseded(campaign),
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
    manifest, told = campaign.manifests.get(trial), campaign.state.trials.get(trial)
    if manifest is not None:
        return [str(reason) for reason in manifest.get("reasons") or []]
    blocked = campaign.state.blocked.get(trial, ())
    return [f"the testbed lacks it: {reason}" for reason in blocked] or list(told.reasons if told else ())


def listed_trials(trials: list[str]) -> list[str]:
    """Name the trials, or the first of them and how many there are besides."""
    if len(trials) <= MOST_LISTED:
        return trials
    return [*trials[: MOST_LISTED - 1], f"and {count(len(trials) - MOST_LISTED + 1, 'more trial')}"]


def retried(campaign: Campaign) -> str:
    """Say how many attempts came before those that count, so that a trial's history is not hidden."""
    aside = sum(len(told.set_aside) for told in campaign.state.trials.values())
    again = sum(1 for manifest in campaign.manifests.values() if int(manifest.get("attempt", 1)) > 1)
    said = [f"{count(aside, 'attempt')} set aside"] if aside else []
    said += [f"{count(again, 'trial')} completed after more than one attempt"] if again else []
    return f"Besides, {listed(said)}." if said else ""


def superseded(campaign: Campaign) -> str:
    """Say how many results the plan does not ask for, by why: they are in the folder and in no figure."""
    asked, known = set(ids(campaign)), campaign.state.trials
    unasked = {id_ for id_, told in known.items() if not is_open(told) and id_ not in asked}
    stale: set[str] = set()
    for entry in campaign.journal:
        if entry.event == "plan-changed":
            stale |= {id_ for one in entry.values.get("stale", ()) for id_ in one["results"]}
    kinds = (
        (len(unasked & stale), "of a trial that was changed since"),
        (len(unasked - stale), "of a trial that is no longer asked for"),
    )
    said = [f"{count(number, 'result')} {kind}" for number, kind in kinds if number]
    return f"Kept in the folder and not analysed: {listed(said)}." if said else ""


def unavailable(analysis: Json) -> list[Json]:
    """Return the figures and tables that the analysis could not make, with its reasons."""
    found = analysis.get("figures_left_out") or []
    return [{"name": str(one.get("name", "")), "reason": str(one.get("reason", ""))} for one in found]
