"""Paths that recipes cannot simulate are reported before a run, with their trials, their router and a remedy."""

from __future__ import annotations

import re
from collections.abc import Mapping

import pytest

from samovar.campaign.availability.findings import Finding
from samovar.campaign.availability.requirements import find_missing, host_needs
from samovar.campaign.availability.unsupported_paths import unsupported_paths
from samovar.campaign.policy import Policy
from samovar.experiment import load_testbed
from samovar.experiment.keys.testbed_file import Testbed
from samovar.hosts import HostFacts
from samovar.plan import Plan
from samovar.recipes.lab_devices import ADAPTER_RANGES, WLAN_RANGES
from tests.unit.plans import BULK, CATALOGUE, LAB, ROOT, planned, study

POWERLINE = load_testbed(ROOT / "hosts" / "powerline.yaml")
WLAN = load_testbed(ROOT / "hosts" / "wlan-wired.yaml")
FREEBSD_11 = load_testbed(ROOT / "hosts" / "example-freebsd-11.yaml")


def plan_of(path: str, testbed: Testbed, factors: str = "{cc: [cubic]}") -> Plan:
    own = f"path: {{rate: 10Mbit, buffer: 40packets, {path}}}\n"
    head = "".join(own if line.startswith("path:") else line for line in study("").splitlines(keepends=True))
    return planned(f"{head}factors: {factors}\n", testbed, CATALOGUE)


def found(path: str, testbed: Testbed) -> list[Finding]:
    return unsupported_paths(plan_of(path, testbed), CATALOGUE)


@pytest.mark.parametrize(
    ("path", "what"),
    [
        ("rtt: 20ms, jitter: 1ms", "jitter"),
        ("rtt: 20ms, duplicate: 1%", "duplicate"),
        ("rtt: 20ms, loss: 1%, loss_burst: 3packets", "loss burst"),
    ],
)
def test_a_path_parameter_that_dummynet_lacks_is_refused_with_the_system_that_has_it(
    path: str, what: str
) -> None:
    (finding,) = found(path, FREEBSD_11)
    assert finding.stops
    key = what.replace(" ", "_")
    remedy = f"e.g. cubic; accepted: a router with linux, or a path without `{key}`"
    assert str(finding) == f"gate: freebsd-11 cannot simulate {what} (1 trial); {remedy}"
    assert found(path, LAB) == []


def test_only_the_trials_with_a_parameter_that_dummynet_lacks_are_refused() -> None:
    plan = plan_of("rtt: 20ms", FREEBSD_11, "{path.jitter: [0ms, 1ms], cc: [newreno, cubic]}")
    (finding,) = unsupported_paths(plan, CATALOGUE)
    asking = {trial.id for trial in plan.trials if trial.treatment["path.jitter"] == "1ms"}
    assert set(finding.trials) == asking
    assert len(asking) == len(plan.trials) / 2


def test_a_round_trip_time_must_be_a_multiple_of_dummynet_s_step_and_may_be_an_odd_one() -> None:
    (finding,) = found("rtt: 2500us", FREEBSD_11)
    assert "freebsd-11 delays in steps of 1ms, but a round trip takes 2.5ms" in finding.what
    assert found("rtt: 3ms", FREEBSD_11) == found("rtt: 2500us", LAB) == []


@pytest.mark.parametrize(
    ("path", "message"),
    [
        ("delay: {down: 1ms, up: 1ms}, jitter: 2ms", "jitter 2ms is more than the delay, 1ms"),
        ("rtt: 0ms, reorder: 1%", "reorder without a delay, but packets can only overtake delayed packets"),
    ],
)
def test_a_path_that_no_router_can_simulate_is_refused(path: str, message: str) -> None:
    (finding,) = found(path, LAB)
    assert message in finding.what
    assert finding.host == "rtr"


@pytest.mark.parametrize(
    ("path", "message"),
    [
        ("rate: 200Gbit, buffer: 9packets", "path: rate 200Gbit is too fast for link 'powerline'"),
        ("rate: 9Mbit, buffer: 3MB", "path: link 'powerline' queues frames"),
        ("rate: 500bit, buffer: 9packets", "link 'powerline': rate_down_bps is 500"),
        ("rate: 9Mbit, buffer: 2000000packets", "link 'powerline': buffer_down_frames is 2000000"),
        ("rate: 9Mbit, buffer: 9packets, drift: 95%", "link 'powerline': drift is 0.95"),
    ],
)
def test_a_path_that_the_simulated_adapter_does_not_support_is_refused(path: str, message: str) -> None:
    text = f"experiment: study\ntestbed: powerline\npath: {{{path}}}\nduration: 9s\n{BULK}"
    (finding,) = unsupported_paths(planned(text, POWERLINE, CATALOGUE), CATALOGUE)
    assert (finding.host, finding.what, finding.stops) == ("src", message, True)


