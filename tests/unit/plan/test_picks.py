"""Picks of trials: by levels, ids, states and number; unknown names are reported with their option."""

from __future__ import annotations

import pytest

from samovar.errors import DefinitionError, PlanError
from samovar.plan import Pick, Plan
from tests.unit.plans import planned, study

PLAN = planned(
    study(
        "order: {kind: sequential}\nreplicates: 2\n"
        "parts:\n"
        "  long: {factors: {cc: [newreno, cubic, cdg], rwnd: [50KB, 200KB]}}\n"
        "  short: {duration: 10s, factors: {cc: [cubic]}}\n"
    )
)


def names(plan: Plan, pick: Pick, results: dict[str, str] | None = None) -> set[str]:
    """Return the picked ids without their hashes."""
    return {id_.rpartition("-")[0] for id_ in pick.of(plan, results).ids}


@pytest.mark.parametrize(
    ("pick", "expected"),
    [
        (Pick(only=("cc=cdg rwnd=50KB",)), {"long-cdg-50KB-r1", "long-cdg-50KB-r2"}),
        (Pick(only=("cc=cdg", "rwnd=50KB", "replicate=2")), {"long-cdg-50KB-r2"}),
        (Pick(only=("part=short",)), {"short-cubic-r1", "short-cubic-r2"}),
        (
            Pick(only=("cc=cubic,cdg replicate=1",)),
            {f"long-{cc}-{rwnd}-r1" for cc in ("cubic", "cdg") for rwnd in ("50KB", "200KB")}
            | {"short-cubic-r1"},
        ),
        (Pick(only=("rwnd=200KB",), first=1), {"long-newreno-200KB-r1"}),
        (Pick(trials=("short-cubic-r1", "long-cdg-50KB-r2")), {"short-cubic-r1", "long-cdg-50KB-r2"}),
        (Pick(trials=("short-cubic-r1", "long-cdg-50KB-r2"), only=("cc=cdg",)), {"long-cdg-50KB-r2"}),
    ],
)
def test_a_pick_selects_the_trials_that_match_all_of_its_options(pick: Pick, expected: set[str]) -> None:
    assert names(PLAN, pick) == expected


def test_picked_trials_keep_the_order_of_the_plan() -> None:
    picked = Pick(trials=tuple(reversed(PLAN.ids[3:6]))).of(PLAN)
    assert picked.ids == tuple(PLAN.ids[3:6])


def test_trials_with_the_given_states_are_picked_to_run_again() -> None:
    results = dict.fromkeys(PLAN.ids, "valid") | {PLAN.ids[0]: "suspect", PLAN.ids[7]: "failed"}
    again = Pick(again=("suspect", "failed"))
    assert again.of(PLAN, results).ids == (PLAN.ids[0], PLAN.ids[7])
    assert again.of(PLAN, results).again
    assert Pick(again=("invalid",)).of(PLAN, results).ids == ()


@pytest.mark.parametrize(
    ("pick", "message"),
    [
        (Pick(only=("cc=cubi",)), "--only cc=cubi: unknown level of cc 'cubi'; did you mean 'cubic'? known: cdg, cubic, newreno"),
        (Pick(only=("cc=cubic,",)), "--only cc=cubic,: unknown level of cc ''; known: cdg, cubic, newreno"),
        (Pick(only=("rwn=50KB",)), "--only rwn=50KB: unknown factor 'rwn'; did you mean 'rwnd'? known: cc, part, replicate, rwnd"),
        (Pick(only=("cubic",)), "--only cubic: `cubic` is not FACTOR=LEVEL, such as rwnd=50KB"),
        (Pick(only=("",)), "--only '': it is empty; write FACTOR=LEVEL, such as cc=cubic"),
        (Pick(only=("cc='cubic",)), "no closing quotation; write FACTOR=LEVEL, such as cc=cubic"),
        (Pick(trials=("long-cdg",)), "--trial long-cdg: the ids of 4 trials begin with 'long-cdg'; give one of them in full"),
        (Pick(trials=("nowhere",)), "--trial nowhere: unknown trial 'nowhere'; "),
    ],
)  # fmt: skip
def test_an_invalid_pick_is_reported_with_its_option_and_the_reason(pick: Pick, message: str) -> None:
    with pytest.raises(DefinitionError) as error:
        pick.of(PLAN)
    assert message in str(error.value)


def test_options_that_leave_no_trial_are_an_error() -> None:
    with pytest.raises(PlanError, match="no trial of study matches all of --only cc=cdg --only part=short; "):
        Pick(only=("cc=cdg", "part=short")).of(PLAN)


def test_a_pick_has_a_short_text_and_the_options_that_repeat_it() -> None:
    pick = Pick(only=("cc=cubic  rwnd=50KB",), trials=("a", "b", "c", "d"), first=2, again=("failed",))
    assert str(pick) == "cc=cubic rwnd=50KB, a, b, c and 1 more trial, again failed, first 2"
    options = " --only 'cc=cubic  rwnd=50KB' --trial a --trial b --trial c --trial d --again failed --first 2"
    assert pick.options == options
    assert not Pick()
