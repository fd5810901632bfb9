"""What each event of a journal says: one type an event, of which docs/reference/schema/journal.json is made.

A journal is read without these types, so that one of a later version still can be: they are what is written.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter

Seconds = Annotated[float, Field(ge=0)]
Sha256 = Annotated[str, Field(pattern="^[0-9a-f]{64}$")]
Count = Annotated[int, Field(ge=0)]


class Said(BaseModel):
    """What every event has: when by the controller's clock, and on which of the testbeds that share it."""

    model_config = ConfigDict(extra="forbid", strict=True)

    t_s: float = Field(description="Seconds since the epoch.")
    testbed: str = ""


class Sealed(Said):
    """An event that holds the SHA-256 of all bytes of the journal before it."""

    before: Sha256 | None = None


class CampaignStarted(Said):
    """The first controller begins."""

    event: Literal["campaign-started"]
    trials: Count


class CampaignResumed(Said):
    """Another controller goes on."""

    event: Literal["campaign-resumed"]
    trials: Count


class CampaignStopped(Said):
    """No further trial is begun."""

    event: Literal["campaign-stopped"]
    reason: str


class TestbedIdle(Said):
    """There is no trial any more that the testbed could run; another still may."""

    event: Literal["testbed-idle"]


class CampaignInterrupted(Sealed):
    """The user ended the campaign, in good order."""

    event: Literal["campaign-interrupted"]


class CampaignFinished(Sealed):
    """Every trial had its turn."""

    event: Literal["campaign-finished"]
    completed: Count
    failed: list[str]


class FilesRecorded(Sealed):
    """What the campaign has beside its trials, with the SHA-256 of each file."""

    event: Literal["files-recorded"]
    files: dict[str, Sha256]


class Stale(BaseModel):
    """Results of a trial that is another now."""

    model_config = ConfigDict(extra="forbid", strict=True)

    changes: list[str]
    results: list[str]


class PlanChanged(Said):
    """Another plan takes the place of the one that there was, which is kept."""

    event: Literal["plan-changed"]
    kept: str
    stands: Count
    runs: dict[str, Count]
    stale: list[Stale]
    orphans: list[str]


class Blocked(BaseModel):
    """Trials that the testbed cannot run, for the same reasons."""

    model_config = ConfigDict(extra="forbid", strict=True)

    reasons: list[str]
    trials: list[str]


class TrialsBlocked(Said):
    """What the testbed cannot run was left out."""

    event: Literal["trials-blocked"]
    blocked: list[Blocked]


class TrialStarted(Said):
    """An attempt at a trial begins, on hosts of which some may be left out."""

    event: Literal["trial-started"]
    id: str
    attempt: Annotated[int, Field(ge=1)]
    without: list[str] = []


class Phase(Said):
    """A phase of a trial has ended."""

    event: Literal["phase"]
    id: str
    phase: str
    seconds: Seconds


class TrialFinished(Sealed):
    """An attempt at a trial has ended; `sums_sha256` is of its SHA256SUMS."""

    event: Literal["trial-finished"]
    id: str
    outcome: Literal["completed", "failed", "interrupted"]
    verdict: Literal["valid", "suspect", "invalid"]
    reasons: list[str]
    overhead_s: Seconds
    sums_sha256: Sha256 | None = None


class TrialAgain(Said):
    """A trial is to be run once more, after a pause."""

    event: Literal["trial-again"]
    id: str
    attempt: Count
    of: Count
    seconds: Seconds
    pause_s: Seconds = 0.0
    reasons: list[str]


class TrialRefused(Said):
    """A trial was not begun: its path is known not to be as asked for."""

    event: Literal["trial-refused"]
    id: str
    reasons: list[str]


class TrialSetAside(Said):
    """What was half written, or judged invalid, is kept in a folder of its own."""

    event: Literal["trial-set-aside"]
    id: str
    folder: str
    sums_sha256: Sha256 | None = None


class StateRead(Said):
    """What a host was like before it was changed, written down before anything changes."""

    event: Literal["state-read"]
    id: str
    host: str
    state: dict[str, str]
    lasting: bool = False


class StateRestored(Said):
    """A host was put back as it was read, and found to be so."""

    event: Literal["state-restored"]
    id: str
    host: str
    lasting: bool = False


class RestoreFailed(Said):
    """A host was put back and found to differ."""

    event: Literal["restore-failed"]
    id: str
    host: str
    differences: list[str]
    lasting: bool = False


class PathMeasured(Said):
    """A path was calibrated; `file` has what was seen."""

    event: Literal["path-measured"]
    trial: str
    file: str
    sha256: Sha256 | None = None
    seconds: Seconds
    missed: list[str]
    refused: list[str]
    left_out: list[str]


class WindowMeasured(Said):
    """It was found out how a host comes to its receive window for a sender; `file` has what was seen.

    `ratio` is the share of the receive buffer that its kernel counts as window, in 256ths; 0 where the window
    is the route's.
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


class LeaseTaken(Said):
    """A host was taken over from who held it, who had not been heard for so long, and had left it so."""

    event: Literal["lease-taken"]
    host: str
    owner: str
    campaign: str
    silent_s: Seconds
    left: Literal["", "restored", "changed"]
    reason: str


class HostLost(Said):
    """A host does not answer any more."""

    event: Literal["host-lost"]
    host: str
    reason: str


class HostBack(Said):
    """A host that was lost answers again and is put back."""

    event: Literal["host-back"]
    host: str
    seconds: Seconds


class HostQuarantined(Said):
    """A host is used no more in this run."""

    event: Literal["host-quarantined"]
    host: str
    reason: str


class HostReleased(Said):
    """A host has served again that an earlier run had in quarantine."""

    event: Literal["host-released"]
    host: str


class HostRebooting(Said):
    """A host goes down to boot anew."""

    event: Literal["host-rebooting"]
    host: str
    boot_id: str


class HostPowerCycled(Said):
    """A host that did not come back was switched off and on."""

    event: Literal["host-power-cycled"]
    host: str


class HostRebooted(Said):
    """A host is back after a reboot."""

    event: Literal["host-rebooted"]
    host: str
    boot_id: str
    seconds: Seconds


EVENTS: tuple[type[Said], ...] = (
    *(CampaignStarted, CampaignResumed, CampaignStopped, TestbedIdle, CampaignInterrupted, CampaignFinished),
    *(FilesRecorded, PlanChanged, TrialsBlocked),
    *(TrialStarted, Phase, TrialFinished, TrialAgain, TrialRefused, TrialSetAside),
    *(StateRead, StateRestored, RestoreFailed, PathMeasured, WindowMeasured, LeaseTaken),
    *(HostLost, HostBack, HostQuarantined, HostReleased),
    *(HostRebooting, HostPowerCycled, HostRebooted),
)
"""Every event that is written."""


def name_of(event: type[Said]) -> str:
    """Return the name that an event has in a journal."""
    return str(event.model_fields["event"].annotation.__args__[0])  # type: ignore[union-attr]


def journal_schema() -> dict[str, Any]:
    """Return the JSON Schema of one line of a journal: one of the events."""
    asked = [(name_of(event), "validation", TypeAdapter(event)) for event in EVENTS]
    made, shared = TypeAdapter.json_schemas(asked)  # type: ignore[arg-type]
    options = [made[name_of(event), "validation"] for event in EVENTS]
    return {"title": "journal", "type": "object", "oneOf": options, "$defs": shared["$defs"]}
