"""Offset and drift of clocks are bounded by readings; an offset within its error is not corrected."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from samovar.campaign.clocks import (
    DRIFT,
    WANDER_PPM,
    ClockOffset,
    Clocks,
    Drift,
    Reading,
    drift_of,
    estimate,
    reading_of,
)
from samovar.errors import TestbedError
from samovar.hosts import ScriptResult

DONE = ScriptResult(
    "src", "clock", "now_ns", 0, b"1800000000250000000\n", b"", t_start_s=1_799_999_999.9, seconds=0.2
)


def _reading(offset_s: float, error_s: float, t_s: float = 0.0) -> Reading:
    return Reading(t_s, offset_s, error_s, 2 * error_s)


def test_a_clock_is_compared_with_the_middle_of_its_reading_with_half_the_duration_as_error() -> None:
    reading = reading_of(DONE)
    assert reading.offset_s == pytest.approx(0.25, abs=1e-6)
    assert reading.error_s == pytest.approx(0.1)


@pytest.mark.parametrize("output", [b"", b"1800000000N\n", b"date: illegal\n"])
def test_an_output_that_is_not_a_time_is_refused(output: bytes) -> None:
    with pytest.raises(TestbedError, match=r"src: clock: .*expected nanoseconds since the epoch"):
        reading_of(replace(DONE, stdout=output))


def test_two_readings_together_bound_the_offset_more_closely_than_each_alone() -> None:
    offset = estimate("src", [_reading(0.002, 0.003), _reading(0.006, 0.003)], 0.0)
    assert offset.offset_s == pytest.approx(0.004)
    assert offset.error_s == pytest.approx(0.001)
    assert not offset.stepped


def test_the_error_of_a_reading_grows_with_its_age() -> None:
    readings = [_reading(0.0, 0.001), _reading(0.0, 0.005, t_s=100.0)]
    assert estimate("src", readings, 100.0).error_s == pytest.approx(0.005)
    assert estimate("src", readings, 20.0).error_s == pytest.approx(0.001 + 20 * DRIFT)


def test_a_latest_reading_that_contradicts_the_others_is_a_step_and_counts_alone() -> None:
    offset = estimate("src", [_reading(0.0, 0.001), _reading(1.0, 0.002)], 0.0)
    assert offset.stepped
    assert offset.offset_s == pytest.approx(1.0)


def test_a_step_is_reported_once_and_earlier_readings_no_longer_count() -> None:
    before = [_reading(0.0, 0.001, t_s=float(at)) for at in range(5)]
    after = [_reading(1.0, 0.002, t_s=5.0), _reading(1.001, 0.002, t_s=6.0)]
    assert estimate("src", [*before, after[0]], 5.0).stepped
    offset = estimate("src", [*before, *after], 6.0)
    assert not offset.stepped
    assert offset.offset_s == pytest.approx(1.0005, abs=1e-4)


def test_a_clock_that_stepped_is_read_again_before_the_next_trial() -> None:
    readings = [_reading(0.0, 0.5, t_s=0.0), _reading(2.0, 0.5, t_s=1.0)]
    assert Clocks({"src": readings})._is_stale("src", 1.0)
    assert not Clocks({"src": [*readings, _reading(2.0, 0.5, t_s=2.0)]})._is_stale("src", 2.0)


def test_an_offset_within_its_error_is_not_corrected() -> None:
    assert estimate("src", [_reading(0.002, 0.003)], 0.0).correction_s == 0.0
    assert estimate("src", [_reading(-0.010, 0.003)], 0.0).correction_s == pytest.approx(-0.010)


def test_the_longest_duration_is_that_of_the_latest_readings_and_zero_without_readings() -> None:
    assert Clocks().longest_s() == 0.0
    assert Clocks({"src": [_reading(0.0, 0.01), _reading(0.0, 0.02)]}).longest_s() == 0.04


def _readings(*points: tuple[float, float, float]) -> list[Reading]:
    """Make readings of (time in s, offset in ms, error in ms)."""
    return [_reading(offset_ms / 1e3, error_ms / 1e3, t_s) for t_s, offset_ms, error_ms in points]


@pytest.mark.parametrize(
    ("points", "low_ppm", "high_ppm"),
    [
        # With a step before or after the second reading, the other interval shows (10 ± 2) ms in 100 s. The rate may wander by 5 ppm.
        # The 2 ms also make the length of the interval uncertain: 8 ms in 100.002 s, or 12 ms in 99.998 s.
        ([(0, 0, 1), (100, 10, 1), (200, 20, 1)], 74.9984, 125.0024),
        # The first interval shows (5 ± 2) ms in 100 s, and the second interval shows (12 ± 3) ms in 300 s.
        ([(0, 0, 1), (100, 5, 1), (400, 17, 2)], 24.9994, 75.0014),
        # The drift is 87.5 to 117.5 ppm if the step was in the first interval, 85 to 130 ppm if it was in the second, and 85 to 115 ppm
        # if it was in the last.
        ([(0, 0, 1), (100, 10.5, 1), (200, 20, 1), (300, 31, 1)], 84.9982, 130.0025),
        # The three intervals have drifts of 55, 45 and 55 ppm.
        ([(0, 0, 1.8), (3600, 198, 1.8), (7200, 360, 1.8), (10_800, 558, 1.8)], 48.99995, 61.00006),
        # A slow clock, whose drift is larger than DRIFT.
        ([(0, 0, 3), (60, -18, 3), (120, -36, 3)], -404.96, -195.02),
        # The controller's own clock was set back, in the first case by 50 s and in the second by 150 s; all later offsets show it.
        ([(0, 0, 1), (100, 10, 1), (150, 50_020, 1), (250, 50_030, 1)], 74.9984, 125.0024),
        ([(100, 0, 1), (200, 10, 1), (60, 150_000, 1), (160, 150_010, 1)], 74.9984, 125.0024),
    ],
)
def test_the_bounds_of_the_drift_are_those_that_all_readings_allow(
    points: Sequence[tuple[float, float, float]], low_ppm: float, high_ppm: float
) -> None:
    drift = drift_of(_readings(*points))
    assert drift is not None
    assert drift.low_ppm == pytest.approx(low_ppm)
    assert drift.high_ppm == pytest.approx(high_ppm)


@pytest.mark.parametrize(
    "points",
    [
        [],
        [(0, 0, 1)],
        [(0, 0, 1), (600, 60, 1)],
        # Three readings at once and one much later: their difference may be a step or a drift.
        [(0, 0, 1), (0.01, 0, 1), (0.02, 0, 1), (600, 60, 1)],
        # Readings so close together that they exclude no rate at which a clock may be steered.
        [(0, 0, 3), (10, 0, 3), (20, 0, 3)],
        # A clock that was set again and again; the last three readings alone would give 1152 ppm or more.
        [
            (0, 0, 3),
            (600, 900, 3),
            (1200, -500, 3),
            (1800, 800, 3),
            (2400, -400, 3),
            (3000, 300, 3),
            (3600, 1100, 3),
        ],
    ],
)
def test_the_drift_is_unknown_from_few_or_close_readings_or_those_of_an_uneven_clock(
    points: Sequence[tuple[float, float, float]],
) -> None:
    assert drift_of(_readings(*points)) is None


@pytest.mark.parametrize(
    "points",
    [
        # A step of 120 ms: the first and the last reading alone would give 67 ppm.
        [(0, 0, 3), (600, 0, 3), (1200, 120, 3), (1800, 120, 3)],
        # Two steps: the reading from before the first of them is left out.
        [(0, 0, 3), (600, 100, 3), (1200, 100, 3), (1800, 300, 3), (2400, 300, 3)],
    ],
)
def test_a_step_of_a_clock_does_not_count_as_drift(points: Sequence[tuple[float, float, float]]) -> None:
    drift = drift_of(_readings(*points))
    assert drift is not None
    assert drift.low_ppm == pytest.approx(-14.9999)
    assert drift.high_ppm == pytest.approx(15.0001)


_GAP_S = st.integers(0, 600_000).map(lambda gap_ms: gap_ms / 1e3)
_NOISE = st.floats(-0.999, 0.999)
_WANDER = st.floats(-WANDER_PPM, WANDER_PPM)


@given(
    drift_ppm=st.floats(-1000, 1000),
    taken=st.lists(st.tuples(_GAP_S, _WANDER, st.floats(1e-4, 0.05), _NOISE), max_size=20),
    step_s=st.floats(-5, 5),
    set_before=st.integers(0, 20),
)
def test_the_drift_of_a_clock_that_may_have_been_set_once_is_always_within_the_bounds(
    drift_ppm: float, taken: list[tuple[float, float, float, float]], step_s: float, set_before: int
) -> None:
    readings, t_s, offset_s = [], 1_800_000.0, 0.3
    for count, (gap_s, wander_ppm, error_s, noise) in enumerate(taken):
        t_s += gap_s
        offset_s += (drift_ppm + wander_ppm) * 1e-6 * gap_s + (step_s if count == set_before else 0.0)
        readings.append(_reading(offset_s + noise * error_s, error_s, t_s))
    drift = drift_of(readings)
    assert drift is None or drift.low_ppm - 1e-3 <= drift_ppm <= drift.high_ppm + 1e-3


def test_the_drift_of_a_clock_that_is_50_percent_too_fast_is_within_the_bounds() -> None:
    taken = [(0.0, -0.01), (1.0, 0.01), (2.0, -0.01), (3.0, 0.01)]
    drift = drift_of([_reading(1.5 * (t_s + late_s) - t_s, 0.01, t_s) for t_s, late_s in taken])
    assert drift is not None
    assert drift.low_ppm <= 0.5e6 <= drift.high_ppm


@given(st.floats(-400, 400), st.lists(_NOISE, min_size=20, max_size=20))
def test_readings_with_an_error_of_3_ms_a_minute_apart_bound_the_drift_to_28_ppm_either_way(
    drift_ppm: float, noises: list[float]
) -> None:
    readings = [
        _reading(drift_ppm * 1e-6 * t_s + noise * 0.003, 0.003, t_s)
        for t_s, noise in ((60.0 * count, noise) for count, noise in enumerate(noises))
    ]
    drift = drift_of(readings)
    # Before or after any step, there are at least nine minutes. An error of 3 ms in both offsets at either end adds 22.2 ppm, and
    # the wander of the rate adds 5 ppm.
    assert drift is not None
    assert drift.low_ppm <= drift_ppm + 1e-6
    assert drift.high_ppm >= drift_ppm - 1e-6
    assert max(drift.high_ppm - drift_ppm, drift_ppm - drift.low_ppm) <= 27.3


def test_the_offset_of_each_clock_includes_its_drift_if_known() -> None:
    known = _readings((0, 0, 1), (100, 10, 1), (200, 20, 1))
    offsets = Clocks({"src": known, "dst": known[:1]}).offsets(("src", "dst"))
    assert offsets["src"].drift == drift_of(known) is not None
    assert offsets["dst"].drift is None


def test_the_manifest_has_the_bounds_of_a_drift_or_null() -> None:
    known = ClockOffset("src", 0.1, 0.001, drift=Drift(-1.23456, 7.0)).as_json()
    assert (known["drift_low_ppm"], known["drift_high_ppm"]) == (-1.235, 7.0)
    unknown = ClockOffset("src", 0.1, 0.001).as_json()
    assert (unknown["drift_low_ppm"], unknown["drift_high_ppm"]) == (None, None)
