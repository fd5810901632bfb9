"""Campaigns on the virtual lab: real kernels, real SSH, real captures, real crashes."""

from __future__ import annotations

import gzip
import json
import signal
from pathlib import Path

import pytest

from samovar.campaign.verdict import NOT_OVERHEAD
from samovar.cli.project import Request
from samovar.errors import LabError
from samovar.events import silent
from tests.lab.campaigns import Checkout, make_checkout

HOSTS = ("src", "rtr", "dst")


@pytest.fixture(scope="module")
def plain(checkout: Checkout) -> Checkout:
    """An undisturbed campaign: two receive windows, a small MTU, and a delay-based congestion control."""
    checkout.define("plain", "{cc: [newreno, cdg], rwnd: [30KB, 200KB], mtu: [600]}")
    code, said = checkout.run("plain")
    assert code == 0, said
    return checkout


def test_every_trial_of_a_campaign_is_valid_and_complete(plain: Checkout) -> None:
    manifests = plain.manifests("plain")
    assert len(manifests) == 4
    assert {m["verdict"] for m in manifests.values()} == {"valid"}, [m["reasons"] for m in manifests.values()]
    for id_, manifest in manifests.items():
        folder = plain.campaign("plain") / "trials" / id_
        assert {entry["kind"] for entry in manifest["files"]} == {"capture", "logger", "generator"}
        assert all((folder / entry["path"]).stat().st_size == entry["bytes"] for entry in manifest["files"])


def test_the_largest_window_on_the_wire_is_at_most_the_requested_one_and_at_least_90_percent(
    plain: Checkout,
) -> None:
    for manifest in plain.manifests("plain").values():
        requested = manifest["resolved"]["hosts"]["dst"]["rwnd_bytes"]
        seen = [check["observed"] for check in manifest["checks"] if "largest window" in check["check"]]
        largest = {int(text.removesuffix(" B")) for text in seen}
        assert len(largest) == 1
        assert 0.9 * requested <= largest.pop() <= requested


def test_every_host_has_the_same_state_after_a_trial_as_before(plain: Checkout) -> None:
    for id_ in plain.manifests("plain"):
        facts = plain.campaign("plain") / "trials" / id_ / "facts"
        for host in HOSTS:
            before, set_, after = (
                json.loads((facts / f"{host}-{when}.json").read_bytes())
                for when in ("before", "set", "after")
            )
            assert before == after
            assert before != set_


def test_a_campaign_leaves_no_programs_or_files_on_a_host(plain: Checkout) -> None:
    for host in HOSTS:
        assert plain.running(host) == []
        assert plain.on_host(host, "find /tmp/samovar -mindepth 2; true") == ""


def test_each_script_is_kept_with_its_exit_code_output_and_time(plain: Checkout) -> None:
    id_ = next(iter(plain.manifests("plain")))
    commands = plain.campaign("plain") / "trials" / id_ / "commands"
    steps = {json.loads(file.read_bytes())["step"] for file in commands.glob("*.json")}
    assert {"set", "arm", "traffic", "restore", "stop", "pack", "remove"} <= steps
    for file in commands.glob("*.json"):
        record = json.loads(file.read_bytes())
        assert (record["exit_code"], record["ending"]) == (0, "exit")
        assert record["seconds"] > 0
        assert file.with_suffix(".sh").stat().st_size > 0


def test_the_phases_other_than_the_traffic_add_up_to_the_overhead(plain: Checkout) -> None:
    for manifest in plain.manifests("plain").values():
        beyond = sum(p["seconds"] for p in manifest["phases"] if p["phase"] not in NOT_OVERHEAD)
        assert beyond <= manifest["overhead_s"] <= beyond + 2


def test_the_samples_of_the_queue_show_that_it_is_full_and_drops_packets(plain: Checkout) -> None:
    id_ = next(id_ for id_ in plain.manifests("plain") if id_.startswith("newreno-200KB"))
    traces = plain.campaign("plain") / "trials" / id_ / "traces"
    with gzip.open(traces / "rtr-queue.csv.gz", "rt") as file:
        names, *rows = [line.strip().split(",") for line in file]
    bottleneck = [dict(zip(names, row, strict=True)) for row in rows if row[names.index("handle")] == "10:"]
    # A sampler that is held up on a busy machine may miss the few milliseconds in which the queue is completely full.
    assert 38 <= max(int(row["backlog_packets"]) for row in bottleneck) <= 40
    assert int(bottleneck[-1]["drops"]) > 0


def test_the_preflight_finds_nothing_missing_in_the_lab_and_makes_no_campaign(plain: Checkout) -> None:
    before = plain.campaign("plain")
    study = plain.controller.project.plan(Request("plain"))
    with plain.controller.connections.sessions_with_lab(study, silent) as sessions, sessions:
        facts = plain.controller.facts(sessions, study.plan)
        assert plain.controller.compare(study, facts, plain.controller.cost(study)) == []
    assert plain.campaign("plain") == before


