"""What a trial costs beyond its traffic, by phase."""

from __future__ import annotations

from collections.abc import Iterable
from statistics import median

from samovar.report.campaign_data import Campaign, Json
from samovar.report.number_format import count, number

# The aim for everything that is not traffic, from the design of the runner.
AIM_S = 2.0
TRAFFIC = ("traffic", "run")
ONCE = {"calibrate": "Measuring a path", "windows": "A probe of receive windows", "reboot": "A reboot"}
"""What some trials do for others too, and which is no trial's own cost."""


def cost(campaign: Campaign) -> Json | None:
    """Return median and largest seconds of each phase and of the whole; None where none was measured."""
    measured = [one for one in campaign.manifests.values() if one.get("phases")]
    overheads = [float(one["overhead_s"]) for one in measured if one.get("overhead_s") is not None]
    if not measured or not overheads:
        return None
    phases = [phase_row(name, seconds) for name, seconds in by_phase(measured).items()]
    return {
        "phases": phases,
        "longest_s": max((row["median_s"] for row in phases), default=0.0),
        "total_s": median(overheads),
        "worst_s": max(overheads),
        "words": " ".join([aim_words(overheads), *once_words(measured)]),
    }


def aim_words(overheads: list[float]) -> str:
    """Say how the cost stands against the aim."""
    within = sum(1 for seconds in overheads if seconds <= AIM_S)
    verb = "stays" if median(overheads) <= AIM_S else "does not stay"
    return (
        f"The aim is {number(AIM_S)} s or less: the median {verb} within it, "
        f"and {within} of {count(len(overheads), 'trial')} did."
    )


def by_phase(manifests: Iterable[Json]) -> dict[str, list[float]]:
    """Collect the seconds of each phase of a trial's own but the traffic, in order; repeats add up."""
    phases: dict[str, list[float]] = {}
    for manifest in manifests:
        once: dict[str, float] = {}
        for entry in manifest["phases"]:
            once[str(entry["phase"])] = once.get(str(entry["phase"]), 0.0) + float(entry["seconds"])
        for name, seconds in once.items():
            phases.setdefault(name, []).append(seconds)
    return {name: seconds for name, seconds in phases.items() if name not in (*TRAFFIC, *ONCE)}


def once_words(manifests: Iterable[Json]) -> list[str]:
    """Say what was spent beside, once for several trials."""
    spent: dict[str, list[float]] = {}
    for entry in (entry for manifest in manifests for entry in manifest["phases"]):
        spent.setdefault(str(entry["phase"]), []).append(float(entry["seconds"]))
    return [
        f"{what} came beside, {count(len(taken), 'time')}, with a median of {number(median(taken))} s."
        for phase, what in ONCE.items()
        if (taken := spent.get(phase))
    ]


def phase_row(name: str, seconds: list[float]) -> Json:
    """Return one phase's median and largest seconds."""
    return {"phase": name, "median_s": median(seconds), "worst_s": max(seconds)}
