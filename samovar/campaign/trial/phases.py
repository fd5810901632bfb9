"""One trial: read, set, read back, arm, run, restore, stop, collect, judge."""

from __future__ import annotations

import time
from collections.abc import Collection, Mapping
from dataclasses import replace

from samovar.atomic_files import write_json
from samovar.campaign.availability import blamed
from samovar.campaign.calibration import Calibration
from samovar.campaign.collection import Expected, collect, commit_trial
from samovar.campaign.context import CampaignContext, Recorder
from samovar.campaign.disk_reserve import is_disk_error
from samovar.campaign.host_state import changed, parse_named, parse_state, unmet
from samovar.campaign.interrupts import salvage
from samovar.campaign.trial.attempt import Outcome, TrialResult
from samovar.campaign.trial.boot_settings import BootSettings
from samovar.campaign.trial.manifest import Attempt, manifest_of
from samovar.campaign.trial.steps import Steps
from samovar.campaign.trial.throughput_monitor import Gauge
from samovar.campaign.trial.traffic import Traffic
from samovar.campaign.verdict import NOT_OVERHEAD, Check, Evidence, Verdict
from samovar.campaign.verdict.counters import Span
from samovar.campaign.verdict.evidence import checks_of, expected
from samovar.campaign.verdict.judge import verdict_of
from samovar.errors import CampaignError, RecipeError, TestbedError
from samovar.events import Event
from samovar.hosts import HostsError, Session, discard_result
from samovar.plan import Trial
from samovar.recipes import AbortLimits, TrialScripts, split_finish_output

COLLECT_DEADLINE_S = 900.0
LEAD_S = 0.08
LEAD_READINGS = 3.0
"""How long before second 0 its scripts are sent, so that every host has read its own: a fixed part, and how
many times what the slowest host takes to tell its time."""


