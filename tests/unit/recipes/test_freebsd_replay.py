"""Preparation of a capture for replay on FreeBSD: next hops of real hosts, and the real tcprewrite."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from tests.unit.recipes.freebsd_sample import CATALOGUE, replay, told, values_of

ARP = "arp -na -i em1"
ROUTE = "route -n get 172.16.11.2"
OWN, ROUTER = "52:54:00:a3:08:01", "52:54:00:a4:08:01"
RECIPE = CATALOGUE.recipe("generator", "tcpreplay", "freebsd-14")
SHOWN = 'echo "$device $own $remote"'


def answers(release: str, neighbours: int, to: str = "172.16.11.2") -> dict[str, str]:
    """What a host answers; a destination on its own link has no gateway."""
    route = told(release, ROUTE)
    if to != "172.16.11.2":
        route = "".join(line for line in route.splitlines(keepends=True) if "gateway" not in line)
    hop = "172.16.10.1"
    return {
        f"route -n get -inet {to}": route,
        f"ping -n -c 1 -t 2 {hop}": "",
        "ifconfig em1": "em1: " + told(release, "ifconfig").split("em1: ")[1].split("lo0: ")[0],
        ARP: told(release, ARP, neighbours),
    }


def next_hop(release: str, neighbours: int, to: str = "172.16.11.2") -> subprocess.CompletedProcess[str]:
    function = RECIPE.render("prepare", values_of(RECIPE)).partition("capture=")[0]
    return replay(f"{function}next_hop 172.16.10.2 {to}\n{SHOWN}", answers(release, neighbours, to))


@pytest.mark.parametrize(("release", "neighbours"), [("13.2", 0), ("14.0", 1)])
@pytest.mark.parametrize("to", ["172.16.11.2", "172.16.10.1"], ids=["routed", "on the link"])
def test_the_next_hop_is_the_gateway_or_the_destination_itself(
    release: str, neighbours: int, to: str
) -> None:
    done = next_hop(release, neighbours, to)
    assert (done.stdout, done.stderr) == (f"em1 {OWN} {ROUTER}\n", "")


def test_a_next_hop_without_a_neighbour_entry_is_named() -> None:
    assert "172.16.10.1" not in told("14.0", ARP, 0)
    done = next_hop("14.0", 0)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == "the next hop 172.16.10.1 has no hardware address\n"


def test_a_next_hop_with_an_unresolved_address_is_named() -> None:
    waiting = told("14.0", ARP, 1).replace(
        f"{ROUTER} on em1 expires in 1085 seconds", "(incomplete) on em1 expired"
    )
    assert "(incomplete)" in waiting
    function = RECIPE.render("prepare", values_of(RECIPE)).partition("capture=")[0]
    done = replay(
        f"{function}next_hop 172.16.10.2 172.16.11.2\n{SHOWN}", {**answers("14.0", 1), ARP: waiting}
    )
    assert done.stderr == "the next hop 172.16.10.1 has no hardware address\n"


def test_a_capture_is_rewritten_to_the_addresses_of_the_flow_and_its_first_link(tmp_path: Path) -> None:
    script = f"cd '{tmp_path}'\n" + RECIPE.render("prepare", {**values_of(RECIPE), "port": 5004})
    done = replay(script, answers("14.0", 1))
    assert (done.returncode, (tmp_path / "bulk-client.device").read_text()) == (0, "em1\n"), done.stderr
    with (tmp_path / "bulk-client.replay.pcap").open() as file:
        shown = subprocess.run(
            ["tcpdump", "-n", "-e", "-t", "-c", "1", "-r", "-"],
            stdin=file, capture_output=True, text=True, check=True,
        ).stdout  # fmt: skip
    assert shown.startswith(f"{OWN} > {ROUTER}, ethertype IPv4 (0x0800), length 214: ")
    assert "172.16.10.2.5004 > 172.16.11.2.5004: UDP, length 172" in shown
