"""The thresholds by which a trial is judged (key `verdict`), and named profiles of thresholds."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Self

from samovar.experiment.keys import value_types as types
from samovar.experiment.keys.key_table import Strict, entry
from samovar.experiment.keys.value_types import Duration, Positive, Share, Size, choice

PROFILES: Mapping[str, Mapping[str, str]] = {"emulated": {"late": "1s", "gap": "5s", "cpu": "100%"}}
"""Thresholds of each profile. Emulated hosts started flows 0.5 s late, and sampled queues only every 4 s."""


class Thresholds(Strict):
    """Limits of the verdict: outside them, a trial is suspect or invalid; see docs/explanation/verdict.md."""

    profile: Annotated[str, choice("profile", "emulated")] | None = entry(
        "Named set of limits, which the other keys override; `emulated` sets `late` to 1s, `gap` to 5s and "
        "`cpu` to 100%.",
        None,
    )
    late_s: Duration = entry("Largest delay of a flow's start; above it, the trial is suspect.", 0.2)
    duration: Share = entry(
        "Smallest share of its planned duration that a flow must last; below it, the trial is invalid.",
        0.95,
    )
    window: Share = entry(
        "Smallest share of `rwnd` that the largest advertised window must reach; below it, the trial is "
        "suspect.",
        0.9,
    )
    bytes_differ: Share = entry(
        "Largest difference between a flow's captured bytes and its generator's count; above it, the trial "
        "is invalid.",
        0.02,
        alias="bytes",
    )
    bottleneck: Share = entry(
        "Largest difference between the bytes that the bottleneck's queue sent and those captured downstream "
        "of the queue; above it, the trial is suspect.",
        0.01,
    )
    rate: Share = entry(
        "Largest deviation of a full queue's rate from the plan; above it, the trial is suspect; above 3 "
        "times as much, it is invalid.",
        0.04,
    )
    offered: Share = entry(
        "Largest deviation of a flow's sent rate from its requested rate; above it, the trial is suspect; "
        "above 3 times as much, it is invalid.",
        0.05,
    )
    stall_s: Duration = entry(
        "A trial is suspect if a paced flow pauses longer than this, in addition to the planned time "
        "between packets.",
        0.2,
    )
    competing: Share = entry(
        "Largest share of captured bytes that belong to no flow; above it, the trial is suspect; above 10 "
        "times as much, it is invalid.",
        0.001,
    )
    competing_bytes: Size = entry(
        "Number of captured bytes that may belong to no flow, whatever their share.",
        20_000,
        alias="competing_least",
    )
    cpu: Share = entry(
        "Largest share of time that a CPU is busy while traffic runs; above it, the trial is suspect.",
        0.95,
    )
    gap_s: Duration = entry(
        "Longest time between two samples of the queue, or three intervals if that is longer; above it, "
        "the trial is suspect.",
        2.0,
    )
    clock_step_s: Duration = entry(
        "Largest step of a host's clock; a larger step stops the trial as invalid.", 0.05
    )
    clock_drift_ppm: Annotated[float, types.DRIFT] = entry(
        "Largest drift of a host's clock against this machine's; if larger by more than the measurement "
        "error, the trial is suspect.",
        50.0,
    )
    disk_bytes: Size = entry(
        "Smallest free space on a host; less space stops the trial as invalid.", 50_000_000
    )
    capture_packets: Positive = entry(
        "Packets that the verdict reads from each capture; a million take about a second.",
        1_000_000,
        alias="capture_packets",
    )

    def with_profile(self) -> Self:
        """Return these thresholds, with values of the profile for keys that the file does not give."""
        return type(self).model_validate(PROFILES.get(self.profile or "", {})).under(self)