@pytest.mark.parametrize(
    ("factor", "what", "accepted"),
    [
        (
            "wlan.rate: [54Mbit], air.standard: [802.11b]",
            "router1 on link 'air1': 802.11b has no rate of 54Mbit",
            "1Mbit, 2Mbit, 5.5Mbit, 11Mbit",
        ),
        ("wlan.rate: [auto], air.standard: [802.11b]", "", ""),
        ("air.snr: [150]", "router1 on link 'air1': snr_db is 150", "-20 to 100"),
        ("air.tries: [300]", "link 'air1': tries is 300", "1 to 255"),
        ("mtu: [9000]", "router1 on link 'air1': mtu is 9000", "at most 2296"),
        ("mtu: [2296]", "", ""),
        ("air.basic: [500kbit]", "link 'air1': basic_mbit is 0.5", "1 to 54"),
    ],
)
def test_a_level_that_the_simulated_wlan_does_not_support_is_refused(
    factor: str, what: str, accepted: str
) -> None:
    text = f"experiment: study\ntestbed: wlan-wired\nduration: 9s\n{BULK}factors: {{{factor}}}\n"
    findings = unsupported_paths(planned(text, WLAN, CATALOGUE), CATALOGUE)
    assert [finding.what for finding in findings] == [what] * bool(what)
    assert all(accepted in finding.remedy for finding in findings)


@pytest.mark.parametrize(
    ("factors", "refused"),
    [
        ("air.tries: [7, 300]", "300"),
        ("air.tries: [300, 7]", "300"),
        ("mtu: [1500, 4000]", "4000"),
        ("air.standard: [802.11g, 802.11b], wlan.rate: [54Mbit]", "802.11b"),
    ],
)
def test_only_the_trials_with_a_level_that_the_simulated_wlan_does_not_support_are_refused(
    factors: str, refused: str
) -> None:
    text = f"experiment: study\ntestbed: wlan-wired\nduration: 9s\n{BULK}factors: {{{factors}}}\n"
    plan = planned(text, WLAN, CATALOGUE)
    (finding,) = unsupported_paths(plan, CATALOGUE)
    (trial,) = finding.trials
    assert refused in next(one for one in plan.trials if one.id == trial).treatment.values()


@pytest.mark.parametrize(
    ("ranges", "source"), [(ADAPTER_RANGES, "adapter/adapter.c"), (WLAN_RANGES, "wlan/keys.c")]
)
def test_the_ranges_of_a_simulated_device_are_those_in_its_c_program(
    ranges: Mapping[str, tuple[float, float]], source: str
) -> None:
    text = (ROOT / "samovar" / "lab" / "devices" / source).read_text()
    table = re.findall(r'\{(?:"(\w+)", )?OF\((\w+).*?\), [01], ([-\d.e]+), ([-\d.e]+), ', text)
    found = {name or field: (float(least), float(most)) for name, field, least, most in table}
    assert {name: found[name] for name in ranges} == ranges


def test_settings_of_a_simulated_wlan_are_refused_on_a_testbed_without_one() -> None:
    (finding, *_) = unsupported_paths(planned(study("factors: {air.snr: [20]}\n"), LAB, CATALOGUE), CATALOGUE)
    assert finding.what == "settings `air`, but the testbed has no simulated WLAN"


def test_the_requirements_of_hosts_are_returned_also_for_an_unsupported_path() -> None:
    plan = plan_of("rtt: 2ms, jitter: 5ms", LAB)
    assert "tc" in host_needs(plan, CATALOGUE)["rtr"].names("program")


def test_a_router_without_the_kernel_feature_ifb_is_reported() -> None:
    plan = plan_of("rtt: 4ms", LAB)
    tools = dict.fromkeys(host_needs(plan, CATALOGUE)["rtr"].names("program"), "")
    facts = {"rtr": HostFacts("rtr", tools=tools, qdiscs=("netem", "pfifo", "tbf"), disk_free_bytes=10**12)}
    reported = [str(finding) for finding in find_missing(plan, CATALOGUE, facts, Policy())]
    assert len(reported) == 1
    assert reported[0].startswith("rtr: no kernel feature ifb (")


def test_the_program_shutdown_is_required_only_for_levels_that_need_a_reboot() -> None:
    (name,) = (name for name, host in FREEBSD_11.hosts.items() if host.role == "sender")
    for factor, required in (("txd: [256]", True), ("cc: [newreno]", False)):
        needs = host_needs(planned(study(f"factors: {{{factor}}}\n"), FREEBSD_11, CATALOGUE), CATALOGUE)
        assert ("shutdown" in needs[name].names("program")) is required


def test_trials_with_a_computed_duration_that_their_generator_cannot_keep_are_refused() -> None:
    flow = "traffic: [{flow: bulk, generator: iperf3, from: sender, to: receiver, duration: 50 RTT}]\n"
    text = study("factors: {path.rtt: [10ms, 20ms, 40ms]}\n", flow)
    plan = planned(text, LAB, CATALOGUE)
    (half,) = unsupported_paths(plan, CATALOGUE)
    assert half.host == "src"
    assert "flow bulk lasts 500ms, but iperf3 counts in steps of 1s" in half.what
    assert [id_.partition("-")[0] for id_ in half.trials] == ["10ms"]
    assert unsupported_paths(planned(text.replace("iperf3", "nuttcp"), LAB, CATALOGUE), CATALOGUE) == []
