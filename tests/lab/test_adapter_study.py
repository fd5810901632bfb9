"""Measure simulated adapters: their buffer by two methods with skewed clocks, and the effect of the sender's ring on TCP.

MTU, buffer and rings are those of CAIA-TR-130417A. The medium has 10 to 23 Mbit/s instead of the report's 40, so that even a busy machine can
send faster than the medium.
"""

from __future__ import annotations

import csv
import gzip
import json
import statistics
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from samovar.analyse import analyse
from samovar.events import silent
from tests.lab.campaigns import Checkout, make_checkout
from tests.lab.flood import FLOOD, SINK, command
from tests.lab.skew import Skew, skew_host
from tests.lab.swallow import swallow_pauses

pytestmark = pytest.mark.proof  # campaigns that take minutes
TESTBED = "powerline"
SKEW_S, DRIFT_PPM = 0.25, 40.0
SIZED = """
experiment: {name}
title: The buffer of a pair of adapters
testbed: powerline
path: {{rate: {rate}, rtt: 4ms, buffer: {buffer}packets, medium: simplex, flow_control: on}}
settings: {{txd: 1024}}
duration: {duration}s
replicates: {replicates}
order: {{kind: blocked, seed: 1}}
traffic: [{{flow: flood, generator: command, from: sender, to: receiver, run: {run}, serve: {serve}}}]
captures: [{{at: [sender, receiver], snaplen: 96}}]
loggers: [{{logger: beacons, at: [sender, receiver]}}, {{logger: pause-frames, at: sender}}]
factors: {{mtu: [{mtu}]}}
"""
RINGED = """
experiment: {name}
title: A ring in front of a pair of adapters
testbed: powerline
path: {{rate: 20Mbit, rtt: 4ms, buffer: {buffer}packets, medium: duplex, flow_control: {control}}}
settings: {{rwnd: 8400KB}}
duration: {duration}s
replicates: {replicates}
order: {{kind: sequential, seed: 1}}
traffic: [{{flow: bulk, generator: iperf3, from: sender, to: receiver}}]
captures: [{{at: [sender, receiver], snaplen: 96}}]
loggers:
  - {{logger: tcp-info, at: sender, interval: 20ms}}
  - {{logger: pause-frames, at: sender}}
  - {{logger: nic, at: sender, interval: 10ms}}
factors: {{cc: [{cc}], txd: {rings}}}
tables: [flow-control]
"""


@pytest.fixture(scope="module")
def checkout(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Checkout]:
    made = make_checkout(tmp_path_factory.mktemp("adapters"), retries=2)
    with made.running_lab(TESTBED):
        yield made


def analyse_metrics(checkout: Checkout, name: str) -> dict[str, dict[str, list[float]]]:
    """Analyse a campaign; return the values of each metric by the level of `txd`, or of `mtu` if `txd` is not a factor."""
    folder = checkout.campaign(name)
    analyse(folder, checkout.folder, silent)
    with (folder / "tables" / "metrics.csv").open(newline="") as text:
        rows = [row for row in csv.DictReader(text) if row["value"] not in ("", "NA")]
    found: dict[str, dict[str, list[float]]] = {}
    for row in rows:
        by_level = found.setdefault(row["metric"], {})
        by_level.setdefault(row.get("txd") or row["mtu"], []).append(float(row["value"]))
    return found


def run(checkout: Checkout, name: str, text: str) -> None:
    checkout.write(name, text)
    with checkout.start(name) as process:
        # On a busy machine, ten trials take more than five minutes.
        said, _ = process.communicate(timeout=1200)
    assert process.returncode == 0, said


def run_with_skewed_clock(
    checkout: Checkout, name: str, *, mtu: int, flood_bps: float, **values: object
) -> dict[str, dict[str, list[float]]]:
    """Fill a buffer, rewrite the receiver's recordings as if its clock were off by 250 ms and 40 ppm; return the metrics."""
    send = f"{command(FLOOD)} $TO $PORT {mtu - 28} $DURATION_S 4 {flood_bps}"
    words = {"run": json.dumps(send), "serve": json.dumps(f"{command(SINK)} $PORT $LIMIT_S")}
    run(checkout, name, SIZED.format(name=name, mtu=mtu, **words, **values))
    for trial in (checkout.campaign(name) / "trials").iterdir():
        since_ns = int(table(trial / "traces" / "dst-beacons.csv.gz")[0]["t_ns"])
        skew_host(trial, "dst", Skew(since_ns, SKEW_S, DRIFT_PPM))
    return analyse_metrics(checkout, name)


