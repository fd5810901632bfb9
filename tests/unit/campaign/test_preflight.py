"""Preflight: the requirements of a plan on hosts and on this machine, and the trials that cannot run."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from samovar.campaign.availability.disk_space import space_here
from samovar.campaign.availability.findings import (
    HERE,
    Finding,
    blocked_trials,
    combine_findings,
    require_runnable,
)
from samovar.campaign.availability.requirements import (
    find_missing,
    host_needs,
    needs_of,
    recipes_view,
)
from samovar.campaign.policy import ONE_ATTEMPT, Policy
from samovar.errors import TestbedError
from samovar.hosts import HostFacts, Interface
from samovar.plan import Cost, LoggerPlan, Plan
from samovar.recipes import Catalogue
from tests.unit.plan_values import plan_of, trial
from tests.unit.trials import RESOLVED

CATALOGUE = Catalogue(Path(__file__).parents[3] / "templates")
HOSTS = ("src", "rtr", "dst")
SENDER = RESOLVED.hosts["src"]
CDG = RESOLVED.model_copy(
    update={"hosts": {**RESOLVED.hosts, "src": SENDER.model_copy(update={"cc": "cdg"})}}
)
PLAN = plan_of([trial("newreno"), trial("newreno", 2)])
TWO_CCS = plan_of([trial("newreno"), trial("newreno", 2), trial("cdg", 1, CDG), trial("cdg", 2, CDG)])


def _facts(**more: object) -> HostFacts:
    programs = {name for need in host_needs(PLAN, CATALOGUE).values() for name in need.names("program")}
    known: dict[str, object] = {
        "host": "src",
        "tools": dict.fromkeys(programs, ""),
        "cc_offered": ("reno", "cubic"),
        "qdiscs": ("tbf", "ifb", "netem", "pfifo"),
        "disk_free_bytes": 10**9,
    }
    return HostFacts(**{**known, **more})  # type: ignore[arg-type]


def test_the_requirements_of_a_plan_are_those_of_its_recipes() -> None:
    needs = host_needs(PLAN, CATALOGUE)
    assert {"iperf3", "nuttcp", "tcpdump", "python3", "ethtool"} <= needs["src"].names("program")
    assert "nuttcp" not in needs["rtr"].names("program")
    assert needs_of(TWO_CCS, CATALOGUE) == (
        frozenset({"reno", "cdg"}),
        frozenset({"tbf", "netem", "ifb", "pfifo"}),
    )


def test_the_congestion_control_of_a_single_flow_is_required_too() -> None:
    flows = (RESOLVED.flows[0].model_copy(update={"cc": "bbr"}), RESOLVED.flows[1])
    needs = host_needs(
        plan_of([trial("newreno", 1, RESOLVED.model_copy(update={"flows": flows}))]), CATALOGUE
    )
    assert needs["src"].names("congestion control") == {"newreno", "bbr"}
    assert needs["dst"].names("congestion control") == frozenset()


def test_a_testbed_that_has_everything_gives_no_finding() -> None:
    assert find_missing(PLAN, CATALOGUE, dict.fromkeys(HOSTS, _facts()), Policy()) == []


@pytest.mark.parametrize(
    ("facts", "message"),
    [
        ({"cc_offered": ("cubic",)}, "src: no congestion control newreno (2 trials); it has: cubic"),
        (
            {"interfaces": (Interface("eth1", 500, max_mtu_bytes=500),)},
            "src: mtu 600 is more than eth1 accepts (2 trials); use 500 or less",
        ),
        ({"tools": {}}, "src: no program timeout (2 trials); it has: none"),
        (
            {"disk_free_bytes": 1000},
            "src: a trial writes up to 912KB, but the disk has 1KB free (2 trials); ",
        ),
    ],
)
def test_a_missing_requirement_is_reported_and_blocks_the_trials(
    facts: dict[str, object], message: str
) -> None:
    findings = find_missing(PLAN, CATALOGUE, {"src": _facts(**facts)}, Policy())
    assert any(str(finding).startswith(message) for finding in findings), [str(f) for f in findings]
    assert list(blocked_trials(findings)) == [one.id for one in PLAN.trials]


def test_a_wrong_clock_is_reported_but_blocks_no_trial() -> None:
    findings = find_missing(PLAN, CATALOGUE, {"src": _facts(clock_offset_s=-2.5)}, Policy())
    assert [finding.stops for finding in findings] == [False]
    assert "-2.500 s" in str(findings[0])


def test_only_the_trials_with_a_missing_requirement_are_blocked() -> None:
    blocked = blocked_trials(find_missing(TWO_CCS, CATALOGUE, dict.fromkeys(HOSTS, _facts()), Policy()))
    assert blocked == {key: ["src: no congestion control cdg"] for key in ("cdg-r1-6", "cdg-r2-6")}


def test_a_plan_with_blocked_trials_is_refused_unless_a_partial_run_is_allowed() -> None:
    findings = find_missing(TWO_CCS, CATALOGUE, dict.fromkeys(HOSTS, _facts()), Policy())
    with pytest.raises(TestbedError, match="the other 2 of 4 trials can run: --allow-partial runs them"):
        require_runnable(TWO_CCS, {"lab": findings}, False, TWO_CCS.ids)
    assert list(require_runnable(TWO_CCS, {"lab": findings}, True, TWO_CCS.ids)[0]) == [
        "cdg-r1-6",
        "cdg-r2-6",
    ]


def test_allow_partial_is_refused_when_no_trial_can_run() -> None:
    findings = find_missing(PLAN, CATALOGUE, {"src": _facts(cc_offered=())}, Policy())
    with pytest.raises(TestbedError, match=r"^lab cannot run x:\nsrc: no congestion control newreno"):
        require_runnable(PLAN, {"lab": findings}, True, PLAN.ids)


def _space(results: Path, size: int, floor_bytes: int = 0) -> list[Finding]:
    return list(space_here(Cost(10, 60.0, controller_bytes=size), results, floor_bytes))


def test_reserved_disk_space_is_not_available_to_trials(tmp_path: Path) -> None:
    (finding,) = _space(tmp_path, 1, floor_bytes=10**18)
    assert finding.what.endswith(" free, of which free_space reserves 1000000TB")
    assert _space(tmp_path, 0, floor_bytes=10**18) == [], "a complete campaign needs no space"
    facts = dict.fromkeys(HOSTS, _facts())
    policy = Policy(ONE_ATTEMPT.model_copy(update={"free_space": facts["src"].disk_free_bytes}))
    found = find_missing(PLAN, CATALOGUE, facts, policy)
    assert {finding.host for finding in found} == {"src", "rtr", "dst"}
    assert all(finding.what.endswith(" free, of which free_space reserves 1GB") for finding in found)


def test_results_that_this_disk_cannot_hold_are_refused_with_numbers_and_a_remedy(tmp_path: Path) -> None:
    assert _space(tmp_path / "results", 1) == []
    (finding,) = _space(tmp_path / "results", 10**18)
    assert "10 trials write about 1000000TB" in str(finding)
    assert "B free" in finding.what
    assert "`results` in config.yaml" in finding.remedy
    with pytest.raises(TestbedError, match="10 trials write about"):
        require_runnable(PLAN, {"lab": [finding]}, True, PLAN.ids)


def test_trials_that_differ_only_in_window_sizes_share_their_requirements() -> None:
    windows = [
        RESOLVED.model_copy(
            update={
                "hosts": {
                    **RESOLVED.hosts,
                    "dst": RESOLVED.hosts["dst"].model_copy(update={"rwnd_bytes": size}),
                }
            }
        )
        for size in (10_000, 20_000, 30_000)
    ]
    plan: Plan = plan_of(trial(f"w{number}", 1, resolved) for number, resolved in enumerate(windows))
    assert len(plan.trials) == 3
    assert [len(plan.groups(recipes_view(host))) for host in RESOLVED.hosts] == [1, 1, 1]


SRC = SENDER.model_copy(
    update={
        "txd": 256,
        "cc": "cdg",
        "cc_parameters": {"use_ineff": "3", "betta": "1"},
        "settings": {"pause": {"rx": "off"}},
    }
)
PROBE = LoggerPlan(logger="tcp-probe", host="src", interface="eth1", interval_s=0.01)
CHANGED = RESOLVED.model_copy(update={"hosts": {**RESOLVED.hosts, "src": SRC}, "loggers": (PROBE,)})
DEMANDING = plan_of([trial("cdg", 1, CHANGED)])
TOOLS = {name for need in host_needs(DEMANDING, CATALOGUE).values() for name in need.names("program")}
OFFERED = HostFacts(
    "src",
    tools=dict.fromkeys(TOOLS, ""),
    cc_offered=("cdg",),
    disk_free_bytes=10**9,
    rings=("eth1",),
    pauses=("eth1",),
    tracepoints=("tcp:tcp_probe",),
    cc_parameters={"cdg": ("use_ineff", "betta")},
)


def _reported(**lacking: object) -> list[str]:
    facts = HostFacts(**{**OFFERED.__dict__, **lacking})
    return [str(finding) for finding in find_missing(DEMANDING, CATALOGUE, {"src": facts}, Policy())]


def test_a_host_that_meets_all_requirements_in_recipe_headers_gives_no_finding() -> None:
    assert _reported() == []


def test_a_missing_tracepoint_of_a_logger_is_reported() -> None:
    assert _reported(tracepoints=()) == [
        "src: no tracepoint tcp:tcp_probe (1 trial); use logger tcp-info, which the host can run"
    ]


def test_an_interface_without_adjustable_ring_or_flow_control_is_reported() -> None:
    assert _reported(rings=("eth2",)) == ["src: no transmit ring (for txd) at eth1 (1 trial); it has: eth2"]
    assert _reported(pauses=()) == ["src: no adjustable flow control at eth1 (1 trial); it has: none"]


def test_a_missing_parameter_of_a_loaded_module_is_reported_and_an_unloaded_module_is_not_judged() -> None:
    lacking = {"cdg": ("use_ineff", "window")}
    assert _reported(cc_parameters=lacking) == [
        "src: cc.betta: the congestion control cdg has no parameter betta (1 trial); it has: use_ineff, window"
    ]
    assert _reported(cc_parameters={}) == []


FREEBSD_13 = {"os": "freebsd", "release": "13.2"}
FREEBSD = {name: host.model_copy(update=FREEBSD_13) for name, host in RESOLVED.hosts.items()}
SIFTR = LoggerPlan(logger="siftr", host="src", interface="em0", interval_s=None)


def test_a_freebsd_host_without_siftr_is_reported_for_trials_with_the_logger_siftr() -> None:
    resolved = RESOLVED.model_copy(update={"hosts": FREEBSD, "loggers": (SIFTR,)})
    plan = plan_of([trial("newreno", 1, resolved)])
    programs = host_needs(plan, CATALOGUE)["src"].names("program")
    known = HostFacts(
        "src", tools=dict.fromkeys(programs, ""), cc_offered=("newreno",), disk_free_bytes=10**9
    )
    reported = [str(finding) for finding in find_missing(plan, CATALOGUE, {"src": known}, Policy())]
    assert "src: no kernel feature siftr (1 trial); it has: none" in reported
    assert not any("congestion control" in one for one in reported)


def test_a_router_whose_fq_pie_drops_forwarded_packets_is_refused_with_the_reason() -> None:
    path = RESOLVED.path
    assert path is not None
    down = path.down.model_copy(update={"aqm": "fq_pie"})
    path = path.model_copy(update={"down": down})
    resolved = RESOLVED.model_copy(update={"hosts": FREEBSD, "path": path, "loggers": ()})
    plan = plan_of([trial("newreno", 1, resolved)])
    known = HostFacts("rtr", qdiscs=("codel", "dummynet", "ipfw"), disk_free_bytes=10**9)
    reported = [str(finding) for finding in find_missing(plan, CATALOGUE, {"rtr": known}, Policy())]
    assert (
        "rtr: no kernel feature fq_pie (1 trial); fq_pie of FreeBSD 14.0 and later drops every packet that a router "
        "forwards, so it is not used there; use fq_codel or pie; it has: codel, dummynet, ipfw"
    ) in reported
    known = replace(known, qdiscs=(*known.qdiscs, "fq_pie"))
    assert not any(
        "fq_pie" in str(finding) for finding in find_missing(plan, CATALOGUE, {"rtr": known}, Policy())
    )


def test_trials_that_another_testbed_can_run_are_not_blocked() -> None:
    lacks = Finding("src", "no congestion control cdg", "it has: reno", True, ("cdg-1", "cdg-2"))
    assert combine_findings({"left": [lacks]}) == [lacks]
    (finding,) = combine_findings({"left": [lacks], "right": []})
    assert (finding.host, finding.stops) == ("left: src", False)
    assert "these trials run on another testbed" in str(finding)


def test_trials_that_no_testbed_can_run_are_blocked_with_a_finding_for_each_testbed() -> None:
    lacks = Finding("src", "no congestion control cdg", "it has: reno", True, ("cdg-1", "cdg-2"))
    found = combine_findings({"left": [lacks], "right": [replace(lacks, host="alpha", trials=("cdg-2",))]})
    assert [(one.host, one.stops, one.trials) for one in found] == [
        ("left: src", True, ("cdg-2",)),
        ("right: alpha", True, ("cdg-2",)),
        ("left: src", False, ("cdg-1",)),
    ]
    assert list(blocked_trials(found)) == ["cdg-2"]


def test_a_requirement_that_this_machine_does_not_meet_is_reported_once_for_several_testbeds() -> None:
    here = Finding(HERE, "no disk", "free some", True)
    assert combine_findings({"left": [here], "right": [here]}) == [here]
