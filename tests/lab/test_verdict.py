"""Disturb the testbed before or during a trial: the verdict reports each deviation from the request."""

from __future__ import annotations

import json
import shutil
import subprocess
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from samovar import lab
from samovar.atomic_files import write_whole
from samovar.campaign import TestbedSetup
from samovar.campaign.calibration import Calibration
from samovar.campaign.context import CampaignContext
from samovar.campaign.journal import JOURNAL, Entry, read_journal
from samovar.campaign.policy import Policy, policy_of
from samovar.campaign.run import CampaignRun, Summary
from samovar.campaign.trial import BootSettings, TrialResult, TrialRun
from samovar.cli.project import PlannedExperiment, Request
from samovar.events import Event, silent
from samovar.hosts import Sessions, discard_result
from samovar.plan import Pick
from samovar.recipes import Catalogue, TrialScripts
from tests.lab.campaigns import Checkout, make_checkout, until_valid

# Without a delay, any kernel can run this; the larger tolerance of the rate is for busy machines.
TEXT = """\
experiment: judged
testbed: lab
duration: 3s
verdict: {cpu: 100%, late: 60s, rate: 10%}
path: {rate: 10Mbit, delay: {down: 0ms, up: 0ms}, buffer: 40packets}
settings: {mtu: 1000}
traffic: [{flow: bulk, generator: iperf3, from: sender, to: receiver}]
captures: [{at: sender}, {at: receiver}]
loggers: [{logger: tcp-info, at: sender, interval: 10ms}, {logger: queue, at: router, interval: 10ms}]
factors: {cc: [newreno]}
"""
STALL = """\
until pkill -STOP -x tcpdump; do sleep 0.02; done
sleep 1.5
pkill -CONT -x tcpdump
"""


class CrashError(Exception):
    """A simulated crash of the controller, after which it cleans up nothing."""


@dataclass
class FinishedTrial:
    """A trial that was run: its result and its manifest."""

    result: TrialResult
    manifest: Mapping[str, Any]

    @property
    def failed(self) -> dict[str, str]:
        """The observed value of each failed check, by check and host."""
        checks = (check for check in self.manifest["checks"] if not check["ok"])
        return {f"{check['check']} at {check['host']}": check["observed"] for check in checks}

    @property
    def measured(self) -> bool:
        """Whether the path was measured in this trial."""
        return any(phase["phase"] == "calibrate" for phase in self.manifest["phases"])


class Judge:
    """A lab of three hosts that runs one trial repeatedly, while scripts on its hosts disturb it."""

    def __init__(
        self, checkout: Checkout, study: PlannedExperiment, sessions: Sessions, count: int = 0
    ) -> None:
        self.checkout, self.study, self.sessions = checkout, study, sessions
        self.catalogue = checkout.controller.project.catalogue
        self.policy = policy_of(study.experiment, study.testbed, checkout.controller.project.config)
        self._count, self.state_at_crash = count, list[str]()

    def run(
        self,
        *orders: tuple[str, str, str],
        catalogue: Catalogue | None = None,
        policy: Policy | None = None,
        boots: dict[str, str] | None = None,
    ) -> FinishedTrial:
        """Run the trial; an order is a phase, a host, and a script that the host runs when the phase begins.

        Scripts for the phase `traffic` run during the traffic; the trial waits for all other scripts.
        """
        self._count += 1
        campaign = self.checkout.folder / "campaign"
        (campaign / "trials").mkdir(parents=True, exist_ok=True)
        trial = replace(self.study.plan.trials[0], id=f"trial-{self._count}")
        beside = [threading.Thread(target=self.on_host, args=order[1:]) for order in orders]
        who = (campaign, self.sessions, catalogue or self.catalogue)
        context = CampaignContext(
            *who,
            lambda *_, **__: None,
            self._hook(orders, beside),
            policy=policy or self.policy,
            boots=boots or {},
        )
        boot_settings = BootSettings(context, _no_trial)
        result = TrialRun(context, trial, 1, boot_settings, Calibration(context)).run()
        for thread in beside:
            thread.join()
        for session in self.sessions:
            session.record = discard_result  # as a campaign does, because the next trial has another folder
        folder = next(
            path for name in ("trials", "in-progress") if (path := campaign / name / trial.id).exists()
        )
        return FinishedTrial(result, json.loads((folder / "manifest.json").read_bytes()))

    def _hook(
        self, orders: tuple[tuple[str, str, str], ...], beside: list[threading.Thread]
    ) -> Callable[[Event], None]:
        def emit(event: Event) -> None:
            for (phase, _, _), thread in zip(orders, beside, strict=True):
                if event.name == "phase" and event.values["phase"] == phase:
                    thread.start()
                    if phase != "traffic":
                        thread.join()

        return emit

    def campaign(
        self, phase: str, host: str, script: str, policy: Policy, *, times: int = 99, crash: bool = False
    ) -> tuple[Sequence[Entry], Summary]:
        """Run a campaign of the trial; return its journal and its summary.

        A host runs the script at the first `times` beginnings of the phase. If `crash` is set, the controller then crashes.
        """
        left = iter(range(times))

        def emit(event: Event) -> None:
            if event.name == "phase" and event.values["phase"] == phase and next(left, None) is not None:
                self.on_host(host, script)
                if crash:
                    self.state_at_crash = self.state()
                    raise CrashError

        self._count += 1
        plan = self.study.plan
        folder = self.checkout.folder / "results" / plan.experiment / f"full-{self._count}"
        for name, content in {**self.study.sources, "plan.json": plan.to_json()}.items():
            write_whole(folder / name, content)
        (folder / "trials").mkdir()
        testbed = TestbedSetup(plan.testbed, plan, self.sessions, policy=policy)
        run = CampaignRun(folder, plan, self.study.sources, Pick().of(plan), [testbed], self.catalogue, emit)
        summary = run.run({"testbed": "lab", "hosts": {}})
        return read_journal(folder / JOURNAL), summary

    def state(self) -> list[str]:
        """Return the settings that trials change, and the files that they leave, on each host."""
        look = "tc qdisc; ip link; cat /proc/sys/net/ipv4/tcp_congestion_control; find /tmp/samovar -mindepth 2; true"
        return [self.on_host(host, look) for host in ("src", "rtr", "dst")]

    def on_host(self, host: str, script: str) -> str:
        """Run a script, which must succeed, on a host over a separate connection; return its output."""
        access = lab.read_access(self.checkout.controller.connections.lab_folder("lab"))
        assert access
        command = [*lab.shell_command(access, host), script]
        return subprocess.run(command, check=True, timeout=60, capture_output=True, text=True).stdout


