"""A lab of three hosts, on which tests set, measure and restore a path."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from samovar import lab
from samovar.campaign.host_state import changed, parse_state, unmet
from samovar.campaign.verdict import Check, DirectionMeasurement, check_direction, parse_measurement
from samovar.events import silent
from samovar.experiment import load_testbed
from samovar.hosts import Session, SshTarget
from samovar.plan import HostPlan, PathPlan
from samovar.recipes import Catalogue, PathDirection, PathProbe, bottleneck_values, render_calibration

ROUTER = HostPlan(
    os="linux", role="router", cc=None, rwnd_bytes=None, mtu_bytes=1500, txd=None, interfaces=("eth1", "eth2")
)
ENDS = {"down": ("src", "dst", "172.16.11.2"), "up": ("dst", "src", "172.16.10.2")}
CHANGED = "---- set ----"
DEADLINE_S = 30.0
MORE_ATTEMPTS = 3


@dataclass(frozen=True)
class Bench:
    """A running lab, a shell on each of its hosts, and the recipes."""

    catalogue: Catalogue
    sessions: dict[str, Session]

    def run(self, host: str, body: str) -> str:
        """Run the body of a script on a host; return its output. Raises RemoteError if the script fails."""
        steps = [self.catalogue.recipe("step", name, "linux") for name in ("prelude", "listening")]
        values = {"folder": "/tmp/samovar/path", "campaign": "path"}
        head = "".join(step.render("script", values) for step in steps)
        done = self.sessions[host].run(f"{head}{body}\nexit 0\n", step="a test", deadline_s=DEADLINE_S)
        return done.text

    def run_both(self, *bodies: tuple[str, str]) -> list[str]:
        """Run scripts on two hosts at once; return their outputs in the order of the scripts."""
        with ThreadPoolExecutor() as pool:
            return list(pool.map(lambda one: self.run(*one), bodies))

    def setting(self, block: str, path: PathPlan) -> str:
        """Render a block of the bottleneck recipe."""
        values = bottleneck_values(path, ROUTER, 1500, self.catalogue)
        return self.catalogue.recipe("setting", "bottleneck", "linux").render(block, {**values, "was": {}})

    @contextmanager
    def path(self, path: PathPlan) -> Iterator[None]:
        """Set a path, read it back, and restore the router when the context ends."""
        read = self.setting("read", path)
        before, state = {}, {}
        try:
            said = self.run("rtr", f"{read}echo {CHANGED}\n{self.setting('set', path)}{read}")
            before, state = (parse_state(part) for part in said.split(CHANGED))
            assert unmet(self.setting("wanted", path).splitlines(), state) == ()
            yield
        finally:
            after = parse_state(self.run("rtr", self.setting("restore", path) + read))
        assert changed(before, after) == ()

    def calibrate(
        self, path: PathPlan, name: str, probe: PathProbe
    ) -> tuple[DirectionMeasurement, list[Check]]:
        """Measure one direction as a campaign does; repeat this up to MORE_ATTEMPTS times while a check fails."""
        seen, checks = self.measure(path, name, probe)
        for _ in range(MORE_ATTEMPTS):
            if all(check.ok for check in checks):
                break
            seen, checks = self.measure(path, name, probe)
        return seen, checks

    def measure(
        self, path: PathPlan, name: str, probe: PathProbe
    ) -> tuple[DirectionMeasurement, list[Check]]:
        """Measure one direction once; return the measurement and its checks."""
        sender, receiver, address = ENDS[name]
        direction = path.down if name == "down" else path.up
        scripts = render_calibration(probe, self.catalogue, ("linux", "linux"), address, 5300)
        sampler = {"name": "held", "limit_s": 30.0, "output": "held.csv", "interface": direction.interface}
        logger = self.catalogue.recipe("logger", "queue", "linux")
        values: dict[str, Any] = {**sampler, "interval_s": 0.002}
        self.run_both(
            ("rtr", logger.render("start", values) + logger.render("ready", values)),
            (receiver, scripts.receive),
        )
        sent = self.run(sender, scripts.send)
        held, received = self.run_both(
            ("rtr", "halt held\nawait_end held\ncat held.csv\nrm -f held.*"),
            (receiver, scripts.collect + "rm -f calibrate.*"),
        )
        directions: Sequence[PathDirection] = bottleneck_values(path, ROUTER, 1500, self.catalogue)[
            "directions"
        ]  # type: ignore[assignment]
        burst_bytes = next(direction.burst_bytes for direction in directions if direction.name == name)
        seen = parse_measurement(sent, received, held, direction.interface, burst_bytes)
        return seen, self.checks_of(path, name, probe, seen)

    def checks_of(
        self, path: PathPlan, name: str, probe: PathProbe, seen: DirectionMeasurement
    ) -> list[Check]:
        """Compare the measurement of a direction with its plan."""
        direction = path.down if name == "down" else path.up
        fills = (
            direction.aqm is None
            or "drops_early" not in self.catalogue.recipe("aqm", direction.aqm, "linux").blocks
        )
        return list(check_direction(path, direction, probe, seen, fills=fills))

    def facts(self) -> dict[str, str]:
        """Delete the pipe `events` that trials leave; return each host's queueing disciplines, files and interfaces."""
        return {
            host: self.run(host, "rm -f events; tc qdisc show; ls -A . /sys/class/net")
            for host in self.sessions
        }


@contextmanager
def running_lab(kernel: str, state: Path, root: Path) -> Iterator[Bench]:
    """Start a lab with offloads off, as in every trial; at the end of the context, assert that no host has changed."""
    testbed = load_testbed(root / "hosts" / "lab.yaml")
    assert testbed.lab is not None
    how = type(testbed.lab).model_validate({"kernel": kernel, "memory": "512MB"})
    access = lab.up(testbed.model_copy(update={"lab": how}), state, lab.KernelNeeds(), silent)
    with ExitStack() as stack:
        stack.callback(lab.down, state, silent)
        sessions = {}
        for host, address in access.hosts.items():
            target = SshTarget(
                host=host, address=address, key=Path(access.key), known_hosts=Path(access.known_hosts)
            )
            sessions[host] = Session(target, lab.dial(access))
            sessions[host].open()
            stack.callback(sessions[host].close)
        bench = Bench(Catalogue(root / "templates"), sessions)
        for host in sessions:
            bench.run(
                host,
                'for path in /sys/class/net/eth*; do ethtool -K "${path##*/}" tso off gso off gro off; done',
            )
        before = bench.facts()
        yield bench
        assert bench.facts() == before
