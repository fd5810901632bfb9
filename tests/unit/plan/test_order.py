"""The order of trials: settings that need a reboot or a reset to change vary slowest, as whole plots."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import groupby, pairwise, permutations, product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from samovar.experiment import load_testbed
from samovar.experiment.keys.testbed_file import Testbed
from samovar.plan import Plan
from samovar.plan.order import nested, ordered
from tests.unit.plans import CATALOGUE, LAB, ROOT, planned, study

OLD = load_testbed(ROOT / "hosts" / "example-freebsd-11.yaml")
NEW = load_testbed(ROOT / "hosts" / "example-freebsd.yaml")
TXD = "factors: {cc: [newreno, cubic, cdg], txd: [80, 256], rwnd: [50KB, 1MB]}\nreplicates: 4\n"
LAST_REBOOT = 1
"""The number of reboots at the end, which restore the value with which the host was booted before."""


def changes(plan: Plan, factor: str) -> int:
    """Count the changes of a factor's level from trial to trial, including its first setting."""
    return sum(1 for _ in groupby(trial.treatment[factor] for trial in plan.trials))


def study_in_order(name: str) -> str:
    return study(TXD + f"order: {{kind: {name}, seed: 3}}\n")


def test_a_loader_tunable_costs_a_reboot_and_its_levels_are_whole_plots() -> None:
    plan = planned(study_in_order("blocked"), OLD, CATALOGUE)
    assert plan.changes.reboots == changes(plan, "txd") + LAST_REBOOT == 2 + LAST_REBOOT
    assert (plan.changes.naive_reboots, plan.changes.resets) == (4 * 3 * 2 + LAST_REBOOT, 0)


def test_the_same_factor_on_a_newer_release_costs_interface_resets() -> None:
    plan = planned(study_in_order("blocked"), NEW, CATALOGUE)
    assert (plan.changes.reboots, plan.changes.naive_reboots) == (0, 0)
    assert plan.changes.resets == changes(plan, "txd") < plan.changes.naive_resets


@pytest.mark.parametrize(("name", "reboots"), [("sequential", 2), ("shuffled", 2), ("blocked", 2)])
def test_every_order_reboots_once_for_each_level_that_needs_a_reboot(name: str, reboots: int) -> None:
    assert planned(study_in_order(name), OLD, CATALOGUE).changes.reboots == reboots + LAST_REBOOT


def test_a_block_contains_each_treatment_of_its_whole_plot_once_and_in_a_random_order() -> None:
    plan = planned(study_in_order("blocked"), OLD, CATALOGUE)
    by_plot = groupby(plan.trials, key=lambda one: (one.treatment["txd"], one.block))
    blocks = [list(block) for _, block in by_plot]
    assert len(blocks) == 2 * 4
    for number, block in enumerate(blocks):
        assert {trial.block for trial in block} == {number % 4 + 1} == {trial.replicate for trial in block}
        assert len({tuple(trial.treatment.values()) for trial in block}) == 6
    orders = [[(one.treatment["cc"], one.treatment["rwnd"]) for one in block] for block in blocks]
    assert len(set(map(tuple, orders))) == len(orders)


def test_levels_that_need_an_interface_reset_occur_together_in_each_block() -> None:
    plan = planned(study_in_order("blocked"), NEW, CATALOGUE)
    for number in range(4):
        block = plan.trials[12 * number : 12 * number + 12]
        assert {trial.block for trial in block} == {number + 1}
        assert len({tuple(trial.treatment.values()) for trial in block}) == 12
        assert sum(1 for _ in groupby(trial.treatment["txd"] for trial in block)) == 2


def test_the_seed_determines_the_order_of_whole_plots() -> None:
    firsts = set()
    for seed in range(8):
        text = study(TXD + f"order: {{kind: blocked, seed: {seed}}}\n")
        firsts.add(planned(text, OLD, CATALOGUE).trials[0].treatment["txd"])
    assert firsts == {"80", "256"}


@pytest.mark.parametrize("testbed", [OLD, NEW])
def test_more_replicates_append_blocks_to_each_whole_plot_and_keep_the_existing_blocks(
    testbed: Testbed,
) -> None:
    few, many = (
        planned(study_in_order("blocked").replace("replicates: 4", f"replicates: {n}"), testbed, CATALOGUE)
        for n in (4, 6)
    )
    existing = [one for one in many.trials if one.replicate <= 4]
    assert [(one.id, one.block) for one in existing] == [(one.id, one.block) for one in few.trials]
    assert many.changes.reboots == few.changes.reboots


def test_a_factor_that_resets_all_hosts_varies_slower_than_a_factor_that_resets_one_host() -> None:
    for factors in (
        "mtu: [600, 1200, 1500], txd: [80, 128, 256]",
        "txd: [80, 128, 256], mtu: [600, 1200, 1500]",
    ):
        text = study(f"factors: {{{factors}}}\nreplicates: 2\norder: {{kind: blocked, seed: 3}}\n")
        plan = planned(text, NEW, CATALOGUE)
        for block in (plan.trials[:9], plan.trials[9:]):
            assert sum(1 for _ in groupby(trial.treatment["mtu"] for trial in block)) == 3
        assert plan.changes.resets <= 2 * (9 + 3 + 3), (
            "in each block, 9 resets of the sender and 3 of each other host"
        )
        assert plan.changes.resets <= plan.changes.naive_resets


