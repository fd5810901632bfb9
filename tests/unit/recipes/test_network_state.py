"""Step `network`, which prints the state of a host's network, run with recorded output of tc, ip, ipfw and others."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path

import pytest

from samovar.campaign.host_state import changed, parse_state
from tests.unit.recipes.freebsd_sample import CATALOGUE, prelude, recorded_output, replay

ROUTE = "route -n get -inet 172.16.11.2"
EACH_LINE = prelude()[prelude().index("each_line() {") :].partition("\n}\n")[0] + "\n}"

QDISCS = """\
qdisc noqueue 0: root refcnt 2
qdisc tbf 1: root refcnt 3 rate 12Mbit burst 6000b lat 658ms
qdisc pfifo 10: parent 1:1 limit 137p
qdisc ingress ffff: parent ffff:fff1 ----------------
filter parent ffff: protocol ip pref 7 u32 chain 0
filter parent ffff: protocol ip pref 7 u32 chain 0 fh 801: ht divisor 1
filter parent ffff: protocol ip pref 7 u32 chain 0 fh 801::800 order 2048 key ht 801 bkt 0 terminal flowid not_in_hw
  match 00000050/0000ffff at 20
\taction order 1:  police 0x1 rate 1Mbit burst 10Kb mtu 2Kb action drop overhead 0b
\tref 1 bind 1
filter parent ffff: protocol all pref 60000 u32 chain 0
filter parent ffff: protocol all pref 60000 u32 chain 0 fh 800::800 order 2048 key ht 800 bkt 0 terminal flowid not_in_hw
  match 00000000/00000000 at 0
\taction order 1: mirred (Egress Redirect to device sv-up) stolen
"""
ROUTES = """\
172.16.10.2 via 10.0.0.1 dev eth2 src 10.0.0.9 uid 0 \\    cache
172.16.11.2 via 10.0.0.1 dev eth2 src 10.0.0.9 uid 0 \\    cache mtu lock 1400
172.16.12.2 via 10.0.0.1 dev eth2 src 10.0.0.9 uid 0 \\    cache expires 594sec mtu 1300
"""


@pytest.fixture(autouse=True)
def own_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Change to a temporary folder, because the step writes to its working directory."""
    monkeypatch.chdir(tmp_path)


def freebsd(answers: Mapping[str, str], *programs: str) -> dict[str, str]:
    """Run the step of FreeBSD with recorded output of programs, and shell functions in place of others."""
    values = {"interfaces": ("em1", "em2"), "addresses": ["172.16.11.2"]}
    script = CATALOGUE.recipe("step", "network", "freebsd").render("script", values)
    done = replay(script, {"ipfw list": "", **answers}, EACH_LINE, *programs)
    assert (done.stderr, done.returncode) == ("", 0)
    return parse_state(done.stdout)


def linux(programs: str, path: str = "") -> dict[str, str]:
    """Return what the step `network` for Linux prints if shell functions replace its programs."""
    values = {"interfaces": ("lo", "eth2"), "addresses": ["172.16.10.2", "172.16.11.2", "172.16.12.2"]}
    script = CATALOGUE.recipe("step", "network", "linux").render("script", values)
    script = script.replace("/sys/class/net/$n_name/mtu", "/sys/class/net/lo/mtu")
    dash = shutil.which("dash") or "sh"
    text = f"set -u\n{path}\n{EACH_LINE}\n{programs}{script}"
    done = subprocess.run([dash], input=text, text=True, capture_output=True, check=True)
    assert done.stderr == ""
    return parse_state(done.stdout)


def printing(name: str, text: str, error: str = "", code: int = 0) -> str:
    """Return a shell function that prints `text`, prints `error` to standard error, and returns `code`."""
    return f"{name}() {{ cat <<'THE-END'\n{text}THE-END\ncat >&2 <<'THE-END'\n{error}THE-END\nreturn {code}; }}\n"


@pytest.mark.parametrize("release", ["13.2", "14.0"])
def test_mtu_options_and_routes_of_freebsd_are_read(release: str) -> None:
    answers = {
        "ifconfig": recorded_output(release, "ifconfig"),
        ROUTE: recorded_output(release, "route -n get 172.16.11.2"),
    }
    state = freebsd(answers)
    assert state["network.mtu.em1"] == "1500"
    assert state["network.options.em1"].startswith("RXCSUM,TXCSUM,VLAN_MTU")
    assert state["network.route.172.16.11.2"] == "gateway: 172.16.10.1 interface: em1 mtu: 1500"
    assert not [key for key in state if key.startswith("shaping.") or "em0" in key or "lo0" in key]
    smaller = freebsd({**answers, "ifconfig": answers["ifconfig"].replace("mtu 1500", "mtu 1400")})
    assert {key for key in state if state[key] != smaller[key]} == {"network.mtu.em1"}


