"""One campaign on several testbeds: the same trials, resolved on each; testbeds that differ are refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from samovar.cli.controller import Controller
from samovar.cli.project import PlannedExperiment, Request
from samovar.errors import PlanError
from samovar.report.document import comparison_rows

ROOT = Path(__file__).parents[3]
TEXT = """\
experiment: shared
testbed: lab
path: {rate: 10Mbit, rtt: 4ms, buffer: 40packets}
duration: 1s
replicates: 2
order: {kind: blocked, seed: 1}
traffic: [{flow: bulk, generator: iperf3, from: sender, to: receiver}]
captures: [{at: sender}]
loggers: [{logger: queue, at: router, interval: 10ms}]
factors: {cc: [newreno, cubic]}
"""
TWIN = {
    "testbed: lab": "testbed: twin",
    "10.64.0.": "10.65.0.",
    "172.16.": "172.17.",
    "src:": "west:",
    "eth2": "eth3",
}


@pytest.fixture
def controller(tmp_path: Path) -> Controller:
    (tmp_path / "templates").symlink_to(ROOT / "templates")
    (tmp_path / "analysis").symlink_to(ROOT / "analysis")
    (tmp_path / "hosts").mkdir()
    (tmp_path / "experiments").mkdir()
    (tmp_path / "config.yaml").write_text("retries: 0\n")
    (tmp_path / "experiments" / "shared.yaml").write_text(TEXT)
    text = (ROOT / "hosts" / "lab.yaml").read_text()
    (tmp_path / "hosts" / "lab.yaml").write_text(text)
    for one, other in TWIN.items():
        text = text.replace(one, other)
    (tmp_path / "hosts" / "twin.yaml").write_text(text)
    different = text.replace("testbed: twin", "testbed: odd").replace(
        "role: sender", "role: sender\n    settings: {tcp.sack: off}"
    )
    (tmp_path / "hosts" / "odd.yaml").write_text(different)
    (tmp_path / "hosts" / "dumbbell.yaml").write_text((ROOT / "hosts" / "dumbbell.yaml").read_text())
    return Controller(tmp_path)


def _ids(study: PlannedExperiment) -> list[str]:
    return [trial.id for trial in study.plan.trials]


def test_a_trial_has_the_same_id_on_all_testbeds_and_the_hosts_of_each_testbed(
    controller: Controller,
) -> None:
    study = controller.project.plan(Request("shared", "", "twin,lab"))
    (twin,) = study.others
    assert study.plan.testbed == "lab,twin"
    assert _ids(study) == _ids(twin) == _ids(controller.project.plan(Request("shared", "", "lab")))
    for here, there in zip(study.plan.trials, twin.plan.trials, strict=True):
        assert (here.treatment, here.replicate) == (there.treatment, there.replicate)
        assert [flow.from_host for flow in (*here.resolved.flows, *there.resolved.flows)] == ["src", "west"]
        assert there.resolved.flows[0].from_address == "172.17.10.2"


def test_two_labs_with_wlans_can_share_a_campaign(controller: Controller, tmp_path: Path) -> None:
    text = (ROOT / "hosts" / "wlan.yaml").read_text()
    (tmp_path / "hosts" / "wlan.yaml").write_text(text)
    changes = {"testbed: wlan": "testbed: wlan-2", "10.64.": "10.65.", "172.16.": "172.17.", "peer": "node"}
    for one, other in changes.items():
        text = text.replace(one, other)
    (tmp_path / "hosts" / "wlan-2.yaml").write_text(text)
    study = controller.project.plan(Request("shared", "", "wlan,wlan-2"))
    (other_study,) = study.others
    assert _ids(study) == _ids(other_study)


def test_the_order_of_the_testbeds_names_does_not_change_the_campaign(controller: Controller) -> None:
    one, other = (
        controller.project.plan(Request("shared", "", names)) for names in ("twin,lab", "lab, twin")
    )
    assert one.plan.to_json() == other.plan.to_json()
    assert one.sources == other.sources
    assert {"testbeds/lab/plan.json", "testbeds/twin/plan.json", "testbeds/twin/testbed.yaml"} <= set(
        one.sources
    )


@pytest.mark.parametrize(
    ("names", "difference"),
    [
        ("lab,odd", "hosts.sender 1.settings.tcp added in newreno"),
        ("lab,dumbbell", "use equal numbers of hosts of each role"),
    ],
)
def test_testbeds_that_differ_in_more_than_names_and_addresses_are_refused(
    controller: Controller, names: str, difference: str
) -> None:
    with pytest.raises(PlanError, match="cannot share a campaign of shared") as caught:
        controller.project.plan(Request("shared", "", names))
    assert difference in str(caught.value)


METRICS = """\
"trial","part","cc","replicate","flow","metric","unit","value"
"a1","main","cubic",1,"bulk","throughput_bps","bit/s",10000000
"a2","main","cubic",2,"bulk","throughput_bps","bit/s",10100000
"b1","main","cubic",3,"bulk","throughput_bps","bit/s",5000000
"b2","main","cubic",4,"bulk","throughput_bps","bit/s",NA
"b2","main","cubic",4,"bulk","cycles","cycles",3
"c1","main","cdg",1,"bulk","throughput_bps","bit/s",9000000
"""


def test_the_report_compares_the_medians_of_several_testbeds(tmp_path: Path) -> None:
    file = tmp_path / "metrics.csv"
    file.write_text(METRICS)
    testbeds = {"a1": "lab", "a2": "lab", "b1": "twin", "b2": "twin", "c1": "lab"}
    assert list(comparison_rows(file, testbeds)) == [
        ["cubic", "throughput_bps", "10.05 Mbit/s [10.0–10.1 Mbit/s] (2)", "5 Mbit/s [5 Mbit/s] (1)"]
    ]