def _no_trial(id_: str) -> TrialScripts:
    raise AssertionError(f"trial {id_} has no boot settings")


@pytest.fixture(scope="module")
def judge(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Judge]:
    checkout = make_checkout(tmp_path_factory.mktemp("checkout"))
    checkout.write("judged", TEXT)
    study, controller = checkout.controller.project.plan(Request("judged")), checkout.controller
    folder = controller.connections.lab_folder("lab")
    lab.up(study.testbed, folder, lab.KernelNeeds(frozenset({"cubic"}), frozenset({"tbf"})), silent)
    try:
        with controller.connections.sessions(study.testbed) as sessions:
            yield Judge(checkout, study, sessions)
    finally:
        lab.down(folder, silent)


def test_an_undisturbed_trial_is_valid_and_passes_checks_of_every_kind(judge: Judge) -> None:
    ran = until_valid(judge.run)
    assert (ran.result.outcome, ran.result.verdict, ran.result.reasons) == ("completed", "valid", ())
    checked = {f"{check['check']} at {check['host']}" for check in ran.manifest["checks"]}
    assert checked >= {
        "congestion control of flow bulk at src",
        "MSS offered by dst in flow bulk at dst",
        "routers on the path of flow bulk at dst",
        "largest frame in the capture at eth1 (offloads) at src",
        "competing traffic at eth1 at dst",
        "bytes of flow bulk in the capture at dst",
        "bytes through the bottleneck, down at rtr",
        "rate at eth2 while packets wait at rtr",
        "packets dropped by kernel in capture src-eth1 at src",
        "start of flow bulk at src",
        "duration of the traffic at all",
        "clock at src",
        "clock drift at src",
        "clock during the traffic at rtr",
        "network during the traffic at dst",
        "foreign traffic shaping at rtr",
        "CPU during the traffic at dst",
        "mtu.eth1 after the traffic at src",
        "qdisc.eth2.10: after the traffic at rtr",
        "cc after the traffic at src",
    }


def test_a_congestion_control_that_was_changed_after_it_was_set_is_reported(judge: Judge) -> None:
    ran = judge.run(("arm", "src", "echo cubic >/proc/sys/net/ipv4/tcp_congestion_control"))
    assert ran.result.verdict == "invalid"
    assert ran.failed["congestion control of flow bulk at src"] == "cubic"
    assert ran.failed["cc after the traffic at src"] == "cubic"


def test_an_mtu_of_1500_instead_of_1000_is_reported_by_two_checks(judge: Judge) -> None:
    ran = judge.run(("arm", "dst", "ip link set dev eth1 mtu 1500"))
    assert ran.result.verdict == "invalid"
    assert ran.failed["MSS offered by dst in flow bulk at dst"] == "1460 B"
    assert ran.failed["mtu.eth1 after the traffic at dst"] == "1500"


