"""A separate checkout for tests that run campaigns, with methods to run commands and read results."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol, TypeVar

import yaml
from jsonschema import Draft202012Validator

from samovar import lab
from samovar.campaign.journal import JOURNAL, Entry, read_journal
from samovar.campaign.policy import Policy
from samovar.campaign.trial import TrialResult
from samovar.cli.controller import Controller
from samovar.events import JOURNAL_EVENTS, line_schema, silent
from samovar.experiment import keys, load_testbed

ROOT = Path(__file__).parents[2]
SAMOVAR = (sys.executable, "-m", "samovar", "--project")
"""The beginning of samovar's command line, which is followed by the folder of a checkout."""
PROGRAMS = ("iperf3", "nuttcp", "tcpdump", "python3", "timeout", "gzip")
"""Programs on hosts that only trials start."""

EVENT = Draft202012Validator(line_schema("journal", JOURNAL_EVENTS))
BUSY = "{cpu: 100%, late: 60s, rate: 90%, offered: 90%, stall: 60s}"
"""Thresholds of the verdict for a machine that runs other tests at the same time: its CPUs are busy and starts are late."""
LENIENT = Policy(thresholds=keys.Thresholds.model_validate(yaml.safe_load(BUSY)))
TRAFFIC = "[{flow: bulk, generator: iperf3, from: sender, to: receiver}]"
EXPERIMENT = """
experiment: {name}
title: A campaign of a test
testbed: lab
path: {{rate: 10Mbit, rtt: 4ms, loss: 0%, aqm: pfifo, buffer: 40packets}}
duration: {duration_s}s
replicates: {replicates}
order: {{kind: sequential, seed: 1}}
traffic: {traffic}
captures: [{{at: sender}}, {{at: receiver}}]
loggers: [{{logger: tcp-info, at: sender, interval: 10ms}}, {{logger: queue, at: router, interval: 10ms}}]
factors: {factors}
"""


class HasResult(Protocol):
    """A finished trial with its result; tests add further fields."""

    @property
    def result(self) -> TrialResult:
        """The trial's outcome and verdict."""


RunT = TypeVar("RunT", bound=HasResult)


def until_valid(run: Callable[[], RunT], tries: int = 3) -> RunT:
    """Run a trial until it is valid, at most `tries` times, since a busy machine may disturb it; return the last run."""
    for _ in range(tries - 1):
        ran = run()
        if ran.result.verdict == "valid":
            return ran
    return run()


