"""What every trial of a campaign has in common: where it runs, what it writes to, whom it tells."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path

from samovar.campaign.availability.disk_space import Storage
from samovar.campaign.clocks import Clocks
from samovar.campaign.interrupts import TrialInterrupt
from samovar.campaign.policy import AS_ALWAYS, Policy
from samovar.events import Emit
from samovar.experiment.secrets import redacted
from samovar.hosts import ScriptResult, Sessions
from samovar.recipes import Catalogue

Note = Callable[..., None]
"""Append one event to the journal: its name, then its values."""


@dataclass(frozen=True)
class CampaignContext:
    """The testbed made ready for a campaign, and the campaign's folder."""

    campaign: str
    folder: Path
    sessions: Sessions
    catalogue: Catalogue
    note: Note
    emit: Emit
    clocks: Clocks = field(default_factory=Clocks)
    last_states: dict[str, tuple[str, dict[str, str]]] = field(default_factory=dict)
    """The state in which the last trial left each host, with the reading that told it."""
    policy: Policy = AS_ALWAYS
    boots: dict[str, str] = field(default_factory=dict)
    """What tells the present boot apart of each host that was booted since the facts were asked."""
    testbed: str = ""
    shared: bool = False
    """Whether other testbeds work on the campaign too, so that what is of this one is to be told apart."""
    storage: Storage = field(default_factory=Storage)
    interrupt: TrialInterrupt = field(default_factory=TrialInterrupt)

    def pause(self, seconds: float) -> None:
        """Wait, unless the campaign is being stopped meanwhile. Raises KeyboardInterrupt then."""
        if self.interrupt.wait(seconds):
            raise KeyboardInterrupt

    @property
    def in_progress(self) -> Path:
        """Where trials are written until they are whole."""
        return self.folder / "in-progress"

    @property
    def trials(self) -> Path:
        """Where whole trials stand."""
        return self.folder / "trials"


class Recorder:
    """Keeps every script that a trial ran as NNN-host-step.sh, and what came of it as .json."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._numbers = count(1)
        folder.mkdir(parents=True, exist_ok=True)

    def __call__(self, done: ScriptResult) -> None:
        """Write one record; called from the thread of the host that it ran on."""
        stem = f"{next(self._numbers):03d}-{done.host}-{done.step.replace(' ', '-')}"
        (self._folder / f"{stem}.sh").write_text(redacted(done.script, os.environ), encoding="utf-8")
        record = json.dumps(_record(done), indent=1, ensure_ascii=False)
        (self._folder / f"{stem}.json").write_text(record + "\n", encoding="utf-8")


def _record(done: ScriptResult) -> Mapping[str, object]:
    return {
        "host": done.host,
        "step": done.step,
        "ending": done.ending,
        "exit_code": done.exit_code,
        "t_start_s": round(done.t_start_s, 6),
        "seconds": done.seconds,
        "stdout": redacted(done.text, os.environ),
        "stderr": redacted(done.error_text, os.environ),
    }
