"""Run the trials of a queue on one testbed, and retry trials whose verdict is invalid.

A trial whose verdict is invalid is retried before any other trial runs, up to `retries` times, after pauses
that double from `backoff` to `backoff_most` (policy.py). A trial is not retried if path calibration has
refused its path, or if the controller can no longer write files. Before each attempt and at the end, the
runner waits for the hosts that made the last attempt fail, and restores every host that is still changed. A
host that does not come back, that cannot be restored, or that makes too many trials in a row fail, is
quarantined (host_pool.py). Trials that need a quarantined host return to the queue for another testbed, or
stay open. The whole run ends early when the controller's disk is too small for the next trial, or with
--fail-fast at the first failed trial (trial_queue.py). The next run of the campaign tries every open trial
again.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from samovar.campaign import availability
from samovar.campaign.calibration import Calibration
from samovar.campaign.context import CampaignContext
from samovar.campaign.host_pool import HostPool
from samovar.campaign.policy import DEFAULT_POLICY, Policy
from samovar.campaign.recovery import Recovery, find_trial
from samovar.campaign.trial import BootSettings, TrialResult, TrialRun, read_result
from samovar.campaign.trial_queue import TrialEnd, TrialQueue
from samovar.errors import SamovarError
from samovar.events import Event
from samovar.hosts import Machine, Sessions
from samovar.plan import Plan, Trial, host_bytes
from samovar.recipes import TrialScripts


@dataclass(frozen=True)
class TestbedSetup:
    """A testbed that takes part in a campaign, with the plan as resolved for this testbed.

    `blocked` maps trials to the reasons why this testbed cannot run them. `machines` maps hosts to
    their operating systems, boot timeouts and power commands. `survey` tells which hosts did not answer.
    """

    testbed: str
    plan: Plan
    sessions: Sessions
    blocked: Mapping[str, Sequence[str]] = field(default_factory=dict)
    machines: Mapping[str, Machine] = field(default_factory=dict)
    policy: Policy = DEFAULT_POLICY
    survey: availability.HostSurvey = field(default_factory=availability.HostSurvey)


class TestbedRunner:
    """Runs the trials of a queue on one testbed; see the module's documentation for its rules."""

    def __init__(self, context: CampaignContext, setup: TestbedSetup) -> None:
        self.context, self.setup = context, setup
        self._needed_hosts = availability.needed_hosts_by_trial(setup.plan)
        self._own_trials = {trial.id: trial for trial in setup.plan.trials} if context.shared else {}
        self.boot_settings = BootSettings(context, self._scripts)
        self.recovery = Recovery(context, self._scripts)
        self.hosts = HostPool(context, self.recovery, self.boot_settings, _count_levels(setup.plan))
        self.calibration = Calibration(context)

    def can_run(self, trial: Trial) -> bool:
        """Return whether this testbed can run a trial: it is not blocked, and needs no quarantined host."""
        return (
            trial.id not in self.setup.blocked
            and not self._needed_hosts[trial.id] & self.hosts.quarantined.keys()
        )

    def run_trials(self, queue: TrialQueue) -> None:
        """Run trials of the queue until none is left for this testbed, or the queue is stopped.

        At the end, hosts that the last trial left changed are restored or quarantined.
        """
        context, testbed = self.context, self.setup.testbed
        while (trial := queue.take(testbed)) is not None:
            needed_bytes = availability.needed_here(self._own_trial(trial).resolved, context.catalogue)
            short = availability.shortage(
                availability.free_here(context.folder), context.policy.config.free_space, needed_bytes
            )
            if short:
                queue.stop(f"{context.folder}: {short}")
            end: TrialEnd = "failed"
            try:
                end = "returned" if short else self._run_with_retries(trial, queue)
            finally:
                queue.finish(testbed, trial, end)
            if context.disk.lost:
                queue.stop(f"{context.disk.lost}; nothing more can be written to {context.folder}")
        self.hosts.repair()
        if context.shared and not queue.stopped:
            context.report("testbed-idle")

    def _run_with_retries(self, trial: Trial, queue: TrialQueue) -> TrialEnd:
        """Run a trial until its verdict is valid or suspect, at most `retries` + 1 times.

        Returns how the trial ended here. If path calibration refuses the path of the trial, the trial has
        failed and is not retried.
        """
        context = self.context
        policy, last = context.policy, context.policy.config.retries + 1
        for number in range(1, last + 1):
            self.hosts.make_ready(host_bytes(self._own_trial(trial).resolved, context.catalogue))
            if not self.can_run(trial):
                return "returned"
            own = self._own_trial(trial)
            refusal = self.calibration.paths.refusal(own.resolved)
            if refusal:
                context.report("trial-refused", id=trial.id, reasons=list(refusal))
                return self._failed(trial, refusal, {})
            attempt = queue.count_attempt(trial)
            result = self._run_once(own, attempt)
            if result.verdict != "valid":  # a trial after which a host is not restored is suspect
                self.hosts.check_before_next_trial(result.blamed)
            if result.verdict != "invalid":
                self.hosts.trial_completed(own.resolved.hosts)
                return "done"
            if number == last or context.disk.lost or self.calibration.paths.refusal(own.resolved):
                break
            pause_s = policy.pause_s(number)
            context.report(
                "trial-again",
                id=trial.id,
                attempt=attempt + 1,
                of=attempt + last - number,
                seconds=trial.resolved.duration_s,
                pause_s=pause_s,
                reasons=list(result.reasons),
            )
            context.pause(pause_s)
        return self._failed(trial, result.reasons, result.blamed)

    def _failed(self, trial: Trial, reasons: Sequence[str], blamed: Mapping[str, str]) -> TrialEnd:
        """Count a failed trial against the hosts that caused its failure; return how the trial ended here.

        Returns "returned" if a needed host is now quarantined, so that another testbed may run the trial;
        otherwise "failed".
        """
        self.context.emit(Event("trial-failed", {"id": trial.id, "reason": "; ".join(reasons)}))
        self.hosts.trial_failed(trial, blamed)
        return "failed" if self.can_run(trial) else "returned"

    def _run_once(self, trial: Trial, attempt: int) -> TrialResult:
        context = self.context
        earlier = context.trials / trial.id
        if earlier.exists():
            result = read_result(earlier)
            if result is None or result.verdict != "invalid":
                # Record this before the folder moves: after a crash the trial must not count as complete.
                context.note("trial-reopened", id=trial.id)
            self.recovery.set_aside_trial(earlier)
        without = {"without": sorted(self.hosts.quarantined)} if self.hosts.quarantined else {}
        context.note("trial-started", id=trial.id, attempt=attempt, testbed=self.setup.testbed, **without)
        values = {"id": trial.id, "attempt": attempt, "seconds": trial.resolved.duration_s}
        context.emit(Event("trial-started", values))
        try:
            result = TrialRun(context, trial, attempt, self.boot_settings, self.calibration).run()
        except KeyboardInterrupt:  # the trial may have been committed just before
            interrupted = TrialResult("interrupted", "invalid", ("interrupted by the user",), 0.0)
            self._record_end(trial, read_result(context.trials / trial.id) or interrupted)
            raise
        self._record_end(trial, result)
        return result

    def _record_end(self, trial: Trial, result: TrialResult) -> None:
        context = self.context
        context.record_scripts(None)  # the trial's folder is about to move
        values = self.recovery.note_end(trial.id, result)
        context.emit(Event("trial-finished", {**values, "phases": dict(result.phases)}))
        incomplete = context.in_progress / trial.id
        if incomplete.exists():
            self.recovery.set_aside_trial(incomplete)

    def restore_boot_settings(self, folder: Path) -> None:
        """Restore settings that need a reboot, and record the scripts in `folder`.

        If restoring fails, a warning is emitted; the journal then still lists the hosts as not restored.
        """
        if not self.boot_settings.hosts:
            return
        self.context.record_scripts(folder)
        self.context.interrupt.requested.clear()  # set by Ctrl-C; it would end the wait for reboots
        try:
            self.boot_settings.restore()
        except SamovarError as error:  # also RecipeError, if a recipe has changed since a crash
            self.context.emit(Event("warning", {"text": str(error)}))

    def _own_trial(self, trial: Trial) -> Trial:
        """Return a trial as resolved for this testbed, without quarantined hosts."""
        return availability.without_hosts(self._own_trials.get(trial.id, trial), self.hosts.quarantined)

    def _scripts(self, id_: str) -> TrialScripts:
        context = self.context
        trial = next((trial for trial in self.setup.plan.trials if trial.id == id_), None)
        if trial is None:
            trial = find_trial(context.folder, id_, context.event_testbed)
        return TrialScripts(trial, context.catalogue, context.campaign)


def _count_levels(plan: Plan) -> Mapping[str, int]:
    """Return the number of the plan's parts as `part`, and the number of levels of each factor."""
    levels: dict[str, set[str]] = {"part": {part.name for part in plan.parts}}
    for part in plan.parts:
        for factor, labels in part.factors.items():
            levels.setdefault(factor, set()).update(labels)
    return {factor: len(labels) for factor, labels in levels.items()}