def test_a_killed_controller_leaves_no_program_running_and_the_same_command_runs_the_missing_trials(
    checkout: Checkout,
) -> None:
    checkout.define("killed", "{cc: [cubic], rwnd: [100KB, 150KB, 200KB]}", duration_s=3)
    process = checkout.start("killed")
    victim = checkout.wait_for_traffic("killed", 2)
    process.send_signal(signal.SIGKILL)
    process.communicate()
    for host in HOSTS:
        checkout.wait_until_idle(host)
    first = checkout.campaign("killed")
    whole = {id_: manifest["t_start_s"] for id_, manifest in checkout.manifests("killed").items()}
    assert len(whole) == 1

    code, said = checkout.run("killed")

    assert code == 0, said
    assert checkout.campaign("killed") == first
    manifests = checkout.manifests("killed")
    assert len(manifests) == 3
    assert {id_: manifests[id_]["t_start_s"] for id_ in whole} == whole
    assert manifests[victim]["attempt"] == 2
    assert [path.name for path in (first / "set-aside").iterdir()] == [f"{victim}-1"]
    for host in HOSTS:
        assert checkout.running(host) == []
        assert "sv-" not in checkout.on_host(host, "ls /sys/class/net")


def test_one_interrupt_ends_the_trial_and_restores_the_hosts_and_the_same_command_resumes(
    checkout: Checkout,
) -> None:
    checkout.define("interrupted", "{cc: [cubic], rwnd: [100KB, 200KB]}", duration_s=5)
    process = checkout.start("interrupted")
    victim = checkout.wait_for_traffic("interrupted", 1)
    process.send_signal(signal.SIGINT)
    said, _ = process.communicate(timeout=90)
    assert process.returncode == 130, said
    events = checkout.journal("interrupted")
    assert events[-1].event == "campaign-interrupted"
    restored = {e.values["host"] for e in events if e.event == "state-restored" and e.values["id"] == victim}
    assert restored == set(HOSTS)
    for host in HOSTS:
        assert checkout.running(host) == []

    code, said = checkout.run("interrupted")

    assert code == 0, said
    assert checkout.manifests("interrupted")[victim]["attempt"] == 2


@pytest.mark.proof  # test_traffic.py and test_verdict.py have shorter tests of this
def test_a_trial_whose_generator_is_killed_is_invalid_and_the_campaign_continues(checkout: Checkout) -> None:
    checkout.define("dying", "{cc: [cubic], rwnd: [100KB, 200KB]}", duration_s=4)
    process = checkout.start("dying")
    victim = checkout.wait_for_traffic("dying", 1)
    checkout.on_host("src", "until pkill -KILL -x iperf3; do sleep 0.05; done")
    said, _ = process.communicate(timeout=120)
    assert process.returncode == 1, said
    verdicts = {id_: manifest["verdict"] for id_, manifest in checkout.manifests("dying").items()}
    assert verdicts.pop(victim) == "invalid"
    assert list(verdicts.values()) == ["valid"]
    assert "exit code of bulk-client" in said
    assert "to run the missing trials: fab run dying" in said


@pytest.mark.parametrize(
    ("factors", "receiver", "complaint"),
    [
        ("{cc: [turbo]}", "receiver", "no congestion control turbo"),
        ("{cc: [cubic], txd: [256]}", "receiver", "no transmit ring (for txd) at eth1"),
        pytest.param("{cc: [cubic], rwnd: [100]}", "receiver", "has no unit", marks=pytest.mark.proof),
        pytest.param("{cc: []}", "receiver", "no levels", marks=pytest.mark.proof),
        pytest.param(
            "{cc: [cubic], path.buffer: [-3packets]}", "receiver", "-3packets", marks=pytest.mark.proof
        ),
        pytest.param("{cc: [cubic], colour: [red]}", "receiver", "colour", marks=pytest.mark.proof),
        pytest.param("{cc: [cubic]}", "nowhere", "nowhere", marks=pytest.mark.proof),
        ("{cc: [cubic", "receiver", "refused.yaml"),
    ],
)
def test_an_experiment_that_cannot_run_is_refused_before_anything_changes(
    checkout: Checkout, factors: str, receiver: str, complaint: str
) -> None:
    checkout.define("refused", factors, f"[{{flow: bulk, generator: iperf3, from: sender, to: {receiver}}}]")
    states = {host: checkout.on_host(host, "tc qdisc; ip -br link; sysctl net.ipv4 2>&1") for host in HOSTS}
    code, said = checkout.run("refused")
    assert code == 1
    assert complaint in said
    assert "Traceback" not in said
    assert not (checkout.folder / "results" / "refused").exists()
    assert {h: checkout.on_host(h, "tc qdisc; ip -br link; sysctl net.ipv4 2>&1") for h in HOSTS} == states


def test_the_error_for_a_lab_that_is_not_running_names_the_command_that_starts_it(tmp_path: Path) -> None:
    made = make_checkout(tmp_path)
    made.define("silent", "{cc: [cubic]}")
    study = made.controller.project.plan(Request("silent"))
    with pytest.raises(LabError, match=r"fab lab\.up"), made.controller.connections.sessions(study.testbed):
        pass