def test_a_killed_generator_is_reported(judge: Judge) -> None:
    ran = judge.run(("traffic", "src", "until pkill -KILL -x iperf3; do sleep 0.05; done"))
    assert ran.result.verdict == "invalid"
    assert "bulk-client" in ran.failed["generators at src"]


def test_packets_that_a_capture_with_a_buffer_of_4_kb_lost_are_reported(judge: Judge, tmp_path: Path) -> None:
    shutil.copytree(judge.checkout.folder / "templates", tmp_path / "templates")
    recipe = tmp_path / "templates" / "linux" / "logger" / "tcpdump.sh.j2"
    recipe.write_text(recipe.read_text().replace("49152", "4"))
    ran = judge.run(("traffic", "dst", STALL), catalogue=Catalogue(tmp_path / "templates"))
    assert ran.result.verdict == "invalid"
    assert int(ran.failed["packets dropped by kernel in capture dst-eth1 at dst"]) > 0


def test_a_host_whose_state_is_not_read_completely_fails_the_trial_before_anything_is_set(
    judge: Judge, tmp_path: Path
) -> None:
    shutil.copytree(judge.checkout.folder / "templates", tmp_path / "templates")
    recipe = tmp_path / "templates" / "linux" / "setting" / "mtu.sh.j2"
    recipe.write_text(recipe.read_text().replace(' && echo {{ "mtu." ~ interface }}"=$value"', ""))
    ran = judge.run(catalogue=Catalogue(tmp_path / "templates"))
    assert ran.result.outcome == "failed"
    assert "its state was not read completely" in "; ".join(ran.result.reasons)
    assert [phase["phase"] for phase in ran.manifest["phases"]] == ["read", "guard", "clear"]


def test_offloads_that_were_turned_on_are_reported_by_two_checks(judge: Judge) -> None:
    ran = judge.run(("arm", "src", "ethtool -K eth1 tso on gso on"))
    assert ran.result.verdict == "invalid"
    assert int(ran.failed["largest frame in the capture at eth1 (offloads) at src"].split()[0]) > 1014
    assert ran.failed["offload.eth1.tso after the traffic at src"] == "on"


@pytest.mark.proof
def test_a_bottleneck_with_another_rate_is_reported_by_two_checks(judge: Judge) -> None:
    slower = "tc qdisc change dev eth2 root handle 1: tbf rate 5mbit burst 5000 limit 1000000"
    ran = judge.run(("arm", "rtr", slower))
    assert ran.result.verdict == "invalid"
    rate = float(ran.failed["rate at eth2 while packets wait at rtr"].split()[0])
    assert 4 < rate < 6
    assert "rate 5Mbit" in ran.failed["qdisc.eth2.1: after the traffic at rtr"]


QUEUE = "tc qdisc add dev eth1 root handle 77: pfifo limit 500"


def test_a_foreign_queue_discipline_that_appears_during_the_traffic_is_reported(judge: Judge) -> None:
    try:
        ran = judge.run(("traffic", "dst", f"sleep 2; {QUEUE}"))
    finally:
        judge.on_host("dst", "tc qdisc del dev eth1 root")
    assert ran.result.verdict == "invalid"
    observed = ran.failed["network during the traffic at dst"]
    assert observed == "shaping.qdisc.eth1.77:: nothing before, pfifo limit 500p after"


@pytest.mark.proof
def test_a_foreign_queue_discipline_that_existed_before_the_traffic_is_reported(judge: Judge) -> None:
    try:
        ran = judge.run(("arm", "dst", QUEUE))
    finally:
        judge.on_host("dst", "tc qdisc del dev eth1 root")
    assert ran.failed["foreign traffic shaping at dst"] == "shaping.qdisc.eth1.77:=pfifo limit 500p"
    assert ran.result.verdict == "suspect"


@pytest.mark.proof
def test_an_mtu_and_a_route_that_the_experiment_does_not_set_must_not_change_during_the_traffic(
    judge: Judge,
) -> None:
    judge.checkout.write("unset", TEXT.replace("judged", "unset").replace("settings: {mtu: 1000}\n", ""))
    study = judge.checkout.controller.project.plan(Request("unset"))
    unset = Judge(judge.checkout, study, judge.sessions, count=100)
    change = (
        "sleep 2; ip link set dev eth1 mtu 1400; ip route add 172.16.10.2 via 172.16.11.1 dev eth1 mtu 1300"
    )
    try:
        ran = unset.run(("traffic", "dst", change))
    finally:
        judge.on_host("dst", "ip link set dev eth1 mtu 1500; ip route del 172.16.10.2")
    assert ran.result.verdict == "invalid"
    observed = ran.failed["network during the traffic at dst"]
    assert "mtu.eth1: 1500 before, 1400 after" in observed
    assert "route.172.16.10.2: via 172.16.11.1 dev eth1" in observed
    assert "mtu 1300 after" in observed


