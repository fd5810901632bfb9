"""Resume campaigns with an edited experiment: complete trials stay byte for byte, new and stale trials run."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

import pytest

from samovar.campaign.journal import Entry
from samovar.cli.project import Request, RunRequest
from samovar.events import silent
from tests.lab.campaigns import ROOT, Checkout, make_checkout

# Runs complete campaigns one after the other; unit/plan/test_diff.py tests single rules.
pytestmark = pytest.mark.proof

TEXT = """\
experiment: {name}
testbed: lab
duration: 2s
replicates: {replicates}
order: {{kind: blocked, seed: 1}}
path: {{rate: 10Mbit, rtt: 4ms, buffer: 40packets}}
traffic: [{{flow: bulk, generator: iperf3, from: sender, to: receiver}}]
captures: [{{at: sender}}]
loggers: [{{logger: tcp-info, at: sender, interval: 10ms}}]
parts:
  short: {{path: {{buffer: {buffer}}}, factors: {{cc: [newreno, cubic]}}}}
  long: {{factors: {{cc: {controls}}}}}
"""


def _define(
    checkout: Checkout,
    name: str,
    *,
    replicates: int = 1,
    buffer: str = "20packets",
    controls: str = "[newreno]",
) -> None:
    text = TEXT.format(name=name, replicates=replicates, buffer=buffer, controls=controls)
    checkout.write(name, text)


def _results(checkout: Checkout, name: str) -> dict[str, str]:
    """Return the SHA-256 of every file of every trial, by path."""
    trials = checkout.campaign(name) / "trials"
    files = (file for file in sorted(trials.rglob("*")) if file.is_file())
    return {str(file.relative_to(trials)): hashlib.sha256(file.read_bytes()).hexdigest() for file in files}


def _started(checkout: Checkout, name: str) -> list[str]:
    return [entry.values["id"] for entry in checkout.journal(name) if entry.event == "trial-started"]


def _changes(checkout: Checkout, name: str) -> list[Entry]:
    return [entry for entry in checkout.journal(name) if entry.event == "plan-changed"]


def test_a_campaign_grows_and_changes_with_its_experiment_and_keeps_its_results(checkout: Checkout) -> None:
    name = "grown"
    _define(checkout, name)
    code, said = checkout.run(name)
    assert code == 0, said
    campaign, first = checkout.campaign(name), _results(checkout, name)
    assert len(_started(checkout, name)) == 3

    _define(checkout, name, replicates=2)
    code, said = checkout.run(name)
    assert code == 0, said
    assert checkout.campaign(name) == campaign
    assert all("-r2-" in id_ for id_ in _started(checkout, name)[3:])
    assert len(_started(checkout, name)) == 6
    second = _results(checkout, name)
    assert {place: second[place] for place in first} == first

    _define(checkout, name, replicates=2, buffer="30packets")
    code, said = checkout.run(name)
    assert code == 0, said
    again = _started(checkout, name)[6:]
    assert len(again) == 4
    assert all(id_.startswith("short-") for id_ in again)
    third = _results(checkout, name)
    assert {place: third[place] for place in second} == second
    stale = _changes(checkout, name)[1].values["stale"]
    assert [one["changes"] for one in stale] == [["path.down.buffer_packets 20 -> 30"]]
    assert sorted(stale[0]["results"]) == sorted(
        id_ for id_ in _started(checkout, name)[:6] if "short-" in id_
    )

    earlier = [campaign / "plans" / str(number) / "plan.json" for number in (1, 2)]
    assert all(file.is_file() for file in earlier)
    assert len({file.read_bytes() for file in (*earlier, campaign / "plan.json")}) == 3


def test_a_complete_campaign_runs_no_trial_unless_a_new_campaign_is_requested(checkout: Checkout) -> None:
    name = "complete"
    _define(checkout, name, controls="[newreno, cubic]")
    assert checkout.run(name)[0] == 0
    before, journal = _results(checkout, name), checkout.journal(name)

    code, said = checkout.run(name)
    assert code == 0, said
    assert "all 4 trials are done" in said
    assert checkout.journal(name) == journal

    _define(checkout, name, controls="[cubic]")
    code, said = checkout.run(name)
    assert code == 0, said
    assert "all 3 trials are done" in said
    assert len(_started(checkout, name)) == 4
    assert _results(checkout, name) == before
    (change,) = _changes(checkout, name)
    assert [id_.rpartition("-")[0] for id_ in change.values["orphans"]] == ["long-newreno-r1"]

    campaign = checkout.campaign(name)
    code, said = checkout.run(name, "new")
    assert code == 0, said
    assert checkout.campaign(name) != campaign


def test_trials_that_the_testbed_cannot_run_are_left_out_and_reported_if_this_is_allowed(
    checkout: Checkout,
) -> None:
    name = "partial"
    _define(checkout, name, controls="[newreno, turbo]")
    code, said = checkout.run(name)
    assert code == 1
    assert "src: no congestion control turbo (1 trial)" in said
    assert "the other 3 of 4 trials can run: --allow-partial runs them" in said
    assert not (checkout.folder / "results" / name).exists()

    code, said = checkout.run(name, "allow-partial")
    assert code == 0, said
    assert "1 trial cannot run: src: no congestion control turbo" in said
    assert sorted(manifest["verdict"] for manifest in checkout.manifests(name).values()) == ["valid"] * 3
    (blocked,) = (entry for entry in checkout.journal(name) if entry.event == "trials-blocked")
    assert blocked.values["blocked"][0]["reasons"] == ["src: no congestion control turbo"]


def test_a_host_that_a_trial_of_a_replaced_plan_left_changed_is_restored_by_that_plan(
    checkout: Checkout,
) -> None:
    name = "edited"
    _define(checkout, name, controls="[cubic]")
    process = checkout.start(name)
    victim = checkout.wait_for_traffic(name, 1)
    process.kill()
    process.communicate()
    for host in ("src", "rtr", "dst"):
        checkout.wait_until_idle(host)

    _define(checkout, name, buffer="30packets", controls="[newreno]")
    study = checkout.controller.project.plan(Request(name))
    resume = checkout.controller.project.resume_point(study)
    assert resume.folder == checkout.campaign(name)
    summary = checkout.controller.run(RunRequest(study, resume), silent)

    assert summary.complete
    assert victim not in {trial.id for trial in study.plan.trials}
    assert not resume.state.clean
    assert checkout.controller.project.resume_point(study).nothing_to_do


@pytest.mark.skipif(os.geteuid() != 0, reason="a lab on the machine's own kernel needs root")
def test_a_campaign_that_is_resumed_with_another_kernel_reports_the_change(tmp_path: Path) -> None:
    # Labs with adapters do not need netem, which the machine's own kernel may lack.
    name, testbed = "upgraded", (ROOT / "hosts" / "powerline.yaml").read_text()
    checkout = make_checkout(tmp_path, hosts={"powerline": testbed.replace("kernel: auto", "kernel: uml")})
    text = TEXT.replace("testbed: lab", "testbed: powerline")
    values = {"name": name, "buffer": "20packets", "controls": "[newreno]"}
    checkout.write(name, text.format(replicates=1, **values))
    code, said = checkout.run(name)
    assert code == 0, said

    native = testbed.replace("kernel: auto", "kernel: native")
    (checkout.folder / "hosts" / "powerline.yaml").write_text(native)
    checkout.write(name, text.format(replicates=2, **values))
    code, said = checkout.run(name)
    assert code == 0, said
    changed = [entry for entry in checkout.journal(name) if entry.event == "kernel-changed"]
    assert {entry.values["host"] for entry in changed} == {"src", "dst"}
    for entry in changed:
        before, now = entry.values["kernel_before"], entry.values["kernel_now"]
        assert (
            f"{entry.values['host']}: runs {now}, but this campaign's 3 complete trials ran on {before}"
            in said
        )
