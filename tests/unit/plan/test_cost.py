"""The cost of a plan: time and disk space, and the measurements from which they are estimated."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from samovar.campaign.journal import Journal
from samovar.campaign.past_campaigns import measured_times
from samovar.plan import estimate_cost
from samovar.plan.cost import (
    COMPRESSION,
    LINE_BYTES,
    SAMPLE_BYTES,
    TRIAL_BYTES,
    MeasuredTimes,
    Repeats,
    StepTime,
    host_bytes,
    parallel_s,
    stored_bytes,
)
from samovar.plan.model import CapturePlan, Changes, FlowPlan, LoggerPlan, WlanPlan
from samovar.plan.order import together
from tests.unit.plan_values import lasting, plan_of, trial
from tests.unit.plans import BULK, CATALOGUE, planned
from tests.unit.trials import RESOLVED, flow

SHORT, LONG = [trial("cubic", n) for n in (1, 2)], [trial("cdg", n, lasting(60)) for n in (1, 2)]
PLAN = plan_of([*SHORT, *LONG])


def test_the_time_of_a_plan_is_its_traffic_plus_the_overhead_of_each_trial() -> None:
    cost = estimate_cost(PLAN, CATALOGUE, MeasuredTimes(StepTime(2.0, 7)))
    assert (cost.trials, cost.traffic_s, cost.overhead_s) == (4, 132.0, 8.0)
    assert cost.total_s == 140


def test_the_text_of_an_overhead_says_whether_it_was_measured_or_assumed() -> None:
    assert str(StepTime(4.21, 38)) == "4.2 s each (median of 38 measured on this testbed)"
    assert str(MeasuredTimes().overhead) == "2.5 s each (assumed, none measured on this testbed yet)"


def test_the_cost_of_the_remaining_trials_excludes_the_other_trials() -> None:
    left = estimate_cost(PLAN, CATALOGUE, MeasuredTimes(StepTime(2.0, 7)), {one.id for one in LONG})
    assert (left.trials, left.traffic_s) == (2, 120.0)
    assert estimate_cost(PLAN, CATALOGUE, None, ()).trials == 0


def test_a_host_stores_one_trial_at_a_time_and_the_controller_all_of_them() -> None:
    cost = estimate_cost(PLAN, CATALOGUE)
    assert cost.host_bytes == host_bytes(lasting(60), CATALOGUE)
    assert cost.controller_bytes == 2 * stored_bytes(RESOLVED, CATALOGUE) + 2 * stored_bytes(
        lasting(60), CATALOGUE
    )


def test_a_host_stores_its_own_compressed_captures_and_its_samples() -> None:
    packets = 6 * 12_000_000 / (600 * 8) * 1.5
    capture = packets * (96 + 16) / COMPRESSION
    assert host_bytes(RESOLVED, CATALOGUE) == {
        "src": int(capture + 6 / 0.01 * 2 * SAMPLE_BYTES),
        "dst": int(capture),
        "rtr": int(6 / 0.005 * SAMPLE_BYTES),
    }
    stored = 2 * capture + (6 / 0.01 * 2 + 6 / 0.005) * SAMPLE_BYTES / COMPRESSION + 3 * TRIAL_BYTES
    assert stored_bytes(RESOLVED, CATALOGUE) == int(stored)


def _captured(*flows: FlowPlan, snaplen_bytes: int = 96, **values: object) -> dict[str, int]:
    captures = tuple(
        CapturePlan(host=host, interface="eth1", snaplen_bytes=snaplen_bytes) for host in ("src", "dst")
    )
    update = {"flows": flows, "captures": captures, "loggers": (), **values}
    return dict(host_bytes(RESOLVED.model_copy(update=update), CATALOGUE))


def test_the_capture_of_a_flow_with_a_rate_is_estimated_from_that_rate() -> None:
    full = _captured(flow())
    slow = flow().model_copy(update={"parameters": {"rate": "120Kbit"}})
    assert _captured(slow)["src"] == pytest.approx(full["src"] / 100, rel=0.01)
    udp = slow.model_copy(
        update={"generator": "iperf-udp", "parameters": {"rate": "120Kbit", "length": "572B"}}
    )
    assert _captured(udp)["src"] == pytest.approx(_captured(slow)["src"] / 1.5, rel=0.01), (
        "UDP packets are not acknowledged"
    )


def test_the_capture_of_a_flow_without_a_rate_is_estimated_from_the_default_rate_of_its_recipe() -> None:
    assert _captured(flow(generator="voip"))["src"] == int(2 * 6 / 0.02 * (96 + 16) / COMPRESSION)
    udp = _captured(flow(generator="iperf-udp"))["src"]  # 1 Mbit/s in packets of 1428 bytes, MTU 600
    assert udp == int(6 * 1_000_000 / (600 * 8) * (96 + 16) / COMPRESSION)


def test_the_cost_does_not_depend_on_the_order_of_the_levels_of_shaper_rate() -> None:
    head = f"experiment: study\ntestbed: lab\nduration: 30s\n{BULK}captures: [{{at: sender}}]\n"
    slow_first, fast_first = (
        estimate_cost(planned(head + f"factors: {{shaper.rate: [{levels}]}}\n"), CATALOGUE)
        for levels in ("1Mbit, 100Mbit", "100Mbit, 1Mbit")
    )
    assert slow_first == fast_first


def test_the_capture_of_a_transfer_is_estimated_from_its_size_not_from_its_deadline() -> None:
    sized = flow().model_copy(update={"size_bytes": 600_000, "duration_s": None})
    assert _captured(sized)["dst"] == int(1000 * 1.5 * (96 + 16) / COMPRESSION)


def test_packets_beyond_the_rate_of_the_path_are_captured_at_the_sender_only() -> None:
    flood = flow(generator="iperf-udp").model_copy(
        update={"parameters": {"rate": "24Mbit", "length": "572B"}}
    )
    found = _captured(flood)
    assert found["src"] == pytest.approx(2 * found["dst"], rel=0.01)


def test_captures_of_flows_that_share_a_path_are_limited_by_the_rate_of_the_path() -> None:
    one, four = ([flow(f"f{n}") for n in range(number)] for number in (1, 4))
    stored = [
        stored_bytes(RESOLVED.model_copy(update={"flows": tuple(flows), "loggers": ()}), CATALOGUE)
        for flows in (one, four)
    ]
    assert stored[1] == pytest.approx(stored[0], rel=0.01)


def test_captures_of_flows_over_a_wlan_are_limited_by_the_throughput_of_the_wlan() -> None:
    def captured(*stations: str) -> int:
        air = WlanPlan(link="air", hosts=stations, standard="802.11b", rate_bps=2_000_000, seed=1)
        router = RESOLVED.hosts["rtr"].model_copy(update={"wlans": (air,)})
        return _captured(flow(), hosts={**RESOLVED.hosts, "rtr": router})["dst"]

    full = _captured(flow())["dst"]  # 12 Mbit/s, in packets of 600 bytes
    assert captured("rtr", "src") == pytest.approx(
        full * 600 * 8 / (0.0024 + 0.000225) / 12_000_000, rel=0.01
    )
    assert captured("rtr", "another") == full


def test_a_host_without_flows_captures_nothing_and_a_router_captures_all_flows() -> None:
    idle = RESOLVED.hosts["src"]
    captures = tuple(CapturePlan(host=h, interface="eth1", snaplen_bytes=96) for h in ("src", "idle", "rtr"))
    found = _captured(flow(), captures=captures, hosts={**RESOLVED.hosts, "idle": idle})
    assert found["idle"] == 0
    assert found["rtr"] == found["src"] > 0


def test_a_snaplen_above_the_size_of_packets_does_not_make_captures_larger() -> None:
    whole, most = (_captured(flow(), snaplen_bytes=snaplen)["src"] for snaplen in (2000, 65535))
    assert whole == most
    assert whole == pytest.approx(6 * 12_000_000 / 8, rel=0.2), "payload does not compress"


def test_a_logger_without_an_interval_is_estimated_from_the_interval_of_its_recipe() -> None:
    cpu = LoggerPlan(logger="cpu", host="src", interface="eth1")  # the interval of its recipe is 100 ms
    assert _captured(flow(), captures=(), loggers=(cpu,)) == {"src": 60 * SAMPLE_BYTES}


def test_a_logger_with_a_line_for_each_packet_is_estimated_from_the_number_of_packets() -> None:
    siftr = LoggerPlan(logger="siftr", host="src", interface="eth1")
    packets = 6 * 12_000_000 / (600 * 8) * 1.5
    assert _captured(flow(), captures=(), loggers=(siftr,)) == {"src": int(packets * LINE_BYTES["siftr"])}


def test_the_cost_includes_one_calibration_of_each_path_if_paths_are_calibrated() -> None:
    other = RESOLVED.path.model_copy(update={"rtt_s": 0.5}) if RESOLVED.path else None
    far = RESOLVED.model_copy(update={"path": other})
    plan = plan_of([*(trial("cubic", n) for n in (1, 2)), *(trial("cdg", n, far) for n in (1, 2))])
    known = MeasuredTimes(StepTime(2.0, 7), path=StepTime(20.0, 2))
    cost = estimate_cost(plan, CATALOGUE, known, calibrates=True)
    assert (cost.paths, cost.path_s, cost.total_s) == (2, 40.0, 4 * 6 + 4 * 2 + 40)
    assert estimate_cost(plan, CATALOGUE, known).paths == 0
    only = {one.id for one in plan.trials if one.treatment["cc"] == "cdg"}
    assert estimate_cost(plan, CATALOGUE, known, only, calibrates=True).paths == 1
    assert str(MeasuredTimes().path) == "15 s each (assumed, none measured on this testbed yet)"


def test_parts_with_the_same_path_share_its_calibration() -> None:
    plan = plan_of([trial("cubic"), trial("cdg", part="again")])
    assert estimate_cost(plan, CATALOGUE, calibrates=True).paths == 1


def test_the_time_of_a_plan_includes_its_reboots() -> None:
    plan = PLAN.model_copy(update={"changes": Changes(reboots=6, boots=3)})
    known = MeasuredTimes(StepTime(2.0, 7), StepTime(90.0, 2))
    cost = estimate_cost(plan, CATALOGUE, known)
    assert (cost.boots, cost.reboot_s, cost.total_s) == (3, 270.0, 132 + 8 + 270)
    assert str(known.boot) == "90 s each (median of 2 measured on this testbed)"
    assert str(MeasuredTimes().boot) == "120 s each (assumed, none measured on this testbed yet)"
    left = estimate_cost(plan, CATALOGUE, known, {one.id for one in LONG})
    assert left.boots == 2
    assert estimate_cost(plan, CATALOGUE, known, ()).boots == 0


def test_trials_wait_once_for_hosts_that_reboot_together() -> None:
    plain, one, other = (), ("txd", "80"), ("txd", "256")
    states = together({"b": [plain, one, one, other], "a": [plain, other, other, other]})[""]
    assert [states.index(state) for state in states] == [0, 1, 1, 3]
    assert [bool(state) for state in states] == [False, True, True, True]
    assert together({"a": [one]}) != together({"b": [one]}), "a reboot of another host alone is another state"
    assert together({}) == {}


def test_testbeds_share_the_time_of_trials_but_not_that_of_reboots() -> None:
    plan = PLAN.model_copy(update={"changes": Changes(reboots=6, boots=3)})
    both = estimate_cost(plan, CATALOGUE, MeasuredTimes(StepTime(2.0, 5), StepTime(90.0)), testbeds=2)
    assert (both.trials, both.traffic_s, both.overhead_s, both.reboot_s) == (4, 132.0, 8.0, 270.0)
    assert both.total_s == (132 + 8) / 2 + 270


def test_repeated_trials_add_the_same_share_of_time_as_in_earlier_campaigns() -> None:
    cost = estimate_cost(PLAN, CATALOGUE, MeasuredTimes(StepTime(2.0, 7), repeats=Repeats(2, 8, 10.0, 40.0)))
    assert (cost.repeats_s, cost.total_s) == (0.25 * 140, 1.25 * 140)
    assert str(cost.times.repeats) == "25% more: 8 earlier trials took 10 attempts"
    assert estimate_cost(PLAN, CATALOGUE).repeats_s == 0


def test_no_more_testbeds_work_in_parallel_than_there_are_trials() -> None:
    assert [parallel_s(120.0, trials, 4) for trials in (1, 3, 8)] == [120.0, 40.0, 30.0]
    assert parallel_s(120.0, 8, 4, longest_s=60.0) == 60.0
    assert parallel_s(0.0, 0, 2) == 0.0


def test_measured_times_are_medians_over_the_journals_of_a_testbeds_campaigns(tmp_path: Path) -> None:
    folder = tmp_path / "x" / "full-1"
    folder.mkdir(parents=True)
    (folder / "plan.json").write_bytes(PLAN.to_json())
    traffic_s = {SHORT[0].id: 6.5, LONG[0].id: 42.0}  # planned: 6 s and 60 s
    with Journal(folder / "journal.jsonl") as journal:
        for number, (id_, seconds) in enumerate(traffic_s.items()):
            if number:  # the second trial was interrupted once after an hour, and failed once
                journal.append("trial-started", -3600.0, id=id_, attempt=1)
                journal.append("campaign-resumed", 0.0)
                cut_off = {"outcome": "interrupted", "verdict": "invalid", "reasons": [], "overhead_s": 0.0}
                journal.append("trial-finished", 0.0, id=id_, **cut_off)
                journal.append("trial-started", 0.0, id=id_, attempt=1)
                failed = {"outcome": "failed", "verdict": "invalid", "reasons": [], "overhead_s": 1.0}
                journal.append("trial-finished", 5.0, id=id_, **failed)
            journal.append("trial-started", 10.0, id=id_, attempt=number + 1)
            journal.append("phase", number, id=id_, phase="traffic", seconds=seconds)
            done = {"outcome": "completed", "verdict": "valid", "reasons": [], "overhead_s": 3.0}
            journal.append("trial-finished", 20.0 + 20 * number, id=id_, **done)
        for seconds in (8.0, 10.0):
            journal.append("path-measured", 9.0, trial=SHORT[0].id, seconds=seconds)
        journal.append("host-rebooted", 9.0, host="src", seconds=70.0)
    known = measured_times(tmp_path, "lab")
    assert known == MeasuredTimes(
        StepTime(3.25, 2), StepTime(70.0, 1), StepTime(9.0, 2), Repeats(1, 2, 5.0, 40.0)
    )
    assert measured_times(tmp_path, "another") == MeasuredTimes()
    assert measured_times(tmp_path, "lab", 26) == known
    assumed = [measured_times(tmp_path, "another", hosts).overhead.seconds for hosts in (2, 3, 26)]
    assert assumed == pytest.approx([2.5, 2.5, 20.8])


def test_overheads_of_a_testbed_are_found_among_newer_campaigns_on_other_testbeds(tmp_path: Path) -> None:
    for number, testbed in enumerate(["lab", *["another"] * 6, "lab,left"]):
        folder = tmp_path / "x" / f"full-{number}"
        folder.mkdir(parents=True)
        (folder / "plan.json").write_bytes(PLAN.model_copy(update={"testbed": testbed}).to_json())
        with Journal(folder / "journal.jsonl") as journal:
            for trial, at in zip(SHORT, ("lab", "left"), strict=True):
                started = {"id": trial.id, "attempt": 1, **({"testbed": at} if "," in testbed else {})}
                journal.append("trial-started", 1.0, **started)
                done = {"outcome": "completed", "verdict": "valid", "reasons": []}
                seconds = 2.0 if at == "left" else float(number)
                journal.append("trial-finished", 2.0, id=trial.id, **done, overhead_s=seconds)
        for file in folder.iterdir():
            os.utime(file, (1000 + number, 1000 + number))
    # The median of three times: 0 s and 2 s in the first campaign, and 7 s in the last one.
    assert measured_times(tmp_path, "lab").overhead == StepTime(2.0, 3)
    assert measured_times(tmp_path, "left").overhead == StepTime(2.0, 1)


def test_measured_times_leave_out_campaigns_that_cannot_be_read(tmp_path: Path) -> None:
    for name in ("whole", "journal", "plan", "event"):
        folder = tmp_path / "x" / f"full-{name}"
        folder.mkdir(parents=True)
        (folder / "plan.json").write_bytes(PLAN.to_json())
        with Journal(folder / "journal.jsonl") as journal:
            journal.append("trial-started", 1.0, id=SHORT[0].id, attempt=1)
            done = {"outcome": "completed", "verdict": "valid", "reasons": [], "overhead_s": 3.0}
            journal.append("trial-finished", 2.0, id=SHORT[0].id, **done)
            if name == "event":
                journal.append("host-rebooted", 3.0, host="src")
    (tmp_path / "x" / "full-journal" / "journal.jsonl").write_text("{}\n\n{}\n")
    (tmp_path / "x" / "full-plan" / "plan.json").write_text('{"schema": 1, "testbed": "lab"}')
    assert measured_times(tmp_path, "lab").overhead == StepTime(3.0, 1)
