"""The congestion control in force, as a generator that asked its socket says: a witness on every system."""

from __future__ import annotations

import pytest

from samovar.campaign.verdict.counts import check_told_cc
from samovar.plan import Trial
from samovar.recipes import TrialScripts
from tests.unit.plan_values import trial
from tests.unit.plans import CATALOGUE

ONE = trial("cubic")
# The end of what iperf3 3.21 wrote on FreeBSD 14.0 (newreno), and on Linux.
TOLD = '"remote_system": 6.7189\n\t\t},\n\t\t"sender_tcp_congestion":\t"{0}",\n\t\t"receiver_tcp_congestion":\t"{0}"\n\t}}\n}}'


def failed(asked: str, told: str, generator: str = "iperf3") -> list[str] | None:
    """Say which checks fail; None where there is none."""
    flow = ONE.resolved.flows[0].model_copy(update={"cc": asked, "generator": generator, "parameters": {}})
    resolved = ONE.resolved.model_copy(update={"flows": (flow,)})
    one = Trial(id="x", part="main", treatment={}, replicate=1, block=1, resolved=resolved)
    ends = TrialScripts(one, CATALOGUE, "c").flows[0]
    checks = list(check_told_cc(resolved, ends, told))
    return [str(check) for check in checks if not check.ok] if checks else None


@pytest.mark.parametrize(
    ("asked", "told"), [("newreno", "newreno"), ("reno", "newreno"), ("newreno", "reno"), ("cdg", "cdg")]
)
def test_a_flow_had_what_was_asked_for_by_whatever_name_its_system_has(asked: str, told: str) -> None:
    assert failed(asked, TOLD.replace("{0}", told)) == []


def test_another_congestion_control_than_asked_for_is_named() -> None:
    (said,) = failed("cdg", TOLD.replace("{0}", "cubic")) or ["nothing"]
    assert said.endswith("as its generator says at src: requested cdg, observed cubic")


@pytest.mark.parametrize("told", ["", '{"end": {}}'])
def test_a_generator_that_tells_none_is_no_witness(told: str) -> None:
    assert failed("cdg", told) is None
    assert failed("cdg", TOLD.replace("{0}", "cubic"), "nuttcp") is None
