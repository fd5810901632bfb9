"""Run one campaign in the lab up to the moment of a fault, and the same command again afterwards."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import yaml

from samovar import lab
from samovar.campaign.journal import JOURNAL, Entry, read_journal
from samovar.experiment import load_testbed
from tests.faults.hosts import Lab, state_of, wait_for
from tests.faults.moment import Moment
from tests.lab.campaigns import BUSY, ROOT, Checkout, make_checkout

END_S = 1800.0
"""The time limit for a controller to end on a busy machine, in seconds."""
UNKNOWN_S = 1.0
"""The delay in seconds from the start of a phase to the fault, if no earlier trial shows how long the phase takes."""
UNDER_WAY_BYTES = 100_000
TESTBED = os.environ.get("FAULTS_TESTBED", "")
"""The file of a testbed with virtual machines src, rtr and dst, which replaces the usual labs; may be empty."""
STUDIES: Mapping[str, str] = {
    "native": "settings: {shaper.rate: {src: 10Mbit, rtr: 10Mbit}, mtu: 1400}",
    "uml": "path: {rate: 10Mbit, rtt: 4ms, loss: 0%, aqm: pfifo, buffer: 40packets}\nsettings: {mtu: 1400}",
    "vm": "path: {rate: 2Mbit, rtt: 20ms, loss: 0%, aqm: pfifo, buffer: 40packets}\nsettings: {mtu: 1400}",
}
"""Settings that trials change, by kernel. The machine's own kernel may lack netem."""
EXPERIMENT = """\
experiment: {name}
title: A campaign with a fault
testbed: lab
duration: {duration}
replicates: {replicates}
order: {{kind: sequential, seed: 1}}
traffic: [{{flow: bulk, generator: iperf3, from: sender, to: receiver}}]
captures: [{{at: sender}}, {{at: receiver}}]
loggers: [{{logger: tcp-state, at: sender, interval: 10ms}}, {{logger: queue, at: router, interval: 10ms}}]
factors: {{cc: [cubic]}}
{study}
"""
CONFIG = """\
retries: {retries}
verdict: {busy}
step_timeout: {step}
ssh: {{connect_timeout: 5s, keepalive: 5s}}
"""
"""Short deadlines, so that the controller soon gives up on hosts that do not answer."""


@dataclass
class Bench:
    """A checkout and its running lab, shared by many faults."""

    checkout: Checkout
    lab: Lab

    @property
    def kernel(self) -> str:
        """The kernel of the lab."""
        return self.lab.access.kernel

    @property
    def lab_folder(self) -> Path:
        """The lab's state folder."""
        return self.checkout.controller.connections.lab_folder("lab")

    def configure(self, retries: int) -> None:
        """Write config.yaml."""
        step = "8s" if self.kernel == "native" else "60s"  # a user-mode kernel is slow
        text = CONFIG.format(retries=retries, busy=BUSY, step=step)
        (self.checkout.folder / "config.yaml").write_text(text, encoding="utf-8")

    def define(self, name: str, replicates: int, more: str = "") -> None:
        """Write an experiment with this number of trials."""
        study = STUDIES[self.kernel] + ("\n" + more if more else "")
        # On virtual machines, it takes seconds to detect that data is sent.
        duration = "30s" if self.kernel == "vm" else "2s"
        text = EXPERIMENT.format(name=name, replicates=replicates, study=study, duration=duration)
        self.checkout.write(name, text)


@contextmanager
def bench(kernel: str, folder: Path) -> Iterator[Bench]:
    """Make a checkout, start its lab with a kernel or with the testbed TESTBED, and stop the lab at the end."""
    checkout = make_checkout(folder)
    (folder / "hosts").unlink()
    (folder / "hosts").mkdir()
    text = (ROOT / (TESTBED or "hosts/lab.yaml")).read_text(encoding="utf-8")
    (folder / "hosts" / "lab.yaml").write_text(
        _chosen(text) if TESTBED else text.replace("kernel: auto", f"kernel: {kernel}")
    )
    try:
        yield boot(checkout)
    finally:
        checkout.lab_down()


def _chosen(text: str) -> str:
    """Return the text of a testbed file, changed to be the checkout's lab, without verdict thresholds of its own."""
    tree = yaml.safe_load(text)
    tree["testbed"] = "lab"
    tree.pop("verdict", None)
    for host in tree["hosts"].values():
        host["image"] = str(ROOT / host["image"])
    return yaml.safe_dump(tree, sort_keys=False)


def boot(checkout: Checkout) -> Bench:
    """Start the lab of a checkout, and record the state of its hosts."""
    checkout.lab_up()
    access = lab.read_access(checkout.controller.connections.lab_folder("lab"))
    assert access
    hosts = Lab(access, load_testbed(checkout.folder / "hosts" / "lab.yaml"))
    hosts.remember()
    return Bench(checkout, hosts)


@dataclass
class CommandResult:
    """The exit code and output of a controller."""

    code: int
    text: str


