"""Paths on real kernels: set, read back, measured from outside, and put back as they were."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from samovar import lab
from samovar.command import Catalogue
from samovar.command.bottleneck import Way, bottleneck_values
from samovar.command.calibration import Probe, calibration_scripts, probe_of
from samovar.definition import load_testbed
from samovar.events import silent
from samovar.plan import ClassPlan, DirectionPlan, HostPlan, MatchPlan, PathPlan
from samovar.runner.calibrate import Calibration, check_calibration, mean_burst, parse_calibration, plausible
from samovar.runner.judge import Check
from samovar.runner.state import changed, parse_state, unmet
from samovar.testbed import Session, Target
from tests.unit.test_path import AQMS, PARAMETERS

ROUTER = HostPlan(
    os="linux", role="router", cc=None, rwnd_bytes=None, mtu_bytes=1500, txd=None, interfaces=("eth1", "eth2")
)
ENDS = {"down": ("src", "dst", "172.16.11.2"), "up": ("dst", "src", "172.16.10.2")}
CHANGED = "---- set ----"
NOT_IN_LINUX_6_1_OF_DEBIAN = {"fq_pie", "dualpi2"}
DEADLINE_S = 30.0
MORE_ATTEMPTS = 2
CONNECT = """
import socket, sys, time
for port in (5001, 5002):
    taken = []
    for _ in range(8):
        with socket.socket() as one:
            began = time.monotonic()
            one.connect_ex((sys.argv[1], port))  # a refusal takes one round trip as well
            taken.append(time.monotonic() - began)
    print(port, sorted(taken[1:])[3])
