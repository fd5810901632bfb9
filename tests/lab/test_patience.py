"""Campaigns that lose hosts and disks on the way, and campaigns on two labs at once."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from samovar.runner.folder import read_state
from tests.lab.campaigns import ROOT, RUN, Checkout, make_checkout

pytestmark = pytest.mark.proof  # whole campaigns; unit/test_patience.py has the rules

LAB = (ROOT / "hosts" / "lab.yaml").read_text()
SECOND = """\
  src2:
    os: linux
    role: sender
    address: 10.64.0.14
    interfaces:
      eth1: {address: 172.16.10.3/24, link: left}
  rtr:"""
SPARE = LAB.replace("testbed: lab", "testbed: spare").replace("  rtr:", SECOND, 1)
TWIN = (
    LAB.replace("testbed: lab", "testbed: twin").replace("10.64.0.", "10.65.0.").replace("172.16.", "172.17.")
)
CONFIG = "backoff: 1s\nhost_wait: {wait}\nstep_timeout: 40s\nssh: {{connect_timeout: 5s}}\n"
TEXT = """\
experiment: {name}
testbed: spare
path: {{rate: 10Mbit, rtt: 4ms, buffer: 40packets}}
duration: {duration}
order: {{kind: sequential, seed: 1}}
captures: [{{at: dst}}]
loggers: [{{logger: queue, at: rtr, interval: 10ms}}]
traffic: [{{flow: bulk, generator: iperf3, from: src, to: dst}}]
parts:
  first: {{factors: {{cc: [newreno]}}}}
  second:
    traffic: [{{flow: bulk, generator: iperf3, from: src2, to: dst}}]
    factors: {{cc: [newreno, cubic]}}
  third: {{factors: {{cc: [cubic]}}}}
