"""Reboots that a plan requires, on a lab whose kernel reboots: they are counted and awaited, and settings are restored at the end."""

from __future__ import annotations

import shlex
import shutil
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import groupby

import pytest

from samovar import lab
from samovar.campaign.journal import Entry, fold
from samovar.cli.project import Request
from tests.lab.campaigns import ROOT, Checkout

pytestmark = pytest.mark.proof  # each boot of the lab's kernel takes long

TESTBED = """\
testbed: lab
lab: {kernel: uml, memory: 1GB}
hosts:
  src:
    os: linux
    role: sender
    address: 10.64.0.11
    boot_timeout: 120s
    interfaces: {eth1: {address: 172.16.10.2/24, link: left}}
  rtr:
    os: linux
    role: router
    address: 10.64.0.12
    interfaces: {eth1: {address: 172.16.10.1/24, link: left}, eth2: {address: 172.16.11.1/24, link: right}}
  dst:
    os: linux
    role: receiver
    address: 10.64.0.13
    interfaces: {eth1: {address: 172.16.11.2/24, link: right}}
bottleneck: {router: rtr, from: eth1, to: eth2}
"""
# The level of a boot is the content of the file `planned` when the recipe first runs in this boot. The file is on this machine,
# so it outlasts a reboot of the user-mode kernel.
LOADER = """\
{#---
summary: A simulated tunable of the boot loader.
needs: [mount, mkdir]
change: reboot
parameters:
  interfaces: {type: list of interfaces, description: "interfaces on the testbed"}
  level: {type: integer, description: "the level with which the kernel is booted"}
---#}
{% block read %}
[ -d /run/loader ] || { mkdir /run/loader && mount -t hostfs -o @FOLDER@ none /run/loader; } || fail "no folder of the loader"
read -r s_planned </run/loader/planned
read -r s_boot </proc/sys/kernel/random/boot_id
[ -e "/run/loader/$s_boot" ] || echo "$s_planned" >"/run/loader/$s_boot"
read -r s_booted <"/run/loader/$s_boot"
echo "level=$s_booted"
echo "planned.level=$s_planned"
{% endblock %}
{% block set %}
echo {{ level }} >/run/loader/planned
{% endblock %}
{% block wanted %}
planned.level={{ level }}
level={{ level }}
{% endblock %}
{% block restore %}
echo {{ was["planned.level"] }} >/run/loader/planned
{% endblock %}
"""
# A minimal trial, which leaves the machine time for the reboots.
EXPERIMENT = """\
experiment: {name}
testbed: lab
path: {{rate: 1Mbit, rtt: 4ms, buffer: 20packets}}
duration: 2s
replicates: {replicates}
order: {{kind: sequential, seed: 1}}
traffic: [{{flow: bulk, generator: iperf3, from: sender, to: receiver}}]
factors: {factors}
"""
FACTORS = "{cc: [newreno, cubic], loader: {levels: [1, 2], sets: loader.level, at: sender}}"


@pytest.fixture(scope="module")
def checkout(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Checkout]:
    folder = tmp_path_factory.mktemp("checkout")
    for name in ("analysis", "config.yaml", ".rlib"):
        (folder / name).symlink_to(ROOT / name)
    for name in ("experiments", "hosts", "loader"):
        (folder / name).mkdir()
    (folder / "hosts" / "lab.yaml").write_text(TESTBED)
    shutil.copytree(ROOT / "templates", folder / "templates")
    recipe = LOADER.replace("@FOLDER@", str(folder / "loader"))
    (folder / "templates" / "linux" / "setting" / "loader.sh.j2").write_text(recipe)
    (folder / "loader" / "planned").write_text("found\n")
    made = Checkout(folder)
    with made.running_lab():
        yield made


def _define(checkout: Checkout, name: str, factors: str, replicates: int = 1) -> None:
    checkout.write(name, EXPERIMENT.format(name=name, factors=factors, replicates=replicates))


def _events(checkout: Checkout, name: str, event: str) -> list[Entry]:
    return [entry for entry in checkout.journal(name) if entry.event == event]


def _planned(checkout: Checkout) -> str:
    return (checkout.folder / "loader" / "planned").read_text().strip()


def _booted(checkout: Checkout) -> str:
    """Return the level with which the running kernel was booted."""
    boot_id = checkout.on_host("src", "cat /proc/sys/kernel/random/boot_id").strip()
    return (checkout.folder / "loader" / boot_id).read_text().strip()


def _assert_restored(checkout: Checkout, name: str) -> None:
    assert (_planned(checkout), _booted(checkout)) == ("found", "found")
    assert fold(checkout.journal(name)).clean


