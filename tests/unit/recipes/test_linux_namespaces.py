"""Settings of Linux hosts, applied with the real tc and ip in a network namespace."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

import pytest

from samovar.plan import DirectionPlan, HostPlan, PathPlan
from samovar.recipes import Catalogue, bottleneck_values
from samovar.recipes.sudo_rules import allowed_commands

CATALOGUE = Catalogue(Path(__file__).parents[3] / "templates")
INSIDE = ["unshare", "--net", "--mount", *(() if os.geteuid() == 0 else ("--user", "--map-root-user"))]
PRELUDE = """\
set -u
root() { "$@"; }
put_in() { echo "$2" >"$1"; }
batch() { "$1" ${2:+"$2"} -batch -; }
fail() { echo "$*"; exit 1; }
await() { shift; until "$@"; do sleep 0.05; done; }
mount -t sysfs sysfs /sys
ip link add eth1 type veth peer name peer1 && ip link set eth1 up && ip link set peer1 up
ip link add eth2 type veth peer name peer2 && ip link set eth2 up && ip link set peer2 up
ip addr add 172.16.10.2/24 dev eth1
"""


def run(script: str) -> str:
    """Run a script in a network namespace with two links; return what it prints."""
    done = subprocess.run(
        [*INSIDE, "dash", "-c", PRELUDE + script], text=True, capture_output=True, check=False, timeout=60
    )
    assert done.stderr == ""
    return done.stdout


def each_line() -> str:
    prelude = CATALOGUE.recipe("step", "prelude", "linux").render("script", {"folder": "/x", "campaign": "x"})
    found = re.search(r"^each_line\(\) \{.*?^\}\n", prelude, re.MULTILINE | re.DOTALL)
    assert found
    return found[0]


def bottleneck(
    block: str, was: dict[str, str], delay_s: float = 0.0, rate_bps: int | None = 5_000_000
) -> str:
    down = DirectionPlan(
        interface="eth2", rate_bps=rate_bps, aqm="pfifo", buffer_packets=100, delay_s=delay_s
    )
    path = PathPlan(router="rtr", rtt_s=delay_s, down=down, up=DirectionPlan(interface="eth1"))
    router = HostPlan(
        os="linux", role="router", cc=None, rwnd_bytes=None, mtu_bytes=None, txd=None,
        interfaces=("eth1", "eth2"),
    )  # fmt: skip
    values = dict(bottleneck_values(path, router, None, CATALOGUE))
    return CATALOGUE.recipe("setting", "bottleneck", "linux").render(block, {**values, "was": was})


def shaper(block: str, was: dict[str, str] | None = None) -> str:
    values = {"interfaces": ("eth2",), "rate": 5_000_000, "was": was or {"shaper.eth2": "noqueue 0: "}}
    return CATALOGUE.recipe("setting", "shaper", "linux").render(block, values)


@pytest.mark.parametrize("script", [bottleneck("set", {}), shaper("set")], ids=["bottleneck", "shaper"])
def test_an_interface_with_jumbo_frames_is_shaped_without_dropping_them(script: str) -> None:
    jumbo = "ip link set eth2 mtu 9000; ip link set peer2 mtu 9000\nip addr add 172.16.11.1/24 dev eth2\n"
    peer = "ip neigh add 172.16.11.2 lladdr 02:00:00:00:00:02 dev eth2 nud permanent\n"
    packets = "ping -c 2 -i 0.2 -W 0.1 -s 8972 -M do 172.16.11.2 >/dev/null\ntc -s qdisc show dev eth2\n"
    shown = run(jumbo + peer + script + packets)
    assert re.search(r"tbf .*\n Sent \d+ bytes \d+ pkt \(dropped 0,", shown), shown


SYSCTLS = {"tcp_moderate_rcvbuf": "1", "tcp_adv_win_scale": "1", "tcp_rmem": "4096 131072 6291456"}
ROUTE = "172.16.11.2 via 172.16.10.1 dev eth1 proto static metric 100"


def rwnd(block: str) -> str:
    was = {**SYSCTLS, "route.172.16.11.2": ROUTE}
    values = {"size_bytes": 65535, "peers": ("172.16.11.2",), "was": was}
    return CATALOGUE.recipe("setting", "rwnd", "linux").render(block, values)


def test_a_route_to_a_peer_is_restored_with_its_metric() -> None:
    show = "ip -4 route show 172.16.11.2/32\n"
    shown = run(f"ip route add {ROUTE}\n{rwnd('set')}{show}{rwnd('restore')}{show}")
    during, after = (" ".join(line.split()) for line in shown.splitlines())
    assert "window 65535" in during
    assert after == ROUTE


def test_a_window_is_set_for_an_ipv6_peer_and_its_route_is_removed_afterwards() -> None:
    peer = "2001:db8:1::2"
    values = {"size_bytes": 65535, "peers": (peer,), "was": {**SYSCTLS, f"route.{peer}": ""}}
    recipe = CATALOGUE.recipe("setting", "rwnd", "linux")
    route = "ip addr add 2001:db8::1/64 dev eth1 nodad\nip -6 route add 2001:db8:1::/64 via 2001:db8::2 dev eth1\n"
    show = f"ip -6 route show {peer}/128\n"
    script = "".join(
        (route, recipe.render("set", values), show, "echo\n", recipe.render("restore", values), show)
    )
    during, after = run(script).split("\n\n")
    assert during.startswith(f"{peer} via 2001:db8::2 dev eth1 ")
    assert " window 65535" in during
    assert after == ""
    for line in re.findall(r"^root ip (.*?)(?: \|\| .*)?$", recipe.render("restore", values), re.MULTILINE):
        allowed = allowed_commands(recipe.header.root, "user", ("eth1",))
        assert any(one.program == "ip" and re.fullmatch(one.arguments, line) for one in allowed), line


def test_sudo_allows_the_command_that_restores_a_route_to_a_peer() -> None:
    (command,) = re.findall(r"^root ip (.*)$", rwnd("restore"), re.MULTILINE)
    allowed = allowed_commands(CATALOGUE.header("setting", "rwnd", "linux").root, "user", ("eth1",))
    assert any(one.program == "ip" and re.fullmatch(one.arguments, command) for one in allowed), command


@pytest.mark.parametrize("handle", ["5:", "1:", "10:"])
def test_a_queue_discipline_of_the_testbed_s_owner_is_neither_replaced_nor_removed(handle: str) -> None:
    owned = f"tc qdisc add dev eth2 root handle {handle} bfifo limit 30000\n"
    found = dict(
        line.split("=", 1) for line in run(owned + each_line() + bottleneck("read", {})).splitlines()
    )
    assert found[f"qdisc.eth2.{handle}"].split() == ["bfifo", "limit", "30000b"]
    shown = run(
        f"{owned}({bottleneck('set', found)})\n{bottleneck('restore', found)}tc qdisc show dev eth2\n"
    )
    assert f"eth2 has the queue discipline {handle} bfifo limit 30000b" in shown
    assert f"qdisc bfifo {handle} root" in shown
    assert run(bottleneck("set", {"qdisc.eth2.0:": "fq_codel limit 10240p"})) == ""


def test_a_shaper_of_the_host_s_owner_is_neither_replaced_nor_removed() -> None:
    owned = "tc qdisc add dev eth2 root handle 11: bfifo limit 30000\n"
    was = dict(line.split("=", 1) for line in run(owned + each_line() + shaper("read")).splitlines())
    shown = run(f"{owned}({shaper('set', was)})\n{shaper('restore', was)}tc qdisc show dev eth2\n")
    assert "eth2 has the queue discipline bfifo 11:" in shown
    assert "qdisc bfifo 11: root" in shown


def test_filters_of_the_testbed_s_owner_for_arriving_packets_are_not_removed() -> None:
    owned = "tc qdisc add dev eth1 handle ffff: ingress\n"
    found = dict(
        line.split("=", 1) for line in run(owned + each_line() + bottleneck("read", {})).splitlines()
    )
    blocks = (bottleneck(block, found, 0.01) for block in ("set", "restore"))
    shown = run(f"{owned}({next(blocks)})\n{next(blocks)}tc qdisc show dev eth1\n")
    assert "eth1 has a queue discipline for arriving packets, ingress" in shown
    assert "qdisc ingress ffff:" in shown
    assert "ingress" in bottleneck("restore", {}, 0.01)


def test_restoring_a_path_that_only_delays_keeps_the_owner_s_filters_of_arriving_packets() -> None:
    owned = "tc qdisc add dev eth1 handle ffff: ingress\n"
    restore = bottleneck("restore", {"qdisc.eth1.ffff:": "ingress"}, 0.01, None)
    assert "qdisc ingress ffff:" in run(f"{owned}{restore}tc qdisc show dev eth1\n")


def test_ipv6_addresses_and_routes_survive_an_mtu_below_their_minimum() -> None:
    ipv6 = "ip addr add 2001:db8::1/64 dev eth1 nodad\nip -6 route add 2001:db8:1::/64 via 2001:db8::2 dev eth1\n"
    recipe = CATALOGUE.recipe("setting", "mtu", "linux")
    values: dict[str, object] = {"interfaces": ("eth1",), "mtu_bytes": 600}
    read = each_line() + recipe.render("read", values)
    was = dict(line.split("=", 1) for line in run(ipv6 + read).splitlines())
    values["was"] = was
    functions = CATALOGUE.recipe("step", "listening", "linux").render("script", {})
    script = f"{ipv6}{functions}{recipe.render('set', values)}{recipe.render('restore', values)}{read}"
    assert dict(line.split("=", 1) for line in run(script).splitlines()) == was
    assert was["inet6.eth1"] == "2001:db8::1/64 "
