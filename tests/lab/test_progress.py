"""The output of `fab status` and events while a campaign runs in the lab, and its verification afterwards."""

from __future__ import annotations

import json
import subprocess
import time
from pathlib import Path

import pytest
from jsonschema import Draft202012Validator

from samovar.campaign.collection import verify
from samovar.events import STREAM_EVENTS, line_schema
from tests.lab.campaigns import ROOT, SAMOVAR, make_checkout


def wait_for_throughput_event(events: Path, run: subprocess.Popen[str]) -> None:
    until = time.monotonic() + 300
    while time.monotonic() < until and run.poll() is None:
        if events.exists() and '"throughput"' in events.read_text():
            return
        time.sleep(0.1)
    raise AssertionError("no throughput event was emitted")


@pytest.mark.lab
@pytest.mark.proof
def test_a_running_campaign_has_a_status_and_emits_events_and_verify_has_no_finding_at_its_end(
    tmp_path: Path,
) -> None:
    checkout = make_checkout(tmp_path)
    checkout.define("seen", "{cc: [newreno]}", duration_s=10)
    events = tmp_path / "events.jsonl"
    command = [*SAMOVAR, str(tmp_path), "run", "seen", "--events", str(events)]
    run = subprocess.Popen(command, cwd=ROOT, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    try:
        wait_for_throughput_event(events, run)
        during = subprocess.run(
            [*SAMOVAR, str(tmp_path), "status", "seen", "--json"],
            cwd=ROOT,
            capture_output=True,
            text=True,
            check=True,
        )
        said, _ = run.communicate(timeout=300)
    finally:
        run.kill()
        checkout.lab_down()
    assert run.returncode == 0, said
    status = json.loads(during.stdout)
    assert (status["controller_at_work"], status["trials"][0]["state"]) == (True, "running")
    emitted = [json.loads(line) for line in events.read_text().splitlines()]
    line = Draft202012Validator(line_schema("stream", STREAM_EVENTS))
    for one in emitted:
        line.validate({key: value for key, value in one.items() if key != "schema"})
    assert [one["t_s"] for one in emitted] == sorted(one["t_s"] for one in emitted)
    rates = [one["received_bps"]["dst"] for one in emitted if one["event"] == "throughput"]
    assert rates
    assert max(rates) == pytest.approx(10e6, rel=0.4), "the rate of the path"
    verification = verify(checkout.campaign("seen"))
    assert (verification.findings, verification.notes) == ([], [])
