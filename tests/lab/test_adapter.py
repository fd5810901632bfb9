"""The lab's simulated pair of powerline adapters: settings, delay, drops and PAUSE frames, and a trial over it."""

from __future__ import annotations

import csv
import gzip
import itertools
import re
import subprocess
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from samovar import lab
from samovar.events import silent
from samovar.experiment import load_testbed
from tests.lab.campaigns import ROOT, Checkout, make_checkout
from tests.lab.flood import FLOOD, SINK, command

PLACE = "/mnt/devices/powerline"
BASE = "rate_down_bps=4e6 rate_up_bps=4e6 buffer_down_frames=50 buffer_up_frames=50"
WATCH = "tcpdump -U -i em1 -w /tmp/pauses.pcap ether proto 0x8808 </dev/null >/dev/null 2>/tmp/said"
STEP_NS, MARGIN_NS = 500_000_000, 60_000_000
"""The time between two changes of a drifting rate. Samples closer to a change than the margin are left out, because the time of
a file is only accurate to 10 ms."""
UNDELIVERED = 4
"""The number of frames that may have passed the medium without having been delivered yet."""
IPERF = "iperf3 -c 172.16.12.3 -u -b {rate} -l 1000 -t {seconds} >/dev/null"
STUDY = """
experiment: pushed
title: A flow through a pair of adapters
testbed: powerline
path: {rate: 4Mbit, rtt: 4ms, buffer: 30packets, medium: simplex, flow_control: on}
settings: {txd: 16, rwnd: 600KB}
duration: 4s
replicates: 1
order: {kind: sequential, seed: 1}
traffic: [{flow: bulk, generator: iperf3, from: sender, to: receiver}]
captures: [{at: sender}, {at: receiver}]
loggers: [{logger: tcp-info, at: sender, interval: 20ms}, {logger: pause-frames, at: sender}, {logger: nic, at: sender}]
factors: {cc: [newreno]}
"""


class Bench:
    """The lab of the testbed `powerline`, and orders for its adapters."""

    def __init__(self, checkout: Checkout) -> None:
        self.checkout = checkout
        self.ports = itertools.count(5009)

    def on(self, host: str, script: str, seconds: int = 60) -> str:
        access = lab.read_access(self.checkout.controller.connections.lab_folder("powerline"))
        assert access
        command = [*lab.shell_command(access, host), script]
        done = subprocess.run(command, capture_output=True, text=True, timeout=seconds, check=False)
        assert done.returncode == 0, done.stderr
        return done.stdout

    def state(self) -> dict[str, str]:
        """Return the current settings and counters of the adapters."""
        number = int(self._read_state().get("number", "0")) + 1
        self._order(f"tell {number}", number)
        return self._read_state()

    def set(self, words: str) -> None:
        number = int(self._read_state()["number"]) + 1
        self._order(f"set {number} {words}", number)
        assert "refused" not in self._read_state()

    def _order(self, order: str, number: int) -> None:
        wait = f"for i in $(seq 100); do grep -qx number={number} {PLACE}/state && exit 0; sleep 0.05; done; exit 1"
        self.on("src", f"echo '{order}' >{PLACE}/orders; {wait}")

    def _read_state(self) -> dict[str, str]:
        lines = self.on("src", f"cat {PLACE}/state").splitlines()
        return dict(line.split("=", 1) for line in lines)

    def flood(self, rate: str, seconds: int) -> None:
        """Send UDP packets of 1042 bytes on Ethernet from src to dst."""
        self.on("dst", "iperf3 -s -D -1")
        self.on("src", IPERF.format(rate=rate, seconds=seconds))

    def shower(self, source: str, sink: str, payload_bytes: int, seconds: int, *, before: str = "") -> None:
        """Send UDP at 95 Mbit/s with few system calls, because each costs 20 us in user-mode Linux."""
        port = next(self.ports)
        self.on(sink, f"{command(SINK)} {port} {seconds + 5} </dev/null >/dev/null 2>&1 &")
        address = {"src": "172.16.12.2", "dst": "172.16.12.3"}[sink]
        self.on(source, f"{before} {command(FLOOD)} {address} {port} {payload_bytes} {seconds} 16 95e6")

    def shower_both_directions(self, payload_bytes: int, seconds: int) -> None:
        with ThreadPoolExecutor() as pool:
            pairs = (("src", "dst"), ("dst", "src"))
            showers = [pool.submit(self.shower, *pair, payload_bytes, seconds) for pair in pairs]
        for shower in showers:
            shower.result()

    def record(self) -> None:
        """Start to write the adapters' record of samples and events to a file on src."""
        number = int(self.state()["number"]) + 1
        reading = f"cat {PLACE}/truth </dev/null >/tmp/truth.csv 2>/dev/null &"
        self.on("src", f"{reading} echo 'record {number}' >{PLACE}/orders")

    def recorded(self) -> list[dict[str, str]]:
        """End the record and return its rows."""
        rows = list(csv.DictReader(self.on("src", "cat /tmp/truth.csv").splitlines()))
        self.on("src", "pkill -x cat")
        return rows


