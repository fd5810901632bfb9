"""What people and machines see of a plan, of any size."""

from __future__ import annotations

import csv
import json
from dataclasses import replace
from pathlib import Path

from samovar.journal import fold
from samovar.plan import PartPlan, Plan, estimate_cost
from samovar.plan.compare import compare
from samovar.plan.cost import Known, Overhead, shared
from samovar.runner.folder import Standing
from samovar.runner.preflight import Finding
from samovar.view.export import plan_csv, plan_json
from samovar.view.plan import Seen, plan_lines
from tests.unit.plan_values import lasting, plan_of, trial

LABELS = ("newreno", "cubic", "cdg")
PLAN = plan_of(
    [trial(label, replicate) for replicate in (1, 2) for label in LABELS],
    profile="quick",
    warnings=("main: 2 replicates; a range needs 3",),
)
CHANGED = plan_of([trial(label, replicate, lasting(12)) for replicate in (1, 2) for label in LABELS[:2]])


def _seen(plan: Plan = PLAN, standing: Standing | None = None, **more: object) -> Seen:
    standing = standing or Standing(None, compare(plan, None, {}), fold(()))
    left = estimate_cost(plan, None, standing.comparison.runs.keys())
    return Seen(plan, standing, estimate_cost(plan), left, **more)  # type: ignore[arg-type]


def _against(plan: Plan, before: Plan, **standing: str) -> Standing:
    known = {id_.replace("_", "-"): how for id_, how in standing.items()}
    return Standing(Path("results/x/quick-1"), compare(plan, before, known), fold(()))


def _done(plan: Plan, before: Plan) -> Standing:
    known = {one.id: "done" for one in before.trials}
    return Standing(Path("results/x/quick-1"), compare(plan, before, known), fold(()))


def test_a_plan_shows_its_design_the_trials_in_order_the_cost_and_its_warnings() -> None:
    assert list(plan_lines(_seen())) == [
        "x (quick) on lab: A title",
        "",
        "main",
        "  cc  newreno, cubic, cdg",
        "  3 treatments x 2 replicates = 6 trials",
        "  in order, block by block:",
        "  cc  123 123",
        "",
        "6 trials, order blocked, seed 1",
        "  1  newreno-r1-6  0:06",
        "  2  cubic-r1-6    0:06",
        "  3  cdg-r1-6      0:06",
        "  4  newreno-r2-6  0:06",
        "  5  cubic-r2-6    0:06",
        "  6  cdg-r2-6      0:06",
        "",
        "a new campaign begins: 6 trials to run",
        "",
        "cost: 6 trials, 0.01 h (traffic 0:36 + beyond traffic 0:15)",
        "  beyond traffic: 2.5 s a trial (assumed, none measured on this testbed yet)",
        "  disk: 8.64MB here; 630KB at dst, 480KB at rtr, 870KB at src until a trial is collected",
        "  hosts: 0 reboots, 0 interface resets",
        "warning: main: 2 replicates; a range needs 3",
    ]


def test_a_long_plan_shows_its_first_trials_and_how_many_more() -> None:
    plan = plan_of(trial("cubic", replicate) for replicate in range(1, 5001))
    lines = list(plan_lines(_seen(plan)))
    assert len(lines) < 30
    assert "  1 treatment x 5,000 replicates = 5,000 trials" in lines
    assert "  … 4,988 more (--all shows them)" in lines
    assert sum(" cubic-r" in line for line in plan_lines(_seen(plan), every=True)) == 5000


def test_a_plan_reads_as_a_change_of_the_campaign_that_it_goes_on_in() -> None:
    lines = list(plan_lines(_seen(CHANGED, _done(CHANGED, PLAN))))
    at = lines.index("goes on in results/x/quick-1")
    assert lines[at + 1 : at + 6] == [
        "  = 0 trials stand",
        "  + 4 trials to run: changed since they ran",
        "  ~ 4 results stale, kept and no longer analysed: newreno-r1-6, cubic-r1-6, newreno-r2-6, … 1 more",
        "      duration_s 6 -> 12",
        "  - 2 results no longer asked for, kept and not analysed: cdg-r1-6, cdg-r2-6",
    ]


def test_what_is_left_has_a_cost_of_its_own() -> None:
    standing = _against(PLAN, PLAN, newreno_r1_6="done", cubic_r1_6="done", cdg_r1_6="failed")
    lines = list(plan_lines(_seen(PLAN, standing)))
    assert "  + 1 trial to run: failed before" in lines
    assert "left: 4 trials, 0.01 h (traffic 0:24 + beyond traffic 0:10)" in lines
    assert any(line.split() == ["3", "cdg-r1-6", "0:06", "failed"] for line in lines)
    assert any(line.split() == ["1", "newreno-r1-6", "0:06", "stands"] for line in lines)


BLOCKED = {one.id: ["src: no congestion control cdg"] for one in PLAN.trials if one.treatment["cc"] == "cdg"}
LACKS = Finding("src", "no congestion control cdg", "known there: reno", True, tuple(BLOCKED))