"""


@dataclass(frozen=True)
class Bench:
    """A running lab, a shell on each of its hosts, and the recipes."""

    catalogue: Catalogue
    sessions: dict[str, Session]

    def run(self, host: str, body: str) -> str:
        """Run the body of a script on a host; what it printed. Fails with what it said."""
        steps = [self.catalogue.recipe("step", name, "linux") for name in ("prelude", "listening")]
        values = {"folder": "/tmp/samovar/path", "campaign": "path"}
        head = "".join(step.render("script", values) for step in steps)
        done = self.sessions[host].run(f"{head}{body}\nexit 0\n", step="a test", deadline_s=DEADLINE_S)
        return done.text

    def run_both(self, *bodies: tuple[str, str]) -> list[str]:
        """Run scripts on two hosts at once."""
        with ThreadPoolExecutor() as pool:
            return list(pool.map(lambda one: self.run(*one), bodies))

    def setting(self, block: str, path: PathPlan) -> str:
        """Render a block of the bottleneck recipe."""
        values = bottleneck_values(path, ROUTER, 1500, self.catalogue)
        return self.catalogue.recipe("setting", "bottleneck", "linux").render(block, {**values, "was": {}})

    @contextmanager
    def path(self, path: PathPlan) -> Iterator[None]:
        """Set a path, read it back, and put everything back as it was."""
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

    def calibrate(self, path: PathPlan, name: str, probe: Probe) -> tuple[Calibration, list[Check]]:
        """Measure one way as a campaign would; again when a machine that others use has disturbed it."""
        seen, checks = self.measure(path, name, probe)
        for _ in range(MORE_ATTEMPTS):
            if all(check.ok for check in checks):
                break
            seen, checks = self.measure(path, name, probe)
        return seen, checks

    def measure(self, path: PathPlan, name: str, probe: Probe) -> tuple[Calibration, list[Check]]:
        """Measure one way once."""
        sender, receiver, address = ENDS[name]
        way = path.down if name == "down" else path.up
        scripts = calibration_scripts(probe, self.catalogue, ("linux", "linux"), address, 5300)
        sampler = {"name": "held", "limit_s": 30.0, "output": "held.csv", "interface": way.interface}
        logger = self.catalogue.recipe("logger", "queue", "linux")
        values: dict[str, Any] = {**sampler, "interval_s": 0.001}
        self.run_both(
            ("rtr", logger.render("start", values) + logger.render("ready", values)),
            (receiver, scripts.receive),
        )
        sent = self.run(sender, scripts.send)
        held, received = self.run_both(
            ("rtr", "halt held\nawait_end held\ncat held.csv\nrm -f held.*"),
            (receiver, scripts.collect + "rm -f calibrate.*"),
        )
        seen = parse_calibration(sent, received, held, way.interface)
        return seen, self.judged(path, name, probe, seen)

    def judged(self, path: PathPlan, name: str, probe: Probe, seen: Calibration) -> list[Check]:
        """Compare what was seen of a way with a plan."""
        ways: Sequence[Way] = bottleneck_values(path, ROUTER, 1500, self.catalogue)["ways"]  # type: ignore[assignment]
        burst_bytes = next(way.burst_bytes for way in ways if way.name == name)
        way = path.down if name == "down" else path.up
        fills = way.aqm is None or "drops_early" not in self.catalogue.recipe("aqm", way.aqm, "linux").blocks
        return list(check_calibration(path, way, probe, seen, burst_bytes=burst_bytes, fills=fills))

    def facts(self) -> dict[str, str]:
        """Say what tests here could leave behind on any host."""
        return {host: self.run(host, "tc qdisc show; ls -A . /sys/class/net") for host in self.sessions}


@contextmanager
def running_lab(kernel: str, state: Path, root: Path) -> Iterator[Bench]:
    """Start a lab, with offloads off as in every trial; its hosts are left as they were."""
    testbed = load_testbed(root / "hosts" / "lab.yaml")
    assert testbed.lab is not None
    how = type(testbed.lab).model_validate({"kernel": kernel, "memory": "512MB"})
    access = lab.up(testbed.model_copy(update={"lab": how}), state, lab.Needs(), silent)
    with ExitStack() as stack:
        stack.callback(lab.down, state, silent)
        sessions = {}
        for host, address in access.hosts.items():
            target = Target(
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


@pytest.fixture(scope="module")
def bench(tmp_path_factory: pytest.TempPathFactory, root: Path) -> Iterator[Bench]:
    with running_lab("uml", tmp_path_factory.mktemp("uml"), root) as made:
        yield made


def path_of(down: dict[str, Any], up: dict[str, Any] | None = None, **more: Any) -> PathPlan:
    """Plan a path of 10 Mbit/s with a buffer of 60 packets, with changes."""
    rate = {"rate_bps": 10_000_000, "aqm": "pfifo", "buffer_packets": 60}
    ways = DirectionPlan(interface="eth2", **{**rate, **down}), DirectionPlan(interface="eth1", **(up or {}))
    return PathPlan(router="rtr", rtt_s=sum(way.delay_s for way in ways), down=ways[0], up=ways[1], **more)


def of_aqm(name: str, parameters: dict[str, str], catalogue: Catalogue, packets: int = 60) -> PathPlan:
    """Plan a path with a queue discipline, its buffer in the unit that it counts."""
    counts_bytes = "buffer_bytes" in catalogue.header("aqm", name, "linux").parameters
    buffer = (
        {"buffer_packets": None, "buffer_bytes": packets * 1514}
        if counts_bytes
        else {"buffer_packets": packets}
    )
    return path_of({"aqm": name, "aqm_parameters": parameters, **buffer})


def another(path: PathPlan) -> PathPlan:
    """Plan a path that differs in everything by a little more than a calibration lets be."""
    ways = {}
    for name, way in (("down", path.down), ("up", path.up)):
        held = {"buffer_packets": way.buffer_packets + 3} if way.buffer_packets else {"buffer_bytes": 49_962}
        rate_bps = round((way.rate_bps or 0) * 1.04)
        ways[name] = way.model_copy(update={"rate_bps": rate_bps, "loss": 0.05, **held})
    return path.model_copy(update={"rtt_s": path.rtt_s + 0.006, **ways})


def failed(checks: Sequence[Check]) -> list[str]:
    return [str(check) for check in checks if not check.ok]


@pytest.mark.parametrize("name", [name for name in AQMS if name not in NOT_IN_LINUX_6_1_OF_DEBIAN])
def test_a_queue_discipline_is_what_was_asked_for_and_gone_afterwards(bench: Bench, name: str) -> None:
    with bench.path(of_aqm(name, PARAMETERS.get(name, {}), bench.catalogue)):
        pass


@pytest.mark.parametrize("name", sorted(NOT_IN_LINUX_6_1_OF_DEBIAN))
def test_a_queue_discipline_that_the_kernel_lacks_is_refused_and_leaves_nothing(
    bench: Bench, name: str
) -> None:
    path = of_aqm(name, {}, bench.catalogue)
    before = parse_state(bench.run("rtr", bench.setting("read", path)))
    said = bench.run("rtr", f"( {bench.setting('set', path)} ) 2>&1 || true")
    assert "the bottleneck was refused by tc" in said
    after = parse_state(bench.run("rtr", bench.setting("restore", path) + bench.setting("read", path)))
    assert changed(before, after) == ()


def test_each_way_has_the_rate_the_buffer_and_the_delay_of_its_own(bench: Bench) -> None:
    up = {"rate_bps": 2_000_000, "aqm": "bfifo", "buffer_bytes": 45_420, "delay_s": 0.03}
    path = path_of({"delay_s": 0.02}, up)
    with bench.path(path):
        for name, rate_bps, burst_bytes in (("down", 10e6, 5000), ("up", 2e6, 3028)):
            way = path.down if name == "down" else path.up
            probe = probe_of(path, way, 1500, paced_packets=200)
            seen, checks = bench.calibrate(path, name, probe)
            assert failed(checks) == []
            mistaken = failed(bench.judged(another(path), name, probe, seen))
            assert [text.split(" at ")[0] for text in mistaken] == [
                "base RTT",
                "rate",
                "buffer held",
                f"loss towards {way.interface}",
            ]
            assert seen.rate_bps(burst_bytes) == pytest.approx(rate_bps, rel=0.02)
            assert seen.base_rtt_s == pytest.approx(0.05, abs=0.001 + 0.05 * 0.05)
            assert len(seen.paced) == 200
        for device in ("sv-down", "sv-up"):
            counted = bench.run("rtr", f"tc -s qdisc show dev {device}")
            sent, dropped = re.search(r"Sent \d+ bytes (\d+) pkt \(dropped (\d+),", counted).groups()  # type: ignore[union-attr]
            assert int(sent) > 200
            assert int(dropped) == 0, "netem is no hidden queue"


@pytest.mark.parametrize("name", ["codel", "fq", "fq_codel", "pie", "sfq"])
def test_an_overload_fills_the_buffer_that_was_asked_for(bench: Bench, name: str) -> None:
    path = of_aqm(name, {}, bench.catalogue)
    probe = probe_of(path, path.down, 1500, pings=0, paced_packets=0)
    with bench.path(path):
        seen, checks = bench.calibrate(path, "down", probe)
    assert failed(checks) == []
    assert seen.held_packets is not None
    assert 59 <= seen.held_packets <= 61


def test_losses_alone_are_as_many_as_chance_allows(bench: Bench) -> None:
    path = path_of({"loss": 0.02, "delay_s": 0.005})
    with bench.path(path):
        seen, checks = bench.calibrate(
            path, "down", probe_of(path, path.down, 1500, paced_packets=2000, overload=False)
        )
    assert failed(checks) == []
    assert plausible(sum(seen.lost), 2000, 0.02)
    assert mean_burst(seen.lost) == pytest.approx(1.02, abs=0.12)


def test_losses_come_in_bursts_of_the_mean_length_that_was_asked_for(bench: Bench) -> None:
    path = path_of({"loss": 0.05, "loss_burst_packets": 4.0})
    with bench.path(path):
        seen, checks = bench.calibrate(
            path, "down", probe_of(path, path.down, 1500, paced_packets=4000, overload=False)
        )
    assert failed(checks) == []
    # A geometric length of mean 4 has a deviation of 3.46; 3.29 of the mean's own are 99.9 %.
    assert mean_burst(seen.lost) == pytest.approx(4, abs=3.29 * 3.46 / len(seen.lost) ** 0.5)


def test_packets_are_reordered_and_doubled_at_the_share_that_was_asked_for(bench: Bench) -> None:
    path = path_of({"reorder": 0.02, "duplicate": 0.01, "delay_s": 0.01})
    with bench.path(path):
        seen, checks = bench.calibrate(
            path, "down", probe_of(path, path.down, 1500, paced_packets=2000, overload=False)
        )
    assert failed(checks) == []
    assert plausible(seen.duplicates, 2000, 0.01)
    # One packet that overtakes is seen once, two in a row are seen once as well.
    assert 0.5 * 40 < seen.overtaken <= 80


def test_jitter_varies_the_delay_and_keeps_the_order(bench: Bench) -> None:
    path = path_of({"jitter_s": 0.005, "delay_s": 0.02})
    with bench.path(path):
        seen, checks = bench.calibrate(
            path, "down", probe_of(path, path.down, 1500, paced_packets=500, overload=False)
        )
    assert failed(checks) == []
    assert seen.overtaken == 0
    assert max(seen.round_trips_s) - min(seen.round_trips_s) > 0.004
    assert min(seen.round_trips_s) >= 0.015


def test_two_flows_have_a_delay_of_their_own_before_one_queue(bench: Bench) -> None:
    far = MatchPlan(from_subnet="172.16.10.2/32", to_subnet="172.16.11.2/32", port=5002)
    path = path_of(
        {"delay_s": 0.01},
        {"delay_s": 0.01},
        classes=(ClassPlan(match=(far,), delay_down_s=0.03, delay_up_s=0.04, loss=0.0),),
    )
    with bench.path(path):
        said = bench.run("src", f"python3 -IS -c '{CONNECT}' 172.16.11.2")
        counted = bench.run("rtr", "tc -s qdisc show dev eth2")
    taken = {int(line.split()[0]): float(line.split()[1]) for line in said.splitlines()}
    assert taken == {5001: pytest.approx(0.02, abs=0.002), 5002: pytest.approx(0.07, abs=0.0045)}
    assert "tbf 1:" in counted


def test_the_machine_s_own_kernel_shapes_both_ways(tmp_path: Path, root: Path) -> None:
    if lab.kernel.machine_lacks(lab.Needs(qdiscs=frozenset({"tbf", "pfifo"}))) or os.geteuid() != 0:
        pytest.skip("this machine's kernel has no tbf, or this is not root")
    path = path_of({}, {"rate_bps": 2_000_000, "aqm": "pfifo", "buffer_packets": 30})
    with running_lab("native", tmp_path, root) as bench, bench.path(path):
        for name, way in (("down", path.down), ("up", path.up)):
            _, checks = bench.calibrate(path, name, probe_of(path, way, 1500, paced_packets=200))
            assert failed(checks) == []
