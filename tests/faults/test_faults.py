"""Run a campaign with each fault of the matrix, and check that it loses no data and restores the hosts."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack

import pytest

from tests.faults.fault import Fault
from tests.faults.matrix import FAULTS, survive
from tests.faults.scene import TESTBED, Bench, bench


class Benches:
    """One lab per kernel for the faults that do not damage it, and one lab each for the others."""

    def __init__(self, folders: pytest.TempPathFactory) -> None:
        self._folders = folders
        self._open: dict[str, tuple[ExitStack, Bench]] = {}

    def of(self, fault: Fault) -> Bench:
        """Return the lab for a fault; boot it if necessary."""
        key = _key(fault)
        if key not in self._open:
            stack = ExitStack()
            made = stack.enter_context(bench(fault.kernel, self._folders.mktemp("bench")))
            self._open[key] = (stack, made)
        return self._open[key][1]

    def drop(self, fault: Fault) -> None:
        """Stop a lab that a fault has damaged, so that the next fault gets a new one."""
        stack, _ = self._open.pop(_key(fault))
        stack.close()

    def close(self) -> None:
        """Stop all running labs."""
        for stack, _ in self._open.values():
            stack.close()


def _key(fault: Fault) -> str:
    return fault.name if fault.damages else TESTBED or fault.kernel


@pytest.fixture(scope="module")
def benches(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Benches]:
    """The labs, each of which is booted when a fault needs it first."""
    made = Benches(tmp_path_factory)
    try:
        yield made
    finally:
        made.close()


@pytest.mark.lab
@pytest.mark.parametrize(
    "fault",
    [pytest.param(f, id=f.name, marks=() if f.short else pytest.mark.proof) for f in FAULTS],
)
def test_a_campaign_survives_a_fault(
    fault: Fault, benches: Benches, record_property: Callable[[str, object], None]
) -> None:
    if TESTBED and fault.inside:
        pytest.skip("needs the lab's namespaces or Linux")
    record_property("fault", fault.name)
    bench = benches.of(fault)
    started_s = time.monotonic()
    try:
        outcome = survive(fault, bench)
    except BaseException:
        benches.drop(fault)
        raise
    record_property("outcome", f"{outcome}, {time.monotonic() - started_s:.0f} s")