def test_an_iperf3_flow_that_is_not_part_of_the_trial_is_reported_with_its_address_and_port(
    judge: Judge,
) -> None:
    server = "iperf3 -s -1 -p 5999 -D && until ss -ltn | grep -q :5999; do sleep 0.05; done"
    client = "iperf3 -c 172.16.11.2 -p 5999 -t 1 -b 2M"
    ran = judge.run(("arm", "dst", server), ("traffic", "src", client))
    assert ran.result.verdict == "invalid"
    assert "172.16.11.2:5999" in ran.failed["competing traffic at eth1 at dst"]
    assert "172.16.11.2:5999" in ran.failed["competing traffic at eth1 at src"]


@pytest.mark.proof
def test_a_path_is_measured_once_and_again_after_a_reboot_of_a_host(judge: Judge) -> None:
    measuring = replace(judge.policy, calibrate=True)
    first, second = judge.run(policy=measuring), judge.run(policy=measuring)
    booted = judge.run(policy=measuring, boots={"rtr": "another"})
    assert [ran.measured for ran in (first, second, booted)] == [True, False, True]
    for ran in (first, second, booted):
        checks = {check["check"]: check["observed"] for check in ran.manifest["checks"]}
        assert {"base RTT", "rate at eth2", "buffer at eth2", "loss towards eth2"} <= checks.keys()
        assert ran.result.outcome == "completed"
    files = list((judge.checkout.folder / "campaign" / "calibration").glob("*.json"))
    assert len(files) == 2
    assert json.loads(files[0].read_bytes())["seen"]["down"]["rate_bps"] > 0


@pytest.mark.proof
def test_a_path_far_from_the_request_fails_the_trial_before_its_traffic_without_retries(judge: Judge) -> None:
    slower = "tc qdisc change dev eth2 root handle 1: tbf rate 5mbit burst 5000 limit 1000000"
    events, summary = judge.campaign(
        "calibrate",
        "rtr",
        slower,
        replace(judge.policy, calibrate=True, config=judge.policy.config.model_copy(update={"retries": 2})),
    )
    assert [event.event for event in events].count("trial-started") == 1
    assert [event.values["id"] for event in events if event.event == "trial-refused"] == []
    (reasons,) = summary.failed.values()
    assert (
        "the path differs too much from the request: rate at eth2 at rtr: requested 10 Mbit/s" in reasons[0]
    )
    assert not [e for e in events if e.event == "phase" and e.values["phase"] == "traffic"]


@pytest.mark.proof
def test_an_invalid_trial_is_run_again_and_a_valid_attempt_takes_its_place(judge: Judge) -> None:
    wrong = "echo cubic >/proc/sys/net/ipv4/tcp_congestion_control"
    events, summary = judge.campaign(
        "arm",
        "src",
        wrong,
        replace(judge.policy, config=judge.policy.config.model_copy(update={"retries": 2})),
        times=1,
    )
    (again,) = (event for event in events if event.event == "trial-again")
    assert again.values["attempt"] == 2
    assert "congestion control of flow bulk at src" in "".join(again.values["reasons"])
    assert (summary.done, summary.failed) == (1, {})
    (manifest,) = (summary.folder / "trials").glob("*/manifest.json")
    assert json.loads(manifest.read_bytes())["attempt"] == 2
    assert [path.name[-2:] for path in (summary.folder / "set-aside").iterdir()] == ["-1"]


@pytest.mark.proof
def test_a_trial_that_is_still_invalid_after_its_retries_fails_with_its_reasons(judge: Judge) -> None:
    wrong = "echo cubic >/proc/sys/net/ipv4/tcp_congestion_control"
    events, summary = judge.campaign(
        "arm",
        "src",
        wrong,
        replace(judge.policy, config=judge.policy.config.model_copy(update={"retries": 1})),
    )
    assert [event.event for event in events].count("trial-started") == 2
    (reasons,) = summary.failed.values()
    assert any("requested reno, observed cubic" in reason for reason in reasons)


@pytest.mark.proof
def test_hosts_are_restored_from_the_journal_alone_after_a_crash(judge: Judge) -> None:
    before = judge.state()
    with pytest.raises(CrashError):
        judge.campaign("restore", "src", "true", judge.policy, crash=True)
    assert judge.state_at_crash != before
    controller, testbed = judge.checkout.controller, judge.study.testbed

    restored = controller.restore(testbed, silent)

    assert restored.problems == []
    assert [sorted(hosts) for hosts in restored.hosts.values()] == [["dst", "rtr", "src"]]
    assert judge.state() == before
    assert controller.restore(testbed, silent).hosts == {}


def test_an_undisturbed_trial_after_all_disturbances_is_valid(judge: Judge) -> None:
    ran = until_valid(judge.run)
    assert (ran.result.verdict, ran.result.reasons) == ("valid", ())