def _count_host_changes(plots: Iterable[tuple[int, ...]], hosts: Sequence[Sequence[int]]) -> int:
    """Count the changes of hosts from each plot to the next, by the first treatment of each plot."""
    order = [plot[0] for plot in plots]
    return sum(column[one] != column[other] for one, other in pairwise(order) for column in hosts)


def _crossed(sizes: Sequence[int], changes: Sequence[Sequence[bool]]) -> list[list[int]]:
    """Return each host's state in every combination of levels; the state depends only on the factors that change the host."""
    cells = list(product(*map(range, sizes)))
    return [[sum(9**f * cell[f] for f, one in enumerate(own) if one) for cell in cells] for own in changes]


@pytest.mark.parametrize("sizes", [(2, 2), (2, 3), (3, 2)])
def test_nested_plots_of_crossed_factors_change_at_most_sixty_percent_more_hosts_than_the_best_order(
    sizes: tuple[int, int],
) -> None:
    """The best order goes through the states back and forth; nested plots begin with the same state each time."""
    for changes in product(product((False, True), repeat=2), repeat=3):
        hosts = _crossed(sizes, changes)
        columns = nested(hosts)
        slots = ordered("sequential", 1, "main", len(hosts[0]), 1, columns)
        changed_hosts = _count_host_changes(((slot.treatment,) for slot in slots), hosts)
        distinct = {states: number for number, states in enumerate(zip(*hosts, strict=True))}
        best = min(
            _count_host_changes(order, hosts) for order in permutations((one,) for one in distinct.values())
        )
        assert best <= changed_hosts <= 1.6 * best, changes


@pytest.mark.parametrize("name", ["shuffled", "blocked"])
def test_every_order_of_treatments_is_as_likely_as_any_other(name: str) -> None:
    seeds = 3000
    found = Counter(
        tuple(slot.treatment for slot in ordered(name, seed, "main", 3, 1)) for seed in range(seeds)
    )
    assert set(found) == set(permutations(range(3)))
    expected = seeds / 6
    chi_squared = sum((number - expected) ** 2 / expected for number in found.values())
    assert chi_squared < 20.5  # exceeded with a probability of 0.1 % with 5 degrees of freedom


def test_every_order_of_whole_plots_and_of_plots_within_is_as_likely_as_any_other() -> None:
    reboots, resets = [0, 0, 0, 0, 1, 1, 1, 1], [0, 0, 1, 1, 0, 0, 1, 1]
    seeds, plots = 3000, ([reboots], [resets])
    found = Counter(
        tuple(slot.treatment for slot in ordered("blocked", seed, "main", 8, 1, *plots))
        for seed in range(seeds)
    )
    assert len(found) == 2 * 2**2 * 2**4, (
        "two whole plots, two plots in each, two treatments in each of these"
    )
    expected = seeds / len(found)
    chi_squared = sum((number - expected) ** 2 / expected for number in found.values())
    assert chi_squared < 181.9  # exceeded with a probability of 0.1 % with 127 degrees of freedom


def test_settings_that_need_neither_reboot_nor_reset_make_no_plots() -> None:
    text = study("factors: {cc: [cubic, cdg], rwnd: [50KB, 1MB]}\nreplicates: 3\n")
    plan = planned(text, LAB, CATALOGUE)
    assert (plan.changes.reboots, plan.changes.resets, plan.changes.naive_resets) == (0, 0, 0)
    assert [trial.id for trial in plan.trials] == [trial.id for trial in planned(text, LAB).trials]


def test_a_host_with_equal_settings_in_two_parts_is_not_rebooted_between_them() -> None:
    parts = "parts:\n  a: {factors: {txd: [256], rwnd: [50KB]}}\n  b: {factors: {txd: [256], rwnd: [1MB]}}\n"
    assert planned(study(parts), OLD, CATALOGUE).changes.reboots == 1 + LAST_REBOOT
    other = parts.replace("b: {factors: {txd: [256]", "b: {factors: {txd: [80]")
    assert planned(study(other), OLD, CATALOGUE).changes.reboots == 2 + LAST_REBOOT


states = st.lists(st.tuples(st.integers(0, 2), st.integers(0, 2)), min_size=1, max_size=24)


@given(states, st.integers(1, 4), st.sampled_from(["sequential", "shuffled", "blocked"]))
def test_plots_stay_together_and_contain_every_trial(
    costly: list[tuple[int, int]], replicates: int, name: str
) -> None:
    plots = [[reboot for reboot, _ in costly]], [[reset for _, reset in costly]]
    slots = ordered(name, 1, "main", len(costly), replicates, *plots)
    every = {(one, replicate) for one in range(len(costly)) for replicate in range(1, replicates + 1)}
    assert {(slot.treatment, slot.replicate) for slot in slots} == every
    assert len(slots) == len(every)
    whole_plots = [key for key, _ in groupby(costly[slot.treatment][0] for slot in slots)]
    assert len(whole_plots) == len(set(whole_plots))
    for _, block in groupby(slots, key=lambda slot: (costly[slot.treatment][0], slot.block)):
        inside = [costly[slot.treatment] for slot in block]
        inner_plots = [key for key, _ in groupby(inside)]
        assert len(inner_plots) == len(set(inner_plots))
