"""Trials that are not in the figures, and why."""

from __future__ import annotations

from collections.abc import Iterator

from samovar.campaign.journal import is_open
from samovar.report.campaign_data import NOT_RUN, Campaign, Json
from samovar.report.number_format import listed
from samovar.units import counted

MOST_LISTED = 6
"""Ids listed of trials in the same state for the same reason; of more, the first ones and a count."""
TREATMENT_OF_STATES = {
    "suspect": "analysed, marked",
    "invalid": "excluded",
    "failed": "excluded",
    "interrupted": "excluded",
    NOT_RUN: "missing",
    "left out": "not analysed",
}


def omissions(campaign: Campaign) -> Json:
    """Return the trials that are not valid by state and reason, and what else is not in the figures."""
    groups: dict[tuple[str, str], list[str]] = {}
    for trial, state, reason in _not_valid(campaign):
        groups.setdefault((state, reason), []).append(trial)
    return {
        "groups": [
            {
                "state": state,
                "means": TREATMENT_OF_STATES.get(state, ""),
                "reason": reason,
                "amount": len(trials),
                "trials": _first_ids(trials),
            }
            for (state, reason), trials in groups.items()
        ],
        "retried": _retried(campaign),
        "superseded": _superseded(campaign),
        "unavailable": campaign.analysis.get("figures_left_out") or [],
        "warnings": list(campaign.plan.warnings),
    }


def _not_valid(campaign: Campaign) -> Iterator[tuple[str, str, str]]:
    """Yield id, state and reasons of each trial that is not valid, or that the analysis left out."""
    left_out: list[Json] = campaign.analysis.get("trials_left_out") or []
    skipped = {str(one["id"]): str(one["reason"]) for one in left_out}
    for trial in campaign.plan.ids:
        state = campaign.trial_state(trial)
        if state != "valid":
            yield trial, state, "; ".join(_reasons(campaign, trial)) or skipped.get(trial, "")
        elif trial in skipped:
            yield trial, "left out", skipped[trial]


def _reasons(campaign: Campaign, trial: str) -> list[str]:
    """Return the reasons of a verdict or failure: from the manifest, else from the journal."""
    manifest = campaign.manifests.get(trial)
    if manifest is not None:
        return [str(reason) for reason in manifest.get("reasons") or []]
    if trial in campaign.state.blocked:
        return [f"not possible on the testbed: {reason}" for reason in campaign.state.blocked[trial]]
    journaled = campaign.state.trials.get(trial)
    return list(journaled.reasons if journaled else ())


def _first_ids(trials: list[str]) -> list[str]:
    if len(trials) <= MOST_LISTED:
        return trials
    return [*trials[: MOST_LISTED - 1], f"and {counted(len(trials) - MOST_LISTED + 1, 'more trial')}"]


def _retried(campaign: Campaign) -> str:
    """Return the sentence on attempts that were repeated; empty if there are none."""
    aside = sum(len(trial.set_aside) for trial in campaign.state.trials.values())
    again = sum(int(manifest.get("attempt", 1)) > 1 for manifest in campaign.manifests.values())
    texts = [f"{counted(again, 'trial')} needed more than one attempt"] if again else []
    texts += [f"{counted(aside, 'attempt')} set aside"] if aside else []
    return f"Repeated attempts: {listed(texts)}." if texts else ""


def _superseded(campaign: Campaign) -> str:
    """Return the sentence on results of trials that are not in the plan; empty if there are none."""
    planned = set(campaign.plan.ids)
    unused = sum(id_ not in planned and not is_open(one) for id_, one in campaign.state.trials.items())
    results = f"{counted(unused, 'result')} of trials that an earlier plan had"
    return f"In the campaign’s folder but not analysed: {results}." if unused else ""