def table(file: Path) -> list[dict[str, str]]:
    with gzip.open(file, "rt", newline="") as text:
        return list(csv.DictReader(text))


@pytest.fixture(scope="module", params=[600, 1200, 1500])
def sized(checkout: Checkout, request: pytest.FixtureRequest) -> Mapping[str, float]:
    """The median of each metric over three trials with the report's buffer at 10 Mbit/s.

    At MTU 1500 the buffer is full after 3.3 s, and needs 3.3 s to drain.
    """
    mtu = request.param
    values = {"rate": "10Mbit", "buffer": 2720, "duration": 8, "replicates": 3}
    found = run_with_skewed_clock(checkout, f"sized-{mtu}", mtu=mtu, flood_bps=20e6, **values)
    return {metric: statistics.median(levels[str(mtu)]) for metric, levels in found.items()}


def test_a_buffer_of_2720_frames_is_measured_within_1_percent_although_the_clocks_differ(
    sized: Mapping[str, float],
) -> None:
    assert sized["buffer_pause_packets"] == pytest.approx(2720, rel=0.01)
    assert sized["buffer_delay_packets"] == pytest.approx(2720, rel=0.01)


def test_the_offset_and_drift_of_the_skewed_clock_are_measured(sized: Mapping[str, float]) -> None:
    assert abs(sized["clock_offset_ms"]) == pytest.approx(SKEW_S * 1e3, rel=0.01)
    assert abs(sized["clock_drift_ppm"]) == pytest.approx(DRIFT_PPM, rel=0.25)


def test_a_buffer_of_911_frames_at_another_rate_is_measured_within_1_percent(checkout: Checkout) -> None:
    values = {"rate": "23Mbit", "buffer": 911, "duration": 3, "replicates": 3}
    found = run_with_skewed_clock(checkout, "other", mtu=1500, flood_bps=40e6, **values)
    assert statistics.median(found["buffer_pause_packets"]["1500"]) == pytest.approx(911, rel=0.01)
    assert statistics.median(found["buffer_delay_packets"]["1500"]) == pytest.approx(911, rel=0.01)


def through_rings(name: str, **values: object) -> str:
    """Return a study of one flow through a ring and a pair of adapters, which send PAUSE frames unless `control` is off."""
    return RINGED.format(**{"name": name, "control": "on", **values})


RINGS = (256, 512, 1024, 2048)


@pytest.fixture(scope="module")
def ringed(checkout: Checkout) -> Mapping[str, Mapping[str, list[float]]]:
    """A campaign with one flow through each of several rings and the report's buffer at 20 Mbit/s.

    On a busy machine, the adapters may be late, and a burst overflows the ring before any PAUSE frame: so each ring has two trials.
    The window of 5801 segments exceeds 2720 + 2048 packets, and is so much smaller than 2720 + 4096 packets that the ring of 4096 does not
    overflow even if a busy machine delays the adapters by half a second.
    """
    rings = [*RINGS, 4096]
    values = {"buffer": 2720, "duration": 12, "replicates": 2, "cc": "newreno", "rings": rings}
    run(checkout, "ringed", through_rings("ringed", **values))
    return analyse_metrics(checkout, "ringed")


def test_a_longer_ring_overflows_later_and_a_ring_of_4096_never(
    ringed: Mapping[str, Mapping[str, list[float]]],
) -> None:
    waits_s = [statistics.median(ringed["pause_to_drop_median_s"][str(ring)]) for ring in RINGS]
    assert waits_s == sorted(waits_s)
    assert waits_s[-1] > 3 * waits_s[0]
    assert ringed["local_drops_packets"]["4096"] == [0, 0]
    assert all(min(ringed["local_drops_packets"][str(ring)]) > 0 for ring in RINGS)


@pytest.mark.parametrize("ring", RINGS)
def test_buffer_and_ring_together_explain_the_largest_rtt_within_3_percent(
    ringed: Mapping[str, Mapping[str, list[float]]], ring: int
) -> None:
    full_ms = (2720 + ring) * 1514 * 8 / 20e6 * 1e3
    assert max(ringed["rtt_max_ms"][str(ring)]) == pytest.approx(full_ms + 4, rel=0.03)


