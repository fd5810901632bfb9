"""The matrix: each fault strikes a campaign, and what must hold holds."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack

import pytest

from tests.faults.fault import Fault
from tests.faults.matrix import FAULTS, survive
from tests.faults.scene import Bench, bench

BenchOf = Callable[[Fault], Bench]


@pytest.fixture(scope="module")
def bench_of(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BenchOf]:
    """One lab of each kernel for all faults that leave it as it was, and one each for those that do not."""
    with ExitStack() as stack:
        shared: dict[str, Bench] = {}

        def made(fault: Fault) -> Bench:
            key = fault.name if fault.damages else fault.kernel
            if key not in shared:
                shared[key] = stack.enter_context(bench(fault.kernel, tmp_path_factory.mktemp("bench")))
            return shared[key]

        yield made


@pytest.mark.lab
@pytest.mark.parametrize(
    "fault",
    [pytest.param(f, id=f.name, marks=() if f.short else pytest.mark.proof) for f in FAULTS],
)
def test_a_campaign_survives(
    fault: Fault, bench_of: BenchOf, record_property: Callable[[str, object], None]
) -> None:
    record_property("fault", fault.name)
    bench = bench_of(fault)
    started_s = time.monotonic()
    outcome = survive(fault, bench)
    record_property("outcome", f"{outcome}, {time.monotonic() - started_s:.0f} s")
