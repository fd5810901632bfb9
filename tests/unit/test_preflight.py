"""Before a campaign: what recipes ask of a host's interfaces, modules and tracepoints, by their headers."""

from __future__ import annotations

from pathlib import Path

from samovar.command import Catalogue
from samovar.plan import LoggerPlan, Plan
from samovar.runner.preflight import examine, host_needs
from samovar.testbed import HostFacts
from tests.unit.trials import RESOLVED, TRIAL

CATALOGUE = Catalogue(Path(__file__).parents[2] / "templates")
SRC = RESOLVED.hosts["src"].model_copy(
    update={
        "txd": 256,
        "cc": "cdg",
        "cc_parameters": {"use_ineff": "3", "betta": "1"},
        "settings": {"pause": {"rx": "off"}},
    }
)
PROBE = LoggerPlan(logger="tcp-probe", host="src", interface="eth1", interval_s=0.01)
CHANGED = RESOLVED.model_copy(update={"hosts": {**RESOLVED.hosts, "src": SRC}, "loggers": (PROBE,)})
PLAN = Plan(
    experiment="x", title="", source="", description="", profile=None, testbed="lab", seed=1, order="sequential",
    parts=(), figures=(), tables=(), trials=(TRIAL.model_copy(update={"resolved": CHANGED}),),
)  # fmt: skip
TOOLS = {program for need in host_needs(PLAN, CATALOGUE).values() for program in need.programs}
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


def _said(**lacking: object) -> list[str]:
    facts = HostFacts(**{**OFFERED.__dict__, **lacking})  # type: ignore[arg-type]
    return [str(finding) for finding in examine(PLAN, CATALOGUE, {"src": facts}, 1.0)]


def test_a_host_that_offers_all_of_it_gives_no_finding() -> None:
    assert _said() == []


def test_a_tracepoint_that_a_logger_needs_is_missed() -> None:
    assert _said(tracepoints=()) == ["src: no tracepoint tcp:tcp_probe (1 trial); known there: none"]


def test_an_interface_without_ring_or_flow_control_is_named() -> None:
    assert _said(rings=("eth2",)) == [
        "src: no transmit ring, so no txd, at eth1 (1 trial); known there: eth2"
    ]
    assert _said(pauses=()) == ["src: no flow control to set at eth1 (1 trial); known there: none"]


def test_a_parameter_that_a_loaded_module_lacks_is_named_and_one_not_loaded_is_not_judged() -> None:
    lacking = {"cdg": ("use_ineff", "window")}
    assert _said(cc_parameters=lacking) == [
        "src: the congestion control cdg has no parameter betta (1 trial); it has: use_ineff, window"
    ]
    assert _said(cc_parameters={}) == []
