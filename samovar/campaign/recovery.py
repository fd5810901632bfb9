"""Recover after a crash of the controller: restore hosts, record an end for open trials, set files aside."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from samovar.campaign.availability import LeaseRequest, Leases
from samovar.campaign.collection import set_aside, sums_digest
from samovar.campaign.context import CampaignContext
from samovar.campaign.folder import read_plans, read_state, testbeds_in
from samovar.campaign.host_state import changed, parse_state
from samovar.campaign.journal import CONTROLLER_KILLED, JOURNAL, CampaignState, Journal, SavedState
from samovar.campaign.past_campaigns import campaigns_in
from samovar.campaign.policy import Policy
from samovar.campaign.trial import BootSettings, TrialResult, read_result
from samovar.errors import CampaignError, RecipeError, SamovarError, TestbedError
from samovar.events import Emit, Event
from samovar.experiment import Config
from samovar.hosts import Machine, Sessions
from samovar.plan import Trial
from samovar.recipes import Catalogue, TrialScripts

ScriptsOf = Callable[[str], TrialScripts]
"""A function that returns the scripts of the trial with a given id."""


class Recovery:
    """Restores the hosts of one testbed, and closes the incomplete trials of one campaign."""

    def __init__(self, context: CampaignContext, scripts_of: ScriptsOf) -> None:
        self._context, self._scripts_of = context, scripts_of

    def restore_host(self, state: CampaignState, host: str) -> None:
        """Remove files of unfinished trials from a host, and restore its state, newest change first.

        Settings that need a reboot are left to BootSettings. Raises TestbedError.
        """
        for trial in state.with_status("in flight"):
            scripts = self._scripts_of(trial.id)
            if host in scripts.resolved.hosts:
                self._run(host, "sweep", scripts.sweep(host))
        for saved in reversed([one for one in state.unrestored.get(host, ()) if not one.lasting]):
            self._restore(saved)

    def _restore(self, saved: SavedState) -> None:
        scripts, host = self._scripts_of(saved.id), saved.host
        try:
            script = scripts.restore(host, saved.state)
        except RecipeError as error:  # the recipes have changed, or the state is incomplete
            raise TestbedError(
                f"{host}: its state before trial {saved.id} cannot be restored: {error}"
            ) from error
        self._run(host, "sweep", scripts.sweep(host))
        printed = self._run(host, "restore", script)
        self._run(host, "sweep", scripts.sweep(host))  # the restore script has recreated the trial's folder
        differences = [str(difference) for difference in changed(saved.state, parse_state(printed))]
        if differences:
            self._context.note("restore-failed", id=saved.id, host=host, differences=differences)
            text = "\n".join(differences)
            raise TestbedError(f"{host}: its state before trial {saved.id} cannot be restored:\n{text}")
        self._context.note("state-restored", id=saved.id, host=host)
        self._context.emit(Event("host-recovered", {"host": host, "trial": saved.id}))

    def _run(self, host: str, step: str, script: str) -> str:
        limit_s = self._context.policy.config.step_timeout_s
        return self._context.sessions[host].run(script, step=step, deadline_s=limit_s).text

    def close_trials(self, state: CampaignState) -> None:
        """Move the folders of incomplete trials to set-aside/, and record the end of these trials.

        Trials that ran on another testbed of the campaign are left out.
        """
        testbed = self._context.event_testbed
        others = {id_ for id_, trial in state.trials.items() if testbed and trial.testbed != testbed}
        for folder in sorted(self._context.in_progress.glob("*/")):
            if folder.name not in others:
                self.set_aside_trial(folder)
        cut_off = TrialResult("interrupted", "invalid", (CONTROLLER_KILLED,), 0.0)
        for trial in state.with_status("in flight"):
            # A trial in trials/ with a manifest is complete; only its end is missing in the journal.
            if trial.id not in others:
                self.note_end(trial.id, read_result(self._context.trials / trial.id) or cut_off)

    def note_end(self, id_: str, result: TrialResult) -> Mapping[str, object]:
        """Record in the journal how an attempt at a trial ended; return the values of the event."""
        values = {
            "id": id_,
            "outcome": result.outcome,
            "verdict": result.verdict,
            "reasons": list(result.reasons),
            "overhead_s": result.overhead_s,
        }
        self._context.note("trial-finished", **values, **sums_digest(self._context.trials / id_))
        return values

    def set_aside_trial(self, folder: Path) -> None:
        """Move the folder of a trial to set-aside/, so that the next attempt can use its path."""
        aside = set_aside(folder, self._context.folder / "set-aside")
        where = str(aside.relative_to(self._context.folder))
        self._context.note("trial-set-aside", id=folder.name, folder=where, **sums_digest(aside))


@dataclass
class Restored:
    """The result of `fab restore`: the restored hosts by campaign, and the errors of the others."""

    hosts: dict[str, tuple[str, ...]] = field(default_factory=dict)
    problems: list[str] = field(default_factory=list)


def changed_campaigns(results: Path, only: str = "") -> list[tuple[str, Path]]:
    """Return the testbed and the folder of each campaign that left hosts of a testbed changed, newest first.

    If `only` names a testbed, other testbeds are left out. A campaign whose journal cannot be read may have
    left hosts changed; restore_campaign() reports the error.
    """
    return [
        (testbed, folder)
        for folder in campaigns_in(results)
        for testbed in testbeds_in(folder)
        if only in ("", testbed) and _may_have_left_changed(folder, _event_testbed(testbed, folder))
    ]


def _may_have_left_changed(folder: Path, event_testbed: str) -> bool:
    try:
        return bool(read_state(folder).on(event_testbed).unrestored)
    except CampaignError:
        return True


def _event_testbed(testbed: str, folder: Path) -> str:
    """Return the testbed as the campaign's events name it: empty if the campaign has only one testbed."""
    return testbed if len(testbeds_in(folder)) > 1 else ""


