"""A plan as text, JSON and CSV, and all values of one of its trials as text."""

from __future__ import annotations

import csv
import json
from dataclasses import replace
from pathlib import Path

from samovar.campaign.availability.findings import Finding
from samovar.campaign.folder import ResumePoint
from samovar.campaign.journal import fold
from samovar.cli.show_plan import PlanPreview, plan_csv, plan_json, plan_lines, trial_lines
from samovar.plan import (
    MeasuredTimes,
    PartPlan,
    Pick,
    Plan,
    Repeats,
    StepTime,
    compare,
    estimate_cost,
)
from tests.unit.plan_values import lasting, plan_of, trial
from tests.unit.plans import CATALOGUE, DUMBBELL, planned

LABELS = ("newreno", "cubic", "cdg")
PLAN = plan_of(
    [trial(label, replicate) for replicate in (1, 2) for label in LABELS],
    profile="quick",
    warnings=("main: 2 replicates; a range needs 3",),
)
CHANGED = plan_of([trial(label, replicate, lasting(12)) for replicate in (1, 2) for label in LABELS[:2]])


def preview(plan: Plan = PLAN, resume: ResumePoint | None = None, **more: object) -> PlanPreview:
    resume = resume or ResumePoint(None, compare(plan, None, {}), fold(()), Pick().of(plan))
    remaining = estimate_cost(plan, CATALOGUE, None, resume.comparison.runs.keys())
    return PlanPreview(plan, resume, estimate_cost(plan, CATALOGUE), remaining, **more)  # type: ignore[arg-type]


def _resumed(plan: Plan, before: Plan, **states: str) -> ResumePoint:
    known = {id_.replace("_", "-"): state for id_, state in states.items()}
    return ResumePoint(Path("results/x/quick-1"), compare(plan, before, known), fold(()), Pick().of(plan))


def _done(plan: Plan, before: Plan) -> ResumePoint:
    known = {one.id: "done" for one in before.trials}
    return ResumePoint(Path("results/x/quick-1"), compare(plan, before, known), fold(()), Pick().of(plan))


def test_a_plan_shows_design_trials_cost_and_warnings() -> None:
    assert list(plan_lines(preview())) == [
        "x (quick) on lab: A title",
        "",
        "main",
        "  cc  newreno, cubic, cdg",
        "  3 treatments x 2 replicates = 6 trials",
        "",
        "6 trials, order blocked, seed 1",
        "  1  newreno-r1-6  0:06",
        "  2  cubic-r1-6    0:06",
        "  3  cdg-r1-6      0:06",
        "  4  newreno-r2-6  0:06",
        "  5  cubic-r2-6    0:06",
        "  6  cdg-r2-6      0:06",
        "",
        "new campaign: 6 trials to run",
        "",
        "cost: 6 trials, 0:51 (traffic 0:36 + overhead 0:15)",
        "  overhead  2.5 s each (assumed, none measured on this testbed yet)",
        "  disk      about 11MB on the controller; on hosts up to 910KB (src) until a trial is collected",
        "warning: main: 2 replicates; a range needs 3",
    ]


def test_a_long_plan_shows_its_first_trials_and_the_number_of_others() -> None:
    plan = plan_of(trial("cubic", replicate) for replicate in range(1, 5001))
    lines = list(plan_lines(preview(plan)))
    assert len(lines) < 30
    assert "  1 treatment x 5,000 replicates = 5,000 trials" in lines
    assert "  … 4,988 more (--all shows them)" in lines
    assert sum(" cubic-r" in line for line in plan_lines(preview(plan), every_trial=True)) == 5000


def test_a_plan_shows_its_changes_to_the_campaign_that_it_resumes() -> None:
    lines = list(plan_lines(preview(CHANGED, _done(CHANGED, PLAN))))
    at = lines.index("resumes campaign results/x/quick-1")
    assert lines[at + 1 : at + 6] == [
        "  = 0 trials done",
        "  + 4 trials to run: changed since they ran",
        "  ~ 4 results outdated by a change, kept but not analysed: newreno-r1-6, cubic-r1-6, newreno-r2-6, … 1 more",
        "      duration_s 6 -> 12",
        "  - 2 results not in this plan, kept but not analysed: cdg-r1-6, cdg-r2-6",
    ]


def test_changed_recipes_of_existing_results_are_shown() -> None:
    recipes = ["linux/aqm/pfifo.sh.j2", "linux/logger/queue.sh.j2"]
    shown = preview(PLAN, _done(PLAN, PLAN), changed_recipes=recipes)
    lines = list(plan_lines(shown))
    at = lines.index("  = 6 trials done")
    assert lines[at + 1] == (
        "      recipes changed since then: linux/aqm/pfifo.sh.j2, linux/logger/queue.sh.j2; "
        "`--new` measures everything again"
    )
    assert json.loads("\n".join(plan_json(shown)))["campaign"]["recipes_changed"] == recipes


