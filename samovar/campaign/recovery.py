"""Putting right what a controller left that was cut off: hosts as they were, trials as they ended."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from samovar.campaign.availability import LeaseRequest, Leases, Reboots
from samovar.campaign.collection import sealed, set_aside
from samovar.campaign.context import CampaignContext, Recorder
from samovar.campaign.folder import PLAN, read_head, read_plans, testbeds_of
from samovar.campaign.host_state import changed, parse_state
from samovar.campaign.journal import NAME as JOURNAL
from samovar.campaign.journal import CampaignState, Journal, SavedState, fold, read_journal
from samovar.campaign.trial import BootSettings
from samovar.errors import CampaignError, TestbedError
from samovar.events import Emit, Event
from samovar.hosts import Machine, Sessions
from samovar.plan import Trial
from samovar.recipes import Catalogue, TrialScripts

ScriptsOf = Callable[[str], TrialScripts]


class Recovery:
    """What an earlier controller of a campaign left; `scripts_of` gives the scripts of a trial by its id."""

    def __init__(self, context: CampaignContext, scripts_of: ScriptsOf) -> None:
        self._context, self._scripts_of = context, scripts_of

    def _clear(self, state: CampaignState, host: str) -> None:
        """Remove what a trial that was cut off has left on a host: files that were not all fetched."""
        for trial in state.with_status("in flight"):
            scripts, session = self._scripts_of(trial.id), self._context.sessions[host]
            if host in scripts.resolved.hosts:
                session.run(scripts.sweep(host), step="sweep", deadline_s=self._context.policy.step_timeout_s)

    def host(self, state: CampaignState, host: str) -> None:
        """Clear one host of a trial that was cut off, and put it back, what was changed last first.

        Raises TestbedError.
        """
        self._clear(state, host)
        for read in reversed([read for read in state.unrestored.get(host, ()) if not read.lasting]):
            self._restore(read)

    def trials(self, state: CampaignState) -> None:
        """Set aside what is half written; end in the journal what was cut off."""
        for folder in sorted(self._context.in_progress.glob("*/")):
            self.put_aside(folder)
        for trial in state.with_status("in flight"):
            self._adopt(trial.id)

    def put_aside(self, folder: Path) -> None:
        """Move a trial's folder away from where the next attempt is written."""
        aside = set_aside(folder, self._context.folder / "set-aside")
        where = str(aside.relative_to(self._context.folder))
        self._context.note("trial-set-aside", id=folder.name, folder=where, **sealed(aside))

    def _adopt(self, id_: str) -> None:
        """Take a trial as finished that was whole on disk when its controller died; any other was cut off."""
        manifest = self._context.trials / id_ / "manifest.json"
        if manifest.is_file():
            seen = json.loads(manifest.read_bytes())
            keys = ("id", "outcome", "verdict", "reasons", "overhead_s")
            told = {key: seen[key] for key in keys}
            self._context.note("trial-finished", **told, **sealed(self._context.trials / id_))
        else:
            why = {"verdict": "invalid", "reasons": ["its controller was cut off"], "overhead_s": 0.0}
            self._context.note("trial-finished", id=id_, outcome="interrupted", **why)

    def _restore(self, read: SavedState) -> None:
        scripts, session = self._scripts_of(read.id), self._context.sessions[read.host]
        session.run(scripts.sweep(read.host), step="sweep", deadline_s=self._context.policy.step_timeout_s)
        script = scripts.restore(read.host, read.state)
        done = session.run(script, step="restore", deadline_s=self._context.policy.step_timeout_s)
        # The script makes the trial's folder anew, to run in.
        session.run(scripts.sweep(read.host), step="sweep", deadline_s=self._context.policy.step_timeout_s)
        differences = [str(difference) for difference in changed(read.state, parse_state(done.text))]
        if differences:
            self._context.note("restore-failed", id=read.id, host=read.host, differences=differences)
            text = "\n".join(differences)
            raise TestbedError(
                f"{read.host}: its state from before trial {read.id} cannot be restored:\n{text}"
            )
        self._context.note("state-restored", id=read.id, host=read.host)
        self._context.emit(Event("host-recovered", {"host": read.host, "trial": read.id}))


