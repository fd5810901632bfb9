"""Random sizes, durations and arrivals of flows: their distributions and means, and the planned flows."""

from __future__ import annotations

from itertools import pairwise
from statistics import fmean

import pytest

from samovar.errors import DefinitionError
from samovar.experiment import Distribution, Testbed
from samovar.experiment.keys import value_types
from samovar.experiment.values import read_distribution
from samovar.plan import FlowPlan
from samovar.plan.flows import RandomStream, poisson_s
from tests.unit.plans import BULK, DUMBBELL, planned, study

SHORT = "{flow: short, generator: nuttcp, from: senders, to: receivers, "
POINTS = 200_000
DISTRIBUTIONS = [
    Distribution("uniform", (4e3, 1e6)),
    Distribution("exponential", (1e5,)),
]


@pytest.mark.parametrize("distribution", DISTRIBUTIONS, ids=str)
def test_the_mean_of_a_distribution_equals_the_mean_of_its_draws(distribution: Distribution) -> None:
    draws = [distribution.quantile((index + 0.5) / POINTS) for index in range(POINTS)]
    assert fmean(draws) == pytest.approx(distribution.mean, rel=2e-3)
    assert draws == sorted(draws)


@pytest.mark.parametrize(
    ("distribution", "median"),
    [
        (Distribution("uniform", (0.0, 5.0)), 2.5),
        (Distribution("exponential", (1e5,)), 69314.718),
    ],
    ids=str,
)
def test_half_of_all_draws_are_below_the_median(distribution: Distribution, median: float) -> None:
    assert distribution.quantile(0.5) == pytest.approx(median)


def test_the_smallest_and_the_largest_draw_of_a_distribution_are_finite() -> None:
    """The random numbers are multiples of 2**-53, at least 0 and below 1."""
    for one in DISTRIBUTIONS:
        assert 0.0 <= one.quantile(0.0) <= one.quantile(1.0 - 2.0**-53) < float("inf")


def test_a_distribution_is_read_with_the_units_of_its_key() -> None:
    found = read_distribution({"exponential": "4KB"}, value_types.SIZE_OR_FORMULA.parse)
    assert found == Distribution("exponential", (4000,))


def flows(text: str, testbed: Testbed = DUMBBELL, trial: int = 0) -> tuple[FlowPlan, ...]:
    return planned(text, testbed).trials[trial].resolved.flows


def sizes(size: str, more: str = "") -> list[int]:
    found = flows(
        study(more, f"traffic: [{SHORT}size: {size}, arrivals: {{poisson: 20/s, count: 2000}}}}]\n")
    )
    return [flow.size_bytes or 0 for flow in found]


def test_sizes_are_drawn_for_each_flow_and_have_the_mean_of_their_distribution() -> None:
    found = sizes("{exponential: 100KB}")
    assert len(set(found)) > 1900
    assert fmean(found) == pytest.approx(100_000, rel=0.1)


def test_random_sizes_scale_with_the_mean_because_the_random_numbers_are_the_same() -> None:
    once, thrice = sizes("{exponential: 100KB}"), sizes("{exponential: 300KB}")
    assert all(abs(large - 3 * small) <= 2 for small, large in zip(once, thrice, strict=True))


def test_random_durations_are_drawn_for_each_flow() -> None:
    traffic = f"traffic: [{SHORT}duration: {{uniform: [1s, 5s]}}, count: 50}}]\n"
    durations_s = {flow.duration_s or 0.0 for flow in flows(study("", traffic))}
    assert len(durations_s) > 40
    assert all(1.0 <= one <= 5.0 for one in durations_s)


def test_poisson_arrivals_have_the_given_rate_and_exponential_gaps() -> None:
    instants = poisson_s(RandomStream(1, "main", "short", 1), 5.0, 1000.0, None)
    assert len(instants) == pytest.approx(5000, rel=0.05)
    gaps = [late - early for early, late in pairwise(instants)]
    longer = sum(gap > 0.2 for gap in gaps) / len(gaps)
    assert longer == pytest.approx(0.368, abs=0.02)  # 1/e of exponential gaps are longer than their mean


