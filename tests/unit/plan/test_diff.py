"""A plan compared with a campaign: results that still apply, trials to run, stale results, orphans."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest

from samovar.plan import Plan
from samovar.plan.diff import compare, differences
from tests.unit.plan_values import lasting, plan_of, shared_trials, trial
from tests.unit.trials import RESOLVED


def _crossed(labels: Sequence[str], replicates: int, duration_s: float = 6.0) -> Plan:
    return plan_of(
        trial(label, replicate, lasting(duration_s))
        for replicate in range(1, replicates + 1)
        for label in labels
    )


def _done(plan: Plan) -> dict[str, str]:
    return {one.id: "done" for one in plan.trials}


FIRST = _crossed(["cubic", "cdg"], 2)


def test_all_results_of_an_unchanged_plan_still_apply() -> None:
    found = compare(FIRST, FIRST, _done(FIRST))
    assert (found.stands, found.runs, found.stale, found.orphans) == (tuple(_done(FIRST)), {}, (), ())


def test_additional_replicates_are_new_and_the_results_of_the_others_still_apply() -> None:
    found = compare(_crossed(["cubic", "cdg"], 3), FIRST, _done(FIRST))
    assert found.runs == {"cubic-r3-6": "new", "cdg-r3-6": "new"}
    assert set(found.stands) == set(_done(FIRST))


def test_an_edit_makes_the_affected_results_stale_and_lists_the_changed_values() -> None:
    found = compare(_crossed(["cubic", "cdg"], 2, 12.0), FIRST, _done(FIRST))
    (changed,) = found.stale
    assert changed.changes == ("duration_s 6 -> 12",)
    assert changed.results == tuple(_done(FIRST))
    assert set(found.runs.values()) == {"stale"}
    assert found.counts == {"stale": 4}
    assert (found.stands, found.orphans) == ((), ())


def test_after_an_edit_trials_without_a_result_are_new_and_not_stale() -> None:
    found = compare(_crossed(["cubic", "cdg"], 2, 12.0), FIRST, {"cubic-r1-6": "done", "cdg-r1-6": "failed"})
    assert found.runs == {
        "cubic-r1-12": "stale",
        "cdg-r1-12": "new",
        "cubic-r2-12": "new",
        "cdg-r2-12": "new",
    }
    assert [changed.results for changed in found.stale] == [("cubic-r1-6",)]


def test_results_of_a_removed_level_are_orphans_and_trials_of_an_added_level_run() -> None:
    found = compare(_crossed(["cubic", "vegas"], 2), FIRST, _done(FIRST))
    assert found.orphans == ("cdg-r1-6", "cdg-r2-6")
    assert found.runs == {"vegas-r1-6": "new", "vegas-r2-6": "new"}
    assert found.stale == ()


def test_new_trials_that_equal_an_orphan_except_for_names_are_counted_as_renamed() -> None:
    renamed = plan_of(
        [trial(label, replicate, part="other") for replicate in (1, 2, 3) for label in ("cubic", "cdg")]
    )
    before = _crossed(["cubic", "cdg"], 2)
    found = compare(_with_ids(renamed), before, _done(before))
    assert (len(found.orphans), len(found.runs), found.renamed) == (4, 6, 4)
    longer = plan_of([trial("cubic", 1, lasting(9), part="other")])
    assert compare(_with_ids(longer), before, _done(before)).renamed == 0


def _with_ids(plan: Plan) -> Plan:
    """Return the plan with `other-` before each trial's id; `other` is the name of the part."""
    trials = [replace(one, id=f"other-{one.id}") for one in plan.trials]
    return plan.model_copy(update={"trials": shared_trials(trials)})


def test_different_values_are_written_with_enough_digits_to_differ() -> None:
    found = list(differences({"loss": 0.0123456789}, {"loss": 0.0123456788}))
    assert found == ["loss 0.0123456789 -> 0.0123456788"]
    assert list(differences({"s": 0.1}, {"s": 1_000_000.0})) == ["s 0.1 -> 1000000"]


def test_trials_that_failed_run_again_each_with_its_reason() -> None:
    states = {"cubic-r1-6": "done", "cdg-r1-6": "failed", "cubic-r2-6": "invalid", "cdg-r2-6": "interrupted"}
    found = compare(FIRST, FIRST, states)
    assert found.runs == {"cdg-r1-6": "failed", "cubic-r2-6": "invalid", "cdg-r2-6": "interrupted"}


def test_results_apply_again_after_an_edit_is_undone() -> None:
    edited = _crossed(["cubic", "cdg"], 2, 12.0)
    found = compare(FIRST, edited, _done(FIRST) | _done(edited))
    assert found.runs == {}
    assert set(found.stands) == set(_done(FIRST))
    assert {id_ for changed in found.stale for id_ in changed.results} == set(_done(edited))


def test_results_that_are_in_neither_plan_are_orphans() -> None:
    found = compare(FIRST, FIRST, {**_done(FIRST), "cubic-r1-99": "done", "cdg-r1-98": "failed"})
    assert found.orphans == ("cubic-r1-99",)


def test_each_result_and_each_trial_is_in_exactly_one_category() -> None:
    new = _crossed(["cubic", "vegas"], 3, 12.0)
    results = {**_done(FIRST), "cubic-r3-12": "done"}
    found = compare(new, FIRST, results)
    stale = [id_ for changed in found.stale for id_ in changed.results]
    assert sorted([*found.stands, *stale, *found.orphans]) == sorted(results)
    assert sorted([*found.stands, *found.runs]) == sorted(new.ids)


CHANGED_PATH = RESOLVED.path.model_copy(  # type: ignore[union-attr]
    update={"down": RESOLVED.path.down.model_copy(update={"buffer_packets": 640, "aqm": "codel"})}  # type: ignore[union-attr]
)


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ({"path": CHANGED_PATH}, ["path.down.aqm pfifo -> codel", "path.down.buffer_packets 137 -> 640"]),
        ({"path": None}, ["path removed"]),
        ({"flows": RESOLVED.flows[:1]}, ["flows.late removed"]),
        ({"mtu_bytes": None}, ["mtu_bytes 600 -> nothing"]),
        ({"captures": ()}, ["captures.src-eth1 removed", "captures.dst-eth1 removed"]),
        (
            {"captures": tuple(one.model_copy(update={"snaplen_bytes": 68}) for one in RESOLVED.captures)},
            ["captures.src-eth1.snaplen_bytes 96 -> 68", "captures.dst-eth1.snaplen_bytes 96 -> 68"],
        ),
        (
            {"loggers": (RESOLVED.loggers[0], RESOLVED.loggers[1].model_copy(update={"interval_s": 0.1}))},
            ["loggers.queue-rtr-eth2.interval_s 0.005 -> 0.1"],
        ),
    ],
)
def test_a_difference_names_its_key_and_both_values(change: dict[str, object], expected: list[str]) -> None:
    after = RESOLVED.model_copy(update=change)
    found = list(differences(RESOLVED.as_json(), after.as_json()))
    assert len(found) == len(expected)
    assert all(one.startswith(start) for one, start in zip(found, expected, strict=True)), found


def test_equal_values_have_no_differences() -> None:
    assert list(differences(RESOLVED.as_json(), RESOLVED.model_copy().as_json())) == []