@dataclass(frozen=True)
class Checkout:
    """A folder with recipes and testbeds of this project, and experiments of the test."""

    folder: Path

    @property
    def controller(self) -> Controller:
        """A controller of this checkout."""
        return Controller(self.folder)

    def define(
        self, name: str, factors: str, traffic: str = TRAFFIC, *, duration_s: float = 2, replicates: int = 1
    ) -> None:
        """Write an experiment with these factors and this traffic."""
        text = EXPERIMENT.format(
            name=name, factors=factors, traffic=traffic, duration_s=duration_s, replicates=replicates
        )
        (self.folder / "experiments" / f"{name}.yaml").write_text(text)

    def start(self, name: str, *flags: str) -> subprocess.Popen[str]:
        """Start `fab run NAME` as a process of its own; flags such as `new` and `testbed=lab,twin` are its options."""
        # Background jobs of a script ignore SIGINT, and so would the programs that they start.
        default_signals = ["env", "--default-signal=HUP,INT,TERM"]
        options = (f"--{flag}" for flag in flags)
        command = [*default_signals, *SAMOVAR, str(self.folder), "run", name, *options]
        return subprocess.Popen(
            command,
            cwd=ROOT,
            text=True,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            stdin=subprocess.DEVNULL,
        )

    def run(self, name: str, *flags: str) -> tuple[int, str]:
        """Run `fab run NAME` to its end; return its exit code and its output."""
        with self.start(name, *flags) as process:
            try:
                said, _ = process.communicate(timeout=300)
            except subprocess.TimeoutExpired:
                process.kill()
                raise
        return process.returncode, said

    def write(self, name: str, text: str) -> None:
        """Write an experiment whose whole text is given."""
        (self.folder / "experiments" / f"{name}.yaml").write_text(text)

    def campaign(self, name: str) -> Path:
        """Return the folder of the latest campaign of an experiment."""
        return (self.folder / "results" / name / "latest").resolve()

    def journal(self, name: str) -> list[Entry]:
        """Return the events of the latest campaign so far, after their validation against the schema."""
        file = self.folder / "results" / name / "latest" / JOURNAL
        entries = read_journal(file) if file.exists() else []
        for entry in entries:
            EVENT.validate({"t_s": entry.t_s, "event": entry.event, **entry.values})
        return entries

    def manifests(self, name: str) -> dict[str, dict[str, Any]]:
        """Return the manifests of the latest campaign's complete trials, by id."""
        files = sorted((self.campaign(name) / "trials").glob("*/manifest.json"))
        return {file.parent.name: json.loads(file.read_bytes()) for file in files}

    def wait_for_traffic(self, name: str, trial: int) -> str:
        """Wait until the traffic of the n-th trial runs; return its id."""
        deadline_s = time.monotonic() + 300
        while time.monotonic() < deadline_s:
            events = self.journal(name)
            started = [entry.values["id"] for entry in events if entry.event == "trial-started"]
            armed = [e.values["id"] for e in events if e.event == "phase" and e.values["phase"] == "clocks"]
            if len(started) >= trial and started[trial - 1] in armed:
                return str(started[trial - 1])
            time.sleep(0.05)
        raise AssertionError(f"no traffic in trial {trial} of {name}: {self.journal(name)[-3:]}")

    def on_host(self, host: str, script: str, testbed: str = "lab") -> str:
        """Run a script on a host of the lab by ssh, while samovar may be using the host."""
        access = lab.read_access(self.controller.connections.lab_folder(testbed))
        assert access
        command = [*lab.shell_command(access, host), script]
        done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
        assert done.returncode == 0, f"{host}: {done.stdout}{done.stderr}"
        return done.stdout

    def running(self, host: str) -> list[str]:
        """Return the programs of trials that run on a host now."""
        found = self.on_host(host, "cat /proc/[0-9]*/comm 2>/dev/null; true").split()
        return sorted(set(found) & set(PROGRAMS))

    def wait_until_idle(self, host: str) -> None:
        """Wait until no program of a trial runs on a host."""
        deadline_s = time.monotonic() + 30
        while (found := self.running(host)) and time.monotonic() < deadline_s:
            time.sleep(0.2)
        assert not found, f"{host} still runs {found}"

    def lab_up(self, testbed: str = "lab") -> None:
        """Start the lab of this checkout."""
        self.controller.connections.lab_up(
            load_testbed(self.folder / "hosts" / f"{testbed}.yaml"), None, silent
        )

    def lab_down(self, testbed: str = "lab") -> None:
        """Stop the lab of this checkout."""
        lab.down(self.controller.connections.lab_folder(testbed), silent)

    @contextmanager
    def running_lab(self, testbed: str = "lab") -> Iterator[Checkout]:
        """Start the lab of this checkout; stop it when the context ends."""
        self.lab_up(testbed)
        try:
            yield self
        finally:
            self.lab_down(testbed)


def make_checkout(
    folder: Path,
    retries: int = 0,
    *,
    hosts: Mapping[str, str] | None = None,
    config: str = "",
    verdict: str = BUSY,
) -> Checkout:
    """Make a checkout with the recipes of this one, and with the testbeds of this one unless `hosts` is given."""
    for name in ("templates", "analysis", ".rlib", *(() if hosts else ("hosts",))):
        (folder / name).symlink_to(ROOT / name)
    for name, text in (hosts or {}).items():
        (folder / "hosts").mkdir(exist_ok=True)
        (folder / "hosts" / f"{name}.yaml").write_text(text)
    (folder / "config.yaml").write_text(f"retries: {retries}\nverdict: {verdict}\n{config}")
    (folder / "experiments").mkdir()
    return Checkout(folder)
