"""Omissions in the report: trials that did not run, results outside the plan."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

from samovar.campaign.journal import JOURNAL, Journal
from samovar.report.campaign_data import Campaign, read_campaign
from samovar.report.document import compose
from samovar.report.overview import omissions, overview, when
from tests.unit.report.report_sample import Sample, share_between_testbeds, write_campaign

HOSTS = ("src", "rtr", "dst")


def _campaign(folder: Path, *events: tuple[str, Mapping[str, object]], not_run: int = 0) -> Campaign:
    campaign = write_campaign(folder, Sample(not_run=not_run))
    with Journal(campaign / JOURNAL) as journal:
        for event, values in events:
            journal.append(event, 1795272000.0, **values)
    return read_campaign(campaign)


def _result(id_: str) -> list[tuple[str, Mapping[str, object]]]:
    ended = {"id": id_, "outcome": "completed", "verdict": "valid", "reasons": []}
    return [("trial-started", {"id": id_, "attempt": 1}), ("trial-finished", ended)]


def test_a_report_names_the_hosts_of_each_testbed_that_shares_the_campaign(tmp_path: Path) -> None:
    folder = write_campaign(tmp_path)
    share_between_testbeds(folder)
    document = compose(read_campaign(folder), ())
    kernels = {host["name"]: host["kernel"] for host in document["hosts"]}
    assert list(kernels) == [f"{host}@{testbed}" for testbed in ("lab", "twin") for host in HOSTS]
    assert (kernels["src@lab"], kernels["src@twin"]) == ("Linux 6.1.0-um", "Linux 6.12.9")
    assert "user-mode Linux. twin: Sender, bottleneck" in document["testbed"]
    assert document["testbed"].endswith("the machine’s own kernel.")
    labs = {group["name"]: group["facts"][0]["value"] for group in document["provenance"]}
    assert (labs["Lab lab"], labs["Lab twin"]) == ("uml", "native")


def test_a_later_run_without_a_trial_to_run_does_not_extend_the_duration_of_the_campaign(
    tmp_path: Path,
) -> None:
    campaign = _campaign(
        tmp_path,
        ("plan-changed", {"stale": [], "orphans": []}),
        ("campaign-finished", {"completed": 30}),
    )
    assert when(campaign) == "21 November 2026, 14:34:03 UTC, over 9:01"


def test_a_trial_that_the_testbed_cannot_run_is_missing_with_the_reason(tmp_path: Path) -> None:
    missing = _campaign(tmp_path / "first", not_run=2).plan.ids[-2:]
    blocked = {"blocked": [{"reasons": ["src: no congestion control bbr"], "trials": missing}]}
    campaign = _campaign(tmp_path / "second", ("trials-blocked", blocked), not_run=2)
    (group,) = (one for one in omissions(campaign)["groups"] if one["state"] == "not run")
    assert group["reason"] == "not possible on the testbed: src: no congestion control bbr"
    assert (group["amount"], group["means"]) == (2, "missing")


def test_the_cover_says_whether_trials_are_missing_because_of_the_testbed_or_of_an_early_end(
    tmp_path: Path,
) -> None:
    missing = _campaign(tmp_path / "first", not_run=2).plan.ids[-2:]
    for number, trials in enumerate((missing, missing[:1])):
        blocked = {"blocked": [{"reasons": ["src: no congestion control bbr"], "trials": trials}]}
        campaign = _campaign(tmp_path / f"lacking-{number}", ("trials-blocked", blocked), not_run=2)
        begins = (
            "The testbed cannot run 2 of 30" if trials == missing else "This campaign ended early: 2 of 30"
        )
        assert overview(campaign)["notice"].startswith(begins)


def test_the_cover_has_no_notice_if_only_a_repeated_trial_was_interrupted(tmp_path: Path) -> None:
    again = {"id": _campaign(tmp_path / "first").plan.ids[0], "attempt": 2}
    events = ("campaign-resumed", {"trials": 30}), ("trial-started", again)
    assert not overview(_campaign(tmp_path / "second", *events))["notice"]


def test_results_outside_the_plan_are_counted(tmp_path: Path) -> None:
    changed = {
        "stale": [{"changes": ["duration_s 6 -> 12"], "results": ["old-r1", "old-r2"]}],
        "orphans": ["gone-r1"],
    }
    results = [event for id_ in ("old-r1", "old-r2", "gone-r1") for event in _result(id_)]
    campaign = _campaign(tmp_path, *results, ("plan-changed", changed))
    note = "In the campaign’s folder but not analysed: 3 results of trials that an earlier plan had."
    assert note in omissions(campaign)["notes"]


def test_a_report_lists_thresholds_of_its_verdicts_that_are_looser_than_the_defaults(
    tmp_path: Path,
) -> None:
    bounds = {"profile": "emulated", "loosened": {"cpu": {"bound": "100%", "default": "95%"}}}
    folder = write_campaign(tmp_path, Sample())
    for file in folder.glob("trials/*/manifest.json"):
        file.write_text(json.dumps({**json.loads(file.read_text()), "bounds": bounds}))
    campaign = read_campaign(folder)
    text = "Thresholds looser than the defaults, profile emulated: cpu 100% (default 95%)."
    assert omissions(campaign)["notes"].count(text) == 1


def test_a_result_does_not_belong_to_an_earlier_plan_after_the_edit_of_its_trial_was_undone(
    tmp_path: Path,
) -> None:
    id_ = _campaign(tmp_path / "first").plan.ids[0]
    changed = {"stale": [{"changes": ["duration_s 6 -> 12"], "results": [id_]}], "orphans": []}
    campaign = _campaign(tmp_path / "second", ("plan-changed", changed))
    assert not any("earlier plan" in note for note in omissions(campaign)["notes"])


def test_trials_that_were_not_picked_are_neither_failed_nor_missing(tmp_path: Path) -> None:
    ids = _campaign(tmp_path / "first").plan.ids
    picked = {"pick": "part=buffer", "trials": ids[:-2]}
    campaign = _campaign(tmp_path / "second", ("trials-picked", picked), not_run=2)
    text = f"{len(ids) - 2} of {len(ids)} trials were run (picked: part=buffer)"
    document = compose(campaign, ())
    assert document["notice"] == f"{text}."
    assert document["scorecard"]["headline"].endswith(f": {text}")
    assert document["note"] == f"\n{text}\n"
    (group,) = (one for one in omissions(campaign)["groups"] if one["state"] == "not picked")
    assert (group["amount"], group["means"]) == (2, "for another run")


def test_a_report_of_a_part_names_the_part_and_the_command_that_repeats_it(tmp_path: Path) -> None:
    folder = write_campaign(tmp_path)
    file = folder / "bundle" / "analysis.json"
    part = {"picked": "cc=cdg", "options": "--only cc=cdg", "trials": ["a", "b"]}
    file.write_text(json.dumps({**json.loads(file.read_text()), "part": part}))
    campaign = read_campaign(folder)
    assert campaign.part == f"2 of {len(campaign.plan.ids)} trials are shown (picked: cc=cdg)"
    assert campaign.analyse_command.endswith(" --only cc=cdg")


def test_a_report_of_a_part_lists_the_valid_and_suspect_trials_outside_it(tmp_path: Path) -> None:
    folder = write_campaign(tmp_path)
    ids = read_campaign(folder).plan.ids
    part = {"picked": "first 4", "options": "--first 4", "trials": ids[:4]}
    file = folder / "bundle" / "analysis.json"
    file.write_text(json.dumps({**json.loads(file.read_text()), "part": part}))
    groups = omissions(read_campaign(folder))["groups"]
    assert {one["state"]: one["amount"] for one in groups} == {"left out": len(ids) - 5, "invalid": 1}
    assert {one["reason"] for one in groups} > {"the analysis was limited to first 4"}


def test_a_caption_counts_suspect_trials(tmp_path: Path) -> None:
    figures = compose(read_campaign(write_campaign(tmp_path)), ())["figures"]
    assert {one["trials"] for one in figures} == {"24 trials (1 suspect)"}


def test_a_figure_without_data_is_not_listed_among_the_tables(tmp_path: Path) -> None:
    folder = write_campaign(tmp_path)
    plan = json.loads((folder / "plan.json").read_text())
    plan["figures"].append({"figure": "pause-buffer-cdf"})
    plan["tables"].append({"table": "pause-buffer"})
    (folder / "plan.json").write_text(json.dumps(plan))
    analysis = json.loads((folder / "bundle" / "analysis.json").read_text())
    names = ("pause-buffer-cdf", "pause-buffer")
    analysis["figures_left_out"] = [{"name": name, "reason": "no PAUSE frame"} for name in names]
    (folder / "bundle" / "analysis.json").write_text(json.dumps(analysis))
    document = compose(read_campaign(folder), ())
    shown = {kind: [one["name"] for one in document[kind] if one["reason"]] for kind in ("figures", "tables")}
    assert shown == {"figures": ["pause-buffer-cdf"], "tables": ["pause-buffer"]}
