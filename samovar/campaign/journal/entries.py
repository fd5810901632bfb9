"""The types of the journal's events, from which docs/reference/schema/journal.json is generated.

They hold for what is written. A journal is read without them, so that one of a later version can be read.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter

Seconds = Annotated[float, Field(ge=0)]
Sha256 = Annotated[str, Field(pattern="^[0-9a-f]{64}$")]
Count = Annotated[int, Field(ge=0)]


class JournalEvent(BaseModel):
    """The keys of every event: its time by the controller's clock, and the testbed if several share it."""

    model_config = ConfigDict(extra="forbid", strict=True, defer_build=True)

    t_s: float = Field(description="Seconds since the epoch.")
    testbed: str = ""


class SealedEvent(JournalEvent):
    """An event with the SHA-256 of all bytes of the journal before it."""

    before: Sha256 | None = None


class CampaignStarted(JournalEvent):
    """A controller starts the campaign."""

    event: Literal["campaign-started"]
    trials: Count


class CampaignResumed(JournalEvent):
    """A controller resumes the campaign."""

    event: Literal["campaign-resumed"]
    trials: Count


class CampaignStopped(JournalEvent):
    """The run ends early: no further trial is started."""

    event: Literal["campaign-stopped"]
    reason: str


class TestbedIdle(JournalEvent):
    """The testbed has no trial left that it can run; another testbed may have one."""

    event: Literal["testbed-idle"]


class CampaignInterrupted(SealedEvent):
    """The user interrupted the campaign, and it ended in good order."""

    event: Literal["campaign-interrupted"]


class CampaignFinished(SealedEvent):
    """No trial is left to run."""

    event: Literal["campaign-finished"]
    completed: Count
    failed: list[str]


class FilesRecorded(SealedEvent):
    """The files of the campaign other than those of trials, with their SHA-256."""

    event: Literal["files-recorded"]
    files: dict[str, Sha256]


class Stale(BaseModel):
    """Results of a trial that has changed in the new plan."""

    model_config = ConfigDict(extra="forbid", strict=True, defer_build=True)

    changes: list[str]
    results: list[str]


class PlanChanged(JournalEvent):
    """A new plan replaces the previous one, which is kept in the folder `kept`."""

    event: Literal["plan-changed"]
    kept: str
    stands: Count
    runs: dict[str, Count]
    stale: list[Stale]
    orphans: list[str]


class Blocked(BaseModel):
    """Trials that the testbed cannot run for the same reasons."""

    model_config = ConfigDict(extra="forbid", strict=True, defer_build=True)

    reasons: list[str]
    trials: list[str]


class TrialsBlocked(JournalEvent):
    """Trials that the testbed cannot run are left out."""

    event: Literal["trials-blocked"]
    blocked: list[Blocked]


class TrialStarted(JournalEvent):
    """An attempt at a trial starts; it leaves out the hosts in `without`."""

    event: Literal["trial-started"]
    id: str
    attempt: Annotated[int, Field(ge=1)]
    without: list[str] = []


class Phase(JournalEvent):
    """A phase of a trial ends."""

    event: Literal["phase"]
    id: str
    phase: str
    seconds: Seconds


class TrialFinished(SealedEvent):
    """An attempt at a trial ends; `sums_sha256` is the SHA-256 of its SHA256SUMS."""

    event: Literal["trial-finished"]
    id: str
    outcome: Literal["completed", "failed", "interrupted"]
    verdict: Literal["valid", "suspect", "invalid"]
    reasons: list[str]
    overhead_s: Seconds
    sums_sha256: Sha256 | None = None


class TrialAgain(JournalEvent):
    """A trial will be repeated after a pause."""

    event: Literal["trial-again"]
    id: str
    attempt: Count
    of: Count
    seconds: Seconds
    pause_s: Seconds = 0.0
    reasons: list[str]


class TrialRefused(JournalEvent):
    """A trial is not started because calibration found its path wrong."""

    event: Literal["trial-refused"]
    id: str
    reasons: list[str]


