"""The events that commands emit, and that journals record: their names, keys, descriptions and JSON Schemas.

Events go to the stream (`fab run --events`), to the journal, or to both. `fab schema` generates
docs/reference/events.md and docs/reference/schema/journal.json from this module.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

SCHEMA = 1
"""The version of the stream. The version is incremented when an event or key is removed or gets another
meaning, but not when an event or key is added."""


@dataclass(frozen=True)
class Event:
    """One event: its name, and its values."""

    name: str
    values: Mapping[str, object] = field(default_factory=dict)


Emit = Callable[[Event], None]


def silent(event: Event) -> None:
    """Ignore an event. This function is passed as `emit` if nobody listens to events."""


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
"""A key of an event: its description, and the JSON Schema of its values."""
KEYS: Mapping[str, KeyDescription] = {
    "address": ("address of the host", TEXT),
    "accelerator": ("`KVM`, or `TCG` for emulation", _one_of("KVM", "TCG")),
    "asked": ("number of requested trials that are complete or can run", COUNT),
    "attempt": ("number of the attempt, from 1", COUNT),
    "before": ("checksum of all bytes of the journal before this event", SHA256),
    "blocked": (
        "groups of trials that are blocked for the same reasons",
        _list_of(_object(reasons=TEXTS, trials=TEXTS)),
    ),
    "boot_id": ("id of the boot that the reboot ends", TEXT),
    "campaign": ("campaign that held the lease", TEXT),
    "completed": ("number of complete trials", COUNT),
    "cpus": ("number of virtual processors", COUNT),
    "differences": ("list of differences", TEXTS),
    "differs": ("number of expectations that differ", COUNT),
    "done": ("number of items done", COUNT),
    "failed": ("list of failed trials", TEXTS),
    "figure": ("name of the figure", TEXT),
    "file": ("file in the campaign's folder", TEXT),
    "files": ("number of files", COUNT),
    "folder": ("folder", TEXT),
    "host": ("host", TEXT),
    "hosts": ("number of hosts", COUNT),
    "id": ("trial", TEXT),
    "journal_sha256": ("checksum of the shard's journal", SHA256),
    "kept": ("folder of the previous plan", TEXT),
    "kernel": ("`uml`, `native` or `vm`", _one_of("uml", "native", "vm")),
    "kernel_before": ("kernel of the host in the previous run", TEXT),
    "kernel_now": ("kernel of the host in this run", TEXT),
    "lasting": ("whether the event concerns settings that need a reboot", {"type": "boolean"}),
    "left": (
        "how the holder left the host: `restored`, `changed`, or empty if unknown",
        _one_of("", "restored", "changed"),
    ),
    "left_out": ("list of measurements that were not possible, with reasons", TEXTS),
    "machines": ("number of virtual machines", COUNT),
    "memory_bytes": ("memory of the machines and QEMU", COUNT),
    "missed": ("list of differences from the requested path", TEXTS),
    "node": ("computer on which the controller runs", TEXT),
    "node_kernel": ("kernel release of `node`", TEXT),
    "no data": ("number of expectations without data", COUNT),
    "of": ("total number of items", COUNT),
    "open": ("number of trials still to run", COUNT),
    "orphans": ("list of complete trials that are not in the new plan", TEXTS),
    "outcome": ("`completed`, `failed`, `interrupted`", _one_of("completed", "failed", "interrupted")),
    "overhead_s": ("time in addition to traffic, reboots and calibration", NUMBER),
    "owner": ("user who held the lease", TEXT),
    "pause_s": ("seconds until the next attempt", NUMBER),
    "pdf": ("file of the report", TEXT),
    "pick": ("description of the picked trials", TEXT),
    "phase": ("name of the phase", TEXT),
    "phases": ("seconds by phase", _map_of(NUMBER)),
    "ratio": ("receive window / receive buffer, in 256ths; 0 if the route sets the window", COUNT),
    "reason": ("message", TEXT),
    "reasons": ("list of messages", TEXTS),
    "received_bps": ("received bit/s by host", _map_of(NUMBER)),
    "refused": ("list of differences that are too large for trials on this path", TEXTS),
    "release": ("kernel release, or QEMU's release and accelerator", TEXT),
    "reproduced": ("number of reproduced expectations", COUNT),
    "runs": ("number of trials to run, by reason", _map_of(COUNT)),
    "samovar": ("version of samovar", TEXT),
    "seconds": ("duration in seconds", NUMBER),
    "sender": ("host that sends", TEXT),
    "sha256": ("checksum of `file`", SHA256),
    "shard": ("part of the plan's trials, such as `2/4`", TEXT),
    "silent_s": ("seconds since the holder's last heartbeat", NUMBER),
    "stale": (
        "list of results that are outdated because the plan changed",
        _list_of(_object(changes=TEXTS, results=TEXTS)),
    ),
    "stands": ("number of complete trials that remain valid", COUNT),
    "state": ("values to restore, by key", _map_of(TEXT)),
    "sums_sha256": ("checksum of the trial's SHA256SUMS", SHA256),
    "testbed": ("testbed", TEXT),
    "testbeds": ("number of testbeds that share the campaign", COUNT),
    "text": ("message", TEXT),
    "trial": ("trial", TEXT),
    "trials": ("number of trials", COUNT),
    "verdict": ("`valid`, `suspect`, `invalid`", _one_of("valid", "suspect", "invalid")),
    "without": ("list of quarantined hosts that the trial does not need", TEXTS),
}
"""The keys of events, except those in SPECIAL_KEYS."""
Events = Mapping[str, tuple[str, str]]
"""For each event, a sentence that says when it happens, and the names of its keys, separated by commas. A `?`
marks keys that may be missing."""
STREAM_ONLY: Events = {
    "lab-starting": ("The virtual lab starts.", "testbed, hosts, kernel, release"),
    "lab-machines": (
        "Virtual machines of the lab start to boot; this takes about `seconds`.",
        "testbed, machines, memory_bytes, cpus, accelerator, seconds",
    ),
    "lab-host-ready": ("A host of the lab has answered, after `seconds`.", "host, address, seconds"),
    "lab-ready": ("All hosts of the lab have answered, after `seconds`.", "testbed, kernel, seconds"),
    "lab-stopped": ("The virtual lab has stopped.", "testbed"),
    "compiling": ("A part of samovar is compiled at its first use.", "text, folder"),
    "campaign-created": ("A new campaign starts.", "folder"),
    "campaign-resumed": ("A campaign is resumed.", "folder"),
    "host-recovered": ("A host is restored to its state before `trial`, which was cut off.", "host, trial"),
    "trials-open": ("The trials that will run are known.", "asked, open, seconds, testbeds?"),
    "trial-started": ("An attempt at a trial starts.", "id, attempt, seconds"),
    "phase": ("A trial enters one of its [phases](../architecture.md#the-phases-of-a-trial).", "id, phase"),
    "throughput": ("While traffic runs, the throughput is read from interface counters.", "id, received_bps"),
    "trial-finished": ("An attempt at a trial ends.", "id, outcome, verdict, reasons, overhead_s, phases"),
    "trial-failed": ("A trial has failed and is not repeated in this run.", "id, reason"),
    "host-switched-on": ("A host did not answer and is switched on.", "host"),
    "host-not-switched": ("A host did not answer, and its power could not be switched.", "host, reason"),
    "warning": ("A warning.", "text"),
    "analysis-started": ("The analysis starts.", "trials"),
    "analysed": ("A trial was analysed.", "trial, done, of"),
    "exported": ("A table, or a trial for Flent, was exported.", "file, done, of"),
    "figures": ("A figure is drawn.", "figure?"),
    "scorecard": ("The expectations were compared with the results.", "reproduced, differs, no data"),
    "bundle-made": ("The bundle is complete.", "pdf, files"),
    "verifying": ("Checksums are being compared.", "done, of"),
}
JOURNAL_ONLY: Events = {
    "campaign-started": ("A controller starts the campaign.", "trials, node?, node_kernel?, samovar?"),
    "campaign-resumed": ("A controller resumes the campaign.", "trials, node?, node_kernel?, samovar?"),
    "shard-merged": (
        "The results of a shard were merged into the campaign; `folder` has the shard's own journal.",
        "shard, campaign, folder, journal_sha256",
    ),
    "trials-picked": (
        "The run covers the part of the plan that `pick` describes, or the whole plan if `pick` is empty.",
        "pick, trials",
    ),
    "plan-changed": ("A new plan replaces the previous one.", "kept, stands, runs, stale, orphans"),
    "trials-blocked": ("Trials that no testbed can run are left out.", "blocked"),
    "files-recorded": ("Checksums of files that do not belong to a trial are recorded.", "files, before?"),
    "trial-started": (
        "An attempt at a trial starts.",
        "id, attempt, without?, node?, node_kernel?, samovar?",
    ),
    "trial-reopened": ("A complete trial will run again.", "id"),
    "state-read": ("The state of a host is recorded before a trial changes it.", "id, host, state, lasting?"),
    "state-restored": ("A host was restored to the state that `state-read` records.", "id, host, lasting?"),
    "restore-failed": (
        "A restored host differs from the state in `state-read`.",
        "id, host, differences, lasting?",
    ),
    "phase": ("A phase of a trial ends.", "id, phase, seconds"),
    "trial-finished": (
        "An attempt at a trial ends.",
        "id, outcome, verdict, reasons, overhead_s, sums_sha256?, before?",
    ),
    "trial-set-aside": (
        "The folder of an incomplete, invalid or reopened trial is moved to `folder`.",
        "id, folder, sums_sha256?",
    ),
    "campaign-interrupted": ("The user interrupted the run, and it ended cleanly.", "before?"),
    "campaign-finished": ("No trial is left to run.", "completed, failed, before?"),
}
BOTH: Events = {
    "lease-taken": (
        "The lease of a host is taken over from another campaign.",
        "host, owner, campaign, testbed, silent_s, left, reason",
    ),
    "path-measured": ("A path was calibrated.", "trial, file, sha256?, seconds, missed, refused, left_out"),
    "window-measured": (
        "The receive window that `host` advertises to `sender` was measured.",
        "trial, host, sender, seconds, left_out, ratio?, file?, sha256?",
    ),
    "trial-again": (
        "A trial will be repeated; `attempt` is the number of the next attempt.",
        "id, attempt, of, seconds, pause_s?, reasons",
    ),
    "trial-refused": (
        "A trial is not started: its path differs too much from the request.",
        "id, reasons",
    ),
    "kernel-changed": (
        "In a resumed campaign with complete trials, a host runs another kernel than in the previous run.",
        "host, kernel_before, kernel_now, completed",
    ),
    "host-lost": ("A host does not answer.", "host, reason"),
    "host-back": ("A lost host answers again and has been restored.", "host, seconds"),
    "host-quarantined": ("A host is not used for the rest of this run.", "host, reason"),
    "host-released": ("A trial completed on a host that an earlier run had quarantined.", "host"),
    "host-rebooting": ("A host reboots.", "host, boot_id"),
    "host-power-cycled": ("A host did not come back; its power is switched off and on.", "host"),
    "host-rebooted": ("A host answers again after a reboot.", "host, boot_id, seconds"),
    "testbed-idle": ("A testbed has no trial left that it can run.", "testbed?"),
    "campaign-stopped": ("The run ends early: no further trial is started.", "reason"),
}
STREAM_EVENTS, JOURNAL_EVENTS = {**STREAM_ONLY, **BOTH}, {**JOURNAL_ONLY, **BOTH}
PLANNED = ("planned duration of the traffic", NUMBER)
EVERYDAY_KEYS = {
    *("host", "testbed", "id", "trial", "seconds", "reason", "text", "reasons", "folder", "address"),
    *("attempt", "file", "sha256", "left_out", "done", "of", "hosts", "machines", "trials", "files"),
    *("phase", "figure", "pdf", "campaign", "cpus", "testbeds", "reproduced", "differs", "no data"),
}
"""Keys that docs/reference/events.md explains once, above the list."""
SPECIAL_KEYS: Mapping[tuple[str, str], KeyDescription] = {
    ("exported", "file"): ("name of the table, or id of the trial", TEXT),
    ("files-recorded", "files"): ("checksum by path", _map_of(SHA256)),
    ("host-rebooted", "boot_id"): ("id of the new boot", TEXT),
    ("shard-merged", "campaign"): ("campaign of the shard", TEXT),
    ("lease-taken", "testbed"): ("testbed of that campaign", TEXT),
    ("trial-again", "of"): ("largest number of attempts", COUNT),
    ("trial-again", "seconds"): PLANNED,
    ("trial-started", "seconds"): PLANNED,
    ("trials-picked", "trials"): ("list of trials", TEXTS),
    ("trials-open", "seconds"): (
        "planned duration of each open trial's traffic, in the plan's order",
        _list_of(NUMBER),
    ),
    ("verifying", "done"): ("bytes read", COUNT),
    ("verifying", "of"): ("bytes of all files", COUNT),
}
"""Keys whose meaning in one event differs from their meaning in KEYS, by (event, key)."""


def keys_of(event: str, names: str) -> Iterator[tuple[str, bool, KeyDescription]]:
    """Yield each key of an event: its name, whether it may be missing, and its description."""
    for word in names.split(", ") if names else ():
        name = word.removesuffix("?")
        yield name, word != name, SPECIAL_KEYS.get((event, name)) or KEYS[name]


def line_schema(title: str, events: Events) -> dict[str, Any]:
    """Return the JSON Schema for one line of the journal or of the stream, as this version writes it.

    samovar itself does not validate journals with this schema, because it must also read journals of later
    versions.
    """
    lines: dict[str, Schema] = {}
    for event, (summary, names) in events.items():
        keys = [
            ("t_s", False, ("seconds since 1970 by the controller's clock", {"type": "number"})),
            ("event", False, (summary, {"const": event})),
            ("testbed", True, ("testbed of the event, if several share the campaign", TEXT)),
            *keys_of(event, names),
        ]
        lines[event] = {
            "type": "object",
            "properties": {name: {**schema, "description": text} for name, _, (text, schema) in keys},
            "required": [name for name, optional, _ in keys if not optional],
            "additionalProperties": False,
        }
    options = [{"$ref": f"#/$defs/{name}"} for name in lines]
    return {"title": title, "type": "object", "oneOf": options, "$defs": lines}


def event_lines() -> Iterator[str]:
    """Yield a line for each type of event in the stream: its name, when it is emitted, and its keys.

    The keys are described, except those in EVERYDAY_KEYS.
    """
    for event, (summary, names) in STREAM_EVENTS.items():
        keys = [
            f"`{key}{'?' * optional}`"
            + (f": {text}" if (event, key) in SPECIAL_KEYS or key not in EVERYDAY_KEYS else "")
            for key, optional, (text, _) in keys_of(event, names)
        ]
        yield f"- `{event}`: {summary}" + (f" Keys: {'; '.join(keys)}" if keys else "")