def test_what_cannot_run_is_named_with_its_reason_and_the_way_round_it() -> None:
    lines = list(plan_lines(_seen(findings=(LACKS,), blocked=BLOCKED)))
    assert "2 of 6 trials cannot run on lab:" in lines
    assert "  ✗ src: no congestion control cdg (2 trials); known there: reno" in lines
    assert "  `fab run … --allow-partial` runs the others" in lines
    assert any("cannot run  src: no congestion control cdg" in line for line in lines)


def test_what_lacks_for_every_trial_stops_them_all() -> None:
    full = Finding("this machine", "the disk is full", "free some", True)
    for seen in (_seen(findings=(full,)), _seen(blocked={one.id: ["src: down"] for one in PLAN.trials})):
        assert seen.hopeless
    assert "6 of 6 trials cannot run on lab:" in list(plan_lines(_seen(findings=(full,))))
    assert not _seen(findings=(LACKS,), blocked=BLOCKED).hopeless


def test_a_testbed_that_was_not_asked_is_said_so() -> None:
    lines = list(plan_lines(_seen(unasked="only its recipes were looked at: the lab is down")))
    assert any(line.startswith("the testbed was not asked what it can do, only") for line in lines)


def test_a_plan_on_two_testbeds_shows_the_time_that_both_take_and_what_each_takes_beyond_traffic() -> None:
    plan = PLAN.model_copy(update={"testbed": "left,right"})
    each = {"left": estimate_cost(plan), "right": estimate_cost(plan, Known(Overhead(4.5, 9)))}
    seen = replace(_seen(plan, each=each), whole=shared(list(each.values())))
    lines = list(plan_lines(seen))
    assert "cost: 6 trials, 0.01 h on 2 testbeds at once (traffic 0:36 + beyond traffic 0:21)" in lines
    assert "  beyond traffic on right: 4.5 s a trial (median of 9 measured on this testbed)" in lines
    assert any("870KB at left: src" in line and "870KB at right: src" in line for line in lines)
    assert json.loads(json.dumps(plan_json(seen)))["cost"]["testbeds"] == 2


def test_a_factor_of_many_levels_shows_its_first_and_last_ones() -> None:
    plan = plan_of(trial(f"{size}KB") for size in range(50, 1050, 50))
    assert "  cc  50KB, 100KB, 150KB, 200KB, 250KB, 300KB, … 12 more …, 950KB, 1000KB" in plan_lines(
        _seen(plan)
    )


def test_a_part_too_long_for_a_strip_has_none() -> None:
    plan = plan_of(trial(label, replicate) for replicate in range(1, 60) for label in LABELS)
    assert not any("in order" in line for line in plan_lines(_seen(plan)))


def test_reboots_are_set_against_the_order_of_the_file() -> None:
    changes = {"reboots": 2, "resets": 0, "naive_reboots": 11, "naive_resets": 0}
    lines = list(plan_lines(_seen(plan_of(PLAN.trials, changes=changes))))
    assert "  hosts: 2 reboots (11 in the order of the file)" in lines


def test_the_hours_that_are_printed_hold_the_reboots() -> None:
    changes = {"reboots": 6, "boots": 3}
    lines = list(plan_lines(_seen(plan_of(PLAN.trials, changes=changes))))
    assert any(line.startswith("cost: ") and line.endswith(" + reboots 6:00)") for line in lines), lines
    assert (
        "  reboots: 3 times that hosts are waited for, 120 s each (assumed, none measured on this testbed yet)"
        in lines
    )


def test_the_csv_has_a_row_per_trial_with_every_factor() -> None:
    other = PartPlan(name="second", title="", factors={"rwnd": ("50KB",)}, replicates=1)
    plan = plan_of(PLAN.trials, parts=(*PLAN.parts, other))
    rows = list(csv.DictReader(plan_csv(_seen(plan, findings=(LACKS,), blocked=BLOCKED))))
    assert list(rows[0]) == ["order", "id", "part", "cc", "rwnd", "replicate", "block", "state"]
    assert [row["state"] for row in rows] == ["new", "new", "cannot run"] * 2
    assert list(rows[5].values()) == ["6", "cdg-r2-6", "main", "cdg", "", "2", "2", "cannot run"]


def test_the_csv_keeps_labels_with_commas_and_quotes_whole() -> None:
    hostile = trial('a,"b"\nc')
    (row,) = csv.DictReader("\n".join(plan_csv(_seen(plan_of([hostile])))).splitlines(keepends=True))
    assert row["cc"] == 'a,"b"\nc'


def test_a_plan_for_machines_has_the_plan_its_cost_where_it_goes_on_and_what_cannot_run() -> None:
    seen = _seen(CHANGED, _done(CHANGED, PLAN), blocked={"cubic-r1-12": ["why"]})
    value = json.loads(json.dumps(plan_json(seen)))
    assert value["schema"] == 2
    assert value["cost"]["trials"] == value["left"]["trials"] == 4
    assert value["campaign"]["folder"] == "results/x/quick-1"
    assert value["campaign"]["orphans"] == ["cdg-r1-6", "cdg-r2-6"]
    assert value["campaign"]["stale"][0]["changes"] == ["duration_s 6 -> 12"]
    assert value["cannot_run"] == {"cubic-r1-12": ["why"]}
    assert value["not_asked"] is None
