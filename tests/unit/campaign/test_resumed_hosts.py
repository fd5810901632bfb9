"""Hosts of a resumed campaign: a changed kernel is reported, and an absent host keeps its recorded facts."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from samovar.campaign.availability import HostSurvey
from samovar.campaign.folder import begin_campaign, read_state
from samovar.campaign.journal import JOURNAL, Entry, Journal, fold
from samovar.campaign.journal.campaign_state import KernelChange
from samovar.campaign.merge_campaigns import merge_shards
from samovar.campaign.policy import ONE_ATTEMPT, Policy
from samovar.campaign.provenance_json import PROVENANCE, changed_kernels, keep_absent_hosts
from samovar.campaign.retries import TestbedSetup
from samovar.campaign.run import CampaignRun
from samovar.events import silent
from samovar.plan import Pick
from samovar.report.campaign_data import read_campaign
from samovar.report.overview import overview
from tests.unit.campaign.answering_hosts import CATALOGUE, AnsweringSessions, unchanged_answer
from tests.unit.campaign.test_shards import run_shard
from tests.unit.plan_values import plan_of, trial
from tests.unit.report.report_sample import Sample, write_campaign

OLD, NEW = "Linux 6.1.176 x86_64", "Linux 6.18.44 x86_64"
CHANGE = {"kernel_before": OLD, "kernel_now": NEW, "completed": 4}


def _provenance(kernels: dict[str, str], **others: dict[str, str]) -> dict[str, Any]:
    def hosts(kernels: dict[str, str]) -> dict[str, Any]:
        return {"lab": None, "hosts": {host: {"kernel": kernel} for host, kernel in kernels.items()}}

    own = {"testbed": "lab", **hosts(kernels)}
    return own | ({"others": {name: hosts(one) for name, one in others.items()}} if others else {})


def test_a_changed_kernel_is_reported_only_if_it_is_known_from_both_runs() -> None:
    before = _provenance({"src": OLD, "dst": OLD, "gone": OLD})
    now = _provenance({"src": NEW, "dst": OLD, "added": NEW})
    assert list(changed_kernels(before, now)) == [(("lab", "src"), OLD, NEW)]
    assert list(changed_kernels({}, now)) == []
    assert list(changed_kernels({"testbed": "lab", "hosts": {"src": {}}}, now)) == []


def test_kernels_of_hosts_with_the_same_name_on_two_testbeds_are_distinguished() -> None:
    before = _provenance({"src": OLD}, twin={"src": OLD})
    now = _provenance({"src": OLD}, twin={"src": NEW})
    assert list(changed_kernels(before, now)) == [(("twin", "src"), OLD, NEW)]


def test_an_absent_host_keeps_its_facts_unless_it_was_removed_from_the_testbed() -> None:
    before = _provenance({"src": OLD, "dst": OLD, "sold": OLD}, twin={"src": OLD})
    now = _provenance({"src": NEW}, twin={})
    hosts = {"lab": ("src", "dst"), "twin": ("src",)}
    assert keep_absent_hosts(now, before, hosts) == _provenance({"src": NEW, "dst": OLD}, twin={"src": OLD})
    assert keep_absent_hosts(_provenance({"src": NEW}), {}, hosts) == _provenance({"src": NEW})


def test_a_run_without_an_unreachable_host_keeps_the_recorded_facts_of_this_host(tmp_path: Path) -> None:
    plan = plan_of([trial("cubic")])
    folder = begin_campaign(plan, tmp_path, {}, silent)

    def run(provenance: dict[str, Any], **unreachable: str) -> None:
        sessions = AnsweringSessions(unchanged_answer)
        policy = Policy(ONE_ATTEMPT.model_copy(update={"host_wait_s": 0.0}))
        setup = TestbedSetup("lab", plan, sessions, policy=policy, survey=HostSurvey({}, unreachable))
        CampaignRun(folder, plan, {}, Pick().of(plan), [setup], CATALOGUE, silent).run(provenance)

    whole = {"src": OLD, "rtr": OLD, "dst": OLD}
    run(_provenance(whole))
    run(_provenance({"src": OLD, "rtr": OLD}), dst="dst: no answer")
    assert json.loads((folder / PROVENANCE).read_bytes()) == _provenance(whole)


def test_a_kernel_change_in_a_campaign_on_several_testbeds_names_the_testbed_of_the_host() -> None:
    values = {"host": "src", "testbed": "twin", **CHANGE}
    assert fold([Entry(3.0, "kernel-changed", values)]).kernel_changes == (
        KernelChange(3.0, "src@twin", OLD, NEW),
    )


def test_the_cover_of_the_report_states_when_and_on_which_hosts_the_kernel_changed(tmp_path: Path) -> None:
    folder = write_campaign(tmp_path, Sample())
    with Journal(folder / JOURNAL) as journal:
        for host in ("src", "dst"):
            journal.append("kernel-changed", 1795272000.0, host=host, **CHANGE)
    text = f"From 21 November 2026, 14:40:00 UTC on, src and dst ran {NEW} instead of {OLD}."
    assert overview(read_campaign(folder))["notice"] == text


def test_a_merged_campaign_keeps_the_kernel_changes_of_each_shard(tmp_path: Path) -> None:
    folders = [run_shard(tmp_path, shard) for shard in ("1/2", "2/2")]
    with Journal(folders[1] / JOURNAL) as journal:
        journal.append("kernel-changed", 9.0, host="src", **CHANGE)
    merged = merge_shards(folders, tmp_path)
    assert read_state(merged.folder).kernel_changes == (KernelChange(9.0, "src", OLD, NEW),)