@pytest.fixture(scope="module")
def bench(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bench]:
    checkout = make_checkout(tmp_path_factory.mktemp("powerline"))
    testbed = load_testbed(ROOT / "hosts" / "powerline.yaml")
    checkout.controller.connections.lab_up(testbed, None, silent)
    yield Bench(checkout)
    lab.down(checkout.controller.connections.lab_folder("powerline"), silent)


def test_an_idle_pair_of_adapters_delays_a_frame_by_its_transmission_time_and_the_set_delay(
    bench: Bench,
) -> None:
    bench.set("rate_down_bps=1e6 rate_up_bps=1e9 delay_down_ns=20000000 delay_up_ns=30000000")
    said = bench.on("src", "ping -q -c 5 -i 0.2 -s 958 172.16.12.3")
    least_ms = float(said.rpartition("= ")[2].split("/")[0])
    # A frame of 1000 bytes takes 8 ms at 1 Mbit/s.
    assert 58 <= least_ms < 63


def test_with_flow_control_no_frame_is_dropped_and_the_host_receives_pause_frames(bench: Bench) -> None:
    bench.set(f"{BASE} flow_control=1")
    bench.on("src", f"{WATCH} & echo $! >/tmp/pid")
    bench.on("src", "until grep -q listening /tmp/said; do sleep 0.05; done")
    bench.flood("8M", 2)
    state = bench.state()
    bench.on("src", "kill $(cat /tmp/pid)")
    seen = re.sub(r"\s+0x\w+:|\s", "", bench.on("src", "tcpdump -nn -xx -r /tmp/pauses.pcap 2>/dev/null"))
    assert state["down_drops"] == "0"
    assert int(state["down_in_packets"]) > 500
    assert "0180c2000001" in seen
    assert "88080001ffff" in seen
    assert "880800010000" in seen, "a PAUSE frame of 0 quanta ends the pause"


@pytest.mark.proof
def test_without_flow_control_frames_that_arrive_at_a_full_buffer_are_dropped(bench: Bench) -> None:
    bench.set(BASE)
    bench.record()
    bench.shower("src", "dst", 1000, 3)
    state, rows = bench.state(), bench.recorded()
    taken, dropped, passed = (int(state[f"down_{what}"]) for what in ("in_packets", "drops", "out_packets"))
    # 99 Mbit/s of frames for a medium of 4 Mbit/s; a busy machine sends only a tenth of them.
    assert dropped / taken > 0.3
    assert 0 <= taken - dropped - passed <= 50 + UNDELIVERED, (
        "frames that were not dropped have passed or are waiting"
    )
    assert max(int(row["backlog_packets"]) for row in rows) == 50
    assert sum(int(row["pauses"]) for row in rows) == 0
    for rate_bps in _seconds(_full(rows, "down", 20)):
        assert rate_bps == pytest.approx(4e6, rel=0.01)


@pytest.mark.proof
def test_the_medium_carries_frames_at_the_set_rate(bench: Bench) -> None:
    """Over any second in which the buffer is never empty, the rate is within 1 % of the set rate."""
    bench.set(f"{BASE} buffer_down_frames=300 flow_control=1")
    bench.record()
    bench.flood("8M", 4)
    rows = bench.recorded()
    seconds = list(_seconds(_full(rows, "down", 50)))
    assert seconds
    assert 0.99 * 4e6 < min(seconds) <= max(seconds) < 1.01 * 4e6
    assert max(int(row["backlog_packets"]) for row in rows) == 300