def test_arrivals_begin_at_the_start_of_their_flow_and_end_at_a_time_of_the_trial() -> None:
    base = f"traffic: [{SHORT}size: 10KB, arrivals: {{poisson: 2/s, until: 20s}}"
    early, late = flows(study("", base + "}]\n")), flows(study("", base + ", start: 5s}]\n"))
    moved = [round(flow.start_s + 5.0, 6) for flow in early]
    assert [flow.start_s for flow in late] == [start_s for start_s in moved if start_s < 20.0]


def test_no_arrival_is_planned_after_the_end_of_the_traffic() -> None:
    text = study(
        "stop: {after: 8s}\n", f"traffic: [{SHORT}size: 10KB, arrivals: {{poisson: 2/s, until: 20s}}}}]\n"
    )
    assert 0 < max(flow.start_s for flow in flows(text)) < 8.0


def test_the_rate_of_arrivals_can_be_a_formula_of_the_path_s_rate_and_the_mean_size() -> None:
    """Half of 8 Mbit/s is 0.5 MB/s, the load of 5 flows per second with a mean size of 100 KB; they arrive for 400 s."""
    size = "{exponential: 100KB}"
    factor = "factors: {traffic.short.arrivals.poisson: [50% * RATE / traffic.short.size]}\n"
    traffic = f"traffic: [{SHORT}size: {size}, arrivals: {{poisson: 1/s, until: 400s}}}}]\n"
    found = flows(study(factor, traffic))
    assert len(found) == pytest.approx(2000, rel=0.1)
    assert sum(flow.size_bytes or 0 for flow in found) == pytest.approx(0.5 * 1e6 * 400, rel=0.1)


def test_arrivals_and_random_sizes_can_be_factors() -> None:
    factors = (
        "factors: {traffic.short.arrivals.count: [3, 5], "
        "traffic.short.size: [10KB, {exponential: 10KB, label: random}, {uniform: [1KB, 1 BDP]}]}\n"
    )
    plan = planned(
        study(factors, f"traffic: [{SHORT}size: 1KB, arrivals: {{poisson: 2/s, until: 60s}}}}]\n"), DUMBBELL
    )
    found = {tuple(trial.treatment.values()): trial.resolved.flows for trial in plan.trials}
    assert {len(one) for (count, _), one in found.items() if count == "3"} == {3}
    assert {len(one) for (count, _), one in found.items() if count == "5"} == {5}
    assert {flow.size_bytes for flow in found["5", "10KB"]} == {10_000}
    assert len({flow.size_bytes for flow in found["5", "random"]}) == 5
    assert all(1000 <= (flow.size_bytes or 0) < 10_000 for flow in found["5", "uniform-1KB-1 BDP"])


def test_bounds_that_are_formulas_are_checked_when_they_are_evaluated() -> None:
    assert all(10_000 <= size < 20_000 for size in sizes("{uniform: [1 BDP, 2 BDP]}"))
    with pytest.raises(
        DefinitionError,
        match=r"study.yaml:5:91: main: flow short: size: the first bound must be below the second",
    ):
        sizes("{uniform: [2 BDP, 1 BDP]}")


def test_the_end_of_all_traffic_can_be_a_factor() -> None:
    two = BULK.replace("]", ", {flow: other, generator: nuttcp, from: sender, to: receiver, duration: 5s}]")
    plan = planned(study("factors: {stop.after: [10s, 20s, 400 RTT]}\norder: {kind: sequential}\n", two))
    assert [trial.resolved.duration_s for trial in plan.trials] == [10.0, 20.0, 4.0]


def test_a_trial_without_flows_is_refused_with_its_levels() -> None:
    with pytest.raises(
        DefinitionError,
        match=r"main: no flow where traffic.bulk.count is 0; every trial needs at least one flow",
    ):
        planned(study("factors: {traffic.bulk.count: [0, 1]}\n"))
