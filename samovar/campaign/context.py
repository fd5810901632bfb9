"""Campaign context: the folder, SSH sessions, journal, clocks and policy that trials on one testbed share."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path

from samovar.campaign.availability import DiskReserve
from samovar.campaign.clocks import Clocks
from samovar.campaign.interrupts import TrialInterrupt
from samovar.campaign.journal import CampaignState, Entry, Note, fold
from samovar.campaign.policy import DEFAULT_POLICY, Policy
from samovar.events import Emit, Event
from samovar.hosts import Machine, ScriptResult, Sessions, discard_result
from samovar.recipes import Catalogue
from samovar.secrets import redacted


@dataclass(frozen=True)
class CampaignContext:
    """The context of a campaign on one testbed.

    `machines` maps hosts to their operating systems, boot timeouts and power commands. `last_states` maps
    each host to a pair: the script that last read the host's state, and the state that this script printed.
    `networks` maps each host to its MTUs and routes as first read in this run; the state before each trial is
    compared with them. `boots` maps hosts to their boot ids. `shared` is True if several testbeds share the
    campaign; then every event carries the name of its testbed. `entries` returns the events of the journal so
    far.
    """

    folder: Path
    sessions: Sessions
    catalogue: Catalogue
    note: Note
    emit: Emit
    clocks: Clocks = field(default_factory=Clocks)
    last_states: dict[str, tuple[str, dict[str, str]]] = field(default_factory=dict)
    networks: dict[str, dict[str, str]] = field(default_factory=dict)
    policy: Policy = DEFAULT_POLICY
    machines: Mapping[str, Machine] = field(default_factory=dict)
    boots: dict[str, str] = field(default_factory=dict)
    testbed: str = ""
    shared: bool = False
    disk: DiskReserve = field(default_factory=DiskReserve)
    interrupt: TrialInterrupt = field(default_factory=TrialInterrupt)
    entries: Callable[[], Sequence[Entry]] = tuple

    def state(self) -> CampaignState:
        """Return the state of the campaign according to its journal, with the hosts of this testbed only."""
        return fold(self.entries()).on(self.event_testbed)

    def unrestored_hosts(self) -> Collection[str]:
        """Return the hosts of this testbed that trials have changed and that are not restored yet."""
        return self.state().unrestored.keys()

    @property
    def event_testbed(self) -> str:
        """The name of the testbed if several share the campaign, otherwise empty."""
        return self.testbed if self.shared else ""

    def report(self, event: str, **values: object) -> None:
        """Append an event to the journal, and emit it to the progress display."""
        self.note(event, **values)
        self.emit(Event(event, values))

    def pause(self, seconds: float) -> None:
        """Wait for some seconds. Raises KeyboardInterrupt as soon as the campaign is interrupted."""
        if self.interrupt.requested.wait(seconds):
            raise KeyboardInterrupt

    def record_scripts(self, folder: Path | None) -> None:
        """From now on, write every script that runs on a host to `folder`; with None, stop recording."""
        recorder = discard_result if folder is None else ScriptRecorder(folder)
        for session in self.sessions:
            session.record = recorder

    def machine(self, host: str) -> Machine:
        """Return the machine of a host; for a host that `machines` lacks, one with default values."""
        return self.machines.get(host) or Machine(host, host)

    @property
    def campaign(self) -> str:
        """The name of the campaign, which is also part of the path of each trial's folder on the hosts."""
        return self.folder.name

    @property
    def in_progress(self) -> Path:
        """The folder that holds the folders of trials that are not complete yet."""
        return self.folder / "in-progress"

    @property
    def trials(self) -> Path:
        """The folder that holds the folders of complete trials."""
        return self.folder / "trials"


class ScriptRecorder:
    """Writes each script of a trial as NNN-HOST-STEP.sh, and its result as a .json file of the same name."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._numbers = count(1)
        folder.mkdir(parents=True, exist_ok=True)

    def __call__(self, done: ScriptResult) -> None:
        """Write one script and its result.

        Several threads may call this at the same time, one for each host.
        """
        stem = f"{next(self._numbers):03d}-{done.host}-{done.step.replace(' ', '-')}"
        (self._folder / f"{stem}.sh").write_text(redacted(done.script, os.environ), encoding="utf-8")
        record = {
            "host": done.host,
            "step": done.step,
            "ending": done.ending,
            "exit_code": done.exit_code,
            "t_start_s": round(done.t_start_s, 6),
            "seconds": done.seconds,
            "stdout": redacted(done.text, os.environ),
            "stderr": redacted(done.error_text, os.environ),
        }
        text = json.dumps(record, indent=1, ensure_ascii=False)
        (self._folder / f"{stem}.json").write_text(text + "\n", encoding="utf-8")