class TrialRun:
    """One attempt at one trial; used once."""

    def __init__(
        self,
        context: CampaignContext,
        trial: Trial,
        attempt: int,
        boot_settings: BootSettings,
        calibration: Calibration,
    ) -> None:
        self.context, self.trial, self.attempt = context, trial, attempt
        self.boot_settings, self.paths, self.windows = boot_settings, calibration.paths, calibration.windows
        self.scripts = TrialScripts(trial, context.catalogue, context.campaign)
        self.hosts = tuple(trial.resolved.hosts)
        self.folder = context.in_progress / trial.id
        self.seen = Evidence()
        steps = Steps(context, trial.id, self.hosts, self.seen.phases)
        self._phase, self._on_hosts = steps.phase, steps.on_hosts

    def run(self) -> TrialResult:
        """Run the trial to its end and leave the testbed as it was found.

        Never raises for what goes wrong with the trial itself: that is the outcome; also where nothing can be
        written here any more. Raises KeyboardInterrupt again once everything is cleaned up.
        """
        started = time.monotonic()
        try:
            self._begin()
            self._measure()
            finished = self._judged(started)
        except TestbedError as error:
            if self.context.interrupt.requested:
                self._broken_off("interrupted", error, started)
                raise KeyboardInterrupt from error
            finished = self._broken_off("failed", error, started)
        except (OSError, CampaignError) as error:
            self._unwritten(error)
            finished = self._broken_off("failed", error, started)
        except KeyboardInterrupt as interrupt:
            if not self.folder.exists():
                raise  # it came as the trial was whole already
            self._interrupt()
            self._broken_off("interrupted", interrupt, started)
            raise
        return finished

    def _begin(self) -> None:
        self.folder.mkdir(parents=True)
        recorder = Recorder(self.folder / "commands")
        for session in self.context.sessions:
            session.record = recorder

    def _unwritten(self, error: OSError | CampaignError) -> None:
        """Go on without records where none can be written: hosts are to be restored all the same."""
        for session in self.context.sessions:
            session.record = discard_result
        if is_disk_error(error):
            self.context.disk.fail(error)

    def _interrupt(self) -> None:
        """End the scripts that other threads wait for; a host that does not answer is swept all the same."""
        try:
            self.context.sessions.interrupt()
        except TestbedError as error:
            self.context.emit(Event("warning", {"text": str(error)}))

    def _measure(self) -> None:
        self._reboot()
        self._read()
        self._set()
        self._calibrate()
        self._fit()
        self._arm()
        self._traffic()
        self._restore()
        self._stop()
        self._collect()

    def _reboot(self) -> None:
        """Have in force what takes a reboot; what is so already is only looked at."""
        if self.boot_settings.concerns(self.scripts):
            with self._phase("reboot"):
                self.boot_settings.prepare(self.scripts)

    def _read(self) -> None:
        with self._phase("read"):
            # What the last trial read when it had restored the host, a moment ago, need not be read again.
            known = {
                h: s for h, (text, s) in self.context.last_states.items() if text == self.scripts.read_body(h)
            }
            unknown = [host for host in self.hosts if host not in known]
            done = self._on_hosts("read", self.scripts.read, hosts=unknown)
            read = {host: parse_state(result.text) for host, result in done.items()}
            self.seen.before = {host: {**known, **read}[host] for host in self.hosts}
            self.context.last_states.clear()
            for host, state in self.seen.before.items():
                # What is needed to restore is on disk before anything changes.
                self.context.note("state-read", id=self.trial.id, host=host, state=state)
                write_json(self.folder / "facts" / f"{host}-before.json", state)
        with self._phase("guard"):
            on_loss = {host: self._on_loss(host) for host in self.hosts}
            self.context.sessions.map(lambda s: s.set_on_loss(on_loss[s.host]), self.hosts)

    def _on_loss(self, host: str) -> str:
        before = self.seen.before[host]
        try:
            return self.scripts.on_loss(host, before, self.boot_settings.on_loss(host))
        except RecipeError as error:
            # Nothing has been changed yet, and nothing is to be put back from half a state.
            self.seen.before.clear()
            what = "what was read of it does not tell how to restore it"
            raise TestbedError(f"{host}: {what}: {error}") from error

    def _set(self) -> None:
        with self._phase("set"):
            done = self._on_hosts("set", lambda host: self.scripts.set(host, self.seen.before[host]))
        problems = []
        for host, result in done.items():
            state = parse_state(result.text)
            write_json(self.folder / "facts" / f"{host}-set.json", state)
            problems += [f"{host}: {difference}" for difference in unmet(self.scripts.wanted(host), state)]
        if problems:
            raise TestbedError("the testbed is not in the state that was asked for:\n" + "\n".join(problems))

    def _calibrate(self) -> None:
        """Measure a path that is not yet known, and take what is known of it as checks of this trial."""
        if self.paths.due(self.trial.resolved):
            with self._phase("calibrate"):
                self.paths.measure(self.scripts)
        refusal, known = self.paths.refusal(self.trial.resolved), self.paths.known(self.trial.resolved)
        if refusal:
            raise TestbedError("\n".join(refusal))
        self.seen.checks += known.checks if known is not None else ()

    def _fit(self) -> None:
        """Have the receive buffers that give the windows asked for, where the kernel goes by these."""
        if self.windows.due(self.scripts):
            with self._phase("windows"):
                self.windows.measure(self.scripts, self.seen.before)
        fits = self.windows.fits(self.scripts)
        if fits:
            with self._phase("fit"):
                done = self._on_hosts("fit", lambda host: fits[host].script, hosts=fits)
                self.windows.check(fits, {host: one.text for host, one in done.items()})

    def _arm(self) -> None:
        with self._phase("arm"):
            offers: dict[str, str] = {}
            for done in self._on_hosts("offer", self.scripts.offer).values():
                offers |= parse_named(done.text, "offer")
            counted = self._on_hosts("arm", lambda host: self.scripts.arm(host, offers)).items()
            self.seen.spans = {host: Span(parse_state(one.text), {}) for host, one in counted}

    def _traffic(self) -> None:
        ends = tuple(host for host in self.hosts if self.scripts.has_flows(host))
        with self._phase("clocks"):
            self.context.clocks.read(self.context.sessions, ends, self.scripts.clock)
            self.seen.clocks = self.context.clocks.offsets(ends)
        lead_s = LEAD_S + LEAD_READINGS * self.context.clocks.longest_s()
        self.seen.t_start_s = time.time() + lead_s
        with self._phase("traffic", "start", lead_s):
            t0_ns = {
                host: round((self.seen.t_start_s + clock.correction_s) * 1e9)
                for host, clock in self.seen.clocks.items()
            }
            bounds = self.context.policy.thresholds
            limits = AbortLimits(bounds.disk_bytes, bounds.clock_step_s)
            traffic = Traffic(self.scripts, self.context.sessions, t0_ns, limits)
            with Gauge(self.context.sessions, self.trial.resolved, self._flows):
                self.seen.ending = traffic.run(lead_s + self.trial.resolved.deadline_s)
        self.seen.t_end_s = self.seen.ending.t_end_s

    def _flows(self, received_bps: Mapping[str, float]) -> None:
        self.context.emit(Event("throughput", {"id": self.trial.id, "received_bps": received_bps}))

    def _restore(self) -> None:
        """Look how the traffic has left each host, then put it back."""
        with self._phase("restore"):
            done = self._on_hosts("restore", lambda host: self.scripts.finish(host, self.seen.before[host]))
            for host, result in done.items():
                counted, found, restored = split_finish_output(result.text)
                if host in self.seen.spans:
                    self.seen.spans[host] = Span(self.seen.spans[host].before, parse_state(counted))
                self.seen.found[host] = parse_state(found)
                write_json(self.folder / "facts" / f"{host}-found.json", self.seen.found[host])
                self._prove(host, parse_state(restored))

    def _put_back(self, away: Collection[str]) -> None:
        """Put each host back after a trial that was broken off, but for those that are away."""
        there = {host: state for host, state in self.seen.before.items() if host not in away}
        scripts = {host: self.scripts.restore_and_delete(host, state) for host, state in there.items()}
        for host, result in self._on_hosts("restore", scripts.get, hosts=scripts).items():
            self._prove(host, parse_state(result.text))

    def _prove(self, host: str, after: dict[str, str]) -> None:
        """Compare a host as it was put back with what it was before."""
        write_json(self.folder / "facts" / f"{host}-after.json", after)
        differences = [str(difference) for difference in changed(self.seen.before[host], after)]
        if differences:
            self.context.note("restore-failed", id=self.trial.id, host=host, differences=differences)
            observed = "; ".join(differences)
            check = Check("state after the trial", host, "as before", observed, False, "suspect")
            self.seen.checks.append(check)
        else:
            self.context.note("state-restored", id=self.trial.id, host=host)
            self.context.last_states[host] = (self.scripts.read_body(host), after)

    def _stop(self) -> None:
        with self._phase("stop"):
            self.seen.hear(self._on_hosts("stop", self.scripts.stop))

    def _collect(self) -> None:
        with self._phase("collect"):
            per_host = self.context.sessions.map(self._collect_from, self.hosts)
            self.seen.files = [entry for entries in per_host.values() for entry in entries]

    def _collect_from(self, session: Session) -> list[Mapping[str, object]]:
        """Bring a host's files; a connection that is lost meanwhile must not cost them.

        Nothing runs any more and the host is as before: only what lasts is left to it to put back.
        """
        lasting = self.boot_settings.on_loss(session.host)
        session.set_on_loss(self.scripts.script(session.host, (lasting,)) if lasting else None)
        files = self._expected(session.host)
        return collect(session, self.scripts.folder, files, self.folder, deadline_s=COLLECT_DEADLINE_S)

    def _expected(self, host: str) -> tuple[Expected, ...]:
        return tuple(expected(process) for process in self.scripts.processes(host))

    def _judged(self, started: float) -> TrialResult:
        with self._phase("judge"):
            self.seen.checks += checks_of(self.seen, self.scripts, self.folder, self.context.policy)
            verdict, reasons = verdict_of(self.seen.checks)
        overhead_s = time.monotonic() - started - self.seen.seconds(NOT_OVERHEAD)
        finished = self._finished("completed", verdict, reasons, overhead_s)
        write_json(self.folder / "manifest.json", self._manifest(finished))
        commit_trial(self.folder, self.context.trials)
        return finished

    def _broken_off(self, outcome: Outcome, error: BaseException, started: float) -> TrialResult:
        reasons = [*map(str, self.seen.ending.failures), str(error) or "interrupted"]
        hosts = blamed(error)
        try:
            with self.context.interrupt.shielded(), self._phase("clear"):
                if outcome == "interrupted":
                    files = {host: self._expected(host) for host in self.hosts}
                    sessions, emit = self.context.sessions, self.context.emit
                    self.seen.files += salvage(self.scripts, sessions, files, self.folder, emit)
                self._clear()
        except TestbedError as second:
            reasons.append(f"and the testbed could not be restored: {second}")
            hosts = {**blamed(second), **hosts}
        except (OSError, CampaignError) as second:
            self._unwritten(second)
            reasons.append(f"and that the testbed is restored could not be written: {second}")
        finished = self._finished(outcome, "invalid", tuple(reasons), time.monotonic() - started)
        finished = replace(finished, blamed=hosts)
        self._leave(finished)
        return finished

    def _clear(self) -> None:
        """End what runs on each host and put it back; one that is away keeps no other from that.

        Raises HostsError.
        """
        away: dict[str, TestbedError] = {}
        for step in (self._sweep, self._put_back):
            try:
                step(away)
            except TestbedError as error:
                named = blamed(error)
                if not named:
                    raise
                away |= {host: TestbedError(reason) for host, reason in named.items()}
        if away:
            raise HostsError(away)

    def _sweep(self, away: Collection[str]) -> None:
        self._on_hosts("sweep", self.scripts.sweep, hosts=[host for host in self.hosts if host not in away])

    def _leave(self, finished: TrialResult) -> None:
        """Write the manifest of what was broken off, if it can be: the journal has what matters of it."""
        try:
            write_json(self.folder / "manifest.json", self._manifest(finished))
        except OSError as error:
            self._unwritten(error)
            self.context.emit(Event("warning", {"text": f"{self.trial.id}: no manifest: {error}"}))

    def _finished(
        self, outcome: Outcome, verdict: Verdict, reasons: tuple[str, ...], overhead_s: float
    ) -> TrialResult:
        return TrialResult(outcome, verdict, reasons, round(overhead_s, 3), tuple(self.seen.phases))

    def _manifest(self, finished: TrialResult) -> Mapping[str, object]:
        attempt = Attempt(self.attempt, self.context.testbed)
        return manifest_of(attempt, self.scripts, self.seen, finished)
