"""Events: what happens while a command works, as the event stream shows it and the journal records it.

EVENTS and KEYS describe both; `fab schema` makes docs/reference/events.md and schema/journal.json from them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

SCHEMA = 1
"""Version of the stream: raised when an event or a key is removed or redefined, not when one is added."""


@dataclass(frozen=True)
class Event:
    """Something that happened: a name of the vocabulary, and its values."""

    name: str
    values: Mapping[str, object] = field(default_factory=dict)


Emit = Callable[[Event], None]


def silent(event: Event) -> None:
    """Ignore an event."""


Schema = Mapping[str, Any]
TEXT: Schema = {"type": "string"}
TEXTS: Schema = {"type": "array", "items": TEXT}
COUNT: Schema = {"type": "integer", "minimum": 0}
NUMBER: Schema = {"type": "number", "minimum": 0}
SHA256: Schema = {"type": "string", "pattern": "^[0-9a-f]{64}$"}


def _one_of(*values: str) -> Schema:
    return {"enum": list(values)}


def _map_of(value: Schema) -> Schema:
    return {"type": "object", "additionalProperties": value}


def _list_of(value: Schema) -> Schema:
    return {"type": "array", "items": value}


def _object(**properties: Schema) -> Schema:
    required = list(properties)
    return {"type": "object", "properties": properties, "required": required, "additionalProperties": False}


KeyDescription = tuple[str, Schema]
"""What a key of an event holds: a sentence, and the JSON Schema of its values."""
KEYS: Mapping[str, KeyDescription] = {
    "address": ("address of the host", TEXT),
    "asked": ("number of trials of the plan that the testbed can run", COUNT),
    "attempt": ("number of the attempt, from 1", COUNT),
    "before": ("checksum of all bytes of the journal before this event", SHA256),
    "blocked": ("groups of trials with equal reasons", _list_of(_object(reasons=TEXTS, trials=TEXTS))),
    "boot_id": ("id of the boot that ends or has begun", TEXT),
    "campaign": ("campaign that held the lease", TEXT),
    "completed": ("number of complete trials", COUNT),
    "differences": ("list of differences", TEXTS),
    "differs": ("number of expectations", COUNT),
    "done": ("number of trials done", COUNT),
    "failed": ("list of the trials that failed", TEXTS),
    "figure": ("name of the figure", TEXT),
    "file": ("file of the measurements in the campaign's folder", TEXT),
    "files": ("number of files", COUNT),
    "folder": ("folder", TEXT),
    "host": ("host", TEXT),
    "hosts": ("number of hosts", COUNT),
    "id": ("trial", TEXT),
    "kept": ("folder of the previous plan", TEXT),
    "kernel": ("`uml` or `native`", _one_of("uml", "native")),
    "lasting": ("whether it concerns settings that need a reboot", {"type": "boolean"}),
    "left": (
        "`restored`, `changed` or empty: state in which the holder left the host",
        _one_of("", "restored", "changed"),
    ),
    "left_out": ("list of what could not be measured, with reasons", TEXTS),
    "missed": ("list of differences from the requested path", TEXTS),
    "no data": ("number of expectations", COUNT),
    "of": ("number of all trials", COUNT),
    "open": ("number of trials that still have to run", COUNT),
    "orphans": ("list of results that are no longer requested", TEXTS),
    "outcome": ("`completed`, `failed`, `interrupted`", _one_of("completed", "failed", "interrupted")),
    "overhead_s": ("seconds that it took beyond its traffic", NUMBER),
    "owner": ("user who held the lease", TEXT),
    "pause_s": ("seconds until the next attempt", NUMBER),
    "pdf": ("file of the report", TEXT),
    "phase": ("name of the phase", TEXT),
    "phases": ("seconds by phase", _map_of(NUMBER)),
    "ratio": ("share of the receive buffer that is window, in 256ths; 0 if the route sets it", COUNT),
    "reason": ("message", TEXT),
    "reasons": ("list of messages", TEXTS),
    "received_bps": ("received bit/s by host", _map_of(NUMBER)),
    "refused": ("list of differences that prevent trials on this path", TEXTS),
    "release": ("kernel release, as in `uname -r`", TEXT),
    "reproduced": ("number of expectations", COUNT),
    "runs": ("number of trials to run, by reason", _map_of(COUNT)),
    "seconds": ("duration in seconds", NUMBER),
    "sender": ("host that sends", TEXT),
    "sha256": ("checksum of that file", SHA256),
    "silent_s": ("seconds since the holder was last heard", NUMBER),
    "stale": ("list of results that no longer count", _list_of(_object(changes=TEXTS, results=TEXTS))),
    "stands": ("number of complete trials that remain valid", COUNT),
    "state": ("values by key, to be restored", _map_of(TEXT)),
    "sums_sha256": ("checksum of the trial's SHA256SUMS", SHA256),
    "testbed": ("testbed", TEXT),
    "testbeds": ("number of testbeds that share the campaign", COUNT),
    "text": ("message", TEXT),
    "trial": ("trial", TEXT),
    "trials": ("number of trials", COUNT),
    "verdict": ("`valid`, `suspect`, `invalid`", _one_of("valid", "suspect", "invalid")),
    "without": ("list of quarantined hosts that it does not need", TEXTS),
}
"""What the keys of events hold, unless an event describes one of its own."""
FINISHED = "id, outcome, verdict, reasons, overhead_s"
PLANNED = ("planned traffic in seconds", NUMBER)
STREAM, JOURNAL, BOTH = "stream", "journal", "both"


@dataclass(frozen=True)
class EventDescription:
    """An event of the stream, of the journal, or of both: when it happens, and the names of its keys.

    A `?` marks keys that may be missing; `own_keys` describes those that hold something special.
    """

    name: str
    where: str
    summary: str
    names: str = ""
    own_keys: Mapping[str, KeyDescription] = field(default_factory=dict)

    def described_keys(self) -> Iterator[tuple[str, bool, KeyDescription]]:
        """Yield the name of each key, whether it may be missing, and what it holds."""
        for word in self.names.split(", ") if self.names else ():
            name = word.removesuffix("?")
            yield name, word != name, self.own_keys.get(name) or KEYS[name]


def _event(name: str, where: str, summary: str, names: str = "", **own: KeyDescription) -> EventDescription:
    return EventDescription(name, where, summary, names, own)


EVENTS = (
    _event("lab-starting", STREAM, "The virtual lab starts.", "testbed, hosts, kernel, release"),
    _event(
        "lab-host-ready",
        STREAM,
        "A host of the lab answers, `seconds` after the start.",
        "host, address, seconds",
    ),
    _event(
        "lab-ready",
        STREAM,
        "All hosts of the lab answer, `seconds` after the start.",
        "testbed, kernel, seconds",
    ),
    _event("lab-stopped", STREAM, "The virtual lab has stopped.", "testbed"),
    _event("campaign-created", STREAM, "A new campaign starts.", "folder"),
    _event("campaign-resumed", STREAM, "A campaign is resumed.", "folder"),
    _event("campaign-started", JOURNAL, "A controller starts the campaign.", "trials"),
    _event("campaign-resumed", JOURNAL, "A controller resumes the campaign.", "trials"),
    _event(
        "lease-taken",
        BOTH,
        "The lease of a host is taken over from another campaign; `reason` says why it could be.",
        "host, owner, campaign, testbed, silent_s, left, reason",
        testbed=("testbed that it was held for", TEXT),
    ),
    _event(
        "host-recovered",
        STREAM,
        "A host is restored to its state before `trial`, which was cut off.",
        "host, trial",
    ),
    _event(
        "plan-changed", JOURNAL, "A new plan replaces the previous one.", "kept, stands, runs, stale, orphans"
    ),
    _event("trials-blocked", JOURNAL, "Trials that the testbed cannot run are left out.", "blocked"),
    _event(
        "files-recorded",
        JOURNAL,
        "The checksums of the campaign's files other than those of trials.",
        "files, before?",
        files=("checksum by path", _map_of(SHA256)),
    ),
    _event(
        "trials-open",
        STREAM,
        "It is known which trials will run.",
        "asked, open, seconds, testbeds?",
        seconds=("list of the planned traffic of each open trial in seconds, in order", _list_of(NUMBER)),
    ),
    _event("trial-started", STREAM, "An attempt at a trial starts.", "id, attempt, seconds", seconds=PLANNED),
    _event("trial-started", JOURNAL, "An attempt at a trial starts.", "id, attempt, without?"),
    _event(
        "state-read",
        JOURNAL,
        "The state of a host before a trial changes it, recorded before the change.",
        "id, host, state, lasting?",
    ),
    _event(
        "state-restored",
        JOURNAL,
        "A host is restored to the state that was read, and this is verified.",
        "id, host, lasting?",
    ),
    _event(
        "restore-failed",
        JOURNAL,
        "A host was restored but differs from the state that was read.",
        "id, host, differences, lasting?",
    ),
    _event(
        "phase",
        STREAM,
        "A trial enters a phase; they are listed in [campaign folder](campaign-folder.md).",
        "id, phase",
    ),
    _event("phase", JOURNAL, "A phase of a trial ends.", "id, phase, seconds"),
    _event(
        "throughput",
        STREAM,
        "Current throughput by the interface counters, while traffic runs.",
        "id, received_bps",
    ),
    _event(
        "path-measured",
        BOTH,
        "A path was calibrated.",
        "trial, file, sha256?, seconds, missed, refused, left_out",
    ),
    _event(
        "window-measured",
        BOTH,
        "The receive window that `host` advertises to `sender` was measured.",
        "trial, host, sender, seconds, left_out, ratio?, file?, sha256?",
    ),
    _event("trial-finished", STREAM, "An attempt at a trial ends.", f"{FINISHED}, phases"),
    _event("trial-finished", JOURNAL, "An attempt at a trial ends.", f"{FINISHED}, sums_sha256?, before?"),
    _event(
        "trial-again",
        BOTH,
        "A trial will be repeated; `attempt` is the next attempt.",
        "id, attempt, of, seconds, pause_s?, reasons",
        of=("number of the last possible attempt", COUNT),
        seconds=PLANNED,
    ),
    _event("trial-refused", BOTH, "A trial is not started: its path is not as requested.", "id, reasons"),
    _event("trial-failed", STREAM, "A trial has failed and is not repeated in this run.", "id, reason"),
    _event(
        "trial-set-aside", JOURNAL, "An incomplete or invalid trial is moved.", "id, folder, sums_sha256?"
    ),
    _event("host-lost", BOTH, "A host does not answer.", "host, reason"),
    _event("host-back", BOTH, "A lost host answers again and has been restored.", "host, seconds"),
    _event("host-quarantined", BOTH, "A host is not used for the rest of this run.", "host, reason"),
    _event("host-released", BOTH, "A trial completed on a host that an earlier run had quarantined.", "host"),
    _event("host-rebooting", BOTH, "A host reboots.", "host, boot_id"),
    _event("host-power-cycled", BOTH, "A host did not come back; its power is switched off and on.", "host"),
    _event("host-switched-on", STREAM, "A host did not answer and is switched on.", "host"),
    _event(
        "host-not-switched",
        STREAM,
        "A host did not answer, and its power could not be switched.",
        "host, reason",
    ),
    _event("host-rebooted", BOTH, "A host answers again after a reboot.", "host, boot_id, seconds"),
    _event("testbed-idle", BOTH, "A testbed has no trial left that it can run.", "testbed?"),
    _event("campaign-stopped", BOTH, "The run ends early: no further trial is started.", "reason"),
    _event("campaign-interrupted", JOURNAL, "The user interrupted the run, which ended in order.", "before?"),
    _event("campaign-finished", JOURNAL, "No trial is left to run.", "completed, failed, before?"),
    _event("warning", STREAM, "A warning.", "text"),
    _event("analysis-started", STREAM, "The analysis starts.", "trials"),
    _event("analysed", STREAM, "A trial was analysed.", "trial, done, of"),
    _event("figures", STREAM, "A figure is drawn.", "figure?"),
    _event(
        "scorecard",
        STREAM,
        "The expectations were compared with the results.",
        "reproduced, differs, no data",
    ),
    _event("bundle-made", STREAM, "The bundle is complete.", "pdf, files"),
    _event(
        "verifying",
        STREAM,
        "Checksums are being compared.",
        "done, of",
        done=("bytes read", COUNT),
        of=("bytes of all files", COUNT),
    ),
)


STREAM_EVENTS = {one.name: one for one in EVENTS if one.where in (STREAM, BOTH)}
JOURNAL_EVENTS = {one.name: one for one in EVENTS if one.where in (JOURNAL, BOTH)}


def line_schema(title: str, events: Mapping[str, EventDescription]) -> dict[str, Any]:
    """Return the JSON Schema of one line of the journal or of the stream, as it is written.

    A journal is read without it, so that one of a later version can be read.
    """
    lines = {name: _event_schema(one) for name, one in events.items()}
    options = [{"$ref": f"#/$defs/{name}"} for name in lines]
    return {"title": title, "type": "object", "oneOf": options, "$defs": lines}


def _event_schema(event: EventDescription) -> Schema:
    keys = [
        ("t_s", False, ("seconds since 1970 by the controller's clock", {"type": "number"})),
        ("event", False, (event.summary, {"const": event.name})),
        ("testbed", True, ("testbed of the event, if several share the campaign", TEXT)),
        *event.described_keys(),
    ]
    return {
        "type": "object",
        "properties": {name: {**schema, "description": text} for name, _, (text, schema) in keys},
        "required": [name for name, optional, _ in keys if not optional],
        "additionalProperties": False,
    }


def events_page() -> str:
    """Return the content of docs/reference/events.md."""
    rows = []
    for name, event in STREAM_EVENTS.items():
        keys = [f"`{key}{'?' * optional}`: {text}" for key, optional, (text, _) in event.described_keys()]
        rows.append(f"| `{name}` | {event.summary} | {'; '.join(keys)} |")
    return PAGE.format(schema=SCHEMA, rows="\n".join(rows))


PAGE = """\
# Events

`fab run … --events FILE` appends a line of JSON to a file for each event as it happens, for example for a
dashboard; `--events -` writes them to standard output, and messages for people to standard error.
`fab status --json` reports the state of a campaign without them. `fab schema` makes this page.

Each line has `schema` ({schema}), `t_s` (seconds since 1970 by the controller's clock), `event`, and the keys
of the event. `schema` is raised when an event or a key is removed or redefined; a reader must ignore events
and keys that it does not know. If the stream cannot be written any more it ends, and the campaign continues.
The record of a campaign is its [journal](campaign-folder.md), not this stream.

A key with `?` may be missing. If several testbeds share the campaign, each event of a trial or a host also
has `testbed`.

| event | when | keys |
| --- | --- | --- |
{rows}
"""