def test_offload_flags_that_were_disabled_on_freebsd_are_a_change() -> None:
    route = recorded_output("14.0", "route -n get 172.16.11.2")
    early, late = (
        freebsd({"ifconfig": recorded_output("14.0", "ifconfig em1", turn), ROUTE: route}) for turn in (0, 1)
    )
    (change,) = changed(early, late)
    assert change.key == "network.options.em1"
    assert {*change.wanted.split(",")} - {*str(change.observed).split(",")} == {
        "RXCSUM",
        "TXCSUM",
        "TSO4",
        "LRO",
    }


def test_a_foreign_pipe_on_freebsd_is_read() -> None:
    route = recorded_output("14.0", "route -n get 172.16.11.2")
    state = freebsd({"ifconfig": "", ROUTE: route, "ipfw list": recorded_output("14.0", "ipfw list", 1)})
    assert state["shaping.ipfw.00100.1"] == "pipe 1 ip from 172.16.10.0/24 to 172.16.11.0/24 out"


def test_rules_of_ipfw_that_shape_packets_are_read_unless_they_name_another_interface() -> None:
    rules = """\
00042 pipe 20001 ip from any to any out xmit em2
00100 pipe 1 ip from 172.16.10.0/24 to 172.16.11.0/24 out
00100 prob 0.010000 deny ip from any to any
00200 pipe 2 ip from any to any out xmit em0
00300 deny tcp from 10.1.1.1 to any
65534 allow ip from any to any
65535 deny ip from any to any
"""
    answers = {
        "ifconfig": recorded_output("14.0", "ifconfig"),
        ROUTE: recorded_output("14.0", "route -n get 172.16.11.2"),
    }
    state = freebsd({**answers, "ipfw list": rules})
    assert {key: value for key, value in state.items() if key.startswith("shaping.")} == {
        "shaping.ipfw.00042.1": "pipe 20001 ip from any to any out xmit em2",
        "shaping.ipfw.00100.1": "pipe 1 ip from 172.16.10.0/24 to 172.16.11.0/24 out",
        "shaping.ipfw.00100.2": "prob 0.010000 deny ip from any to any",
    }


def test_queue_disciplines_filters_and_routes_of_linux_are_read() -> None:
    state = linux(printing("tc", QDISCS) + printing("ip", ROUTES))
    filters = {key: value for key, value in state.items() if key.startswith("shaping.filter.")}
    assert [*filters] == ["shaping.filter.eth2.7.1", "shaping.filter.eth2.60000.2"]
    assert "police 0x1 rate 1Mbit" in filters["shaping.filter.eth2.7.1"]
    assert "to device sv-up" in filters["shaping.filter.eth2.60000.2"]
    assert {key: value for key, value in state.items() if key not in filters and "mtu" not in key} == {
        "shaping.qdisc.eth2.1:": "tbf rate 12Mbit burst 6000b lat 658ms",
        "shaping.qdisc.eth2.10:": "pfifo parent 1:1 limit 137p",
        "shaping.qdisc.eth2.ffff:": "ingress parent ffff:fff1 ----------------",
        "network.route.172.16.10.2": "via 10.0.0.1 dev eth2 src 10.0.0.9",
        "network.route.172.16.11.2": "via 10.0.0.1 dev eth2 src 10.0.0.9 mtu 1400",
        "network.route.172.16.12.2": "via 10.0.0.1 dev eth2 src 10.0.0.9",
    }


def test_packets_that_htb_did_not_classify_are_not_a_change_of_shaping() -> None:
    shown = "qdisc htb 1: root refcnt 2 r2q 10 default 0x9 direct_packets_stat {} direct_qlen 1000\n"
    early, late = (
        linux(printing("tc", "qdisc noqueue 0: root refcnt 2\n" + shown.format(n)) + printing("ip", ROUTES))
        for n in (0, 4)  # as tc 6.1 prints it
    )
    assert changed(early, late) == ()
    assert shaping_of(early) == {"shaping.qdisc.eth2.1:": "htb r2q 10 default 0x9 direct_qlen 1000"}


