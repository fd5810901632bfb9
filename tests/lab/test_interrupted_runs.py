"""Interrupt `fab run` once and twice, and start a second campaign on its hosts: hosts are restored, files kept."""

from __future__ import annotations

import signal
import subprocess
import time
from difflib import unified_diff

import pytest

from samovar.campaign.interrupts import TWICE_S
from samovar.campaign.journal import fold
from samovar.errors import TestbedError
from samovar.events import silent
from samovar.experiment import load_testbed
from samovar.hosts.target import LEASE
from tests.lab.campaigns import Checkout

# Runs complete campaigns; unit/campaign/test_interrupts.py and lab/test_lease.py test single rules.
pytestmark = pytest.mark.proof

HOSTS = ("src", "rtr", "dst")
STATE = "tc qdisc; ip -br link; sysctl net.ipv4 2>&1"


@pytest.fixture(scope="module")
def before(checkout: Checkout) -> dict[str, str]:
    """The state of every host before any trial, read once all links are up: the kernel may report a link a second late."""
    _wait_for(lambda: all(_links_are_up(checkout, host) for host in HOSTS), "links up")
    return _states(checkout)


def _links_are_up(checkout: Checkout, host: str) -> bool:
    links = [line.split() for line in checkout.on_host(host, "ip -br link").splitlines()]
    return all(state == "UP" for name, state, *_ in links if name != "lo")


def _states(checkout: Checkout) -> dict[str, str]:
    return {host: checkout.on_host(host, STATE) for host in HOSTS}


def _changes(checkout: Checkout, before: dict[str, str]) -> list[str]:
    """Return the lines in which the states of hosts differ from the states `before`."""
    after = _states(checkout)
    pairs = ((host, before[host].splitlines(), after[host].splitlines()) for host in HOSTS)
    return [f"{host}: {line}" for host, was, now in pairs for line in unified_diff(was, now, n=0)]


def _wait_for(condition: object, what: str) -> None:
    assert callable(condition)
    until = time.monotonic() + 120
    while not condition():
        assert time.monotonic() < until, f"not in time: {what}"
        time.sleep(0.2)


def _leases(checkout: Checkout) -> list[str]:
    """Return the text of each host's lease, if it has one."""
    texts = (checkout.on_host(host, f"cat {LEASE} 2>/dev/null; true") for host in HOSTS)
    return [text for text in texts if text]


def _ended(process: subprocess.Popen[str]) -> str:
    said, _ = process.communicate(timeout=120)
    assert process.returncode == 130, said
    return said


def test_one_ctrl_c_keeps_the_files_of_the_incomplete_trial_and_restores_the_hosts(
    checkout: Checkout, before: dict[str, str]
) -> None:
    checkout.define("once", "{cc: [newreno, cubic]}", duration_s=40)
    process = checkout.start("once")
    victim = checkout.wait_for_traffic("once", 1)
    process.send_signal(signal.SIGINT)
    said = _ended(process)
    assert "interrupted; to resume: fab run once" in said
    assert "Traceback" not in said
    state = fold(checkout.journal("once"))
    assert state.clean
    assert state.trials[victim].status == "interrupted"
    (aside,) = state.trials[victim].set_aside
    kept = sorted(path.name for path in (checkout.campaign("once") / aside).rglob("*.gz"))
    assert any("pcap" in name for name in kept), kept
    assert "\n".join(_changes(checkout, before)) == ""
    assert [checkout.running(host) for host in HOSTS] == [[]] * len(HOSTS)
    assert _leases(checkout) == []


def test_two_ctrl_c_report_the_unrestored_hosts_and_the_hosts_restore_themselves(
    checkout: Checkout, before: dict[str, str]
) -> None:
    checkout.define("twice", "{cc: [cubic]}", duration_s=20)
    process = checkout.start("twice")
    victim = checkout.wait_for_traffic("twice", 1)
    process.send_signal(signal.SIGTERM)
    second_s = time.monotonic() + TWICE_S + 0.2  # an earlier signal would not count as the second
    _wait_for(lambda: time.monotonic() > second_s, "a moment between two signals")
    process.send_signal(signal.SIGINT)
    said = _ended(process)
    if "ended at once" in said:  # the run may have ended normally before the second signal
        assert f"changed since trial {victim}" in said
        assert "fab restore --testbed lab" in said
    for host in HOSTS:
        checkout.wait_until_idle(host)
    _wait_for(lambda: not _changes(checkout, before), "the hosts as before")
    code, restored = _restore(checkout)
    assert code == 0, restored
    assert fold(checkout.journal("twice")).unrestored == {}


def _restore(checkout: Checkout) -> tuple[int, object]:
    bed = load_testbed(checkout.folder / "hosts" / "lab.yaml")
    restored = checkout.controller.restore(bed, silent)
    return len(restored.problems), restored


def test_a_second_campaign_is_refused_and_takes_over_the_hosts_after_the_first_was_killed(
    checkout: Checkout, before: dict[str, str]
) -> None:
    checkout.define("first", "{cc: [cubic]}", duration_s=90)
    checkout.define("second", "{cc: [newreno]}")
    process = checkout.start("first")
    checkout.wait_for_traffic("first", 1)
    code, said = checkout.run("second")
    assert code == 1
    assert len(_leases(checkout)) == len(HOSTS)
    assert "src: held by fab run of " in said
    assert "campaign first/full-" in said
    assert "on testbed lab" in said
    assert not (checkout.folder / "results" / "second").exists(), "refused before its campaign was made"
    bed = load_testbed(checkout.folder / "hosts" / "lab.yaml")
    with pytest.raises(TestbedError, match="held by fab run of "):
        checkout.controller.connections.lab_down(bed, silent)
    code, said = checkout.run("first")
    assert code == 1
    assert "another controller is running this campaign" in said
    assert process.poll() is None, "the first campaign is still running"
    process.kill()
    process.communicate()
    _wait_for(lambda: all("left restored" in lease for lease in _leases(checkout)), "hosts restored")
    code, said = checkout.run("second")
    assert code == 0, said
    taken = [entry.values for entry in checkout.journal("second") if entry.event == "lease-taken"]
    assert sorted(one["host"] for one in taken) == sorted(HOSTS)
    assert {one["reason"] for one in taken} == {"its controller is gone, and the host is restored"}
    assert _leases(checkout) == []
    assert "\n".join(_changes(checkout, before)) == ""
