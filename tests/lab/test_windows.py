"""Receive windows in a campaign: accurate on kernels that use the route's window and on those that derive it from the buffer."""

from __future__ import annotations

import os
import platform
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from samovar.recipes.recipe_filters import window_floor
from samovar.units import parse_size
from tests.lab.campaigns import ROOT, Checkout, make_checkout

SEGMENT_BYTES = 1448
EXPERIMENT = """
experiment: windows
title: Windows of a test
testbed: lab
duration: 1s
replicates: 1
order: {kind: sequential, seed: 1}
traffic: [{flow: bulk, generator: iperf3, from: sender, to: receiver}]
captures: [{at: receiver, snaplen: 100}]
settings: {mtu: 1500}
factors: {rwnd: [LEVELS]}
"""
FIRST_WITH_SHARE = (6, 7)
"""The first release of Linux in which the window is a share of the buffer."""


@pytest.fixture
def checkout(tmp_path: Path) -> Iterator[Checkout]:
    if os.geteuid() != 0:
        pytest.skip("a lab on the machine's own kernel needs root")
    testbed = (ROOT / "hosts" / "lab.yaml").read_text().replace("kernel: auto", "kernel: native")
    made = make_checkout(tmp_path, retries=2, hosts={"lab": testbed})
    with made.running_lab():
        yield made


def test_windows_on_the_machine_s_own_kernel_are_at_most_two_segments_below_the_requested_ones(
    checkout: Checkout,
) -> None:
    states = {host: checkout.on_host(host, "cat /proc/sys/net/ipv4/tcp_rmem") for host in ("src", "dst")}
    for levels in ("60KB", "60KB, 1MB"):
        checkout.write("windows", EXPERIMENT.replace("LEVELS", levels))
        code, said = checkout.run("windows")
        assert code == 0, said
    manifests = checkout.manifests("windows")
    assert len(manifests) == 2
    for id_, manifest in manifests.items():
        checks = [check for check in manifest["checks"] if "largest window offered" in check["check"]]
        assert {check["ok"] for check in checks} == {True}, checks
        largest = int(checks[0]["observed"].split()[0])
        target = window_floor(parse_size(id_.split("-")[0]))
        assert target - 2 * SEGMENT_BYTES <= largest <= target
        (beside,) = (check for check in manifest["checks"] if "competing traffic" in check["check"])
        assert beside["observed"].startswith("0 B of "), "the probe is over before captures begin"
    journal = checkout.journal("windows")
    ratios = [entry.values["ratio"] for entry in journal if entry.event == "window-measured"]
    assert [ratio > 0 for ratio in ratios] == [_release() >= FIRST_WITH_SHARE], (
        "one measurement serves both trials, although two controllers ran them"
    )
    assert not [entry for entry in journal if entry.event == "restore-failed"]
    for host, state in states.items():
        assert checkout.on_host(host, "cat /proc/sys/net/ipv4/tcp_rmem") == state
        assert "172.16." not in checkout.on_host(host, "ip tcp_metrics show"), (
            "TCP metrics of the lab's addresses are removed"
        )


def _release() -> tuple[int, ...]:
    return tuple(map(int, re.findall(r"\d+", platform.release())[:2]))