def shaping_of(state: Mapping[str, str]) -> dict[str, str]:
    return {key: value for key, value in state.items() if key.startswith("shaping.")}


def test_if_tc_fails_shaping_is_unknown_and_has_the_message_of_tc() -> None:
    error = "Cannot open netlink socket: Operation not permitted\nCommand failed -:1\n"
    state = linux(printing("tc", QDISCS, error, 1) + printing("ip", ROUTES))
    assert shaping_of(state) == {
        "shaping.unknown": "tc ended with exit code 1: Cannot open netlink socket: Operation not permitted"
    }
    assert "network.unknown" not in state
    killed = linux(printing("tc", "", "", 137) + printing("ip", ROUTES))
    assert shaping_of(killed) == {"shaping.unknown": "tc ended with exit code 137"}


def test_if_ip_fails_the_network_is_unknown_and_has_the_message_of_ip() -> None:
    error = "Cannot send dump request: No buffer space available\nCommand failed -:1\n"
    state = linux(printing("tc", QDISCS) + printing("ip", "", error, 1))
    assert state["network.unknown"] == (
        "ip ended with exit code 1: Cannot send dump request: No buffer space available"
    )
    assert not [key for key in state if key.startswith("network.route.")]


@pytest.mark.parametrize("why", ["Network is unreachable", "No route to host"])
def test_a_missing_route_on_linux_is_not_a_failure_of_ip(why: str) -> None:
    error = f"RTNETLINK answers: {why}\nCommand failed -:3\n"  # as ip 6.1 prints it
    state = linux(printing("tc", QDISCS) + printing("ip", ROUTES.partition("172.16.12.2")[0], error, 1))
    routes = {key for key in state if key.startswith("network.route.")}
    assert routes == {"network.route.172.16.10.2", "network.route.172.16.11.2"}
    assert "network.unknown" not in state


def test_a_kernel_without_filters_is_not_a_failure_of_tc() -> None:
    error = "RTNETLINK answers: Operation not supported\nDump terminated\nCommand failed -:2\n"
    state = linux(printing("tc", QDISCS.partition("filter")[0], error, 1) + printing("ip", ROUTES))
    assert "shaping.unknown" not in state
    assert state["shaping.qdisc.eth2.10:"] == "pfifo parent 1:1 limit 137p"


def test_shaping_of_a_host_without_tc_is_reported_as_unseen() -> None:
    state = linux(printing("ip", ROUTES), "cat() { /bin/cat; }; PATH=/nowhere")
    assert shaping_of(state) == {"shaping.unseen": "tc is not installed"}
    assert state["network.route.172.16.10.2"] == "via 10.0.0.1 dev eth2 src 10.0.0.9"


ON_FREEBSD = {
    "ifconfig": recorded_output("14.0", "ifconfig"),
    ROUTE: recorded_output("14.0", "route -n get 172.16.11.2"),
}


@pytest.mark.parametrize("release", ["13.2", "14.0"])
def test_an_ipfw_that_is_not_loaded_shapes_nothing(release: str) -> None:
    error = recorded_output(release, "ipfw list", 0, "stderr")
    assert error == "ipfw: retrieving config failed: Protocol not available\n"
    assert shaping_of(freebsd(ON_FREEBSD, printing("ipfw", "", error, 71))) == {}


def test_if_ipfw_fails_shaping_is_unknown_and_has_the_message_of_ipfw() -> None:
    error = "ipfw: socket: Operation not permitted\n"
    assert shaping_of(freebsd(ON_FREEBSD, printing("ipfw", "", error, 71))) == {
        "shaping.unknown": "ipfw ended with exit code 71: ipfw: socket: Operation not permitted"
    }


def test_if_ifconfig_or_route_fails_the_network_is_unknown() -> None:
    ifconfig = printing("ifconfig", "", "ifconfig: socket(family 2,SOCK_DGRAM): Too many open files\n", 1)
    state = freebsd(ON_FREEBSD, ifconfig)
    assert state["network.unknown"].startswith("ifconfig ended with exit code 1: ifconfig: socket(family 2")
    route = printing("route", "", "route: writing to routing socket: No buffer space available\n", 1)
    state = freebsd(ON_FREEBSD, route)
    assert state["network.unknown"].endswith("No buffer space available")
    absent = freebsd(ON_FREEBSD, printing("route", "", "route: route has not been found\n", 1))
    assert ("network.unknown" in absent, absent["network.route.172.16.11.2"]) == (False, "")