def test_a_campaign_reboots_as_often_as_planned_and_restores_the_boot_setting(
    checkout: Checkout,
) -> None:
    _define(checkout, "levels", FACTORS)
    plan = checkout.controller.project.plan(Request("levels")).plan
    assert (plan.changes.reboots, plan.changes.naive_reboots) == (3, 5)
    assert len(list(groupby(trial.treatment["loader"] for trial in plan.trials))) == 2

    code, said = checkout.run("levels")
    assert code == 0, said
    manifests = checkout.manifests("levels")
    verdicts = [manifest["verdict"] for manifest in manifests.values()]
    assert len(verdicts) == 4 and "invalid" not in verdicts, said
    for id_, manifest in manifests.items():
        facts = checkout.campaign("levels") / "trials" / id_ / "facts" / "src-set.json"
        assert f'"level": "{manifest["treatment"]["loader"]}"' in facts.read_text()

    ordered, back = (
        _events(checkout, "levels", "host-rebooting"),
        _events(checkout, "levels", "host-rebooted"),
    )
    assert len(ordered) == len(back) == plan.changes.reboots
    ids = [entry.values["boot_id"] for entry in back]
    assert len(set(ids)) == len(ids)
    assert [entry.values["boot_id"] for entry in ordered[1:]] == ids[:-1]
    assert {entry.values["host"] for entry in (*ordered, *back)} == {"src"}
    _assert_restored(checkout, "levels")


def test_after_a_killed_controller_the_next_one_makes_no_unnecessary_reboot(
    checkout: Checkout,
) -> None:
    name = "killed"
    _define(checkout, name, _one_level(3), replicates=2)
    process = checkout.start(name)
    checkout.wait_for_traffic(name, 2)
    process.kill()
    process.communicate()
    for host in ("src", "rtr", "dst"):
        checkout.wait_until_idle(host)
    assert _booted(checkout) == "3"
    assert [read.lasting for read in fold(checkout.journal(name)).unrestored["src"]] == [True, False]

    code, said = checkout.run(name)
    assert code == 0, said
    assert len(checkout.manifests(name)) == 2
    assert len(_events(checkout, name, "host-rebooted")) == 2
    _assert_restored(checkout, name)


@contextmanager
def _ignoring_reboots(checkout: Checkout, testbed: str) -> Iterator[None]:
    """Make hosts ignore the order to reboot, and use this text as the testbed file."""
    step = checkout.folder / "templates" / "linux" / "step" / "reboot.sh.j2"
    kept, file = step.read_text(), checkout.folder / "hosts" / "lab.yaml"
    step.write_text("{#---\nsummary: Do nothing.\n---#}\n{% block script %}\n:\n{% endblock %}\n")
    file.write_text(testbed)
    try:
        yield
    finally:
        step.write_text(kept)
        file.write_text(TESTBED)


def _one_level(level: int) -> str:
    return f"{{loader: {{levels: [{level}], sets: loader.level, at: sender}}}}"


def test_a_host_that_does_not_reboot_is_reported_with_its_boot_timeout(checkout: Checkout) -> None:
    name = "deaf"
    _define(checkout, name, _one_level(4))
    with _ignoring_reboots(checkout, TESTBED.replace("120s", "2s")):
        code, said = checkout.run(name)
    assert code == 1
    problem = "src: not back 2 s (its boot_timeout) after a reboot; `power:` in the testbed file makes power cycles possible"
    assert problem in said
    assert (_planned(checkout), _booted(checkout)) == ("found", "found")


def test_a_host_that_does_not_reboot_is_power_cycled(checkout: Checkout) -> None:
    name = "switched"
    access = lab.read_access(checkout.controller.connections.lab_folder("lab"))
    assert access
    switch = checkout.folder / "switch.sh"
    switch.write_text(shlex.join([*lab.shell_command(access, "src"), "reboot -f"]) + "\nexit 0\n")
    _define(checkout, name, _one_level(5))
    power = f"boot_timeout: 40s\n    power: {{cycle: [sh, {switch}]}}"
    with _ignoring_reboots(checkout, TESTBED.replace("boot_timeout: 120s", power)):
        code, said = checkout.run(name)
    assert code == 0, said
    assert len(_events(checkout, name, "host-power-cycled")) == 2
    assert len(_events(checkout, name, "host-rebooted")) == 2
    _assert_restored(checkout, name)


def test_ctrl_c_ends_the_wait_for_a_reboot_and_restores_the_planned_boot_setting(checkout: Checkout) -> None:
    name = "interrupted"
    _define(checkout, name, _one_level(6))
    with _ignoring_reboots(checkout, TESTBED.replace("120s", "1h")):
        process = checkout.start(name)
        deadline_s = time.monotonic() + 120
        while not _events(checkout, name, "host-rebooting") and time.monotonic() < deadline_s:
            time.sleep(0.05)
        process.send_signal(signal.SIGINT)
        said, _ = process.communicate(timeout=120)
    assert process.returncode == 130, said
    assert _events(checkout, name, "campaign-interrupted")
    _assert_restored(checkout, name)
