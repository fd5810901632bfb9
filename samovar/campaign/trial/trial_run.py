"""Run one trial: apply settings, calibrate, start recording, run traffic, restore hosts, collect, judge."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from samovar.atomic_files import write_json
from samovar.campaign.availability import is_disk_error
from samovar.campaign.calibration import Calibration, render_fit
from samovar.campaign.collection import collect, commit_trial, salvage
from samovar.campaign.context import CampaignContext
from samovar.campaign.host_state import changed, parse_named, parse_state, unmet
from samovar.campaign.trial.boot_settings import BootSettings
from samovar.campaign.trial.traffic import Traffic, throughput_reports
from samovar.campaign.verdict import (
    MTU_AND_ROUTES,
    NOT_OVERHEAD,
    CounterSpan,
    Evidence,
    Verdict,
    blamed_for_traffic,
    check_traffic_failures,
    run_checks,
    run_checks_without_traffic,
    start_times,
    verdict_of,
    with_prefix,
)
from samovar.errors import CampaignError, RecipeError, TestbedError
from samovar.events import Event
from samovar.hosts import ScriptResult, Session, raise_host_errors
from samovar.plan import Trial
from samovar.recipes import TrialScripts, split_finish_output

Outcome = Literal["completed", "failed", "interrupted"]
COLLECT_DEADLINE_S = 900.0
LEAD_S = 0.08
LEAD_READINGS = 3.0
"""The time from the sending of scripts to the start of the traffic is LEAD_S plus LEAD_READINGS times the
duration of the slowest clock reading. In this time, every host must have read its script."""


@dataclass(frozen=True)
class TrialResult:
    """The outcome and the verdict of an attempt at a trial, with the reasons, and the duration of each phase.

    `overhead_s` is the time that was spent neither on traffic nor on reboots or calibration. `blamed` maps
    each host that caused a failure to the reason.
    """

    outcome: Outcome
    verdict: Verdict
    reasons: tuple[str, ...]
    overhead_s: float
    phases: tuple[tuple[str, float], ...] = ()
    blamed: Mapping[str, str] = field(default_factory=dict)


def read_result(folder: Path) -> TrialResult | None:
    """Read the result of a complete trial from its manifest.json; return None if there is no such file.

    Raises CampaignError if the file is damaged.
    """
    file = folder / "manifest.json"
    if not file.is_file():
        return None
    try:
        one = json.loads(file.read_bytes())
        return TrialResult(one["outcome"], one["verdict"], tuple(one["reasons"]), one["overhead_s"])
    except (ValueError, TypeError, KeyError) as error:
        advice = f"move the trial's folder out of {folder.parent.name}/ to run it again"
        raise CampaignError(f"{file}: is damaged: {error}; {advice}") from error


class TrialRun:
    """Runs one attempt at one trial. An object is used for one attempt only."""

    def __init__(
        self,
        context: CampaignContext,
        trial: Trial,
        attempt: int,
        boot_settings: BootSettings,
        calibration: Calibration,
    ) -> None:
        self.context, self.trial, self.attempt = context, trial, attempt
        self.boot_settings, self.calibration = boot_settings, calibration
        self.scripts = TrialScripts(trial, context.catalogue, context.campaign)
        self.hosts = tuple(trial.resolved.hosts)
        self.folder = context.in_progress / trial.id
        self.evidence = Evidence(self.scripts, self.folder, context.policy)

    def run(self) -> TrialResult:
        """Run the trial, and restore all hosts to the state in which they were before it.

        If anything fails, even because the controller's disk is full, the result has the outcome `failed`. On
        Ctrl-C, the hosts are restored, and then KeyboardInterrupt is raised.
        """
        started = time.monotonic()
        try:
            return self._attempt(started)
        except KeyboardInterrupt as interrupt:
            if not self.folder.exists():
                raise  # the interrupt arrived after the trial had been committed
            self.context.interrupt.end_scripts(self.context.sessions, self.context.emit)
            self._abort("interrupted", interrupt.__cause__ or interrupt, started)
            raise

    def _attempt(self, started: float) -> TrialResult:
        """Run the trial, and clean up after a failure. Raises KeyboardInterrupt, also during the clean-up."""
        try:
            self.folder.mkdir(parents=True)
            self.context.record_scripts(self.folder / "commands")
            if self.boot_settings.is_due(self.scripts):
                with self._phase("reboot"):
                    self.boot_settings.apply(self.scripts)
            self._read_states()
            self._guard()
            self._set()
            self._calibrate_path()
            self._fit_receive_windows()
            self._arm()
            self._read_clocks()
            self._run_traffic()
            self._restore()
            with self._phase("stop"):
                self.evidence.add_program_endings(self._on_hosts("stop", self.scripts.stop))
            with self._phase("collect"):
                by_host = self.context.sessions.map(self._collect, self.hosts)
                self.evidence.files = [entry for entries in by_host.values() for entry in entries]
            return self._judge(started)
        except (TestbedError, RecipeError) as error:  # RecipeError: a recipe does not fit what a host printed
            if self.context.interrupt.requested.is_set():
                raise KeyboardInterrupt from error
            return self._abort("failed", error, started)
        except (OSError, CampaignError) as error:
            self._stop_recording(error)
            return self._abort("failed", error, started)

    def _read_states(self) -> None:
        """Read the state of the hosts that the trial will change."""
        with self._phase("read"):
            # If the last trial read the same keys after it restored the host, these values are used.
            last = self.context.last_states.items()
            known = {host: state for host, (body, state) in last if body == self.scripts.read_body(host)}
            unknown = [host for host in self.hosts if host not in known]
            for host, result in self._on_hosts("read", self.scripts.read, unknown).items():
                known[host] = parse_state(result.text)
            self.evidence.before = {host: known[host] for host in self.hosts}
            self.context.last_states.clear()
            for host, state in self.evidence.before.items():
                self._write_state(host, "before", state)

    def _guard(self) -> None:
        """Store on each host the script with which it restores itself if it loses its controller.

        Before that, the journal gets the states of all hosts. If a state lacks a value that is needed to
        restore it, the journal gets no state, and TestbedError is raised.
        """
        before, scripts = self.evidence.before, dict[str, str]()
        with self._phase("guard"):
            for host in self.hosts:
                boot = self.boot_settings.restore_body(host)
                try:
                    scripts[host] = self.scripts.on_loss(host, before[host], boot)
                except RecipeError as error:
                    before.clear()  # _clear() must not restore half a state; nothing is changed yet
                    message = f"{host}: its state was not read completely: {error}"
                    raise TestbedError(message, host) from error
            for host, state in before.items():
                self.context.note("state-read", id=self.trial.id, host=host, state=state)
            self.context.sessions.map(lambda s: s.set_on_loss(scripts[s.host]), self.hosts)

    def _set(self) -> None:
        """Apply the settings on all hosts, and read them back. Raises TestbedError if they differ."""
        problems: dict[str, TestbedError] = {}
        with self._phase("set"):
            results = self._on_hosts("set", lambda host: self.scripts.set(host, self.evidence.before[host]))
        for host, result in results.items():
            state = self.evidence.as_set[host] = parse_state(result.text)
            self._write_state(host, "set", state)
            if differences := unmet(self.scripts.wanted(host), state):
                lines = (f"{host}: does not have the requested settings:", *map(str, differences))
                problems[host] = TestbedError("\n".join(lines), host)
        raise_host_errors(problems)

    def _calibrate_path(self) -> None:
        """Measure the path of the trial, unless the campaign has a result for it.

        The checks of the measurement become part of this trial's verdict. Raises TestbedError if the path
        differs too much from the request.
        """
        result = self.calibration.paths.result(self.trial.resolved)
        if result is None:
            with self._phase("calibrate"):
                result = self.calibration.paths.measure(self.scripts)
        if result.refusal:
            raise TestbedError("\n".join(result.refusal))
        self.evidence.calibration = result.checks

    def _fit_receive_windows(self) -> None:
        """Set receive buffers for the requested windows, on kernels that derive windows from buffers."""
        windows = self.calibration.windows
        probes = windows.probes(self.scripts)
        if due := windows.due(probes):
            with self._phase("windows"):
                for name in due:
                    windows.measure(self.scripts, name, probes[name], self.evidence.before)
        if buffers := windows.buffers(probes):
            with self._phase("fit"):
                scripts = {host: render_fit(self.scripts, host, size) for host, size in buffers.items()}
                for host, result in self._on_hosts("fit", scripts.get, buffers).items():
                    size, found = buffers[host], result.text.strip()
                    if found.split()[1:] != [str(size)] * 2:
                        message = f"{host}: requested a receive buffer of {size} B, found {found}"
                        raise TestbedError(message, host)

    def _arm(self) -> None:
        """Start loggers, captures and servers, and read the counters as they are before the traffic."""
        with self._phase("arm"):
            offers: dict[str, str] = {}
            for result in self._on_hosts("offer", self.scripts.offer).values():
                offers |= parse_named(result.text, "offer")
            results = self._on_hosts("arm", lambda host: self.scripts.arm(host, offers))
            counters = {host: parse_state(result.text) for host, result in results.items()}
            self.evidence.counters = {host: CounterSpan(before, {}) for host, before in counters.items()}
            for host, state in counters.items():
                if self.trial.resolved.hosts[host].mtu_bytes is None:
                    own = with_prefix(state, MTU_AND_ROUTES)
                    first = self.context.networks[host] = {**own, **self.context.networks.get(host, {})}
                    self.evidence.network[host] = first

    def _read_clocks(self) -> None:
        programs = {host: self.scripts.processes(host) for host in self.hosts}
        ends = tuple(host for host, started in programs.items() if any(one.end for one in started))
        with self._phase("clocks"):
            self.context.clocks.read(self.context.sessions, ends, self.scripts.clock)
            self.evidence.clocks = self.context.clocks.offsets(ends)

    def _run_traffic(self) -> None:
        """Start the traffic on all hosts at the same time, and wait until it has ended."""

        def emit_throughput(received_bps: Mapping[str, float]) -> None:
            self.context.emit(Event("throughput", {"id": self.trial.id, "received_bps": received_bps}))

        lead_s = LEAD_S + LEAD_READINGS * self.context.clocks.longest_s()
        with self._phase("traffic", "start", lead_s):
            # Read the time only now: the phase's event may have waited for another testbed's notification.
            start_s = self.evidence.t_start_s = time.time() + lead_s
            clocks = self.evidence.clocks.items()
            t0_ns = {host: round((start_s + clock.correction_s) * 1e9) for host, clock in clocks}
            traffic = Traffic(self.scripts, self.context.sessions, t0_ns, self.context.policy.thresholds)
            with throughput_reports(self.context.sessions, self.trial.resolved, emit_throughput):
                traffic.run(lead_s + self.trial.resolved.deadline_s)
        self.evidence.failures, self.evidence.t_end_s = traffic.failures, traffic.t_end_s

    def _restore(self) -> None:
        """Read counters and settings after the traffic, and then restore each host."""
        with self._phase("restore"):
            before, counters = self.evidence.before, self.evidence.counters
            # Hosts of a lab can share a kernel, and with it the parameters of congestion controls. The first
            # host that restores these parameters restores them for all, so all hosts read them before that.
            parameters = any(key.startswith("cc.") for state in before.values() for key in state)
            early = self._on_hosts("found", lambda host: self.scripts.read(host, None)) if parameters else {}
            results = self._on_hosts("restore", lambda host: self.scripts.finish(host, before[host]))
            for host, result in results.items():
                counted, found, restored = split_finish_output(result.text)
                if host in counters:
                    counters[host] = CounterSpan(counters[host].before, parse_state(counted))
                self.evidence.found[host] = parse_state(early[host].text if host in early else found)
                self._write_state(host, "found", self.evidence.found[host])
                self._note_restored(host, parse_state(restored))

    def _note_restored(self, host: str, state: dict[str, str]) -> None:
        """Store the state of a restored host, and record if it differs from the state before the trial."""
        self._write_state(host, "after", state)
        self.evidence.restored[host] = state
        differences = [str(one) for one in changed(self.evidence.before[host], state)]
        if differences:
            self.context.note("restore-failed", id=self.trial.id, host=host, differences=differences)
        else:
            self.context.note("state-restored", id=self.trial.id, host=host)
            self.context.last_states[host] = (self.scripts.read_body(host), state)

    def _collect(self, session: Session) -> list[Mapping[str, object]]:
        """Fetch the files of a host, and return their entries for the manifest.

        If the connection is lost, fetching continues over a new one.
        """
        # Programs are stopped and the host is restored; only boot settings are left to restore.
        body = self.boot_settings.restore_body(session.host)
        session.set_on_loss(self.scripts.script(session.host, (body,)) if body else None)
        programs = self.scripts.processes(session.host)
        return collect(session, self.scripts.folder, programs, self.folder, deadline_s=COLLECT_DEADLINE_S)

    def _judge(self, started: float) -> TrialResult:
        """Run all checks on the trial, write its manifest, and move it to the campaign's trials/."""
        with self._phase("judge"):
            self.evidence.checks = run_checks(self.evidence)
            verdict, reasons = verdict_of(self.evidence.checks)
        overhead_s, phases = self._overhead_s(started), tuple(self.evidence.phases)
        blamed = blamed_for_traffic(self.evidence)
        result = TrialResult("completed", verdict, reasons, overhead_s, phases, blamed)
        self._write_manifest(result)
        commit_trial(self.folder, self.context.trials)
        return result

    def _abort(self, outcome: Outcome, error: BaseException, started: float) -> TrialResult:
        """Stop all programs, restore the hosts, and record why the trial failed or was interrupted."""
        failures = [check.reason for check in check_traffic_failures(self.evidence)]
        reasons = [*failures, str(error) or "interrupted"]
        hosts = blamed_for_traffic(self.evidence)
        if isinstance(error, TestbedError):
            hosts |= error.blamed
        try:
            with self.context.interrupt.shielded(), self._phase("clear"):
                if outcome == "interrupted":
                    sessions, emit = self.context.sessions, self.context.emit
                    self.evidence.files += salvage(self.scripts, sessions, self.folder, emit)
                try:
                    self._clear()
                except (OSError, CampaignError) as second:  # the disk is full: restore without recording
                    self._stop_recording(second)
                    self._clear()
        except TestbedError as second:
            reasons.append(f"the testbed could not be restored: {second}")
            hosts = {**second.blamed, **hosts}
        except (OSError, CampaignError) as second:
            self._stop_recording(second)
            reasons.append(f"the restored state could not be recorded: {second}")
        if not self.evidence.checks:
            self.evidence.checks = run_checks_without_traffic(self.evidence)
        overhead_s, phases = self._overhead_s(started), tuple(self.evidence.phases)
        result = TrialResult(outcome, "invalid", tuple(reasons), overhead_s, phases, hosts)
        try:
            self._write_manifest(result)
        except OSError as second:  # the journal records outcome and reasons
            self._stop_recording(second)
            self.context.emit(Event("warning", {"text": f"{self.trial.id}: no manifest: {second}"}))
        return result

    def _overhead_s(self, started: float) -> float:
        return round(time.monotonic() - started - self.evidence.seconds(NOT_OVERHEAD), 3)

    def _clear(self) -> None:
        """Stop all programs on each host and restore it.

        If the first step, `sweep`, fails on a host, `restore` is not tried there. Raises TestbedError.
        """
        before, failed = self.evidence.before, dict[str, TestbedError]()

        def restore(host: str) -> str | None:
            return self.scripts.restore(host, before[host], deletes=True) if host in before else None

        for step, script in (("sweep", self.scripts.sweep), ("restore", restore)):
            try:
                results = self._on_hosts(step, script, [host for host in self.hosts if host not in failed])
            except TestbedError as error:
                if not error.by_host:
                    raise
                failed |= error.by_host
            else:
                for host, result in results.items() if step == "restore" else ():
                    self._note_restored(host, parse_state(result.text))
        raise_host_errors(failed)

    def _stop_recording(self, error: OSError | CampaignError) -> None:
        """Record no more scripts after a file could not be written; the hosts are still restored."""
        self.context.record_scripts(None)
        if is_disk_error(error):
            self.context.disk.fail(error)

    def _write_manifest(self, result: TrialResult) -> None:
        trial, evidence = self.trial.as_json(), self.evidence
        manifest: Mapping[str, object] = {
            "schema": 1,
            **{key: trial[key] for key in ("id", "part", "treatment", "replicate", "block")},
            "attempt": self.attempt,
            "testbed": self.context.testbed,
            "resolved": trial["resolved"],
            "outcome": result.outcome,
            "verdict": result.verdict,
            "reasons": list(result.reasons),
            "t_start_s": round(evidence.t_start_s, 6),
            "t_end_s": round(evidence.t_end_s, 6),
            "clocks": [clock.as_json() for clock in evidence.clocks.values()],
            "starts": [start._asdict() for start in start_times(evidence)],
            "ends": [{"host": host, "over_s": round(t_s, 6)} for host, t_s in evidence.traffic_over.items()],
            "phases": [{"phase": name, "seconds": seconds} for name, seconds in result.phases],
            "overhead_s": result.overhead_s,
            "checks": [check.as_json() for check in evidence.checks],
            **({"bounds": bounds} if (bounds := self.context.policy.loosened) else {}),
            "files": evidence.files,
        }
        write_json(self.folder / "manifest.json", manifest)

    def _write_state(self, host: str, when: str, state: Mapping[str, str]) -> None:
        write_json(self.folder / "facts" / f"{host}-{when}.json", state)

    def _on_hosts(
        self, step: str, script: Callable[[str], str | None], hosts: Iterable[str] | None = None
    ) -> dict[str, ScriptResult]:
        """Run a script on each host in parallel. A host for which `script` returns None is left out.

        Raises TestbedError.
        """
        texts = ((host, script(host)) for host in (self.hosts if hosts is None else hosts))
        wanted = {host: text for host, text in texts if text is not None}
        return self.context.sessions.run(wanted, step, self.context.policy.config.step_timeout_s)

    @contextmanager
    def _phase(self, name: str, lead: str = "", lead_s: float = 0.0) -> Iterator[None]:
        """Emit an event at the start of a phase, and record its duration in the journal.

        If `lead` names a phase, the first `lead_s` seconds are recorded as this phase.
        Raises KeyboardInterrupt at the start of a phase if an interrupt was requested, except for the phase
        `clear`.
        """
        if self.context.interrupt.requested.is_set() and name != "clear":
            raise KeyboardInterrupt
        self.context.emit(Event("phase", {"id": self.trial.id, "phase": name}))
        started = time.monotonic()
        try:
            yield
        finally:
            seconds = time.monotonic() - started
            parts = {lead: min(lead_s, seconds)} if lead else {}
            for phase, part_s in {**parts, name: seconds - sum(parts.values())}.items():
                self.evidence.phases.append((phase, round(part_s, 4)))
                self.context.note("phase", id=self.trial.id, phase=phase, seconds=round(part_s, 4))
