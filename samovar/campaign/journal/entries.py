"""JSON Schema of each event in the journal; docs/reference/schema/journal.json is generated from it.

This is what is written. A journal is read without it, so that one of a later version can be read.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from samovar.campaign.journal.journal_file import SEALING

Schema = Mapping[str, Any]

TEXT: Schema = {"type": "string"}
TEXTS: Schema = {"type": "array", "items": TEXT}
COUNT: Schema = {"type": "integer", "minimum": 0}
SECONDS: Schema = {"type": "number", "minimum": 0}
FLAG: Schema = {"type": "boolean"}
SHA256: Schema = {"type": "string", "pattern": "^[0-9a-f]{64}$"}


def _map_of(value: Schema) -> Schema:
    return {"type": "object", "additionalProperties": value}


def _object(description: str, required: Mapping[str, Schema], optional: Mapping[str, Schema]) -> Schema:
    return {
        "type": "object",
        "description": description,
        "properties": {**required, **optional},
        "required": list(required),
        "additionalProperties": False,
    }


def _event(
    name: str, description: str, optional: Mapping[str, Schema] | None = None, **required: Schema
) -> tuple[str, Schema]:
    """Return the schema of an event, whose keys include time, testbed and, if it seals, `before`."""
    t_s = {"type": "number", "description": "Seconds since the epoch by the controller's clock."}
    testbed = {**TEXT, "description": "Testbed of the event, if several share the campaign."}
    before = {**SHA256, "description": "SHA-256 of all bytes of the journal before this event."}
    return name, _object(
        description,
        {"t_s": t_s, "event": {"const": name}, **required},
        {**(optional or {}), "testbed": testbed, **({"before": before} if name in SEALING else {})},
    )


_BLOCKED = _object(
    "Trials that the testbed cannot run for the same reasons.", {"reasons": TEXTS, "trials": TEXTS}, {}
)
_STALE = _object(
    "Results of trials that have changed in the new plan.", {"changes": TEXTS, "results": TEXTS}, {}
)
_RATIO = {
    "type": "integer",
    "description": "Share of the receive buffer that is window, in 256ths; 0 if the route sets the window.",
}
_LASTING = {"lasting": {**FLAG, "description": "Whether it concerns settings that need a reboot."}}

EVENTS: Mapping[str, Schema] = dict(
    (
        _event("campaign-started", "A controller starts the campaign.", trials=COUNT),
        _event("campaign-resumed", "A controller resumes the campaign.", trials=COUNT),
        _event("campaign-stopped", "The run ends early: no further trial is started.", reason=TEXT),
        _event("campaign-interrupted", "The user interrupted the campaign, and it ended in good order."),
        _event("campaign-finished", "No trial is left to run.", completed=COUNT, failed=TEXTS),
        _event("testbed-idle", "The testbed has no trial left that it can run; another may have one."),
        _event(
            "files-recorded",
            "The files of the campaign other than those of trials, with their SHA-256.",
            files=_map_of(SHA256),
        ),
        _event(
            "plan-changed",
            "A new plan replaces the previous one, which is kept in the folder `kept`.",
            kept=TEXT,
            stands=COUNT,
            runs=_map_of(COUNT),
            stale={"type": "array", "items": _STALE},
            orphans=TEXTS,
        ),
        _event(
            "trials-blocked",
            "Trials that the testbed cannot run are left out.",
            blocked={"type": "array", "items": _BLOCKED},
        ),
        _event(
            "trial-started",
            "An attempt at a trial starts; it leaves out the hosts in `without`.",
            {"without": TEXTS},
            id=TEXT,
            attempt={"type": "integer", "minimum": 1},
        ),
        _event("phase", "A phase of a trial ends.", id=TEXT, phase=TEXT, seconds=SECONDS),
        _event(
            "trial-finished",
            "An attempt at a trial ends; `sums_sha256` is the SHA-256 of its SHA256SUMS.",
            {"sums_sha256": SHA256},
            id=TEXT,
            outcome={"enum": ["completed", "failed", "interrupted"]},
            verdict={"enum": ["valid", "suspect", "invalid"]},
            reasons=TEXTS,
            overhead_s=SECONDS,
        ),
        _event(
            "trial-again",
            "A trial will be repeated after a pause.",
            {"pause_s": SECONDS},
            id=TEXT,
            attempt=COUNT,
            of=COUNT,
            seconds=SECONDS,
            reasons=TEXTS,
        ),
        _event(
            "trial-refused",
            "A trial is not started because calibration found its path wrong.",
            id=TEXT,
            reasons=TEXTS,
        ),
        _event(
            "trial-set-aside",
            "The files of an incomplete or invalid trial are moved to `folder`.",
            {"sums_sha256": SHA256},
            id=TEXT,
            folder=TEXT,
        ),
        _event(
            "state-read",
            "The state of a host before a trial changes it, recorded before the change.",
            _LASTING,
            id=TEXT,
            host=TEXT,
            state=_map_of(TEXT),
        ),
        _event(
            "state-restored",
            "A host is restored to the state that was read, and this is verified.",
            _LASTING,
            id=TEXT,
            host=TEXT,
        ),
        _event(
            "restore-failed",
            "A host was restored but differs from the state that was read.",
            _LASTING,
            id=TEXT,
            host=TEXT,
            differences=TEXTS,
        ),
        _event(
            "path-measured",
            "A path was calibrated; `file` has the measurements.",
            {"sha256": SHA256},
            trial=TEXT,
            file=TEXT,
            seconds=SECONDS,
            missed=TEXTS,
            refused=TEXTS,
            left_out=TEXTS,
        ),
        _event(
            "window-measured",
            "The receive window that a host advertises to a sender was measured; `file` has the results.",
            {"ratio": _RATIO, "file": TEXT, "sha256": SHA256},
            trial=TEXT,
            host=TEXT,
            sender=TEXT,
            seconds=SECONDS,
            left_out=TEXTS,
        ),
        _event(
            "lease-taken",
            "A host's lease is taken over from a campaign that has been silent for `silent_s`.",
            host=TEXT,
            owner=TEXT,
            campaign=TEXT,
            silent_s=SECONDS,
            left={"enum": ["", "restored", "changed"]},
            reason=TEXT,
        ),
        _event("host-lost", "A host no longer answers.", host=TEXT, reason=TEXT),
        _event("host-back", "A lost host answers again and has been restored.", host=TEXT, seconds=SECONDS),
        _event("host-quarantined", "A host is not used for the rest of this run.", host=TEXT, reason=TEXT),
        _event(
            "host-released", "A trial completed on a host that an earlier run had quarantined.", host=TEXT
        ),
        _event("host-rebooting", "A host reboots.", host=TEXT, boot_id=TEXT),
        _event(
            "host-power-cycled",
            "A host did not come back; its power was switched off and on.",
            host=TEXT,
        ),
        _event(
            "host-rebooted",
            "A host answers again after a reboot.",
            host=TEXT,
            boot_id=TEXT,
            seconds=SECONDS,
        ),
    )
)


def journal_schema() -> dict[str, Any]:
    """Return the JSON Schema of one line of a journal."""
    options = [{"$ref": f"#/$defs/{name}"} for name in EVENTS]
    return {"title": "journal", "type": "object", "oneOf": options, "$defs": EVENTS}