@pytest.mark.proof
@pytest.mark.parametrize(("direction", "source", "sink"), [("down", "src", "dst"), ("up", "dst", "src")])
def test_each_direction_carries_80_mbit_s_of_udp_at_mtu_600(
    bench: Bench, direction: str, source: str, sink: str
) -> None:
    """Over any second in which the buffer is not empty, the rate is within 1 % of 16 287 frames/s; no frame is lost."""
    for host in (source, sink):
        bench.on(host, "ip link set dev em1 mtu 600")
    bench.set(
        "rate_down_bps=80e6 rate_up_bps=80e6 buffer_down_frames=2720 buffer_up_frames=2720 flow_control=1"
    )
    bench.record()
    bench.shower(source, sink, 600 - 28, 6)
    state, rows = bench.state(), bench.recorded()
    for host in (source, sink):
        bench.on(host, "ip link set dev em1 mtu 1500")
    seconds = list(_seconds(_full(rows, direction, 200)))
    assert seconds, f"the sender was not faster than the medium: {state}"
    assert 0.99 * 80e6 < min(seconds) <= max(seconds) < 1.01 * 80e6
    assert (state[f"{direction}_drops"], state[f"{direction}_unwritten"]) == ("0", "0")


@pytest.mark.proof
@pytest.mark.parametrize(("simplex", "each_bps"), [(1, 4e6), (0, 8e6)])
def test_both_directions_share_a_simplex_medium_but_not_a_duplex_medium(
    bench: Bench, simplex: int, each_bps: float
) -> None:
    """Both directions always have waiting frames of one size, so each gets half of a shared medium."""
    buffers = "buffer_down_frames=300 buffer_up_frames=300 flow_control=1"
    bench.set(f"rate_down_bps=8e6 rate_up_bps=8e6 simplex={simplex} {buffers}")
    bench.record()
    bench.shower_both_directions(1000, 5)
    rows = bench.recorded()
    spans = [_full(rows, direction, 20) for direction in ("down", "up")]
    first, last = (max(int(s[0]["t_ns"]) for s in spans), min(int(s[-1]["t_ns"]) for s in spans))
    for span in spans:
        rates_bps = list(_seconds([row for row in span if first <= int(row["t_ns"]) <= last]))
        assert rates_bps, "both directions never had waiting frames together for a second"
        assert each_bps * 0.99 < min(rates_bps) <= max(rates_bps) < each_bps * 1.01


@pytest.mark.proof
def test_a_transmission_takes_the_access_time_and_as_many_frames_as_fit_into_a_burst(bench: Bench) -> None:
    """9 frames of 1042 bytes fit into 10 ms at 8 Mbit/s; with an access time of 2 ms, they take 11.38 ms."""
    bench.set("rate_down_bps=8e6 buffer_down_frames=300 flow_control=1 access_ns=2e6 burst_ns=10e6")
    bench.record()
    bench.shower("src", "dst", 1000, 6)
    span = _full(bench.recorded(), "down", 20)
    points = [(int(row["t_ns"]), int(row["out_bytes"])) for row in (span[0], span[-1])]
    assert points[1][0] - points[0][0] > 4e9
    assert _rate_bps(*points[0], *points[1]) == pytest.approx(9 * 1042 * 8 / 11.378e-3, rel=0.01)


@pytest.mark.proof
def test_the_drift_of_the_rate_repeats_with_the_same_seed_and_differs_with_another(bench: Bench) -> None:
    first, again, other = (_walk(bench, seed) for seed in (7, 7, 8))
    steps = sorted(first.keys() & again.keys() & other.keys())
    assert len(steps) >= 3
    assert [first[step] for step in steps] == pytest.approx([again[step] for step in steps], rel=0.01)
    assert [first[step] for step in steps] != pytest.approx([other[step] for step in steps], rel=0.03)
    assert max(first.values()) > 1.02 * min(first.values()), "the rate drifts"


