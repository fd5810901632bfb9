"""Events: how the package says what happens; the fabfile decides how a person sees it.

EVENTS is the vocabulary; docs/reference/events.md is made from it (`fab schema`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field

SCHEMA = 1
"""Of the stream: raised when an event or a key goes or changes its meaning, not when one is added."""


@dataclass(frozen=True)
class Event:
    """One thing that happened: a name from a small vocabulary and its values."""

    name: str
    values: Mapping[str, object] = field(default_factory=dict)


Emit = Callable[[Event], None]


def silent(event: Event) -> None:
    """Take an event and show nothing: the default for library use."""


@dataclass(frozen=True)
class Described:
    """An event of the vocabulary: when it is told, and its keys with what each holds.

    A key that ends in `?` may lack.
    """

    summary: str
    keys: Mapping[str, str] = field(default_factory=dict)


_ID = "the trial"
_HOST = "the host"
_REASONS = "list of why, in words"
_TESTBED = {"testbed?": "where it is, when several testbeds share the campaign"}

EVENTS: Mapping[str, Described] = {
    "lab-starting": Described(
        "A virtual lab is being started.",
        {
            "testbed": "its testbed",
            "hosts": "number of hosts",
            "kernel": "`uml` or `native`",
            "release": "of the kernel, as `uname -r` tells it there",
        },
    ),
    "lab-host-ready": Described(
        "A host of the lab answers.",
        {"host": _HOST, "address": "its address", "seconds": "since the start"},
    ),
    "lab-ready": Described(
        "Every host of the lab answers.",
        {"testbed": "its testbed", "kernel": "`uml` or `native`", "seconds": "since the start"},
    ),
    "lab-stopped": Described("A virtual lab was stopped.", {"testbed": "its testbed"}),
    "campaign-created": Described("A campaign begins.", {"folder": "its folder"}),
    "campaign-resumed": Described("A campaign goes on.", {"folder": "its folder"}),
    "lease-taken": Described(
        "A host was taken over from another campaign.",
        {
            "host": _HOST,
            "owner": "who held it",
            "campaign": "for which campaign",
            "testbed": "on which testbed",
            "silent_s": "since the owner was last heard of",
            "left": "what the owner left there",
            "reason": "why it could be taken",
        },
    ),
    "host-recovered": Described(
        "A host was put back as it was before a trial that had been cut off.",
        {"host": _HOST, "trial": "the trial that was cut off", **_TESTBED},
    ),
    "trials-open": Described(
        "It is known what is to run.",
        {
            "asked": "number of trials of the plan that the testbed can run",
            "open": "number of those that are still to run",
            "seconds": "list: planned traffic of each open trial, in order",
            "testbeds?": "number of testbeds that share them",
        },
    ),
    "trial-started": Described(
        "An attempt at a trial begins.",
        {"id": _ID, "attempt": "counted from 1", "seconds": "planned traffic", **_TESTBED},
    ),
    "phase": Described(
        "A trial enters a phase; which there are: [campaign folder](campaign-folder.md).",
        {"id": _ID, "phase": "its name", **_TESTBED},
    ),
    "throughput": Described(
        "What hosts received of late, while traffic runs, by the counters of their interfaces.",
        {"id": _ID, "received_bps": "bits per second by host", **_TESTBED},
    ),
    "path-measured": Described(
        "A path was calibrated.",
        {
            "trial": "the trial that it was measured for",
            "file": "where it is kept in the campaign's folder",
            "sha256": "checksum of that file",
            "seconds": "what it took",
            "missed": "list: what is not as asked for",
            "refused": "list: what trials cannot run with",
            "left_out": "list: what could not be measured",
            **_TESTBED,
        },
    ),
    "window-measured": Described(
        "It was found out how a host comes to its largest receive window.",
        {
            "trial": "the trial that it was found out for",
            "host": "the host that receives",
            "sender": "the host that sends",
            "seconds": "what it took",
            "left_out": "list: why it could not be found out",
            "ratio?": "share of the buffer that is window, in 256ths; 0 where the window is the route's",
            "file?": "where it is kept in the campaign's folder",
            "sha256?": "checksum of that file",
            **_TESTBED,
        },
    ),
    "trial-finished": Described(
        "An attempt at a trial has ended.",
        {
            "id": _ID,
            "outcome": "`completed`, `failed`, `interrupted`",
            "verdict": "`valid`, `suspect`, `invalid`",
            "reasons": _REASONS,
            "overhead_s": "what it cost beyond its traffic",
            "phases": "seconds by phase",
            **_TESTBED,
        },
    ),
    "trial-again": Described(
        "A trial will be run once more.",
        {
            "id": _ID,
            "attempt": "the next",
            "of": "the last that there may be",
            "seconds": "planned traffic",
            "pause_s?": "how long that waits",
            "reasons": _REASONS,
            **_TESTBED,
        },
    ),
    "trial-refused": Described("A trial is not started.", {"id": _ID, "reasons": _REASONS, **_TESTBED}),
    "trial-failed": Described(
        "A trial has failed for good, as far as this run goes.",
        {"id": _ID, "reason": "in words", **_TESTBED},
    ),
    "host-lost": Described("A host does not answer.", {"host": _HOST, "reason": "in words", **_TESTBED}),
    "host-back": Described(
        "A host that was lost answers, and is as before.",
        {"host": _HOST, "seconds": "how long that took", **_TESTBED},
    ),
    "host-quarantined": Described(
        "A host is not used any more.", {"host": _HOST, "reason": "in words", **_TESTBED}
    ),
    "host-released": Described("A host that was quarantined is used again.", {"host": _HOST, **_TESTBED}),
    "host-rebooting": Described(
        "A host reboots.", {"host": _HOST, "boot_id": "of the boot that ends", **_TESTBED}
    ),
    "host-power-cycled": Described(
        "A host did not come back, and its power was switched.", {"host": _HOST, **_TESTBED}
    ),
    "host-switched-on": Described("A host did not answer, and is switched on.", {"host": _HOST, **_TESTBED}),
    "host-not-switched": Described(
        "A host did not answer, and could not be switched.",
        {"host": _HOST, "reason": "in words", **_TESTBED},
    ),
    "host-rebooted": Described(
        "A host is back.",
        {"host": _HOST, "boot_id": "of this boot", "seconds": "until it answered", **_TESTBED},
    ),
    "testbed-idle": Described("There is no trial any more that a testbed could run.", {"testbed": "which"}),
    "campaign-stopped": Described("The run ends before its time.", {"reason": "in words"}),
    "warning": Described("Something that a person should know of.", {"text": "in words", **_TESTBED}),
    "analysis-started": Described("The analysis begins.", {"trials": "number of trials"}),
    "analysed": Described(
        "A trial was measured.", {"trial": _ID, "done": "number of trials done", "of": "of how many"}
    ),
    "figures": Described("A figure is drawn.", {"figure?": "its name"}),
    "scorecard": Described(
        "The expectations were compared.",
        {"reproduced": "number of them", "differs": "number of them", "no data": "number of them"},
    ),
    "bundle-made": Described("The bundle is whole.", {"pdf": "its report", "files": "number of its files"}),
    "verifying": Described("Checksums are compared.", {"done": "bytes read", "of": "of how many"}),
}


def misfits(event: Event) -> Iterator[str]:
    """Yield what of an event is not as the vocabulary has it, in words."""
    described = EVENTS.get(event.name)
    if described is None:
        yield f"{event.name}: not in the vocabulary"
        return
    known = {key.removesuffix("?") for key in described.keys}
    needed = {key for key in described.keys if not key.endswith("?")}
    yield from (f"{event.name}: {key} lacks" for key in sorted(needed - event.values.keys()))
    yield from (f"{event.name}: {key} is not described" for key in sorted(event.values.keys() - known))


def events_page() -> str:
    """Return docs/reference/events.md."""
    rows = [f"| `{name}` | {one.summary} | {_keys(one.keys)} |" for name, one in EVENTS.items()]
    return PAGE.format(schema=SCHEMA, rows="\n".join(rows))


def _keys(keys: Mapping[str, str]) -> str:
    return "; ".join(
        f"`{key.removesuffix('?')}`{' (may lack)' if key.endswith('?') else ''} {text}"
        for key, text in keys.items()
    )


PAGE = """\
# Events

`fab run … --events FILE` adds a line of JSON to a file for each thing that happens, at once, so that a
dashboard can follow a campaign; `--events -` writes them to standard output, and what people read goes to
standard error. `fab status --json` says how a campaign stands without them. `fab schema` makes this page.

Each line has `schema` ({schema}), `t_s` (seconds since 1970, the controller's clock), `event`, and the keys
of the event. `schema` is raised when an event or a key goes or changes its meaning; a reader must pass over
events and keys that it does not know. A stream that can no longer be written ends, and the campaign goes on.
The record of a campaign is its [journal](campaign-folder.md), not this stream.

| event | when | keys |
| --- | --- | --- |
{rows}
"""
