"""One trial: read, set, read back, arm, run, restore, stop, collect, judge."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Literal

from samovar.collect import Expected, collect, commit_trial
from samovar.command.scripts import Process, TrialScripts
from samovar.errors import TestbedError
from samovar.events import Event
from samovar.plan import Trial
from samovar.runner.bench import Bench, Recorder, write_json
from samovar.runner.judge import (
    Check,
    Verdict,
    check_captures,
    check_clients,
    check_duration,
    check_sockets,
    parse_tells,
    verdict_of,
)
from samovar.runner.state import changed, parse_state, unmet
from samovar.testbed import Completed

Outcome = Literal["completed", "failed", "interrupted"]
STEP_DEADLINE_S = 60.0
COLLECT_DEADLINE_S = 900.0
NOT_OVERHEAD = frozenset({"traffic"})


@dataclass(frozen=True)
class Finished:
    """What came of one attempt at a trial."""

    outcome: Outcome
    verdict: Verdict
    reasons: tuple[str, ...]
    overhead_s: float
    phases: tuple[tuple[str, float], ...] = ()


@dataclass
class _Evidence:
    """What the phases leave for the verdict."""

    phases: list[tuple[str, float]] = field(default_factory=list)
    before: dict[str, dict[str, str]] = field(default_factory=dict)
    checks: list[Check] = field(default_factory=list)
    files: list[Mapping[str, object]] = field(default_factory=list)
    codes: dict[str, str] = field(default_factory=dict)
    complaints: dict[str, list[str]] = field(default_factory=dict)
    t_start_s: float = 0.0
    t_end_s: float = 0.0


class TrialRun:
    """One attempt at one trial; used once."""

    def __init__(self, bench: Bench, trial: Trial, attempt: int) -> None:
        self.bench, self.trial, self.attempt = bench, trial, attempt
        self.scripts = TrialScripts(trial, bench.catalogue, bench.campaign)
        self.hosts = tuple(trial.resolved.hosts)
        self.folder = bench.in_progress / trial.id
        self.seen = _Evidence()

    def run(self) -> Finished:
        """Run the trial to its end and leave the testbed as it was found.

        Never raises for what goes wrong with the trial itself: that is the outcome. Raises KeyboardInterrupt
        again once everything is cleaned up.
        """
        self.folder.mkdir(parents=True)
        recorder = Recorder(self.folder / "commands")
        for session in self.bench.sessions:
            session.record = recorder
        started = time.monotonic()
        try:
            self._measure()
            finished = self._judged(started)
        except TestbedError as error:
            finished = self._broken_off("failed", error, started)
        except KeyboardInterrupt as interrupt:
            self._interrupt()
            self._broken_off("interrupted", interrupt, started)
            raise
        return finished

    def _interrupt(self) -> None:
        """End the scripts that other threads wait for; a host that does not answer is swept all the same."""
        try:
            self.bench.sessions.interrupt()
        except TestbedError as error:
            self.bench.emit(Event("warning", {"text": str(error)}))

    def _measure(self) -> None:
        self._read()
        self._set()
        self._arm()
        self._traffic()
        self._restore()
        self._stop()
        self._collect()

    def _read(self) -> None:
        with self._phase("read"):
            # What the last trial read when it had restored the host, a moment ago, need not be read again.
            known = {h: s for h, (text, s) in self.bench.left.items() if text == self.scripts.reading(h)}
            unknown = [host for host in self.hosts if host not in known]
            done = self._on_hosts("read", self.scripts.read, hosts=unknown)
            read = {host: parse_state(result.text) for host, result in done.items()}
            self.seen.before = {host: {**known, **read}[host] for host in self.hosts}
            self.bench.left.clear()
            for host, state in self.seen.before.items():
                # What is needed to restore is on disk before anything changes.
                self.bench.note("state-read", id=self.trial.id, host=host, state=state)
                write_json(self.folder / "facts" / f"{host}-before.json", state)
        with self._phase("guard"):
            self.bench.sessions.map(
                lambda s: s.set_on_loss(self.scripts.on_loss(s.host, self.seen.before[s.host])), self.hosts
            )

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

    def _arm(self) -> None:
        with self._phase("arm"):
            self._on_hosts("arm", self.scripts.arm)

    def _traffic(self) -> None:
        deadline_s = self.trial.resolved.deadline_s + 10.0
        self.seen.t_start_s = time.time()
        with self._phase("traffic"):
            done = self._on_hosts("traffic", self.scripts.traffic, deadline_s)
        self.seen.t_end_s = time.time()
        self._hear(done)

    def _restore(self) -> None:
        with self._phase("restore"):
            self._restored()

    def _restored(self) -> None:
        def restore(host: str) -> str:
            return self.scripts.restore(host, self.seen.before[host])

        done = self._on_hosts("restore", restore, hosts=self.seen.before)
        for host, result in done.items():
            after = parse_state(result.text)
            write_json(self.folder / "facts" / f"{host}-after.json", after)
            differences = [str(difference) for difference in changed(self.seen.before[host], after)]
            if differences:
                self.bench.note("restore-failed", id=self.trial.id, host=host, differences=differences)
                check = Check(
                    "state after the trial", host, "as before", "; ".join(differences), False, "suspect"
                )
                self.seen.checks.append(check)
            else:
                self.bench.note("state-restored", id=self.trial.id, host=host)
                self.bench.left[host] = (self.scripts.reading(host), after)

    def _stop(self) -> None:
        with self._phase("stop"):
            self._hear(self._on_hosts("stop", self.scripts.stop))

    def _collect(self) -> None:
        with self._phase("collect"):
            per_host = self.bench.sessions.map(
                lambda session: collect(
                    session,
                    self.scripts.folder,
                    self._expected(session.host),
                    self.folder,
                    deadline_s=COLLECT_DEADLINE_S,
                ),
                self.hosts,
            )
            self.seen.files = [entry for entries in per_host.values() for entry in entries]

    def _expected(self, host: str) -> tuple[Expected, ...]:
        return tuple(_expected(process) for process in self.scripts.processes(host))

    def _judged(self, started: float) -> Finished:
        self.seen.checks += self._checks()
        verdict, reasons = verdict_of(self.seen.checks)
        overhead_s = time.monotonic() - started - self._seconds(NOT_OVERHEAD)
        finished = self._finished("completed", verdict, reasons, overhead_s)
        write_json(self.folder / "manifest.json", self._manifest(finished))
        commit_trial(self.folder, self.bench.trials)
        return finished

    def _checks(self) -> Iterator[Check]:
        resolved = self.trial.resolved
        for host in self.hosts:
            processes = self.scripts.processes(host)
            clients = [p.name for p in processes if p.name.endswith("-client")]
            yield from check_clients(host, clients, self.seen.codes)
            captures = [p.name for p in processes if p.kind == "capture"]
            yield from check_captures(host, captures, self.seen.complaints)
            for process in processes:
                if process.recipe == "tcp-info":
                    yield from check_sockets(resolved, host, self.folder / _expected(process).packed.path)
        yield from check_duration(resolved.flows, self._seconds(NOT_OVERHEAD))

    def _broken_off(self, outcome: Outcome, error: BaseException, started: float) -> Finished:
        reasons = [str(error) or "interrupted"]
        try:
            with self._phase("clear"):
                self._on_hosts("sweep", self.scripts.sweep)
                self._restored()
        except TestbedError as second:
            reasons.append(f"and the testbed could not be restored: {second}")
        finished = self._finished(outcome, "invalid", tuple(reasons), time.monotonic() - started)
        write_json(self.folder / "manifest.json", self._manifest(finished))
        return finished

    def _finished(
        self, outcome: Outcome, verdict: Verdict, reasons: tuple[str, ...], overhead_s: float
    ) -> Finished:
        return Finished(outcome, verdict, reasons, round(overhead_s, 3), tuple(self.seen.phases))

    def _manifest(self, finished: Finished) -> Mapping[str, object]:
        trial = self.trial.as_json()
        return {
            "schema": 1,
            **{key: trial[key] for key in ("id", "part", "treatment", "replicate", "block")},
            "attempt": self.attempt,
            "resolved": trial["resolved"],
            "outcome": finished.outcome,
            "verdict": finished.verdict,
            "reasons": list(finished.reasons),
            "t_start_s": round(self.seen.t_start_s, 6),
            "t_end_s": round(self.seen.t_end_s, 6),
            "phases": [{"phase": name, "seconds": seconds} for name, seconds in finished.phases],
            "overhead_s": finished.overhead_s,
            "checks": [check.as_json() for check in self.seen.checks],
            "files": self.seen.files,
        }

    def _on_hosts(
        self,
        step: str,
        script: Callable[[str], str | None],
        deadline_s: float = STEP_DEADLINE_S,
        hosts: Iterable[str] | None = None,
    ) -> dict[str, Completed]:
        texts = {host: script(host) for host in (self.hosts if hosts is None else hosts)}
        wanted = {host: text for host, text in texts.items() if text is not None}
        return self.bench.sessions.map(
            lambda session: session.run(wanted[session.host], step=step, deadline_s=deadline_s), wanted
        )

    def _hear(self, done: Mapping[str, Completed]) -> None:
        for result in done.values():
            codes, complaints = parse_tells(result.text)
            self.seen.codes |= codes
            self.seen.complaints |= complaints

    def _seconds(self, phases: Iterable[str]) -> float:
        return sum(seconds for name, seconds in self.seen.phases if name in phases)

    @contextmanager
    def _phase(self, name: str) -> Iterator[None]:
        self.bench.emit(Event("phase", {"id": self.trial.id, "phase": name}))
        started = time.monotonic()
        try:
            yield
        finally:
            seconds = round(time.monotonic() - started, 4)
            self.seen.phases.append((name, seconds))
            self.bench.note("phase", id=self.trial.id, phase=name, seconds=seconds)


def _expected(process: Process) -> Expected:
    """Say which file a process leaves, and where it belongs in the trial's folder."""
    return Expected(
        remote=process.output,
        path=f"{'logs' if process.kind == 'generator' else 'traces'}/{process.output}",
        kind=process.kind,
        logger=process.recipe,
        interface=process.interface,
    )
