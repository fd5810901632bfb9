"""Paths on real kernels: set, read back, measured from outside, and restored."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from samovar.campaign.host_state import changed, parse_state
from samovar.campaign.verdict import Check
from samovar.campaign.verdict.path_checks import plausible_losses
from samovar.lab import KernelNeeds
from samovar.lab.kernel import machine_lacks
from samovar.plan import ClassPlan, DirectionPlan, MatchPlan, PathPlan
from samovar.recipes import Catalogue, PathProbe, plan_probe
from tests.lab.path_bench import Bench, running_lab
from tests.unit.recipes.test_bottleneck import AQMS, PARAMETERS

NOT_IN_LINUX_6_1_OF_DEBIAN = {"fq_pie", "dualpi2"}
CONNECT = """
import socket, sys, time
for port in (5001, 5002):
    taken = []
    for _ in range(8):
        with socket.socket() as one:
            began = time.monotonic()
            one.connect_ex((sys.argv[1], port))  # a refusal takes one round trip as well
            taken.append(time.monotonic() - began)
    print(port, min(taken))
"""


@pytest.fixture(scope="module")
def bench(tmp_path_factory: pytest.TempPathFactory, root: Path) -> Iterator[Bench]:
    with running_lab("uml", tmp_path_factory.mktemp("uml"), root) as made:
        yield made


def path_of(down: dict[str, Any], up: dict[str, Any] | None = None, **more: Any) -> PathPlan:
    """Plan a path of 10 Mbit/s with a buffer of 60 packets and with these changes."""
    rate = {"rate_bps": 10_000_000, "aqm": "pfifo", "buffer_packets": 60}
    directions = (
        DirectionPlan(interface="eth2", **{**rate, **down}),
        DirectionPlan(interface="eth1", **(up or {})),
    )
    return PathPlan(
        router="rtr",
        rtt_s=sum(direction.delay_s for direction in directions),
        down=directions[0],
        up=directions[1],
        **more,
    )


def of_aqm(name: str, parameters: dict[str, str], catalogue: Catalogue, **more: Any) -> PathPlan:
    """Plan a path with a queue discipline and a buffer of 60 packets, which is in bytes if the discipline counts bytes."""
    counts_bytes = "buffer_bytes" in catalogue.header("aqm", name, "linux").parameters
    buffer = {"buffer_packets": None, "buffer_bytes": 60 * 1514} if counts_bytes else {}
    return path_of({"aqm": name, "aqm_parameters": parameters, **buffer, **more})


def with_other_values(path: PathPlan) -> PathPlan:
    """Plan a path whose values differ from those of the given path by more than a calibration tolerates."""
    directions = {}
    for name, direction in (("down", path.down), ("up", path.up)):
        held = (
            {"buffer_packets": direction.buffer_packets + 20}
            if direction.buffer_packets
            else {"buffer_bytes": 75_700}
        )
        rate_bps = round((direction.rate_bps or 0) * 1.04)
        directions[name] = direction.model_copy(update={"rate_bps": rate_bps, "loss": 0.05, **held})
    return path.model_copy(update={"rtt_s": path.rtt_s + 0.006, **directions})


def failed(checks: Sequence[Check]) -> list[str]:
    return [str(check) for check in checks if not check.ok]


def failed_counts(checks: Sequence[Check]) -> list[str]:
    """Return the failed checks except the check of the base RTT, because pings may be late on a busy computer."""
    return failed([check for check in checks if check.name != "base RTT"])


def paced_probe(path: PathPlan, packets: int) -> PathProbe:
    """Return a probe of pings and paced packets, without an overload."""
    return replace(plan_probe(path, path.down, 1500, paced_packets=packets), burst_packets=0, drain_s=0.0)


@pytest.mark.parametrize("name", [name for name in AQMS if name not in NOT_IN_LINUX_6_1_OF_DEBIAN])
def test_a_queue_discipline_has_the_requested_settings_and_is_removed_afterwards(
    bench: Bench, name: str
) -> None:
    with bench.path(of_aqm(name, PARAMETERS.get(name, {}), bench.catalogue)):
        pass


@pytest.mark.parametrize("name", sorted(NOT_IN_LINUX_6_1_OF_DEBIAN))
def test_a_queue_discipline_that_the_kernel_lacks_is_refused_and_leaves_nothing(
    bench: Bench, name: str
) -> None:
    path = of_aqm(name, {}, bench.catalogue)
    before = parse_state(bench.run("rtr", bench.setting("read", path)))
    said = bench.run("rtr", f"( {bench.setting('set', path)} ) 2>&1 || true")
    assert "tc refused the settings of the bottleneck" in said
    after = parse_state(bench.run("rtr", bench.setting("restore", path) + bench.setting("read", path)))
    assert changed(before, after) == ()


def test_each_direction_has_its_own_rate_buffer_and_delay(bench: Bench) -> None:
    up = {"rate_bps": 2_000_000, "aqm": "bfifo", "buffer_bytes": 45_420, "delay_s": 0.03}
    path = path_of({"delay_s": 0.02}, up)
    with bench.path(path):
        for name, rate_bps in (("down", 10e6), ("up", 2e6)):
            direction = path.down if name == "down" else path.up
            probe = plan_probe(path, direction, 1500, paced_packets=200)
            seen, checks = bench.calibrate(path, name, probe)
            assert failed(checks) == []
            deviations = [
                check for check in bench.checks_of(with_other_values(path), name, probe, seen) if not check.ok
            ]
            assert [check.name for check in deviations] == [
                "base RTT",
                f"rate at {direction.interface}",
                f"buffer at {direction.interface}",
                f"loss towards {direction.interface}",
            ]
            assert seen.rate_bps == pytest.approx(rate_bps, rel=0.02)
            assert seen.base_rtt_s == pytest.approx(0.05, abs=0.001 + 0.05 * 0.05)
            assert seen.sent_paced - seen.lost == 200
        for device in ("sv-down", "sv-up"):
            counted = bench.run("rtr", f"tc -s qdisc show dev {device}")
            sent, dropped = re.search(r"Sent \d+ bytes (\d+) pkt \(dropped (\d+),", counted).groups()  # type: ignore[union-attr]
            assert int(sent) > 200
            assert int(dropped) == 0, "netem, which delays packets, drops none of them"


@pytest.mark.parametrize(
    "name", ["codel", "pie", *(pytest.param(name, marks=pytest.mark.proof) for name in ("fq", "sfq"))]
)
def test_an_overload_fills_the_requested_buffer(bench: Bench, name: str) -> None:
    # At a low rate, the token bucket of two frames lasts longer than the pauses of a busy machine.
    path = of_aqm(name, {}, bench.catalogue, rate_bps=2_000_000)
    probe = plan_probe(path, path.down, 1500, pings=0, paced_packets=0)
    with bench.path(path):
        seen, checks = bench.calibrate(path, "down", probe)
    assert failed(checks) == []
    assert seen.sampled_packets is not None
    assert seen.in_flight_packets is not None
    assert seen.sampled_packets <= 61
    assert max(seen.sampled_packets, seen.in_flight_packets) >= 59


def test_the_number_of_random_losses_is_within_the_binomial_interval(bench: Bench) -> None:
    path = path_of({"loss": 0.02, "delay_s": 0.005})
    with bench.path(path):
        seen, checks = bench.calibrate(path, "down", paced_probe(path, 2000))
    assert failed_counts(checks) == []
    assert plausible_losses(seen.lost, 2000, 0.02)
    assert seen.mean_loss_burst_packets == pytest.approx(1.02, abs=0.12)


def test_losses_come_in_bursts_of_the_requested_mean_length(bench: Bench) -> None:
    path = path_of({"loss": 0.05, "loss_burst_packets": 4.0})
    with bench.path(path):
        seen, checks = bench.calibrate(path, "down", paced_probe(path, 4000))
    assert failed_counts(checks) == []
    # A geometric distribution with mean 4 has a standard deviation of 3.46; 3.29 standard errors of the mean cover 99.9 %.
    assert seen.mean_loss_burst_packets == pytest.approx(4, abs=3.29 * 3.46 / (seen.lost / 4) ** 0.5)


def test_packets_are_reordered_and_duplicated_at_the_requested_rates(bench: Bench) -> None:
    path = path_of({"reorder": 0.02, "duplicate": 0.01, "delay_s": 0.01})
    with bench.path(path):
        seen, checks = bench.calibrate(path, "down", paced_probe(path, 2000))
    assert failed_counts(checks) == []
    assert plausible_losses(seen.duplicates, 2000, 0.01)
    # If two successive packets overtake others, only one is counted, so the count may be below 40.
    assert 0.5 * 40 < seen.overtaken <= 80


def test_jitter_varies_the_delay_and_keeps_the_order(bench: Bench) -> None:
    path = path_of({"jitter_s": 0.005, "delay_s": 0.02})
    with bench.path(path):
        seen, checks = bench.calibrate(path, "down", paced_probe(path, 500))
    assert failed(checks) == []
    assert seen.overtaken == 0
    assert max(seen.round_trips_s) - min(seen.round_trips_s) > 0.004
    assert min(seen.round_trips_s) >= 0.015


def test_two_flows_with_different_delays_share_one_queue(bench: Bench) -> None:
    far = MatchPlan(from_subnet="172.16.10.2/32", to_subnet="172.16.11.2/32", port=5002)
    path = path_of(
        {"delay_s": 0.01},
        {"delay_s": 0.01},
        classes=(ClassPlan(match=(far,), delay_down_s=0.03, delay_up_s=0.04, loss=0.0),),
    )
    with bench.path(path):
        said = bench.run("src", f"python3 -IS -c '{CONNECT}' 172.16.11.2")
        counted = bench.run("rtr", "tc -s qdisc show dev eth2")
    taken = {int(line.split()[0]): float(line.split()[1]) for line in said.splitlines()}
    assert taken == {5001: pytest.approx(0.02, abs=0.002), 5002: pytest.approx(0.07, abs=0.0045)}
    assert "tbf 1:" in counted


def test_the_machine_s_own_kernel_shapes_both_directions(tmp_path: Path, root: Path) -> None:
    if machine_lacks(KernelNeeds(features=frozenset({"tbf", "pfifo"}))) or os.geteuid() != 0:
        pytest.skip("this machine's kernel has no tbf, or this is not root")
    path = path_of({}, {"rate_bps": 2_000_000, "aqm": "pfifo", "buffer_packets": 30})
    with running_lab("native", tmp_path, root) as bench, bench.path(path):
        for name, direction in (("down", path.down), ("up", path.up)):
            _, checks = bench.calibrate(path, name, plan_probe(path, direction, 1500, paced_packets=200))
            assert failed(checks) == []
