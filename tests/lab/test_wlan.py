"""A lab's WLAN in real time: frames follow the model's schedule, and a trial runs over it."""

from __future__ import annotations

import csv
import gzip
import json
import subprocess
import sys
from collections import defaultdict
from pathlib import Path

import pytest

from samovar import installation
from tests.lab.campaigns import ROOT, Checkout, make_checkout

DEVICES = ROOT / "samovar" / "lab" / "devices"
STATIONS, FRAMES, SECONDS = 12, 3000, 12
LEAST_BACKLOG = 100
TESTBED = """
testbed: air
lab: {kernel: uml, memory: 512MB}
hosts:
  sta1: {os: linux, role: sender, address: 10.64.9.11, interfaces: {wlan0: {address: 172.16.90.11/24, link: air}}}
  sta2: {os: linux, role: sender, address: 10.64.9.12, interfaces: {wlan0: {address: 172.16.90.12/24, link: air}}}
  ap: {os: linux, role: receiver, address: 10.64.9.1, interfaces: {wlan0: {address: 172.16.90.1/24, link: air}}}
links:
  air: {wlan: {standard: 802.11g, rate: 54Mbit, access_point: ap}}
"""
EXPERIMENT = """
experiment: upload
title: Two stations upload
testbed: air
settings: {air.queue: 20packets, air.snr: {sta2: 23}}
duration: 4s
replicates: 1
order: {kind: sequential, seed: 1}
traffic: [{flow: bulk, generator: iperf3, from: senders, to: receiver}]
captures: [{at: receiver}]
loggers: []
figures: []
factors: {wlan.rate: [54Mbit], tcp: [{cc: cubic, cc.beta: 700, label: cubic}]}
"""
CATEGORIES = """
experiment: categories
title: A station's packets for voice, and another's of best effort
testbed: air
settings: {air.edca: on}
duration: 4s
replicates: 1
order: {kind: sequential, seed: 1}
traffic:
  - {flow: voice, generator: iperf3-udp, from: sta1, to: ap, rate: 4Mbit, dscp: 46, port: 5301}
  - {flow: bulk, generator: iperf3-udp, from: sta2, to: ap, rate: 8Mbit, port: 5302}
captures: [{at: receiver}]
loggers: []
figures: []
factors: {wlan.rate: [6Mbit]}
"""


@pytest.mark.proof
def test_full_queues_drain_at_the_rate_of_the_model_in_virtual_time(tmp_path: Path) -> None:
    """The rate of 12 stations at 54 Mbit/s is taken from the record while each has a backlog of 100 frames or more."""
    flows = ",".join(f"{station}:0" for station in range(1, STATIONS + 1))
    subprocess.run(["make", "-s", "-C", DEVICES, f"OUT={tmp_path}", tmp_path / "virtual"], check=True)
    words = [str(tmp_path / "virtual"), "600", str(STATIONS + 1), "1514", flows]
    *ports, medium = map(json.loads, subprocess.check_output(words, text=True).splitlines())
    expected_per_s = sum(port["out_frames"] for port in ports) * 1e9 / medium["time_ns"]

    (tmp_path / "air").mkdir()
    flooded = [sys.executable, Path(__file__).parent / "flooded_air.py", installation.lab_program("wlan")]
    words = ["unshare", "--map-root-user", "--net", *map(str, flooded), str(tmp_path / "air")]
    words += map(str, (STATIONS, FRAMES, SECONDS))
    *lines, _ = subprocess.check_output(words, text=True).splitlines()
    samples: dict[int, list[dict[str, str]]] = defaultdict(list)
    for row in csv.DictReader(lines):
        if row["station"] != "host0":
            samples[int(row["t_ns"])].append(row)
    full = [
        t_ns
        for t_ns, rows in samples.items()
        if min(int(row["backlog_packets"]) for row in rows) >= LEAST_BACKLOG
    ]
    first, last = (sum(int(row["out_packets"]) for row in samples[t_ns]) for t_ns in (full[0], full[-1]))
    assert last - first > 10_000
    assert (last - first) * 1e9 / (full[-1] - full[0]) == pytest.approx(expected_per_s, rel=0.01)


def _run_experiment(tmp_path: Path, name: str, experiment: str) -> Checkout:
    """Run an experiment over the WLAN in a new checkout, and return the checkout."""
    checkout = make_checkout(tmp_path, hosts={"air": TESTBED})
    checkout.write(name, experiment)
    code, said = checkout.run(name)
    assert code == 0, said
    return checkout


def _rows(checkout: Checkout, experiment: str) -> list[dict[str, str]]:
    """Return the record of the WLAN in an experiment's only trial."""
    (trace,) = checkout.campaign(experiment).glob("trials/*/traces/ap-air.csv.gz")
    with gzip.open(trace, "rt", newline="") as text:
        return list(csv.DictReader(text))


def _last(rows: list[dict[str, str]]) -> dict[str, dict[str, float]]:
    return {row["station"]: {key: float(row[key]) for key in row if key != "station"} for row in rows}


@pytest.mark.proof
def test_a_trial_over_a_wlan_records_the_queues_collisions_and_errors_of_its_stations(tmp_path: Path) -> None:
    checkout = _run_experiment(tmp_path, "upload", EXPERIMENT)
    (manifest,) = checkout.manifests("upload").values()
    assert manifest["outcome"] == "completed"
    after = [check["ok"] for check in manifest["checks"] if check["check"] == "cc.beta after the traffic"]
    assert after == [True, True], "both senders have the setting, because they share a kernel"
    rows = _rows(checkout, "upload")
    last = _last(rows)
    assert last.keys() == {"ap", "sta1", "sta2"}
    assert max(int(row["backlog_packets"]) for row in rows) == 20, "TCP fills the queue of the set length"
    assert all(last[station]["collisions"] > 0 for station in last)
    assert last["sta1"]["errors"] == 0
    assert last["sta2"]["errors"] > 0.01 * last["sta2"]["tries"], "an SNR of 23 dB is low for 54 Mbit/s"
    assert {row["rate_mbit"] for row in rows if int(row["tries"])} == {"54"}


@pytest.mark.proof
def test_edca_chooses_the_access_category_by_dscp(tmp_path: Path) -> None:
    """Packets with DSCP 46 (EF) get the three quarters of the WLAN that they need; without EDCA they would get half."""
    checkout = _run_experiment(tmp_path, "categories", CATEGORIES)
    last = _last(_rows(checkout, "categories"))
    voice, bulk = (last[station]["drops"] / last[station]["in_packets"] for station in ("sta1", "sta2"))
    assert last["sta1"]["out_packets"] > 1000
    assert voice < 0.05
    assert bulk > 0.25