def restore_campaign(
    folder: Path,
    testbed: str,
    sessions: Sessions,
    catalogue: Catalogue,
    machines: Mapping[str, Machine],
    emit: Emit,
    config: Config,
    restored: Restored,
    force: bool = False,
) -> None:
    """Restore the hosts of a testbed that a campaign left changed, and add the result to `restored`.

    The hosts get the states that the campaign's journal recorded. After an error, continue with the next
    host. Raises CampaignError if the campaign is running, or if its journal is damaged.
    """
    event_testbed = _event_testbed(testbed, folder)

    def scripts_of(id_: str) -> TrialScripts:
        return TrialScripts(find_trial(folder, id_, event_testbed), catalogue, folder.name)

    with Journal(folder / JOURNAL) as journal:
        note = partial(journal.note, testbed=event_testbed) if event_testbed else journal.note
        context = CampaignContext(
            folder,
            sessions,
            catalogue,
            note,
            emit,
            policy=Policy(config),
            machines=machines,
            testbed=testbed,
            shared=bool(event_testbed),
            entries=lambda: journal.entries,
        )
        context.record_scripts(folder / "commands" / f"restore-{time.time_ns()}")
        request = LeaseRequest(folder, testbed, "fab restore", force)
        leases, state = Leases(sessions, request, note, emit), context.state()
        hosts: list[str] = []
        for host, saved in state.unrestored.items():
            try:
                with leases.held([host], context.unrestored_hosts):
                    Recovery(context, scripts_of).restore_host(state, host)
                    if lasting := [one for one in saved if one.lasting]:
                        boot_settings = BootSettings(context, scripts_of)
                        boot_settings.adopt(lasting)
                        boot_settings.restore()
                hosts.append(host)
            except SamovarError as error:  # RecipeError comes from settings that need a reboot
                restored.problems.append(str(error))
        restored.hosts[folder.name] = (*restored.hosts.get(folder.name, ()), *hosts)


def find_trial(folder: Path, id_: str, testbed: str = "") -> Trial:
    """Return a trial of a campaign by its id, from the present plan or an earlier one.

    `testbed` is the testbed on which the trial ran, or empty if the campaign has only one. Raises
    CampaignError if no plan has the trial.
    """
    for plan in read_plans(folder, testbed):
        for trial in plan.trials:
            if trial.id == id_:
                return trial
    raise CampaignError(
        f"{folder}: trial {id_} of the journal is neither in plan.json nor in a file of plans/"
    )