"""
CUT = "(sleep 1; ip link set ctl0 down; sleep {seconds}; ip link set ctl0 up) >/dev/null 2>&1 &"


# A disk of its own below results, all but full from the moment when traffic runs for the first time. It is filled at one
# go: a writer that goes on for a while would take what the campaign sets free to write down how it ended.
FILLING = """\
dir=$1; shift
mount -t tmpfs -o size=200m tmpfs "$dir/results" || exit 99
(until grep -q '"phase": "clocks"' "$dir"/results/fat/latest/journal.jsonl 2>/dev/null; do sleep 0.1; done
until fallocate -l $(($(df --output=avail -B1 "$dir/results" | tail -n 1) - 40000)) "$dir/results/hog"; do :; done) &
"$@"
code=$?
kill $! 2>/dev/null
cp -a "$dir/results/fat" "$dir/kept"
exit $code
"""


@pytest.fixture(scope="module")
def spare(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Checkout]:
    made = make_checkout(
        tmp_path_factory.mktemp("checkout"), 1, hosts={"spare": SPARE}, config=CONFIG.format(wait="120s")
    )
    made.lab_up("spare")
    try:
        yield made
    finally:
        made.lab_down("spare")


def _states(checkout: Checkout, *hosts: str) -> list[str]:
    look = "tc qdisc; ip link; sysctl net.ipv4.tcp_congestion_control; find /tmp/samovar -mindepth 2; true"
    return [checkout.on_host(host, look, "spare") for host in hosts]


def test_a_host_that_comes_back_is_put_back_first_and_its_trial_runs_again(spare: Checkout) -> None:
    spare.write("flapping", TEXT.format(name="flapping", duration="2s"))
    before = _states(spare, "src", "src2", "rtr", "dst")
    process = spare.start("flapping")
    victim = spare.wait_for_traffic("flapping", 2)
    spare.on_host("src2", CUT.format(seconds=70), "spare")
    said, _ = process.communicate(timeout=600)
    assert process.returncode == 0, said
    told = [entry.event for entry in spare.journal("flapping")]
    assert {"host-lost", "host-back"} <= set(told), said
    assert spare.manifests("flapping")[victim]["attempt"] > 1
    assert _states(spare, "src", "src2", "rtr", "dst") == before


def test_a_disk_that_is_full_costs_a_trial_and_leaves_hosts_restored_and_the_journal_true(
    spare: Checkout,
) -> None:
    if subprocess.run(["unshare", "--mount", "true"], capture_output=True, check=False).returncode:
        pytest.skip("no mount namespace for this user")
    spare.write("fat", TEXT.format(name="fat", duration="8s"))
    (spare.folder / "results").mkdir(exist_ok=True)
    before = _states(spare, "src", "src2", "rtr", "dst")
    (spare.folder / "config.yaml").write_text("free_space: 1KB\nretries: 0\nstep_timeout: 60s\n")
    own = [str(spare.folder), sys.executable, "-c", RUN, str(spare.folder), "fat"]
    whole = ["unshare", "--mount", "sh", "-c", FILLING, "sh", *own]
    done = subprocess.run(whole, cwd=ROOT, text=True, capture_output=True, timeout=600, check=False)
    kept = spare.folder / "kept" / "latest"
    assert done.returncode == 1, done.stdout + done.stderr
    assert "Traceback" not in done.stderr
    assert "stopped: " in done.stdout, done.stderr
    assert "nothing more can be written" in done.stdout
    state = read_state(kept)
    assert not state.unrestored
    assert {trial.standing for trial in state.trials.values()} <= {"completed", "failed"}
    assert _states(spare, "src", "src2", "rtr", "dst") == before


def test_a_host_that_stays_away_costs_only_the_trials_that_need_it(spare: Checkout) -> None:
    (spare.folder / "config.yaml").write_text(
        "retries: 0\nverdict: {cpu: 100%, late: 60s, rate: 90%}\n" + CONFIG.format(wait="10s")
    )
    spare.write("losing", TEXT.format(name="losing", duration="2s"))
    before = _states(spare, "src", "rtr", "dst")
    process = spare.start("losing")
    spare.wait_for_traffic("losing", 2)
    spare.on_host("src2", CUT.format(seconds=3600), "spare")
    said, _ = process.communicate(timeout=600)
    assert process.returncode == 1, said
    assert sorted(id_.partition("-")[0] for id_ in spare.manifests("losing")) == ["first", "third"]
    events = spare.journal("losing")
    (quarantined,) = (entry for entry in events if entry.event == "host-quarantined")
    assert quarantined.values["host"] == "src2"
    started = [entry for entry in events if entry.event == "trial-started"]
    assert started[-1].values["without"] == ["src2"]
    assert "not run: it needs src2" in said
    assert "run what is missing: fab run losing" in said
    assert _states(spare, "src", "rtr", "dst") == before

    spare.write("without", TEXT.format(name="without", duration="2s"))
    code, said = spare.run("without", "fail_fast")
    assert code == 1
    assert "src2" in said
    assert not (spare.folder / "results" / "without").exists()
    code, said = spare.run("without")
    assert code == 1, said
    assert sorted(id_.partition("-")[0] for id_ in spare.manifests("without")) == ["first", "third"]


def test_two_labs_share_a_campaign_and_say_which_trial_ran_where(tmp_path: Path) -> None:
    made = make_checkout(tmp_path, hosts={"lab": LAB, "twin": TWIN})
    made.define("shared", "{cc: [newreno, cubic]}", duration_s=1, replicates=2)
    text = (tmp_path / "experiments" / "shared.yaml").read_text()
    made.write("shared", text.replace("kind: sequential", "kind: blocked"))
    code, said = made.run("shared", "testbed=twin,lab")
    assert code == 0, said
    manifests = made.manifests("shared")
    assert len(manifests) == 4
    assert {one["testbed"] for one in manifests.values()} == {"lab", "twin"}
    for one in manifests.values():
        subnet = {"lab": "172.16.", "twin": "172.17."}[one["testbed"]]
        assert one["resolved"]["flows"][0]["from_address"].startswith(subnet)
    state = read_state(made.campaign("shared"))
    assert {id_: trial.testbed for id_, trial in state.trials.items()} == {
        id_: one["testbed"] for id_, one in manifests.items()
    }
    assert not state.unrestored
    code, said = made.run("shared", "testbed=lab,twin")
    assert code == 0
    assert "all 4 trials stand" in said
    shutil.rmtree(tmp_path / "results")
