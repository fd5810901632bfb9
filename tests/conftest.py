"""Settings and fixtures of all tests."""

from __future__ import annotations

import signal
from pathlib import Path

import pytest
from hypothesis import settings

# An example of Hypothesis has no time limit, because a machine may be busy and no test asserts a duration.
settings.register_profile("untimed", deadline=None)
settings.load_profile("untimed")

# With `make proofs &`, the shell makes pytest ignore SIGINT, and the programs that tests start would inherit this.
signal.signal(signal.SIGINT, signal.default_int_handler)

ROOT = Path(__file__).parent.parent
WITHOUT_LAB = {
    "test_clock_drift.py",
    "test_collect.py",
    "test_lease.py",
    "test_slurm.py",
    "test_ssh.py",
    "test_unresponsive_peers.py",
}
"""Files of tests/lab that need no lab, but start an sshd or Slurm on this machine."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark all tests in tests/lab with `lab`, except those in the files WITHOUT_LAB."""
    for item in items:
        if ROOT / "tests" / "lab" in item.path.parents and item.path.name not in WITHOUT_LAB:
            item.add_marker(pytest.mark.lab)


@pytest.fixture(scope="session")
def root() -> Path:
    """The folder of this checkout."""
    return ROOT
