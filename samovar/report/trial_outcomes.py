"""Trials that are not in the figures, and why; the overhead of trials by phase."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from statistics import median

from samovar.campaign.journal import is_open
from samovar.report.campaign_data import NOT_RUN, Campaign, Json
from samovar.report.number_format import count, listed, number

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
OVERHEAD_GOAL_S = 2.0
TRAFFIC_PHASES = ("traffic", "run")
SHARED_PHASES = {
    "calibrate": "Path calibration",
    "windows": "Measuring receive windows",
    "reboot": "Rebooting",
}
"""Phases that serve several trials, and are no overhead of the one in which they happen."""


def omissions(campaign: Campaign, analysis: Json) -> Json:
    """Return the trials that are not valid by state and reason, and what else is not in the figures."""
    groups: dict[tuple[str, str], list[str]] = {}
    for trial, state, reason in _not_valid(campaign, analysis):
        groups.setdefault((state, reason), []).append(trial)
    missing = analysis.get("figures_left_out") or []
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
        "unavailable": [
            {"name": str(one.get("name", "")), "reason": str(one.get("reason", ""))} for one in missing
        ],
        "warnings": [str(one) for one in campaign.plan.get("warnings") or []],
    }


def _not_valid(campaign: Campaign, analysis: Json) -> Iterator[tuple[str, str, str]]:
    """Yield id, state and reasons of each trial that is not valid, or that the analysis left out."""
    left_out: list[Json] = analysis.get("trials_left_out") or []
    skipped = {str(one.get("id")): str(one.get("reason", "")) for one in left_out}
    for trial in campaign.ids:
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
    return [*trials[: MOST_LISTED - 1], f"and {count(len(trials) - MOST_LISTED + 1, 'more trial')}"]


def _retried(campaign: Campaign) -> str:
    """Return the sentence on attempts that were repeated; empty if there are none."""
    aside = sum(len(trial.set_aside) for trial in campaign.state.trials.values())
    again = sum(int(manifest.get("attempt", 1)) > 1 for manifest in campaign.manifests.values())
    texts = [f"{count(again, 'trial')} needed more than one attempt"] if again else []
    texts += [f"{count(aside, 'attempt')} set aside"] if aside else []
    return f"Repeated attempts: {listed(texts)}." if texts else ""


def _superseded(campaign: Campaign) -> str:
    """Return the sentence on results that are not part of the plan any more; empty if there are none."""
    planned, known = set(campaign.ids), campaign.state.trials
    unused = {id_ for id_, trial in known.items() if not is_open(trial) and id_ not in planned}
    changed: set[str] = set()
    for entry in campaign.journal:
        if entry.event == "plan-changed":
            changed |= {id_ for one in entry.values.get("stale", ()) for id_ in one["results"]}
    kinds = (
        (len(unused & changed), "of trials that were changed later"),
        (len(unused - changed), "of trials that are not in the plan any more"),
    )
    texts = [f"{count(number, 'result')} {kind}" for number, kind in kinds if number]
    return f"In the campaign’s folder but not analysed: {listed(texts)}." if texts else ""


def overhead(campaign: Campaign) -> Json | None:
    """Return median and maximum seconds of each phase and of the whole overhead; None if not measured."""
    measured = [one for one in campaign.manifests.values() if one.get("phases")]
    overheads_s = [float(one["overhead_s"]) for one in measured if one.get("overhead_s") is not None]
    if not measured or not overheads_s:
        return None
    phases: dict[str, list[float]] = {}
    for manifest in measured:
        own: dict[str, float] = {}
        for entry in manifest["phases"]:
            own[str(entry["phase"])] = own.get(str(entry["phase"]), 0.0) + float(entry["seconds"])
        for name, seconds in own.items():
            phases.setdefault(name, []).append(seconds)
    rows: list[Json] = [
        {"phase": name, "median_s": median(seconds), "worst_s": max(seconds)}
        for name, seconds in phases.items()
        if name not in (*TRAFFIC_PHASES, *SHARED_PHASES)
    ]
    return {
        "phases": rows,
        "longest_s": max((row["median_s"] for row in rows), default=0.0),
        "total_s": median(overheads_s),
        "worst_s": max(overheads_s),
        "words": " ".join([_goal_text(overheads_s), *_shared_phases(measured)]),
    }


def _goal_text(overheads_s: list[float]) -> str:
    within = sum(seconds <= OVERHEAD_GOAL_S for seconds in overheads_s)
    trials = count(len(overheads_s), "trial")
    return f"The goal is {number(OVERHEAD_GOAL_S)} s or less, which {within} of {trials} reached."


def _shared_phases(manifests: Iterable[Json]) -> Iterator[str]:
    """Yield a sentence per phase that serves several trials."""
    spent: dict[str, list[float]] = {}
    for entry in (entry for manifest in manifests for entry in manifest["phases"]):
        spent.setdefault(str(entry["phase"]), []).append(float(entry["seconds"]))
    for phase, name in SHARED_PHASES.items():
        if seconds := spent.get(phase):
            times = f"{count(len(seconds), 'time')}, median {number(median(seconds))} s"
            yield f"{name} is not included: {times}."
