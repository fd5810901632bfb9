"""Campaigns in which a host is lost or a disk fills up, and campaigns on two labs at once."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from itertools import cycle
from pathlib import Path

import pytest

from samovar.campaign.folder import read_state
from samovar.campaign.interrupts import TWICE_S
from samovar.cli.project import Request
from samovar.events import silent
from samovar.experiment import load_testbed
from samovar.hosts.target import LEASE
from tests.lab.campaigns import PROGRAMS, ROOT, SAMOVAR, Checkout, make_checkout

# Runs complete campaigns; unit/campaign/test_hosts_and_queue.py tests single rules.
pytestmark = pytest.mark.proof

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


# Mount a separate disk at results/, and fill it when the first traffic starts. A program fills it at once and ends, because
# a program that kept writing would use the space that the campaign frees for its last records.
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
    with made.running_lab("spare"):
        yield made


def _states(checkout: Checkout, *hosts: str) -> list[str]:
    look = "tc qdisc; ip link; sysctl net.ipv4.tcp_congestion_control; find /tmp/samovar -mindepth 2; true"
    return [checkout.on_host(host, look, "spare") for host in hosts]


def test_a_lost_host_that_comes_back_is_restored_and_its_trial_runs_again(spare: Checkout) -> None:
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


def test_a_full_disk_stops_the_campaign_with_restored_hosts_and_ended_trials_in_the_journal(
    spare: Checkout,
) -> None:
    if subprocess.run(["unshare", "--mount", "true"], capture_output=True, check=False).returncode:
        pytest.skip("no mount namespace for this user")
    spare.write("fat", TEXT.format(name="fat", duration="8s"))
    (spare.folder / "results").mkdir(exist_ok=True)
    before = _states(spare, "src", "src2", "rtr", "dst")
    (spare.folder / "config.yaml").write_text("free_space: 1KB\nretries: 0\nstep_timeout: 60s\n")
    own = [str(spare.folder), *SAMOVAR, str(spare.folder), "run", "fat"]
    whole = ["unshare", "--mount", "sh", "-c", FILLING, "sh", *own]
    done = subprocess.run(whole, cwd=ROOT, text=True, capture_output=True, timeout=600, check=False)
    kept = spare.folder / "kept" / "latest"
    assert done.returncode == 1, done.stdout + done.stderr
    assert "Traceback" not in done.stderr
    assert "stopped: " in done.stdout, done.stderr
    assert "nothing more can be written" in done.stdout
    state = read_state(kept)
    assert not state.unrestored
    assert {trial.status for trial in state.trials.values()} <= {"completed", "failed"}
    assert _states(spare, "src", "src2", "rtr", "dst") == before


def test_a_host_that_stays_lost_prevents_only_the_trials_that_need_it(spare: Checkout) -> None:
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
    assert "to run the missing trials: fab run losing" in said
    assert _states(spare, "src", "rtr", "dst") == before

    spare.write("without", TEXT.format(name="without", duration="2s"))
    code, said = spare.run("without", "fail-fast")
    assert code == 1
    assert "src2" in said
    assert not (spare.folder / "results" / "without").exists()
    code, said = spare.run("without")
    assert code == 1, said
    assert sorted(id_.partition("-")[0] for id_ in spare.manifests("without")) == ["first", "third"]


def test_two_labs_share_a_campaign_and_the_testbed_of_each_trial_is_recorded(tmp_path: Path) -> None:
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
    assert "all 4 trials are done" in said
    shutil.rmtree(tmp_path / "results")


HOSTS = ("src", "rtr", "dst")
STATE = "tc qdisc; ip -br link; sysctl net.ipv4.tcp_congestion_control net.ipv4.tcp_rmem net.ipv4.tcp_sack"


@pytest.fixture(scope="module")
def two_labs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Checkout]:
    """Two running labs, each started on its own CPU if there are several, since a lab's kernel stays on its CPU."""
    labs = {"lab": LAB, "twin": TWIN}
    made = make_checkout(tmp_path_factory.mktemp("checkout"), hosts=labs)
    own = os.sched_getaffinity(0)
    try:
        for name, cpu in zip(labs, cycle(sorted(own)), strict=False):
            os.sched_setaffinity(0, {cpu})
            made.lab_up(name)
        os.sched_setaffinity(0, own)
        yield made
    finally:
        os.sched_setaffinity(0, own)
        for name in labs:
            made.lab_down(name)


def _states_of_both(checkout: Checkout) -> dict[str, str]:
    """Return the state and the lease of every host of both labs."""
    look = f"{STATE}; cat {LEASE} 2>/dev/null; true"
    return {
        f"{host}@{name}": checkout.on_host(host, look, name) for name in ("lab", "twin") for host in HOSTS
    }


