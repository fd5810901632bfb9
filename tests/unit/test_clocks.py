"""Clocks are known from readings that each bound them, and corrected only by what is more than noise."""

from __future__ import annotations

from dataclasses import replace

import pytest

from samovar.errors import TestbedError
from samovar.runner.clocks import DRIFT, Clocks, Reading, estimate, reading_of
from samovar.testbed import Completed

DONE = Completed(
    "src", "clock", "now_ns", 0, b"1800000000250000000\n", b"", t_start_s=1_799_999_999.9, seconds=0.2
)


def _reading(offset_s: float, error_s: float, t_s: float = 0.0) -> Reading:
    return Reading(t_s, offset_s, error_s, 2 * error_s)


def test_a_reading_is_the_middle_of_its_run_give_or_take_half_of_it() -> None:
    reading = reading_of(DONE)
    assert reading.offset_s == pytest.approx(0.25, abs=1e-6)
    assert reading.error_s == pytest.approx(0.1)


@pytest.mark.parametrize("told", [b"", b"1800000000N\n", b"date: illegal\n"])
def test_what_is_no_time_is_refused(told: bytes) -> None:
    with pytest.raises(TestbedError, match=r"src: clock: .*accepted: nanoseconds since the epoch"):
        reading_of(replace(DONE, stdout=told))


def test_two_readings_together_know_more_than_each() -> None:
    offset = estimate("src", [_reading(0.002, 0.003), _reading(0.006, 0.003)], 0.0)
    assert offset.offset_s == pytest.approx(0.004)
    assert offset.error_s == pytest.approx(0.001)
    assert not offset.stepped


def test_an_old_reading_counts_for_less_and_less() -> None:
    readings = [_reading(0.0, 0.001), _reading(0.0, 0.005, t_s=100.0)]
    assert estimate("src", readings, 100.0).error_s == pytest.approx(0.005)
    assert estimate("src", readings, 20.0).error_s == pytest.approx(0.001 + 20 * DRIFT)


def test_readings_that_contradict_each_other_tell_of_a_step_and_the_newest_counts() -> None:
    offset = estimate("src", [_reading(0.0, 0.001), _reading(1.0, 0.002)], 0.0)
    assert offset.stepped
    assert offset.offset_s == pytest.approx(1.0)


def test_an_offset_within_its_error_is_not_corrected() -> None:
    assert estimate("src", [_reading(0.002, 0.003)], 0.0).correction_s == 0.0
    assert estimate("src", [_reading(-0.010, 0.003)], 0.0).correction_s == pytest.approx(-0.010)


def test_clocks_without_readings_took_no_time() -> None:
    assert Clocks().longest_s() == 0.0
    assert Clocks({"src": [_reading(0.0, 0.01), _reading(0.0, 0.02)]}).longest_s() == 0.04