def test_results_of_trials_that_were_renamed_are_reported() -> None:
    resume_point = _done(PLAN, PLAN)
    renamed = replace(resume_point, comparison=replace(resume_point.comparison, orphans=("a-r1",), renamed=1))
    lines = list(plan_lines(preview(PLAN, renamed)))
    at = lines.index("  - 1 result not in this plan, kept but not analysed: a-r1")
    assert lines[at + 1] == (
        "      including 1 with the settings of new trials, because a part, factor or level was renamed; to use them, restore the old name"
    )
    assert json.loads("\n".join(plan_json(preview(PLAN, renamed))))["campaign"]["renamed"] == 1


def test_the_cost_of_the_remaining_trials_is_shown_on_a_line_of_its_own() -> None:
    resume_point = _resumed(PLAN, PLAN, newreno_r1_6="done", cubic_r1_6="done", cdg_r1_6="failed")
    lines = list(plan_lines(preview(PLAN, resume_point)))
    assert "  + 1 trial to run: failed before" in lines
    assert "remaining: 4 trials, 0:34 (traffic 0:24 + overhead 0:10)" in lines
    assert any(line.split() == ["3", "cdg-r1-6", "0:06", "failed"] for line in lines)
    assert any(line.split() == ["1", "newreno-r1-6", "0:06", "done"] for line in lines)


BLOCKED = {one.id: ["src: no congestion control cdg"] for one in PLAN.trials if one.treatment["cc"] == "cdg"}
LACKS = Finding("src", "no congestion control cdg", "known there: reno", True, tuple(BLOCKED))


def test_trials_that_cannot_run_are_shown_with_the_reason_and_the_option_that_runs_the_others() -> None:
    lines = list(plan_lines(preview(findings=(LACKS,), blocked=BLOCKED)))
    assert "2 of 6 trials cannot run on lab:" in lines
    assert "  ✗ src: no congestion control cdg (2 trials); known there: reno" in lines
    assert "  `fab run … --allow-partial` runs the others" in lines
    assert any("cannot run  src: no congestion control cdg" in line for line in lines)
    possible = estimate_cost(PLAN, CATALOGUE, None, {one.id for one in PLAN.trials} - BLOCKED.keys())
    lines = list(plan_lines(preview(findings=(LACKS,), blocked=BLOCKED, cost_possible=possible)))
    assert "can run: 4 trials, 0:34 (traffic 0:24 + overhead 0:10)" in lines


def test_no_trial_can_run_if_a_finding_concerns_all_trials_or_every_trial_is_blocked() -> None:
    full = Finding("this machine", "the disk is full", "free some", True)
    for shown in (preview(findings=(full,)), preview(blocked={one.id: ["src: down"] for one in PLAN.trials})):
        assert shown.nothing_can_run
    assert not preview(findings=(LACKS,), blocked=BLOCKED).nothing_can_run


NO_ROOM = Finding("this machine", "6 trials leave about 9MB, the disk has 1MB free", "record less", True)


def test_a_finding_about_all_trials_is_shown_before_findings_about_some_trials() -> None:
    lines = list(plan_lines(preview(findings=(NO_ROOM, LACKS), blocked=BLOCKED)))
    at = lines.index("no trial can run until this is fixed:")
    assert lines[at + 1] == f"  ✗ {NO_ROOM}"
    assert lines[at + 2 : at + 4] == ["2 of 6 trials cannot run on lab:", f"  ✗ {LACKS}"]
    alone = list(plan_lines(preview(findings=(NO_ROOM,))))
    assert not any("cannot run" in line or "--allow-partial" in line for line in alone)


def test_a_plan_names_the_host_that_needs_most_disk_space() -> None:
    shown = preview()
    left = replace(shown.cost_remaining, host_bytes={"sta1": 400_000, "router": 21_000_000})
    (disk,) = (line for line in plan_lines(replace(shown, cost_remaining=left)) if line.startswith("  disk"))
    assert disk.endswith("on hosts up to 21MB (router) until a trial is collected")


def test_the_cost_includes_the_calibration_of_paths() -> None:
    known = MeasuredTimes(StepTime(2.0, 3), path=StepTime(20.0, 4))
    shown = replace(preview(), cost=estimate_cost(PLAN, CATALOGUE, known, calibrates=True))
    lines = list(plan_lines(shown))
    assert "cost: 6 trials, 1:08 (traffic 0:36 + overhead 0:12 + calibration 0:20)" in lines
    assert (
        "  calibration  1 path measured before use, 20 s each (median of 4 measured on this testbed)" in lines
    )
    assert json.loads("\n".join(plan_json(shown)))["cost"]["path_s"] == 20.0


