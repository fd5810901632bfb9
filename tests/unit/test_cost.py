"""What a plan costs, and where the figures are from."""

from __future__ import annotations

from array import array

import pytest

from samovar.plan import estimate_cost
from samovar.plan.changes import Together
from samovar.plan.cost import BootTime, Known, Overhead, host_bytes, kept_bytes, shared, shared_out_s
from samovar.plan.plan import Changes
from tests.unit.plan_values import lasting, plan_of, trial
from tests.unit.trials import RESOLVED

SHORT, LONG = [trial("cubic", n) for n in (1, 2)], [trial("cdg", n, lasting(60)) for n in (1, 2)]
PLAN = plan_of([*SHORT, *LONG])


def test_time_is_traffic_and_what_a_trial_takes_beyond_it() -> None:
    cost = estimate_cost(PLAN, Known(Overhead(2.0, 7)))
    assert (cost.trials, cost.traffic_s, cost.overhead_s) == (4, 132.0, 8.0)
    assert cost.hours == pytest.approx(140 / 3600)


def test_the_time_beyond_traffic_says_where_it_is_from() -> None:
    assert str(Overhead(4.21, 38)) == "4.2 s a trial (median of 38 measured on this testbed)"
    assert str(Overhead()) == "2.5 s a trial (assumed, none measured on this testbed yet)"


def test_what_is_left_costs_only_what_is_left() -> None:
    left = estimate_cost(PLAN, Known(Overhead(2.0, 7)), {one.id for one in LONG})
    assert (left.trials, left.traffic_s) == (2, 120.0)
    assert estimate_cost(PLAN, None, ()).trials == 0


def test_a_host_holds_one_trial_at_a_time_and_this_machine_all_of_them() -> None:
    cost = estimate_cost(PLAN)
    assert cost.host_bytes == host_bytes(lasting(60))
    assert cost.controller_bytes == 2 * kept_bytes(RESOLVED) + 2 * kept_bytes(lasting(60))


def test_a_host_is_charged_with_its_own_captures_compressed_and_its_samples() -> None:
    packets = 6 * 12_000_000 / (600 * 8) * 1.5
    capture = packets * (96 + 16) / 4
    assert host_bytes(RESOLVED) == {
        "src": int(capture + 6 / 0.01 * 2 * 200),
        "dst": int(capture),
        "rtr": int(6 / 0.005 * 2 * 200),
    }


def test_reboots_take_hours_too() -> None:
    plan = PLAN.model_copy(update={"changes": Changes(reboots=6, boots=3)})
    known = Known(Overhead(2.0, 7), BootTime(90.0, 2))
    cost = estimate_cost(plan, known)
    assert (cost.boots, cost.reboot_s, cost.total_s) == (3, 270.0, 132 + 8 + 270)
    assert str(known.boot) == "90 s each (median of 2 measured on this testbed)"
    assert str(BootTime()) == "120 s each (assumed, none measured on this testbed yet)"
    left = estimate_cost(plan, known, {one.id for one in LONG})
    assert left.boots == 2
    assert estimate_cost(plan, known, ()).boots == 0


def test_hosts_that_reboot_at_the_same_time_are_waited_for_once() -> None:
    together = Together()
    column = together.of({"b": array("I", [0, 1, 1, 2]), "a": array("I", [0, 3, 3, 3])})[""]
    assert list(column) == [0, 1, 1, 2]
    assert list(together.of({"a": array("I", [3, 0])})[""]) == [3, 0], "another host alone is another state"
    assert together.of({}) == {}


def test_testbeds_that_share_trials_take_their_share_of_the_time_and_reboot_each_by_itself() -> None:
    plan = PLAN.model_copy(update={"changes": Changes(reboots=6, boots=3)})
    each = [estimate_cost(plan, Known(Overhead(seconds, 5), BootTime(90.0))) for seconds in (1.0, 3.0)]
    both = shared(each)
    assert (both.trials, both.traffic_s, both.overhead_s, both.reboot_s) == (4, 132.0, 8.0, 270.0)
    assert both.total_s == (132 + 8) / 2 + 270
    assert shared(each[:1]) == each[0]


def test_work_is_shared_out_no_further_than_there_are_trials() -> None:
    assert [shared_out_s(120.0, trials, 4) for trials in (1, 3, 8)] == [120.0, 40.0, 30.0]
    assert shared_out_s(120.0, 8, 4, longest_s=60.0) == 60.0
    assert shared_out_s(0.0, 0, 2) == 0.0
