"""Bounds of the drift of clocks, from readings with the recipe `clock` over a real sshd.

Only this machine's clock can be read, so a drifting clock is simulated, in the script that reads it or in its readings.
"""

from __future__ import annotations

import secrets
import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from samovar.campaign.clocks import ClockOffset, Drift, Reading, drift_of, reading_of
from samovar.campaign.verdict.host_checks import check_clock_drift
from samovar.hosts import Session
from samovar.recipes import Catalogue
from tests.lab.sshd import running
from tests.unit.campaign.evidence_sample import evidence_of

NOW = Catalogue(Path(__file__).parents[2] / "templates").recipe("step", "clock", "linux").render("script", {})
READINGS = 20
APART_S = 3600.0
"""The simulated time between readings: with errors of 0.2 s, as on a very busy machine, the drift is then known to 25 ppm."""


@pytest.fixture(scope="module")
def session(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Session]:
    with running(tmp_path_factory.mktemp("sshd")) as server:
        fresh = Session(server.target(f"test-{secrets.token_hex(6)}"))
        yield fresh
        fresh.close()


@pytest.fixture(scope="module")
def readings(session: Session) -> list[Reading]:
    """Readings of this machine's own clock."""
    return _read(session, "now_ns")


def _read(session: Session, script: str) -> list[Reading]:
    runs = (session.run(NOW + script, step="clock", deadline_s=20.0) for _ in range(READINGS))
    return [reading_of(done) for done in runs]


def _apart(readings: Sequence[Reading], drift_ppm: float) -> list[Reading]:
    """Return the readings as if they had been taken one hour apart, from a clock with this drift."""
    later = ((reading, APART_S * count) for count, reading in enumerate(readings))
    return [
        replace(reading, t_s=reading.t_s + s, offset_s=reading.offset_s + drift_ppm * 1e-6 * s)
        for reading, s in later
    ]


def _judge(readings: Sequence[Reading]) -> tuple[Drift, bool]:
    drift = drift_of(readings)
    assert drift is not None
    clock = ClockOffset("here", 0.0, 0.0, drift=drift)
    (check,) = check_clock_drift(evidence_of(clocks={"here": clock}))
    return drift, check.ok


@pytest.mark.parametrize(
    ("drift_ppm", "passes"), [(0.0, True), (30.0, True), (-30.0, True), (150.0, False), (-150.0, False)]
)
def test_a_clock_fails_the_check_of_drift_only_if_it_drifts_by_more_than_the_threshold(
    readings: list[Reading], drift_ppm: float, passes: bool
) -> None:
    drift, ok = _judge(_apart(readings, drift_ppm))
    assert drift.low_ppm <= drift_ppm <= drift.high_ppm
    assert ok == passes


def test_a_clock_that_was_set_between_two_readings_passes_the_check_of_drift(readings: list[Reading]) -> None:
    half = READINGS // 2
    steps = [replace(reading, offset_s=reading.offset_s + 3600.0) for reading in readings[half:]]
    drift, ok = _judge(_apart([*readings[:half], *steps], 0.0))
    assert drift.low_ppm <= 0.0 <= drift.high_ppm
    assert ok


def test_twenty_readings_are_enough_to_detect_a_clock_that_is_50_percent_too_fast(session: Session) -> None:
    drift, ok = _judge(_read(session, f"now=$(now_ns); echo $((now + (now - {time.time_ns()}) / 2))"))
    assert drift.low_ppm <= 0.5e6 <= drift.high_ppm
    assert not ok
