"""Facts parsed from the output of real hosts: a lab's router (Linux 6.1, user mode) and a virtual machine (Linux 6.18)."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from samovar.errors import TestbedError
from samovar.hosts import NOT_ENDED, HostFacts, Interface, ScriptResult
from samovar.hosts.fact_parsers import (
    FORMATS,
    parse_cc_parameters,
    parse_clock_source,
    parse_interfaces,
    parse_number,
    parse_qdiscs,
    parse_tools,
)
from samovar.hosts.facts import (
    DEFAULT_PROGRAMS,
    DEFAULT_QDISCS,
    clock_offset,
    facts_of,
    parse_facts,
    script_of,
)
from samovar.recipes import Catalogue

CATALOGUE = Catalogue(Path(__file__).parents[3] / "templates")

LAB_INTERFACES = """\
[{"ifindex":1,"ifname":"lo","flags":["LOOPBACK","UP","LOWER_UP"],"mtu":65536,"qdisc":"noqueue","addr_info":\
[{"family":"inet","local":"127.0.0.1","prefixlen":8,"scope":"host","label":"lo"}]},\
{"ifindex":3,"link_index":4,"ifname":"eth1","flags":["BROADCAST","MULTICAST","UP","LOWER_UP"],"mtu":1500,\
"qdisc":"noqueue","operstate":"UP","group":"default","txqlen":1000,"link_type":"ether","link_netnsid":1,\
"addr_info":[{"family":"inet","local":"172.16.10.1","prefixlen":24,"scope":"global","label":"eth1"}]}]
eth1:
Features for eth1:
rx-checksumming: on
tx-checksumming: on
	tx-checksum-ipv4: off [fixed]
	tx-checksum-ip-generic: on
scatter-gather: on
	tx-scatter-gather: on
tcp-segmentation-offload: on
	tx-tcp-segmentation: on
	tx-tcp6-segmentation: on
