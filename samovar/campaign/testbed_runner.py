"""One testbed at work on a campaign: its hosts made ready, and trials run there, each on its own merits."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from samovar.campaign.availability.disk_space import free_here, needed_here, shortage
from samovar.campaign.availability.host_pool import Hardware, HostPool
from samovar.campaign.availability.quarantine import needs_by_trial, without_hosts
from samovar.campaign.availability.reboot import Reboots
from samovar.campaign.calibration import Calibration
from samovar.campaign.collection import sealed
from samovar.campaign.context import CampaignContext, Recorder
from samovar.campaign.journal import CampaignState, Entry, fold
from samovar.campaign.policy import AS_ALWAYS, Policy
from samovar.campaign.recovery import Recovery, find_trial
from samovar.campaign.trial import BootSettings, TrialResult, TrialRun, read_result
from samovar.campaign.trial_queue import Coming, TrialQueue
from samovar.errors import TestbedError
from samovar.events import Event
from samovar.hosts import Machine, Sessions, discard_result
from samovar.plan import Plan, Trial
from samovar.plan.volume import host_bytes
from samovar.recipes import TrialScripts


@dataclass(frozen=True)
class TestbedSetup:
    """A testbed for a campaign: the trials as they are on it, its hosts, and what is known of them.

    `blocked` says by trial why this testbed cannot run it, `gone` by host why it cannot be used. `machines`
    tell how hosts boot and are switched.
    """

    testbed: str
    plan: Plan
    sessions: Sessions
    blocked: Mapping[str, Sequence[str]] = field(default_factory=dict)
    machines: Mapping[str, Machine] = field(default_factory=dict)
    policy: Policy = AS_ALWAYS
    gone: Mapping[str, str] = field(default_factory=dict)


class TestbedRunner:
    """A testbed at work; `entries` gives the journal as it is, `pool` the trials that are open."""

    def __init__(
        self, context: CampaignContext, crew: TestbedSetup, entries: Callable[[], Sequence[Entry]]
    ) -> None:
        self.context, self.crew, self._entries = context, crew, entries
        self._needs = needs_by_trial(crew.plan)
        self._known = {trial.id: trial for trial in crew.plan.trials} if context.shared else {}
        systems = {name: host.system for name, host in crew.plan.trials[0].resolved.hosts.items()}
        self.boot_settings = BootSettings(context, Reboots(context, systems, crew.machines), self._scripts)
        self.recovery = Recovery(context, self._scripts)
        known = {name: Hardware(system, crew.machines.get(name)) for name, system in systems.items()}
        self.hosts = HostPool(context, self.recovery, self.boot_settings, known)
        self.calibration = Calibration(context)

    def _scripts(self, id_: str) -> TrialScripts:
        context = self.context
        testbed = context.testbed if context.shared else ""
        known = (trial for trial in self.crew.plan.trials if trial.id == id_)
        trial = next(known, None) or find_trial(context.folder, id_, testbed)
        return TrialScripts(trial, context.catalogue, context.campaign)

    def begin(self, state: CampaignState) -> None:
        """Put back what an earlier controller left on hosts; those that cannot be used are quarantined."""
        treatments = sum(len(group) for group in self.crew.plan.table.groups)
        self.hosts.begin(self._own(state), self.crew.gone, treatments)

    def _own(self, state: CampaignState) -> CampaignState:
        return state.on(self.context.testbed) if self.context.shared else state

    def serves(self, trial: Trial) -> bool:
        """Tell whether the testbed can run a trial: nothing that it needs is lacking or in quarantine."""
        return trial.id not in self.crew.blocked and not self._needs(trial) & self.hosts.quarantined.keys()

    def work(self, pool: TrialQueue) -> None:
        """Run trials until there is none left for this testbed, or the campaign is stopped."""
        while (trial := pool.take(self.crew.testbed)) is not None:
            short = self._short_here(trial)
            if short:
                pool.stop(short)
            coming: Coming = "failed"
            try:
                coming = "back" if short else self._attend(trial, pool)
            finally:
                pool.give(self.crew.testbed, trial, coming)
            if self.context.storage.lost:
                pool.stop(
                    f"{self.context.storage.lost}; nothing more can be written to {self.context.folder}"
                )
        if self.context.shared and not pool.stopped:
            self.tell("testbed-idle")

    def _short_here(self, trial: Trial) -> str:
        """Say that the results folder has too little room for a trial."""
        needed_bytes = needed_here(self._own_trial(trial).resolved)
        short = shortage(free_here(self.context.folder), self.context.policy.free_bytes, needed_bytes)
        return f"{self.context.folder}: {short}" if short else ""

    def _own_trial(self, trial: Trial) -> Trial:
        """Return a trial as it is on this testbed, without the hosts that are in quarantine."""
        return without_hosts(self._known.get(trial.id, trial), self.hosts.quarantined)

    def _attend(self, trial: Trial, pool: TrialQueue) -> Coming:
        """Run a trial until it is not invalid, as often as the policy allows, unless its path is refused."""
        last = self.context.policy.retries + 1
        for number in range(1, last + 1):
            self.hosts.make_ready(host_bytes(self._own_trial(trial).resolved))
            if not self.serves(trial):
                return "back"
            own = self._own_trial(trial)
            refusal = self.calibration.paths.refusal(own.resolved)
            if refusal:
                self.tell("trial-refused", id=trial.id, reasons=list(refusal))
                return self._failed(trial, refusal, {})
            attempt = pool.attempt(trial)
            finished = self._run_one(own, attempt)
            if finished.verdict != "invalid":
                self.hosts.served(own.resolved.hosts)
                return "done"
            self.hosts.doubt(finished.blamed, self._own(fold(self._entries())))
            hopeless = self.context.storage.lost or self.calibration.paths.refusal(own.resolved)
            if number == last or hopeless:
                break
            self._pause(trial, attempt, number, finished)
        return self._failed(trial, finished.reasons, finished.blamed)

    def _pause(self, trial: Trial, attempt: int, number: int, finished: TrialResult) -> None:
        pause_s = self.context.policy.pause_s(number)
        of = attempt + self.context.policy.retries + 1 - number
        values = {"attempt": attempt + 1, "of": of, "seconds": trial.resolved.duration_s, "pause_s": pause_s}
        self.tell("trial-again", id=trial.id, **values, reasons=list(finished.reasons))
        self.context.pause(pause_s)

    def _failed(self, trial: Trial, reasons: Sequence[str], blamed: Mapping[str, str]) -> Coming:
        """Count a trial against the hosts that it blames; without one of them, another testbed may run it."""
        self.context.emit(Event("trial-failed", {"id": trial.id, "reason": "; ".join(reasons)}))
        self.hosts.failed(trial, blamed)
        return "failed" if self.serves(trial) else "back"

    def tell(self, event: str, **values: object) -> None:
        """Write an event down and show it."""
        self.context.note(event, **values)
        self.context.emit(Event(event, values))

    def _run_one(self, trial: Trial, attempt: int) -> TrialResult:
        context = self.context
        invalid = context.trials / trial.id
        if invalid.exists():
            self.recovery.put_aside(invalid)
        left_out = {"without": sorted(self.hosts.quarantined)} if self.hosts.quarantined else {}
        context.note("trial-started", id=trial.id, attempt=attempt, testbed=self.crew.testbed, **left_out)
        values = {"id": trial.id, "attempt": attempt, "seconds": trial.resolved.duration_s}
        context.emit(Event("trial-started", values))
        try:
            finished = TrialRun(context, trial, attempt, self.boot_settings, self.calibration).run()
        except KeyboardInterrupt:
            broken_off = TrialResult("interrupted", "invalid", ("interrupted by the user",), 0.0)
            self._finish(trial, read_result(context.trials / trial.id) or broken_off)
            raise
        self._finish(trial, finished)
        return finished

    def _finish(self, trial: Trial, finished: TrialResult) -> None:
        context = self.context
        for session in context.sessions:
            session.record = discard_result  # the trial's folder is about to be another
        values = {
            "id": trial.id,
            "outcome": finished.outcome,
            "verdict": finished.verdict,
            "reasons": list(finished.reasons),
            "overhead_s": finished.overhead_s,
        }
        context.note("trial-finished", **values, **sealed(context.trials / trial.id))
        context.emit(Event("trial-finished", {**values, "phases": dict(finished.phases)}))
        half = context.in_progress / trial.id
        if half.exists():
            self.recovery.put_aside(half)

    def end(self, folder: Path) -> None:
        """Put back what outlasts trials; what cannot be stays in the journal for whoever goes on."""
        if not self.boot_settings.hosts:
            return
        recorder = Recorder(folder)
        for session in self.context.sessions:
            session.record = recorder
        try:
            self.boot_settings.restore()
        except TestbedError as error:
            self.context.emit(Event("warning", {"text": str(error)}))