def _wait_for(condition: Callable[[], object], what: str) -> None:
    until_s = time.monotonic() + 300
    while not condition():
        assert time.monotonic() < until_s, f"not in time: {what}"
        time.sleep(0.2)


def _started_on_both(checkout: Checkout, name: str) -> subprocess.Popen[str]:
    """Start a campaign, and wait until traffic runs on both labs."""
    process = checkout.start(name, "testbed=lab,twin")

    def testbeds_with_traffic() -> set[str]:
        assert process.poll() is None, process.communicate()[0]
        events = checkout.journal(name)
        return {e.values["testbed"] for e in events if e.event == "phase" and e.values["phase"] == "clocks"}

    try:
        _wait_for(lambda: testbeds_with_traffic() == {"lab", "twin"}, "traffic on both labs")
    except BaseException:
        process.kill()
        said, _ = process.communicate()
        print(said, *checkout.journal(name)[-6:], sep="\n")
        raise
    return process


def test_one_ctrl_c_ends_the_trials_on_both_labs_and_restores_their_hosts(two_labs: Checkout) -> None:
    two_labs.define("once", "{cc: [newreno, cubic]}", duration_s=60)
    before = _states_of_both(two_labs)
    process = _started_on_both(two_labs, "once")
    process.send_signal(signal.SIGINT)
    said, _ = process.communicate(timeout=420)
    assert process.returncode == 130, said
    assert "Traceback" not in said
    assert "interrupted; to resume: fab run once" in said
    state = read_state(two_labs.campaign("once"))
    assert state.clean
    assert [trial.status for trial in state.trials.values()] == ["interrupted"] * 2
    assert {trial.testbed for trial in state.trials.values()} == {"lab", "twin"}
    for trial in state.trials.values():
        (aside,) = trial.set_aside
        kept = [path.name for path in (two_labs.campaign("once") / aside).rglob("*.gz")]
        assert any("pcap" in name for name in kept), f"{trial.testbed}: {kept}"
    assert two_labs.journal("once")[-1].event == "campaign-interrupted"
    assert _states_of_both(two_labs) == before


def test_two_ctrl_c_end_the_run_at_once_and_the_hosts_of_both_labs_restore_themselves(
    two_labs: Checkout,
) -> None:
    two_labs.define("twice", "{cc: [newreno, cubic]}", duration_s=60)
    before = _states_of_both(two_labs)
    process = _started_on_both(two_labs, "twice")
    process.send_signal(signal.SIGINT)
    second_s = time.monotonic() + TWICE_S + 0.1  # an earlier signal would not count as the second
    _wait_for(lambda: time.monotonic() > second_s, "a moment between two signals")
    process.send_signal(signal.SIGINT)
    said, _ = process.communicate(timeout=420)
    assert process.returncode == 130, said
    if "ended at once" in said:  # the run may have ended normally before the second signal
        for name in ("lab", "twin"):
            assert f"fab restore --testbed {name}" in said or name not in said
    _wait_for(lambda: _restored_and_idle(two_labs, before), "the hosts of both labs as before")
    for name in ("lab", "twin"):
        bed = load_testbed(two_labs.folder / "hosts" / f"{name}.yaml")
        restored = two_labs.controller.restore(bed, silent)
        assert not restored.problems, f"{name}: {restored}"
    assert read_state(two_labs.campaign("twice")).unrestored == {}
    assert _states_of_both(two_labs) == before, "leases are released"


def _restored_and_idle(checkout: Checkout, before: dict[str, str]) -> bool:
    """Return whether every host has its state `before` again, apart from its lease, and runs no program of a trial."""
    seen = _states_of_both(checkout)
    restored = all(seen[place].startswith(text.partition("token ")[0]) for place, text in before.items())
    hosts = [(host, name) for name in ("lab", "twin") for host in HOSTS]
    return restored and not any(_programs(checkout, *place) for place in hosts)


def _programs(checkout: Checkout, host: str, testbed: str) -> set[str]:
    found = checkout.on_host(host, "cat /proc/[0-9]*/comm 2>/dev/null; true", testbed).split()
    return set(found) & set(PROGRAMS)


def test_plan_and_check_query_the_hosts_of_both_labs(two_labs: Checkout) -> None:
    two_labs.define("asked", "{cc: [newreno]}")
    study = two_labs.controller.project.plan(Request("asked", "", "lab,twin"))
    facts, findings = two_labs.controller.check(study, silent)
    assert list(facts) == [f"{name}: {host}" for name in ("lab", "twin") for host in HOSTS]
    assert not any(finding.stops for finding in findings)
    left = two_labs.controller.cost(study, two_labs.controller.project.resume_point(study))
    assert (left.testbeds, two_labs.controller.check_running(study, left)[1]) == (2, "")
    two_labs.lab_down("twin")
    _, problem = two_labs.controller.check_running(study, left)
    assert problem.startswith("twin: ")
    two_labs.lab_up("twin")