def _walk(bench: Bench, seed: int) -> dict[int, float]:
    """Make the rate drift; return the rate in bit/s in each step of the drift during which the buffer was never empty."""
    bench.record()
    number = int(bench._read_state()["number"]) + 1
    order = f"set {number} rate_down_bps=20e6 buffer_down_frames=300 flow_control=1 drift=0.3 seed={seed}"
    bench.shower("src", "dst", 1000, 6, before=f"echo '{order}' >{PLACE}/orders;")
    set_ns = int(bench.on("src", f"stat -c %.9Y {PLACE}/state").replace(".", ""))
    found: dict[int, list[tuple[int, int]]] = {}
    for row in _full(bench.recorded(), "down", 20):
        step, inside_ns = divmod(int(row["t_ns"]) - set_ns, STEP_NS)
        if MARGIN_NS < inside_ns < STEP_NS - MARGIN_NS:
            found.setdefault(step, []).append((int(row["t_ns"]), int(row["out_bytes"])))
    return {
        step: _rate_bps(*points[0], *points[-1])
        for step, points in found.items()
        if points[-1][0] - points[0][0] > STEP_NS / 2
    }


def _rate_bps(from_ns: int, from_bytes: int, to_ns: int, to_bytes: int) -> float:
    return (to_bytes - from_bytes) * 8e9 / (to_ns - from_ns)


def _full(rows: list[dict[str, str]], direction: str, least_frames: int) -> list[dict[str, str]]:
    """Return the longest run of samples in each of which `least_frames` or more frames waited."""
    runs: list[list[dict[str, str]]] = [[]]
    for row in rows:
        if row["direction"] != direction or row["event"] != "sample":
            continue
        if int(row["backlog_packets"]) >= least_frames:
            runs[-1].append(row)
        elif runs[-1]:
            runs.append([])
    return max(runs, key=len)


def _seconds(rows: list[dict[str, str]]) -> Iterator[float]:
    """Yield the rate in bit/s of the frames that passed between samples that are a second apart."""
    for row in rows:
        later = next((one for one in rows if int(one["t_ns"]) >= int(row["t_ns"]) + 10**9), None)
        if later is None:
            return
        taken_s = (int(later["t_ns"]) - int(row["t_ns"])) / 1e9
        yield (int(later["out_bytes"]) - int(row["out_bytes"])) * 8 / taken_s


@pytest.mark.proof
def test_an_order_with_an_invalid_value_is_refused_and_changes_nothing(bench: Bench) -> None:
    bench.set(BASE)
    number = int(bench.state()["number"]) + 1
    bench._order(f"set {number} rate_down_bps=-1", number)
    state = bench._read_state()
    assert state["refused"] == "rate_down_bps=-1; accepted: 1000 to 1e+11"
    assert state["rate_down_bps"] == "4000000"
    bench.set(BASE)


@pytest.mark.proof
def test_a_trial_records_the_adapters_and_the_overflow_of_its_ring_and_restores_the_adapters(
    bench: Bench,
) -> None:
    bench.checkout.write("pushed", STUDY)
    before = {key: value for key, value in bench.state().items() if key.endswith("_bps")}
    code, said = bench.checkout.run("pushed")
    assert code == 0, said
    (manifest,) = bench.checkout.manifests("pushed").values()
    assert manifest["outcome"] == "completed"
    traces = bench.checkout.campaign("pushed") / "trials" / manifest["id"] / "traces"
    truth = _table(traces / "src-adapter.csv.gz")
    assert max(int(row["backlog_packets"]) for row in truth if row["direction"] == "down") == 30
    assert sum(int(row["drops"]) for row in truth[-2:]) == 0
    pauses = [row for row in _table(traces / "src-pause-frames.csv.gz") if row["quanta"] != "0"]
    assert len(pauses) == max(int(row["pauses"]) for row in truth)
    dropped = [int(row["tx_dropped"]) for row in _table(traces / "src-nic.csv.gz")]
    assert dropped[-1] > dropped[0], "the ring of 16 packets overflowed"
    assert {key: value for key, value in bench.state().items() if key.endswith("_bps")} == before


def _table(file: Path) -> list[dict[str, str]]:
    with gzip.open(file, "rt", newline="") as text:
        return list(csv.DictReader(text))
