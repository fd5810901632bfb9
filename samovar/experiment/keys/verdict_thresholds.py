"""What a trial may differ by from what was asked before it counts as suspect or invalid."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BeforeValidator, Field

from samovar import units
from samovar.experiment.keys import notation
from samovar.experiment.keys.field_types import Duration, Positive, Size, Strict, choice, scalar

CALIBRATE = ("auto", "on", "off")
Calibrate = Annotated[Literal["auto", "on", "off"], choice("calibrate", *CALIBRATE)]
Share = Annotated[float, BeforeValidator(scalar(units.parse_share)), notation.SHARE]
Drift = Annotated[float, BeforeValidator(scalar(units.parse_drift)), notation.DRIFT]


class Thresholds(Strict):
    """Bounds of the verdict; each is explained in docs/explanation/verdict.md."""

    late_s: Duration = Field(
        0.2, alias="late", description="How much later than asked a flow may begin; more is suspect."
    )
    duration: Share = Field(
        0.95, description="Least share of the asked time that traffic must last; less is invalid."
    )
    window: Share = Field(
        0.9, description="Least share of rwnd that the largest window must reach; less is suspect."
    )
    bytes_differ: Share = Field(
        0.02,
        alias="bytes",
        description="How far a flow's bytes in a capture may be from what its generator counted; more is "
        "invalid.",
    )
    bottleneck: Share = Field(
        0.01,
        description="How far the bytes through the bottleneck may be from those captured behind it; more is "
        "suspect.",
    )
    rate: Share = Field(
        0.04,
        description="How far the bottleneck's rate while packets wait may be from the asked; more is "
        "suspect, three times as much invalid.",
    )
    competing: Share = Field(
        0.001,
        description="Largest share of a capture's bytes that may belong to no flow; more is suspect, ten "
        "times as much invalid.",
    )
    competing_bytes: Size = Field(
        20_000, alias="competing_least", description="Bytes of no flow that are always let pass."
    )
    cpu: Share = Field(
        0.95, description="Largest share of the traffic's time that a CPU may be busy; more is suspect."
    )
    clock_step_s: Duration = Field(
        0.05,
        alias="clock_step",
        description="Largest step of a host's clock during a trial; more ends it at once and is invalid.",
    )
    clock_drift_ppm: Drift = Field(
        50.0,
        alias="clock_drift",
        description="How fast a host's clock may run off from this machine's; what is certainly more is "
        "suspect.",
    )
    disk_bytes: Size = Field(
        50_000_000,
        alias="disk",
        description="Least space that must stay free where a host writes its trial; less ends it at once "
        "and is invalid.",
    )
    capture_packets: Positive = Field(
        1_000_000,
        description="Packets of each capture that are read for the verdict, about a second a million.",
    )

    def under(self, over: Thresholds) -> Thresholds:
        """Return these bounds with those over them that the other was given."""
        given = {name: getattr(over, name) for name in over.model_fields_set}
        return self.model_copy(update=given)