generic-segmentation-offload: on
generic-receive-offload: off
large-receive-offload: off [fixed]
rx-vlan-offload: on
tx-udp-segmentation: on
rx-gro-list: off
"""

MACHINE_RINGS = """\
ifb0:
eth0:
Ring parameters for eth0:
Pre-set maximums:
RX:		256
RX Mini:	n/a
RX Jumbo:	n/a
TX:		256
Current hardware settings:
RX:		256
RX Mini:	n/a
RX Jumbo:	n/a
TX:		256
RX Buf Len:		n/a
CQE Size:		n/a
TX Push:	off
TCP data split:	n/a
"""

WIRELESS_RINGS = """\
wlan0:
Ring parameters for wlan0:
Pre-set maximums:
RX:		n/a
TX:		n/a
Current hardware settings:
RX:		n/a
TX:		n/a
"""

TOOLS = """\
ethtool ethtool version 6.1
grep
iperf iperf version 2.1.8 (12 August 2022) pthreads
iperf3 iperf 3.12 (cJSON 1.7.15)
nuttcp nuttcp-6.1.2
tc tc utility, iproute2-6.1.0, libbpf 1.1.2
tcpdump tcpdump version 4.99.3
"""

MACHINE_QDISCS = """\
bfifo
cake
htb
netem
tbf
tc:
Error: Specified qdisc kind is unknown.
Command failed -:2
Error: Specified qdisc kind is unknown.
Command failed -:4
exit 1
"""

DISK = """\
Filesystem     1024-blocks     Used Available Capacity Mounted on
/dev/vda         264212084 16508424  78992840      18% /
"""

OS_RELEASE = """\
NAME="Debian GNU/Linux"
VERSION_ID="12"
PRETTY_NAME="Debian GNU/Linux 12 (bookworm)"
ID=debian
"""


def test_interfaces_have_mtu_addresses_and_enabled_offloads() -> None:
    assert parse_interfaces(LAB_INTERFACES) == (
        Interface("lo", 65536, ("127.0.0.1/8",)),
        Interface("eth1", 1500, ("172.16.10.1/24",), ("tso", "gso")),
    )


CARD = (
    '[{"ifindex":4,"ifname":"eth0","flags":["BROADCAST","MULTICAST","UP","LOWER_UP"],"mtu":1400,"qdisc":"pfifo_fast",'
    '"operstate":"UP","min_mtu":68,"max_mtu":9216,"num_tx_queues":1,"addr_info":[{"family":"inet","local":"192.0.2.2",'
    '"prefixlen":24,"scope":"global"}]},{"ifindex":2,"ifname":"ifb0","mtu":1500,"min_mtu":0,"max_mtu":0,"addr_info":[]}]\n'
)


def test_the_largest_mtu_of_an_interface_is_unknown_if_its_driver_reports_zero() -> None:
    assert parse_interfaces(CARD) == (
        Interface("eth0", 1400, ("192.0.2.2/24",), max_mtu_bytes=9216),
        Interface("ifb0", 1500),
    )


PAUSES = """\
eth1:
netlink error: Operation not supported
enp3s0:
Pause parameters for enp3s0:
Autonegotiate:	on
RX:		off
TX:		off
"""


def test_interfaces_with_pause_parameters_are_those_that_have_flow_control() -> None:
    assert FORMATS["ethtool-pauses"](PAUSES) == ("enp3s0",)


def test_parameters_of_loaded_congestion_controls_are_parsed() -> None:
    text = "/sys/module/tcp_cdg/parameters/window\n/sys/module/tcp_cubic/parameters/beta\n/sys/module/tcp_cdg/parameters/use_ineff\n"
    assert parse_cc_parameters(text) == {"cdg": ("window", "use_ineff"), "cubic": ("beta",)}
    assert parse_cc_parameters("/sys/module/tcp_*/parameters/*\n") == {}


CHRONY = "C0A80001,192.168.0.1,3,1763740000.123,-0.000001,0.000002,0.000010,1.5,0.001,0.05,0.01,0.002,64.0,"


@pytest.mark.parametrize(
    ("output", "source"),
    [
        (f"chrony\n{CHRONY}Normal\n", "chrony"),
        (f"chrony\n{CHRONY}Not synchronised\n", ""),
        ("ntp\n     remote  refid\n====\n*192.168.0.1  GPS  1 u 12 64 377 0.2 0.01 0.003\n", "ntp"),
        ("ntp\n     remote  refid\n====\n 192.168.0.1  .INIT.  16 u - 64 0 0.0 0.0 0.0\n", ""),
        ("timesyncd\nNTP=yes\nNTPSynchronized=yes\n", "timesyncd"),
        ("timesyncd\nNTP=yes\nNTPSynchronized=no\n", ""),
        ("\n", ""),
    ],
)
def test_the_clock_source_is_empty_unless_the_clock_is_synchronised(output: str, source: str) -> None:
    assert parse_clock_source(output) == source


def test_interfaces_with_rings_are_those_that_have_a_transmit_ring() -> None:
    assert FORMATS["ethtool-rings"](MACHINE_RINGS) == ("eth0",)
    assert FORMATS["ethtool-rings"](WIRELESS_RINGS) == ()
    assert FORMATS["ethtool-rings"]("em0:\nCurrent hardware settings:\nTX: 256\n") == ("em0",)
    assert FORMATS["ethtool-rings"]("ctl0:\neth1:\neth2:\n") == ()


def test_versions_of_tools_are_parsed() -> None:
    assert parse_tools(TOOLS) == {
        "ethtool": "6.1",
        "grep": "",
        "iperf": "2.1.8",
        "iperf3": "3.12",
        "nuttcp": "6.1.2",
        "tc": "6.1.0",
        "tcpdump": "4.99.3",
    }


def test_queue_disciplines_for_which_tc_reports_an_error_are_left_out() -> None:
    assert parse_qdiscs(MACHINE_QDISCS) == ("bfifo", "htb", "tbf")
    assert parse_qdiscs("pfifo\nred\ntc:\nexit 0\n") == ("pfifo", "red")


@pytest.mark.parametrize(
    "output",
    [
        "",
        "exit 127\n",
        "unshare: unshare failed: Operation not permitted\nexit 1\n",
        "/bin/sh: 1: unshare: not found\nexit 127\n",
    ],
)
def test_no_queue_discipline_is_listed_if_tc_could_not_run(output: str) -> None:
    assert parse_qdiscs(f"tbf\ntc:\n{output}") == ()


def test_disk_space_system_name_numbers_and_words_are_parsed() -> None:
    assert FORMATS["df"](DISK) == 78992840 * 1024
    assert FORMATS["os-release"](OS_RELEASE) == "Debian GNU/Linux 12 (bookworm)"
    assert FORMATS["os-release"]("PRETTY_NAME=Slackware\n") == "Slackware"
    assert parse_number("4\n") == 4
    assert FORMATS["words"]("reno cubic bbr\ncubic\n") == ("bbr", "cubic", "reno")


def test_missing_output_gives_empty_facts() -> None:
    facts = facts_of(CATALOGUE, "linux", DEFAULT_PROGRAMS, DEFAULT_QDISCS)
    assert HostFacts("src", **parse_facts("src", facts, "")) == HostFacts("src")


@pytest.mark.parametrize("output", ['[{"ifname":"eth1"', '[{"ifname":"eth1","mtu":1500,"addr_info":[{}]}]'])
def test_output_that_cannot_be_parsed_is_an_error_that_names_the_host_and_the_fact(output: str) -> None:
    facts = facts_of(CATALOGUE, "linux", DEFAULT_PROGRAMS, DEFAULT_QDISCS)
    with pytest.raises(TestbedError, match=r"^src: fact interfaces: unexpected output .*eth1"):
        parse_facts("src", facts, f"=fact= interfaces\n{output}\n")


def clock_result(text: str, seconds: float) -> ScriptResult:
    return ScriptResult("src", "clock", "", NOT_ENDED, text.encode(), b"", 1795271645.0, seconds)


def test_the_clock_error_is_half_the_duration_of_the_query() -> None:
    offset_s, error_s = clock_offset(clock_result("1795271647250000000\n", 0.5))
    assert offset_s == pytest.approx(2.0, abs=1e-6)
    assert error_s == 0.25


def test_clock_output_that_is_not_a_number_is_an_error() -> None:
    with pytest.raises(TestbedError, match="src: clock: 'what'"):
        clock_offset(clock_result("what\n", 0.2))


def test_the_script_gathers_all_facts_even_if_one_command_fails() -> None:
    facts = facts_of(CATALOGUE, "linux", ("gzip", "no-such-program", "tc"), ("no-such-qdisc",))
    done = subprocess.run(["/bin/sh", "-c", script_of(facts)], capture_output=True, text=True, check=True)
    found = HostFacts("here", **parse_facts("here", facts, done.stdout))
    assert done.stderr == ""
    assert found.kernel.startswith("Linux ")
    assert found.cpu_count > 0
    assert found.disk_free_bytes > 0
    assert set(found.tools) == {"gzip", "tc"}
    assert found.tools["tc"]
    assert "reno" in found.cc_offered
    assert found.qdiscs == ()
    assert any("127.0.0.1/8" in interface.addresses for interface in found.interfaces)
    assert json.loads(json.dumps(found.as_json()))["boot_id"] == found.boot_id