def test_the_cost_includes_repeats_as_frequent_as_in_earlier_trials() -> None:
    shown = replace(
        preview(),
        cost=estimate_cost(
            PLAN, CATALOGUE, MeasuredTimes(StepTime(2.0, 3), repeats=Repeats(1, 4, 6.0, 24.0))
        ),
    )
    lines = list(plan_lines(shown))
    assert "cost: 6 trials, 1:00 (traffic 0:36 + overhead 0:12 + repeats 0:12)" in lines
    assert "  repeats   25% more: 4 earlier trials took 5 attempts" in lines


def test_a_testbed_that_was_not_queried_is_reported() -> None:
    lines = list(plan_lines(preview(not_queried="the lab is down (only the recipes were checked)")))
    assert any(line.startswith("the testbed was not queried for what it can do: the lab") for line in lines)


def test_a_plan_on_two_testbeds_shows_the_total_time() -> None:
    plan = PLAN.model_copy(update={"testbed": "left,right"})
    shown = replace(
        preview(plan), cost=estimate_cost(plan, CATALOGUE, MeasuredTimes(StepTime(3.5, 9)), testbeds=2)
    )
    lines = list(plan_lines(shown))
    assert "cost: 6 trials, 0:28 on 2 testbeds in parallel (traffic 0:36 + overhead 0:21)" in lines
    apart = list(plan_lines(replace(shown, not_queried="left: only recipes: down\nright: only recipes: off")))
    at = apart.index("the testbed was not queried for what it can do: left: only recipes: down")
    assert apart[at + 1] == "  right: only recipes: off"
    assert json.loads("\n".join(plan_json(shown)))["cost"]["testbeds"] == 2


def test_a_factor_of_many_levels_shows_its_first_and_last_ones() -> None:
    plan = plan_of(trial(f"{size}KB") for size in range(50, 1050, 50))
    assert "  cc  50KB, 100KB, 150KB, 200KB, 250KB, 300KB, … 12 more …, 950KB, 1000KB" in plan_lines(
        preview(plan)
    )


def test_the_number_of_reboots_is_compared_with_the_number_in_the_order_of_the_file() -> None:
    changes = {"reboots": 2, "resets": 0, "naive_reboots": 11, "naive_resets": 0}
    lines = list(plan_lines(preview(plan_of(PLAN.trials, changes=changes))))
    assert "  hosts     2 reboots (11 in the order of the file)" in lines


def test_the_cost_includes_reboots() -> None:
    changes = {"reboots": 6, "boots": 3}
    lines = list(plan_lines(preview(plan_of(PLAN.trials, changes=changes))))
    assert any(line.startswith("cost: ") and line.endswith(" + reboots 6:00)") for line in lines), lines
    assert (
        "  reboots   3 waits for rebooting hosts, 120 s each (assumed, none measured on this testbed yet)"
        in lines
    )


def test_the_csv_has_a_row_per_trial_with_every_factor() -> None:
    other = PartPlan(name="second", title="", factors={"rwnd": ("50KB",)}, replicates=1)
    plan = plan_of(PLAN.trials, parts=(*PLAN.parts, other))
    rows = list(csv.DictReader(plan_csv(preview(plan, findings=(LACKS,), blocked=BLOCKED)).splitlines()))
    assert list(rows[0]) == ["order", "id", "part", "cc", "rwnd", "replicate", "block", "duration_s", "state"]
    assert [row["state"] for row in rows] == ["new", "new", "cannot run"] * 2
    assert list(rows[5].values()) == ["6", "cdg-r2-6", "main", "cdg", "", "2", "2", "6", "cannot run"]


def test_the_csv_quotes_labels_that_contain_commas_quotes_and_line_ends() -> None:
    hostile = trial('a,"b"\nc')
    (row,) = csv.DictReader(plan_csv(preview(plan_of([hostile]))).splitlines(keepends=True))
    assert row["cc"] == 'a,"b"\nc'


def test_the_json_plan_has_cost_campaign_and_trials_that_cannot_run() -> None:
    shown = preview(CHANGED, _done(CHANGED, PLAN), blocked={"cubic-r1-12": ["why"]})
    value = json.loads("\n".join(plan_json(shown)))
    assert value["schema"] == 2
    assert value["cost"]["trials"] == value["left"]["trials"] == 4
    assert value["campaign"]["folder"] == "results/x/quick-1"
    assert value["campaign"]["orphans"] == ["cdg-r1-6", "cdg-r2-6"]
    assert value["campaign"]["stale"][0]["changes"] == ["duration_s 6 -> 12"]
    assert value["cannot_run"] == {"cubic-r1-12": ["why"]}
    assert value["not_asked"] is None
    assert value["refused"] == []