@dataclass
class Scene:
    """A campaign, its controller, and notes that a fault needs to undo its changes."""

    bench: Bench
    name: str
    mount_holder: int = 0
    process: subprocess.Popen[str] | None = None
    notes: dict[str, object] = field(default_factory=dict)
    limit_s: float = END_S
    """The time limit for the controller to end."""

    @property
    def lab(self) -> Lab:
        """The hosts of the lab."""
        return self.bench.lab

    @property
    def controller(self) -> subprocess.Popen[str]:
        """The running controller."""
        assert self.process
        return self.process

    @property
    def results(self) -> Path:
        """The folder of this experiment's campaigns, as its controller sees it."""
        inside = Path(f"/proc/{self.mount_holder}/root") if self.mount_holder else Path("/")
        return inside / self.bench.checkout.folder.relative_to("/") / "results" / self.name

    @property
    def campaign(self) -> Path:
        """The folder of the only campaign."""
        found = [path.parent for path in self.results.glob("*/plan.json") if not path.parent.is_symlink()]
        assert len(found) == 1, f"campaigns of {self.name}: {found}"
        return found[0]

    def journal(self) -> list[Entry]:
        """Return the journal's events so far."""
        return read_journal(self.campaign / JOURNAL)

    def begun(self, trial: int) -> str:
        """Return the id of the n-th started trial."""
        return str([e.values["id"] for e in self.journal() if e.event == "trial-started"][trial - 1])

    @property
    def victim(self) -> str:
        """The id of the trial that was started last."""
        return str([e.values["id"] for e in self.journal() if e.event == "trial-started"][-1])

    def start(self, *moments: Moment, flags: tuple[str, ...] = ()) -> None:
        """Start `fab run` in a process that stops itself at the given moments."""
        words = " ".join(map(str, moments))
        self.process = self.command(self.name, words, flags)

    def command(
        self, experiment: str, moments: str = "", flags: tuple[str, ...] = ()
    ) -> subprocess.Popen[str]:
        """Start a controller for an experiment, in the mount namespace of this scene."""
        enter = ["nsenter", "--target", str(self.mount_holder), "--mount", f"--wd={ROOT}"]
        program = [sys.executable, "-m", "tests.faults.controller", str(self.bench.checkout.folder)]
        return subprocess.Popen(
            [*(enter if self.mount_holder else ()), *program, experiment, moments, *flags],
            cwd=ROOT,
            text=True,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )

    def catch(self) -> None:
        """Wait until the controller has stopped itself."""
        process = self.controller

        def caught() -> bool:
            assert process.poll() is None, (
                f"the controller ended before the fault: {process.stdout and process.stdout.read()}"
            )
            return state_of(process.pid) == "T"

        wait_for(f"{self.name}: the moment of the fault", caught, END_S)

    def let_go(self) -> None:
        """Let the stopped controller continue."""
        if self.controller.poll() is None:
            os.kill(self.controller.pid, signal.SIGCONT)

    def into_phase(self, phase: str) -> None:
        """Let the controller continue, and wait for half the time that this phase took in an earlier trial."""
        taken = [float(e.values["seconds"]) for e in self.journal() if e.values.get("phase") == phase]
        self.let_go()
        time.sleep(taken[0] / 2 if taken else UNKNOWN_S)

    def into_traffic(self) -> None:
        """Let the controller continue, and wait until data is being sent."""
        before_bytes = self.lab.sent_bytes("src")
        self.let_go()
        wait_for("traffic", lambda: self.lab.sent_bytes("src") > before_bytes + UNDER_WAY_BYTES)

    def kill(self, number: signal.Signals = signal.SIGKILL) -> None:
        """Send a signal to the controller, and let it continue if it is stopped."""
        os.kill(self.controller.pid, number)
        self.let_go()

    def end(self) -> CommandResult:
        """Wait until the controller has ended; return its exit code and output."""
        text, _ = self.controller.communicate(timeout=self.limit_s)
        return CommandResult(self.controller.returncode, text)

    def again(self) -> CommandResult:
        """Run the same command again to its end, without a fault."""
        self.start()
        return self.end()

    def abandon(self) -> None:
        """End the controller and the mount namespace, if they still exist."""
        if self.process and self.process.poll() is None:
            self.process.kill()
            self.process.communicate()
        if self.mount_holder:
            os.kill(self.mount_holder, signal.SIGKILL)
            os.waitpid(self.mount_holder, 0)
            self.mount_holder = 0

    def private_mounts(self) -> None:
        """Give this scene's controllers a mount namespace of their own, which lasts until the scene is over."""
        ready, gate = os.pipe()
        command = [
            "setpriv",
            "--pdeathsig",
            "KILL",
            "unshare",
            "--mount",
            "sh",
            "-c",
            "echo >&9; exec sleep infinity",
        ]
        self.mount_holder = os.posix_spawnp(
            command[0], command, os.environ, file_actions=[(os.POSIX_SPAWN_DUP2, gate, 9)]
        )
        os.close(gate)
        os.read(ready, 1)
        os.close(ready)

    def mount(self, script: str) -> None:
        """Run a script in the mount namespace of this scene."""
        command = ["nsenter", "--target", str(self.mount_holder), "--mount", "sh", "-ec", script]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
