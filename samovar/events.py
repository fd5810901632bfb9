"""Events: what happens while a command works, for whoever displays or records it.

EVENTS is the vocabulary, from which `fab schema` makes docs/reference/events.md.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field

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


@dataclass(frozen=True)
class EventDescription:
    """When an event is emitted, and what each of its keys holds; a key that ends in `?` is optional."""

    summary: str
    keys: Mapping[str, str] = field(default_factory=dict)


_ID = {"id": "trial"}
_HOST = {"host": "host"}
_REASON = {"reason": "message"}
_REASONS = {"reasons": "list of messages"}
_TESTBED = {"testbed?": "testbed, if several share the campaign"}


def _event(summary: str, *keys: Mapping[str, str]) -> EventDescription:
    return EventDescription(summary, {key: text for one in keys for key, text in one.items()})


EVENTS: Mapping[str, EventDescription] = {
    "lab-starting": _event(
        "The virtual lab starts.",
        {
            "testbed": "testbed",
            "hosts": "number of hosts",
            "kernel": "`uml` or `native`",
            "release": "kernel release, as in `uname -r`",
        },
    ),
    "lab-host-ready": _event(
        "A host of the lab answers.",
        _HOST,
        {"address": "address of the host", "seconds": "seconds since the lab was started"},
    ),
    "lab-ready": _event(
        "All hosts of the lab answer.",
        {
            "testbed": "testbed",
            "kernel": "`uml` or `native`",
            "seconds": "seconds since the lab was started",
        },
    ),
    "lab-stopped": _event("The virtual lab has stopped.", {"testbed": "testbed"}),
    "campaign-created": _event("A new campaign starts.", {"folder": "folder of the campaign"}),
    "campaign-resumed": _event("A campaign is resumed.", {"folder": "folder of the campaign"}),
    "lease-taken": _event(
        "The lease of a host is taken over from another campaign.",
        _HOST,
        {
            "owner": "user who held the lease",
            "campaign": "campaign that held the lease",
            "testbed": "testbed that it was held for",
            "silent_s": "seconds since the holder was last heard",
            "left": "`restored`, `changed` or empty: the state in which the holder left the host",
            "reason": "why it could be taken over",
        },
    ),
    "host-recovered": _event(
        "A host is restored to its state before a trial that was cut off.",
        _HOST,
        {"trial": "trial that was cut off"},
        _TESTBED,
    ),
    "trials-open": _event(
        "It is known which trials will run.",
        {
            "asked": "number of trials of the plan that the testbed can run",
            "open": "number of those that still have to run",
            "seconds": "list of the planned traffic of each open trial in seconds, in order",
            "testbeds?": "number of testbeds that share the campaign",
        },
    ),
    "trial-started": _event(
        "An attempt at a trial starts.",
        _ID,
        {"attempt": "number of the attempt, from 1", "seconds": "planned traffic in seconds"},
        _TESTBED,
    ),
    "phase": _event(
        "A trial enters a phase; they are listed in [campaign folder](campaign-folder.md).",
        _ID,
        {"phase": "name of the phase"},
        _TESTBED,
    ),
    "throughput": _event(
        "Current throughput by the interface counters, while traffic runs.",
        _ID,
        {"received_bps": "received bit/s by host"},
        _TESTBED,
    ),
    "path-measured": _event(
        "A path was calibrated.",
        {
            "trial": "trial that it was measured for",
            "file": "file of the measurements in the campaign's folder",
            "sha256": "checksum of that file",
            "seconds": "seconds that it took",
            "missed": "list of differences from the requested path",
            "refused": "list of differences that prevent trials on this path",
            "left_out": "list of what could not be measured",
        },
        _TESTBED,
    ),
    "window-measured": _event(
        "The receive window that a host advertises was measured.",
        {
            "trial": "trial that it was measured for",
            "host": "receiver",
            "sender": "sender",
            "seconds": "seconds that it took",
            "left_out": "list of reasons why it could not be measured",
            "ratio?": "share of the receive buffer that is window, in 256ths; 0 if the route sets the window",
            "file?": "file of the measurements in the campaign's folder",
            "sha256?": "checksum of that file",
        },
        _TESTBED,
    ),
    "trial-finished": _event(
        "An attempt at a trial ends.",
        _ID,
        {"outcome": "`completed`, `failed`, `interrupted`", "verdict": "`valid`, `suspect`, `invalid`"},
        _REASONS,
        {"overhead_s": "seconds that it took beyond its traffic", "phases": "seconds by phase"},
        _TESTBED,
    ),
    "trial-again": _event(
        "A trial will be repeated.",
        _ID,
        {
            "attempt": "number of the next attempt",
            "of": "number of the last possible attempt",
            "seconds": "planned traffic in seconds",
            "pause_s?": "seconds until the next attempt",
        },
        _REASONS,
        _TESTBED,
    ),
    "trial-refused": _event("A trial is not started.", _ID, _REASONS, _TESTBED),
    "trial-failed": _event("A trial has failed and is not repeated in this run.", _ID, _REASON, _TESTBED),
    "host-lost": _event("A host does not answer.", _HOST, _REASON, _TESTBED),
    "host-back": _event(
        "A lost host answers again and has been restored.",
        _HOST,
        {"seconds": "seconds until it was restored"},
        _TESTBED,
    ),
    "host-quarantined": _event("A host is not used for the rest of this run.", _HOST, _REASON, _TESTBED),
    "host-released": _event(
        "A trial completed on a host that an earlier run had quarantined.", _HOST, _TESTBED
    ),
    "host-rebooting": _event("A host reboots.", _HOST, {"boot_id": "id of the boot that ends"}, _TESTBED),
    "host-power-cycled": _event(
        "A host did not come back; its power is switched off and on.", _HOST, _TESTBED
    ),
    "host-switched-on": _event("A host did not answer and is switched on.", _HOST, _TESTBED),
    "host-not-switched": _event(
        "A host did not answer, and its power could not be switched.", _HOST, _REASON, _TESTBED
    ),
    "host-rebooted": _event(
        "A host answers again after a reboot.",
        _HOST,
        {"boot_id": "id of the new boot", "seconds": "seconds until it answered"},
        _TESTBED,
    ),
    "testbed-idle": _event("A testbed has no trial left that it can run.", {"testbed": "testbed"}),
    "campaign-stopped": _event("The run ends early.", _REASON),
    "warning": _event("A warning.", {"text": "message"}, _TESTBED),
    "analysis-started": _event("The analysis starts.", {"trials": "number of trials"}),
    "analysed": _event(
        "A trial was analysed.",
        {"trial": "trial", "done": "number of trials done", "of": "number of all trials"},
    ),
    "figures": _event("A figure is drawn.", {"figure?": "name of the figure"}),
    "scorecard": _event(
        "The expectations were compared with the results.",
        dict.fromkeys(("reproduced", "differs", "no data"), "number of expectations"),
    ),
    "bundle-made": _event(
        "The bundle is complete.", {"pdf": "file of the report", "files": "number of files"}
    ),
    "verifying": _event("Checksums are being compared.", {"done": "bytes read", "of": "bytes of all files"}),
}


def misfits(event: Event) -> Iterator[str]:
    """Yield how an event differs from the vocabulary: unknown name, missing or unknown keys."""
    described = EVENTS.get(event.name)
    if described is None:
        yield f"{event.name}: not in the vocabulary"
        return
    known = {key.removesuffix("?") for key in described.keys}
    needed = {key for key in described.keys if not key.endswith("?")}
    yield from (f"{event.name}: {key} is missing" for key in sorted(needed - event.values.keys()))
    yield from (f"{event.name}: {key} is not described" for key in sorted(event.values.keys() - known))


def events_page() -> str:
    """Return the content of docs/reference/events.md."""
    rows = [f"| `{name}` | {one.summary} | {_keys(one.keys)} |" for name, one in EVENTS.items()]
    return PAGE.format(schema=SCHEMA, rows="\n".join(rows))


def _keys(keys: Mapping[str, str]) -> str:
    """Return the keys of an event with their descriptions; the page describes the optional testbed once."""
    return "; ".join(f"`{key}`" if key in _TESTBED else f"`{key}`: {text}" for key, text in keys.items())


PAGE = """\
# Events

`fab run … --events FILE` appends a line of JSON to a file for each event as it happens, for example for a
dashboard; `--events -` writes them to standard output, and messages for people to standard error.
`fab status --json` reports the state of a campaign without them. `fab schema` makes this page.

Each line has `schema` ({schema}), `t_s` (seconds since 1970 by the controller's clock), `event`, and the keys
of the event. `schema` is raised when an event or a key is removed or redefined; a reader must ignore events
and keys that it does not know. If the stream cannot be written any more it ends, and the campaign continues.
The record of a campaign is its [journal](campaign-folder.md), not this stream.

A key with `?` may be missing; `testbed?` is there if several testbeds share the campaign.

| event | when | keys |
| --- | --- | --- |
{rows}
"""
