"""Bounds of clock drift from real readings: over a real sshd, with the recipe, with the errors of such readings.

All that can be reached here has this machine's clock, so one that runs off is made of it: as it is read, or in what was read.
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
"""Errors of 0.2 s, as on a very busy machine, leave the drift 25 ppm either way when readings are so far apart."""


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
    """Make readings what they were, had they been taken long after each other, of a clock that drifts."""
    later = ((reading, APART_S * count) for count, reading in enumerate(readings))
    return [
        replace(reading, t_s=reading.t_s + s, offset_s=reading.offset_s + drift_ppm * 1e-6 * s)
        for reading, s in later
    ]


def _judged(readings: Sequence[Reading]) -> tuple[Drift, bool]:
    drift = drift_of(readings)
    assert drift is not None
    clock = ClockOffset("here", 0.0, 0.0, drift=drift)
    (check,) = check_clock_drift(evidence_of(clocks={"here": clock}))
    return drift, check.ok


@pytest.mark.parametrize(
    ("drift_ppm", "passes"), [(0.0, True), (30.0, True), (-30.0, True), (150.0, False), (-150.0, False)]
)
def test_a_clock_is_said_to_drift_when_it_does(
    readings: list[Reading], drift_ppm: float, passes: bool
) -> None:
    drift, ok = _judged(_apart(readings, drift_ppm))
    assert drift.low_ppm <= drift_ppm <= drift.high_ppm
    assert ok == passes


def test_a_clock_that_was_set_on_the_way_is_not_said_to_drift(readings: list[Reading]) -> None:
    half = READINGS // 2
    steps = [replace(reading, offset_s=reading.offset_s + 3600.0) for reading in readings[half:]]
    drift, ok = _judged(_apart([*readings[:half], *steps], 0.0))
    assert drift.low_ppm <= 0.0 <= drift.high_ppm
    assert ok


def test_a_clock_that_runs_half_as_fast_again_is_found_out_within_twenty_readings(session: Session) -> None:
    drift, ok = _judged(_read(session, f"now=$(now_ns); echo $((now + (now - {time.time_ns()}) / 2))"))
    assert drift.low_ppm <= 0.5e6 <= drift.high_ppm
    assert not ok
