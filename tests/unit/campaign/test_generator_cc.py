"""Compare the congestion control that a generator read from its socket with the requested one."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from samovar.campaign.verdict.socket_checks import check_generator_cc
from tests.unit.campaign.evidence_sample import evidence_of, with_flow
from tests.unit.plan_values import trial

RESOLVED = trial("cubic").resolved
# The end of the output of iperf3 3.21 on FreeBSD 14.0 (newreno) and on Linux.
OUTPUT = '"remote_system": 6.7189\n\t\t},\n\t\t"sender_tcp_congestion":\t"{0}",\n\t\t"receiver_tcp_congestion":\t"{0}"\n\t}}\n}}'


def failed(folder: Path, requested: str, output: str, generator: str = "iperf3") -> list[str] | None:
    """Return the reasons of the failed checks, or None if nothing was checked."""
    flow = RESOLVED.flows[0].model_copy(update={"cc": requested, "generator": generator, "parameters": {}})
    evidence = evidence_of(folder, with_flow(flow, RESOLVED))
    (folder / "logs").mkdir(exist_ok=True)
    (folder / "logs" / f"{flow.label}-client.out.gz").write_bytes(gzip.compress(output.encode()))
    checks = list(check_generator_cc(evidence))
    return [check.reason for check in checks if not check.ok] if checks else None


@pytest.mark.parametrize(
    ("requested", "reported"),
    [("newreno", "newreno"), ("reno", "newreno"), ("newreno", "reno"), ("cdg", "cdg")],
)
def test_the_requested_congestion_control_is_recognised_by_the_names_of_all_systems(
    tmp_path: Path, requested: str, reported: str
) -> None:
    assert failed(tmp_path, requested, OUTPUT.replace("{0}", reported)) == []


def test_another_congestion_control_than_requested_is_reported(tmp_path: Path) -> None:
    (reason,) = failed(tmp_path, "cdg", OUTPUT.replace("{0}", "cubic")) or ["nothing"]
    assert reason.endswith("as reported by its generator at src: requested cdg, observed cubic")


@pytest.mark.parametrize("output", ["", '{"end": {}}'])
def test_a_generator_that_reports_no_congestion_control_is_not_checked(tmp_path: Path, output: str) -> None:
    assert failed(tmp_path, "cdg", output) is None
    assert failed(tmp_path, "cdg", OUTPUT.replace("{0}", "cubic"), "nuttcp") is None
