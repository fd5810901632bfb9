"""Run a campaign as an ordinary user: no login as root, only the sudo rules of `fab sudoers`, nothing left behind."""

from __future__ import annotations

import gzip
import json
import os
import secrets
import signal
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass, field

import pytest

from samovar.analyse import analyse
from samovar.cli.project import Request
from samovar.events import silent
from samovar.report import make_bundle
from tests.lab.campaigns import Checkout
from tests.lab.ordinary_user import HOSTS, USER, allow, make_ordinary, prepare

pytestmark = [
    pytest.mark.skipif(os.geteuid() != 0, reason="the native lab, and becoming another user, need root"),
    pytest.mark.proof,  # runs campaigns in a separate lab; unit/campaign/test_root_access.py tests single sudoers lines
]

# The experiment uses only features that any Linux kernel has, because it runs on the machine's own kernel: user-mode Linux is too
# slow for sudo at every step.
EXPERIMENT = """
experiment: {name}
title: A campaign of an ordinary user
testbed: lab
duration: {duration_s}s
order: {{kind: sequential, seed: 1}}
traffic: [{{flow: bulk, generator: iperf3, from: sender, to: receiver}}]
captures: [{{at: sender}}, {{at: receiver}}]
loggers: [{{logger: tcp-info, at: sender, interval: 10ms}}, {{logger: queue, at: router, interval: 10ms}}]
factors: {{cc: [newreno, cubic], mtu: [600], limit: {{sets: shaper.rate, at: sender, levels: [10Mbit]}}}}
"""


@pytest.fixture(scope="module")
def checkout(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Checkout]:
    made = make_ordinary(tmp_path_factory.mktemp("checkout"))
    made.write("plain", EXPERIMENT.format(name="plain", duration_s=2))
    study = made.controller.project.plan(Request("plain"))
    made.controller.connections.lab_up(study.testbed, study.plan, silent)
    try:
        prepare(made)
        yield made
    finally:
        made.lab_down()


def sudoers(checkout: Checkout) -> list[str]:
    return list(checkout.controller.sudoers(checkout.controller.project.plan(Request("plain"))))


@dataclass(frozen=True)
class Canaries:
    """The secrets of a controller: its login key, and environment variables whose values contain a mark."""

    checkout: Checkout
    mark: str = field(default_factory=lambda: secrets.token_hex(12))

    def environment(self) -> dict[str, str]:
        """Return typical variables with secrets, each of which contains the mark."""
        return {
            "PDU_TOKEN": f"token-{self.mark}",
            "NOTIFY_PASSWORD": f"password-{self.mark}",
            "AWS_SECRET_ACCESS_KEY": f"aws-{self.mark}",
            "HTTPS_PROXY": f"http://lena:proxy-{self.mark}@proxy.invalid:3128",
            "SSH_AUTH_SOCK": f"/tmp/ssh-{self.mark}/agent.1",
            "SSH_ASKPASS_PASSPHRASE": f"passphrase-{self.mark}",
        }

    def needles(self) -> list[bytes]:
        """Return the texts that must not be found anywhere: the mark, and each line of the private key."""
        key = self.checkout.controller.connections.lab_folder("lab") / "id_ed25519"
        lines = key.read_text().splitlines()[1:-1]
        return [self.mark.encode(), *(line.encode() for line in lines[1:] or lines)]

    def in_bytes(self, data: bytes) -> list[bytes]:
        """Return the secrets that are in some data, which may be compressed by gzip."""
        if data.startswith(b"\x1f\x8b"):
            data = gzip.decompress(data)
        return [needle for needle in self.needles() if needle in data]


NOTIFY_WITH_SECRETS = """
notify: {command: [sh, -c, 'echo "I am $PDU_TOKEN by $HTTPS_PROXY and $SSH_AUTH_SOCK"; exit 1']}
"""
"""A notification command that prints secrets and fails, so that its output is reported."""