@dataclass
class Restored:
    """What came of restoring a testbed: hosts put back by campaign, and what could not be."""

    hosts: dict[str, tuple[str, ...]] = field(default_factory=dict)
    problems: list[str] = field(default_factory=list)


def changed_campaigns(results: Path, testbed: str) -> list[Path]:
    """Find the campaigns on a testbed that left a host changed, by their journals, the newest first."""
    folders = {plan.parent.resolve() for plan in results.glob(f"*/*/{PLAN}")}
    found = [
        folder
        for folder in folders
        if (folder / JOURNAL).is_file()
        and testbed in _testbeds(folder)
        and _on(fold(read_journal(folder / JOURNAL)), folder, testbed).unrestored
    ]
    return sorted(found, key=lambda folder: (folder / JOURNAL).stat().st_mtime, reverse=True)


def _testbeds(folder: Path) -> tuple[str, ...]:
    return testbeds_of(str(read_head(folder / PLAN).get("testbed")))


def _on(state: CampaignState, folder: Path, testbed: str) -> CampaignState:
    """Return the state of a campaign's hosts on one of its testbeds."""
    return state.on(testbed) if len(_testbeds(folder)) > 1 else state


@dataclass(frozen=True)
class Restorer:
    """Puts the hosts of a testbed back as journals say that they were."""

    testbed: str
    sessions: Sessions
    catalogue: Catalogue
    machines: Mapping[str, Machine]
    emit: Emit
    force: bool = False

    def run(self, folders: list[Path]) -> Restored:
        """Restore every host that a campaign left changed; each host and campaign on its own merits."""
        restored = Restored()
        for folder in folders:
            try:
                with Journal(folder / JOURNAL) as journal:
                    self._campaign(folder, journal, restored)
            except CampaignError as error:
                restored.problems.append(str(error))
        return restored

    def _campaign(self, folder: Path, journal: Journal, restored: Restored) -> None:
        own = {"testbed": self.testbed} if len(_testbeds(folder)) > 1 else {}

        def note(event: str, **values: object) -> None:
            journal.append(event, round(time.time(), 6), **{**own, **values})

        state = _on(fold(journal.entries), folder, self.testbed)
        context = CampaignContext(folder.name, folder, self.sessions, self.catalogue, note, self.emit)
        recorder = Recorder(folder / "commands" / f"restore-{time.time_ns()}")
        for session in self.sessions:
            session.record = recorder
        scripts_of = partial(_scripts, folder, self.catalogue, own.get("testbed", ""))
        claimant = LeaseRequest(folder, self.testbed, "fab restore", self.force)
        leases = Leases(self.sessions, claimant, note, self.emit)
        done: list[str] = []
        for host in state.unrestored:
            try:
                with leases.one(self.sessions[host]):
                    self._host(context, scripts_of, state, host)
                done.append(host)
            except (TestbedError, CampaignError) as error:
                restored.problems.append(str(error))
        restored.hosts[folder.name] = tuple(done)

    def _host(self, context: CampaignContext, scripts_of: ScriptsOf, state: CampaignState, host: str) -> None:
        Recovery(context, scripts_of).host(state, host)
        lasts = [read for read in state.unrestored[host] if read.lasting]
        if lasts:
            systems = {host: plan.system for host, plan in scripts_of(lasts[0].id).resolved.hosts.items()}
            lasting = BootSettings(context, Reboots(context, systems, self.machines), scripts_of)
            lasting.adopt(lasts)
            lasting.restore()


def _scripts(folder: Path, catalogue: Catalogue, testbed: str, id_: str) -> TrialScripts:
    return TrialScripts(find_trial(folder, id_, testbed), catalogue, folder.name)


def find_trial(folder: Path, id_: str, testbed: str = "") -> Trial:
    """Find a trial that a campaign's journal names, which an earlier plan may have asked for.

    `testbed` is where it ran, empty in a campaign on one only. Raises CampaignError when no plan has it.
    """
    plans = read_plans(folder, testbed)
    found = next((trial for plan in plans for trial in plan.trials if trial.id == id_), None)
    if found is None:
        message = f"the journal names a trial that no plan of it has: {id_}"
        raise CampaignError(f"{folder}: {message}; accepted: one of plan.json or plans/")
    return found
