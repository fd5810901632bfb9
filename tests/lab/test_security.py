"""An ordinary user's campaign: root logs in nowhere, sudo allows what `fab sudoers` prints, and nothing is left."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Iterator

import pytest

from samovar.events import silent
from tests.lab.campaigns import Checkout
from tests.lab.ordinary import HOSTS, USER, allow, make_ordinary, prepare

pytestmark = pytest.mark.skipif(
    os.geteuid() != 0, reason="the native lab, and becoming another user, need root"
)

# What any Linux kernel can do in a network namespace: the machine's own is fast enough for sudo at every step.
EXPERIMENT = """
experiment: {name}
title: A campaign of an ordinary user
testbed: lab
duration: {duration_s}s
order: {{kind: sequential, seed: 1}}
traffic: [{{flow: bulk, generator: iperf3, from: sender, to: receiver}}]
captures: [{{at: sender}}, {{at: receiver}}]
loggers: [{{logger: tcp-info, at: sender, interval: 10ms}}, {{logger: queue, at: router, interval: 10ms}}]
factors: {{cc: [newreno, cubic], mtu: [600], limit: {{recipe: shaper, parameter: rate, at: sender, levels: [10Mbit]}}}}
"""


@pytest.fixture(scope="module")
def checkout(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Checkout]:
    made = make_ordinary(tmp_path_factory.mktemp("checkout"))
    made.write("plain", EXPERIMENT.format(name="plain", duration_s=2))
    study = made.controller.study("plain", "", "")
    made.controller.lab_up(study.testbed, study.plan, silent)
    try:
        prepare(made)
        yield made
    finally:
        made.lab_down()


def sudoers(checkout: Checkout) -> list[str]:
    return list(checkout.controller.sudoers(checkout.controller.study("plain", "", "")))


@pytest.fixture(scope="module")
def plain(checkout: Checkout) -> Checkout:
    """A campaign of that user's."""
    allow(checkout, sudoers(checkout))
    code, said = checkout.run("plain")
    assert code == 0, said
    return checkout


def test_what_sudo_refuses_is_told_before_anything_starts(checkout: Checkout) -> None:
    allow(checkout, [f"# ---- {host}" for host in HOSTS])
    code, said = checkout.run("plain")
    assert code == 1
    assert f"sudo -n ip tcp_metrics flush is refused to {USER}" in said
    assert f"sudoers lacks: {USER} ALL=(root) NOPASSWD: /usr/sbin/ip ^tcp_metrics flush$" in said
    assert not checkout.journal("plain")


def test_an_ordinary_users_trials_are_valid_with_what_sudo_was_told_to_allow(plain: Checkout) -> None:
    manifests = plain.manifests("plain")
    assert {m["verdict"] for m in manifests.values()} == {"valid"}, [m["reasons"] for m in manifests.values()]
    assert len(manifests) == 2
    for manifest in manifests.values():
        assert {entry["kind"] for entry in manifest["files"]} == {"capture", "logger", "generator"}


def test_the_hosts_are_as_they_were_before_and_run_nothing(plain: Checkout) -> None:
    for id_ in plain.manifests("plain"):
        facts = plain.campaign("plain") / "trials" / id_ / "facts"
        for host in HOSTS:
            before, set_, after = (
                json.loads((facts / f"{host}-{when}.json").read_bytes())
                for when in ("before", "set", "after")
            )
            assert before == after
            assert before != set_
    for host in HOSTS:
        assert plain.running(host) == []
        assert plain.on_host(host, "find /tmp/samovar -mindepth 2; true") == ""


def test_no_script_of_the_trials_ran_as_root(plain: Checkout) -> None:
    facts = json.loads((plain.campaign("plain") / "provenance.json").read_bytes())["hosts"]
    assert {host: fact["sudo"]["user"] for host, fact in facts.items()} == dict.fromkeys(HOSTS, USER)


def test_a_killed_controller_leaves_nothing_of_roots_running(plain: Checkout) -> None:
    plain.write("killed", EXPERIMENT.format(name="killed", duration_s=20))
    process = plain.start("killed")
    try:
        plain.wait_for_traffic("killed", 1)
        assert "tcpdump" in plain.running("src")
        state = "tc qdisc show; ip link show | grep mtu; cat /proc/sys/net/ipv4/tcp_rmem; ip route"
        during = plain.on_host("src", state)
    finally:
        process.send_signal(signal.SIGKILL)
        process.communicate()
    for host in HOSTS:
        plain.wait_until_idle(host)
    assert "tbf" in during
    assert "mtu 600" in during
    for host in HOSTS:
        assert "mtu 600" not in plain.on_host(host, state)
    assert "tbf" not in plain.on_host("src", state)