@pytest.fixture(scope="module")
def canaries(checkout: Checkout) -> Canaries:
    return Canaries(checkout)


@pytest.fixture(scope="module")
def output(checkout: Checkout, canaries: Canaries) -> str:
    """The output of a campaign of the ordinary user, in an environment full of secrets."""
    allow(checkout, sudoers(checkout))
    with (checkout.folder / "config.yaml").open("a") as file:
        file.write(NOTIFY_WITH_SECRETS)
    with pytest.MonkeyPatch.context() as patch:
        for name, value in canaries.environment().items():
            patch.setenv(name, value)
        code, text = checkout.run("plain")
    assert code == 0, text
    return text


@pytest.fixture(scope="module")
def plain(checkout: Checkout, output: str) -> Checkout:
    """The checkout after the campaign of the ordinary user."""
    assert output
    return checkout


def test_commands_that_sudo_refuses_are_reported_before_anything_starts(checkout: Checkout) -> None:
    allow(checkout, [f"# ---- {host}" for host in HOSTS])
    code, said = checkout.run("plain")
    assert code == 1
    assert f"sudo -n ip tcp_metrics flush is refused to {USER}" in said
    assert f"sudoers lacks: {USER} ALL=(root) NOPASSWD: /usr/sbin/ip ^tcp_metrics flush$" in said
    assert not checkout.journal("plain")


def test_trials_of_an_ordinary_user_are_valid_with_the_printed_sudoers_lines(plain: Checkout) -> None:
    manifests = plain.manifests("plain")
    assert {m["verdict"] for m in manifests.values()} == {"valid"}, [m["reasons"] for m in manifests.values()]
    assert len(manifests) == 2
    for manifest in manifests.values():
        assert {entry["kind"] for entry in manifest["files"]} == {"capture", "logger", "generator"}


def test_the_hosts_are_restored_and_run_no_program_of_a_trial(plain: Checkout) -> None:
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


def test_no_secret_is_in_the_output_of_the_campaign(output: str, canaries: Canaries) -> None:
    assert "notify: sh: exit code 1: I am …" in output
    assert canaries.in_bytes(output.encode()) == []


def test_no_secret_is_in_the_files_of_the_campaign(plain: Checkout, canaries: Canaries) -> None:
    folder = plain.campaign("plain")
    files = [file for file in folder.rglob("*") if file.is_file()]
    assert {"journal.jsonl", "plan.json", "provenance.json", "testbed.yaml"} <= {file.name for file in files}
    assert any(file.suffix == ".gz" for file in files)
    assert any("commands" in file.parts for file in files)
    assert {file: found for file in files if (found := canaries.in_bytes(file.read_bytes()))} == {}
    assert canaries.in_bytes(gzip.compress(canaries.mark.encode())) == [canaries.mark.encode()]


def test_no_secret_is_in_the_bundle(plain: Checkout, canaries: Canaries) -> None:
    folder = plain.campaign("plain")
    with pytest.MonkeyPatch.context() as patch:
        for name, value in canaries.environment().items():
            patch.setenv(name, value)
        analyse(folder, plain.folder, silent)
        pdf, _ = make_bundle(folder, silent)
    for command in (["pdftotext", str(pdf), "-"], ["pdfinfo", str(pdf)]):
        shown = subprocess.run(command, capture_output=True, check=True).stdout
        assert shown
        assert canaries.in_bytes(shown) == []
    files = [file for file in folder.rglob("*") if file.is_file()]
    assert {file: found for file in files if (found := canaries.in_bytes(file.read_bytes()))} == {}


def test_no_secret_is_left_on_a_host(plain: Checkout, canaries: Canaries) -> None:
    for host in HOSTS:
        searched = f"grep -rlaF {canaries.mark} /tmp /var/tmp /run/own /root 2>/dev/null; true"
        assert plain.on_host(host, searched) == ""


def test_hosts_of_a_killed_controller_stop_programs_of_root_and_restore_their_settings(
    plain: Checkout,
) -> None:
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