class TrialSetAside(JournalEvent):
    """The files of an incomplete or invalid trial are moved to `folder`."""

    event: Literal["trial-set-aside"]
    id: str
    folder: str
    sums_sha256: Sha256 | None = None


class StateRead(JournalEvent):
    """The state of a host before a trial changes it, recorded before the change."""

    event: Literal["state-read"]
    id: str
    host: str
    state: dict[str, str]
    lasting: bool = False


class StateRestored(JournalEvent):
    """A host is restored to the state that was read, and this is verified."""

    event: Literal["state-restored"]
    id: str
    host: str
    lasting: bool = False


class RestoreFailed(JournalEvent):
    """A host was restored but differs from the state that was read."""

    event: Literal["restore-failed"]
    id: str
    host: str
    differences: list[str]
    lasting: bool = False


class PathMeasured(JournalEvent):
    """A path was calibrated; `file` has the measurements."""

    event: Literal["path-measured"]
    trial: str
    file: str
    sha256: Sha256 | None = None
    seconds: Seconds
    missed: list[str]
    refused: list[str]
    left_out: list[str]


class WindowMeasured(JournalEvent):
    """The receive window that a host advertises to a sender was measured; `file` has the measurements.

    `ratio` is the share of the receive buffer that the kernel counts as window, in 256ths; 0 if the window is
    set by the route.
    """

    event: Literal["window-measured"]
    trial: str
    host: str
    sender: str
    seconds: Seconds
    left_out: list[str]
    ratio: int | None = None
    file: str | None = None
    sha256: Sha256 | None = None


class LeaseTaken(JournalEvent):
    """A host's lease is taken over from a campaign that has been silent for `silent_s`."""

    event: Literal["lease-taken"]
    host: str
    owner: str
    campaign: str
    silent_s: Seconds
    left: Literal["", "restored", "changed"]
    reason: str


class HostLost(JournalEvent):
    """A host no longer answers."""

    event: Literal["host-lost"]
    host: str
    reason: str


class HostBack(JournalEvent):
    """A lost host answers again and has been restored."""

    event: Literal["host-back"]
    host: str
    seconds: Seconds


class HostQuarantined(JournalEvent):
    """A host is not used for the rest of this run."""

    event: Literal["host-quarantined"]
    host: str
    reason: str


class HostReleased(JournalEvent):
    """A trial completed on a host that an earlier run had quarantined."""

    event: Literal["host-released"]
    host: str


class HostRebooting(JournalEvent):
    """A host reboots."""

    event: Literal["host-rebooting"]
    host: str
    boot_id: str


class HostPowerCycled(JournalEvent):
    """A host did not come back; its power was switched off and on."""

    event: Literal["host-power-cycled"]
    host: str


class HostRebooted(JournalEvent):
    """A host answers again after a reboot."""

    event: Literal["host-rebooted"]
    host: str
    boot_id: str
    seconds: Seconds


EVENTS: tuple[type[JournalEvent], ...] = (
    *(CampaignStarted, CampaignResumed, CampaignStopped, TestbedIdle, CampaignInterrupted, CampaignFinished),
    *(FilesRecorded, PlanChanged, TrialsBlocked),
    *(TrialStarted, Phase, TrialFinished, TrialAgain, TrialRefused, TrialSetAside),
    *(StateRead, StateRestored, RestoreFailed, PathMeasured, WindowMeasured, LeaseTaken),
    *(HostLost, HostBack, HostQuarantined, HostReleased),
    *(HostRebooting, HostPowerCycled, HostRebooted),
)
"""All events that are written."""


def name_of(event: type[JournalEvent]) -> str:
    """Return the name that an event has in a journal."""
    return str(event.model_fields["event"].annotation.__args__[0])  # type: ignore[union-attr]


def line_schema() -> dict[str, Any]:
    """Return the JSON Schema of one line of a journal: one of the events."""
    types = [(name_of(event), "validation", TypeAdapter(event)) for event in EVENTS]
    schemas, shared = TypeAdapter.json_schemas(types)  # type: ignore[arg-type]
    options = [schemas[name_of(event), "validation"] for event in EVENTS]
    return {"title": "journal", "type": "object", "oneOf": options, "$defs": shared["$defs"]}