def test_the_json_plan_is_yielded_one_trial_at_a_time_and_equals_the_output_of_json_dumps() -> None:
    lines = list(plan_json(preview()))
    value = json.loads("\n".join(lines))
    assert value["trials"] == [trial.as_json() for trial in PLAN.trials]
    assert "\n".join(lines) == json.dumps(value, indent=1, ensure_ascii=False)
    ids = [json.loads(line.rstrip(","))["id"] for line in lines if line.startswith("  {")]
    assert ids == list(PLAN.ids)


def test_the_json_plan_has_findings_about_all_trials() -> None:
    shown = preview(findings=(NO_ROOM, LACKS), blocked=BLOCKED)
    assert json.loads("\n".join(plan_json(shown)))["refused"] == [str(NO_ROOM)]


def test_every_key_of_the_json_plan_is_in_the_reference() -> None:
    reference = (Path(__file__).parents[3] / "docs" / "reference" / "campaign-folder.md").read_text()
    section = reference.partition("## Machine-readable output of `fab plan`")[2].partition("\n## ")[0]
    value = json.loads("\n".join(plan_json(preview())))
    beside = [key for key in value if key not in (*PLAN.head(), "trials")]
    columns = plan_csv(preview()).splitlines()[0].split(",")
    for key in [*beside, *value["cost"], *value["campaign"], *(name for name in columns if name != "cc")]:
        assert f"`{key}`" in section, key


FULL = """\
experiment: study
testbed: dumbbell
path: {rate: {down: 8Mbit, up: 2Mbit}, delay: {down: 30ms, up: 10ms}, loss: 1%, buffer: 1 BDP}
settings: {cc: {senders: newreno, src2: cubic}, tcp.sack: off}
factors: {rwnd: [50KB], traffic.short.arrivals.poisson: [10% * RATE / traffic.short.size]}
stop: {after: 20s, when: bulk}
traffic:
  - {flow: bulk, generator: iperf3, from: src1, to: dst1, cc: cdg, dscp: EF, duration: 10s, length: 8KB}
  - {flow: short, generator: nuttcp, from: src2, to: dst2, start: 2s, size: {exponential: 20KB}, arrivals: {poisson: 1/s, until: 3s}}
  - {flow: rtt, generator: ping, from: src1, to: dst1, until: bulk}
captures: [{at: src1}]
loggers: [{logger: queue, at: router, interval: RTT / 4}]
"""
SHOWN = """\
50KB-10pct-RATE-traffic.short-r1-HASH: part main, replicate 1, block 1
  rwnd 50KB, traffic.short.arrivals.poisson 10% * RATE / traffic.short.size
  traffic 0:10, at most 0:25

stop
  after  when
  20s    bulk

path
  direction  interface  rate   delay  loss  aqm    buffer      buffer
  down       eth2       8Mbit  30ms   1%    pfifo  27 packets  40KB
  up         eth1       2Mbit  10ms         pfifo  27 packets  40KB

hosts
  host  role      cc       rwnd  settings
  src1  sender    newreno        tcp sack off
  src2  sender    cubic          tcp sack off
  src3  sender
  src4  sender
  rtr   router
  dst1  receiver           50KB  tcp sack off
  dst2  receiver           50KB  tcp sack off
  dst3  receiver
  dst4  receiver

flows
"""


def test_one_trial_is_shown_in_full_with_computed_and_random_values() -> None:
    (one,) = planned(FULL, DUMBBELL).trials
    lines = [line.replace(one.id[-6:], "HASH") for line in trial_lines(one, CATALOGUE)]
    assert "\n".join(lines).startswith(SHOWN)
    flows = lines[SHOWN.count("\n") :]
    assert flows[1].split() == [
        "bulk",
        "iperf3",
        "src1",
        "dst1",
        "5001",
        "0s",
        "10s",
        "cdg",
        "46",
        "length",
        "8KB",
    ]
    short = [one for one in one.resolved.flows if one.group == "short"]
    assert [line.split()[:6] for line in flows[2 : 2 + len(short)]] == [
        [one.label, "nuttcp", "src2", "dst2", str(one.port), f"{one.start_s:.9g}s"] for one in short
    ]
    assert flows[2 + len(short)].split()[:2] == ["rtt", "ping"]
    assert flows[-1].split() == ["queue", "rtr", "eth2", "10ms"]


def test_a_trial_is_shown_without_empty_columns() -> None:
    lines = list(trial_lines(trial("cubic"), CATALOGUE))
    assert "jitter" not in "".join(lines)
    assert not any(line.endswith(" ") for line in lines)


def test_a_logger_is_shown_with_the_quantity_that_it_records_if_their_names_differ() -> None:
    lines = [line.split() for line in trial_lines(trial("cubic"), CATALOGUE)]
    assert ["tcp-info", "tcp-state", "src", "eth1", "10ms"] in lines
    assert ["queue", "rtr", "eth2", "5ms"] in lines