def test_pause_frames_that_a_network_card_hides_are_detected_by_its_counters(
    checkout: Checkout, ringed: Mapping[str, Mapping[str, list[float]]]
) -> None:
    """The lab's network cards do not hide PAUSE frames, so the test removes the frames from the recordings."""
    assert ringed["pause_frames_seen"]["256"]
    trials = checkout.campaign("ringed") / "trials"
    for trial in trials.iterdir():
        swallow_pauses(trial, "src")
    dropped = {
        "buffer": 300,
        "duration": 5,
        "replicates": 2,
        "cc": "newreno",
        "rings": [256],
        "control": "off",
    }
    run(checkout, "dropped", through_rings("dropped", **dropped))

    found = analyse_metrics(checkout, "ringed")

    assert found["pause_frames_seen"] == {str(ring): [0, 0] for ring in (*RINGS, 4096)}
    states = flow_control(checkout, "ringed")
    assert states == {**{str(ring): {"swallowed"} for ring in RINGS}, "4096": {"not told"}}
    analyse_metrics(checkout, "dropped")
    assert flow_control(checkout, "dropped") == {"newreno": {"none"}}


def flow_control(checkout: Checkout, name: str) -> dict[str, set[str]]:
    """Return the states in the table `flow-control` by ring, or by congestion control if there is only one ring."""
    states: dict[str, set[str]] = {}
    with (checkout.campaign(name) / "bundle" / "data" / "flow-control.csv").open(newline="") as text:
        for row in csv.DictReader(text):
            states.setdefault(row["level"], set()).add(row["state"])
    return states


def test_a_ring_of_256_gives_the_congestion_window_a_sawtooth(checkout: Checkout) -> None:
    """With a buffer of 30 packets, cubic's window grows back within seconds; with 2720 packets it would take minutes."""
    run(
        checkout,
        "saw",
        through_rings("saw", buffer=30, duration=25, replicates=1, cc="cubic", rings=[256]),
    )
    ((trial, _),) = checkout.manifests("saw").items()
    traces = checkout.campaign("saw") / "trials" / trial / "traces"
    rows = [row for row in table(traces / "src-tcp-info.csv.gz") if row["cc"] == "cubic"]
    # The connection with the data, not iperf's control connection.
    busiest = max(rows, key=lambda row: int(row["cwnd_packets"]))["sport"]
    windows = [int(row["cwnd_packets"]) for row in rows if row["sport"] == busiest]
    assert teeth(windows) >= 2


def teeth(windows: list[int]) -> int:
    """Count the falls of a window by a fifth that are followed by growth of a tenth."""
    count, top, low = 0, 0, None
    for window in windows:
        if low is None:
            top = max(top, window)
            low = window if window < 0.8 * top else None
        else:
            low = min(low, window)
            if window > 1.1 * low:
                count, top, low = count + 1, window, None
    return count


def test_a_ring_that_another_program_changes_during_the_traffic_makes_the_trial_invalid(
    checkout: Checkout,
) -> None:
    name = "changed"
    text = through_rings(name, buffer=30, duration=4, replicates=1, cc="newreno", rings=[256])
    checkout.write(name, text)
    config = checkout.folder / "config.yaml"
    config.write_text(config.read_text().replace("retries: 2", "retries: 0"))
    with checkout.start(name) as process:
        checkout.wait_for_traffic(name, 1)
        checkout.on_host("src", "ip link set dev em1 txqueuelen 128", TESTBED)
        process.communicate(timeout=300)
    failed = failed_checks(checkout.campaign(name))
    assert [tuple(one[key] for key in ("check", "requested", "observed", "severity")) for one in failed] == [
        ("txd.em1 after the traffic", "256", "128", "invalid")
    ]


def failed_checks(campaign: Path) -> list[dict[str, Any]]:
    """Return the failed checks of the campaign's only trial, which may have been set aside."""
    (manifest,) = {path.resolve(): None for path in campaign.glob("*/*/manifest.json")}
    return [check for check in json.loads(manifest.read_bytes())["checks"] if not check["ok"]]
