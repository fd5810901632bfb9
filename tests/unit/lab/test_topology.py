"""The topology of a lab, derived from a testbed file."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from samovar import installation
from samovar.errors import LabError
from samovar.events import Event
from samovar.experiment import Testbed, load_testbed
from samovar.lab.boot_files import Boot, write_boot_folder
from samovar.lab.topology import Topology, read_topology
from samovar.recipes import shell_environment

ROOT = Path(__file__).parents[3]

CHAIN: dict[str, Any] = {
    "testbed": "chain",
    "lab": {},
    "hosts": {
        "a": {
            "os": "linux",
            "role": "sender",
            "address": "10.9.0.1",
            "interfaces": {"eth1": {"address": "172.16.1.2/24", "link": "one"}},
        },
        "r1": {
            "os": "linux",
            "role": "router",
            "address": "10.9.0.2",
            "interfaces": {
                "eth1": {"address": "172.16.1.1/24", "link": "one"},
                "eth2": {"address": "172.16.2.1/30", "link": "two"},
            },
        },
        "r2": {
            "os": "linux",
            "role": "router",
            "address": "10.9.0.3",
            "interfaces": {
                "eth1": {"address": "172.16.2.2/30", "link": "two"},
                "eth2": {"address": "172.16.3.1/24", "link": "three"},
            },
        },
        "b": {
            "os": "linux",
            "role": "receiver",
            "address": "10.9.0.4",
            "interfaces": {"eth1": {"address": "172.16.3.2/24", "link": "three"}},
        },
    },
}


def chain(**changes: Any) -> Testbed:
    return Testbed.model_validate({**CHAIN, "hosts": {**CHAIN["hosts"], **changes}})


def routes(topology: Topology) -> dict[str, dict[str, str]]:
    return {
        node.name: {str(network): str(gateway) for network, gateway in node.gateways.items()}
        for node in topology.nodes
    }


def test_every_host_of_a_chain_reaches_every_subnet_through_its_nearest_router() -> None:
    assert routes(read_topology(chain())) == {
        "a": {"172.16.2.0/30": "172.16.1.1", "172.16.3.0/24": "172.16.1.1"},
        "r1": {"172.16.3.0/24": "172.16.2.2"},
        "r2": {"172.16.1.0/24": "172.16.2.1"},
        "b": {"172.16.2.0/30": "172.16.3.1", "172.16.1.0/24": "172.16.3.1"},
    }


def test_only_routers_forward_packets() -> None:
    middle = {**CHAIN["hosts"]["r1"], "role": "observer"}
    topology = read_topology(chain(r1=middle))
    assert routes(topology)["a"] == {}
    assert [node.name for node in topology.nodes if node.forwards] == ["r2"]


def test_the_shortest_route_is_taken() -> None:
    shortcut = {
        **CHAIN["hosts"]["r2"],
        "interfaces": {
            **CHAIN["hosts"]["r2"]["interfaces"],
            "eth3": {"address": "172.16.1.9/24", "link": "one"},
        },
    }
    assert routes(read_topology(chain(r2=shortcut)))["a"]["172.16.3.0/24"] == "172.16.1.9"


def test_a_link_with_two_ends_is_a_cable_and_a_link_with_five_is_a_switch(root: Path) -> None:
    dumbbell = read_topology(load_testbed(root / "hosts" / "dumbbell.yaml"))
    assert [(link.name, len(link.ports), link.is_cable) for link in dumbbell.links] == [
        ("left", 5, False),
        ("right", 5, False),
    ]
    assert all(link.is_cable for link in read_topology(load_testbed(root / "hosts" / "lab.yaml")).links)


def test_the_controller_gets_a_free_address_of_the_control_network() -> None:
    last = {**CHAIN["hosts"]["b"], "address": "10.9.0.254"}
    assert str(read_topology(chain()).controller) == "10.9.0.254/24"
    assert str(read_topology(chain(b=last)).controller) == "10.9.0.253/24"


def test_the_control_network_is_large_enough_for_all_hosts() -> None:
    far = {**CHAIN["hosts"]["b"], "address": "10.9.3.4"}
    topology = read_topology(chain(b=far))
    assert {str(node.control.network) for node in topology.nodes} == {"10.9.0.0/22"}
    assert str(topology.controller) == "10.9.3.254/22"


def test_the_file_of_host_names_has_a_name_for_each_host_and_each_interface() -> None:
    topology = read_topology(chain())
    template = shell_environment((ROOT / "templates" / "lab",)).get_template("hosts.j2")
    rows = [line.split() for line in template.render(vars(topology)).splitlines()]
    assert ["10.9.0.2", "r1"] in rows
    assert ["172.16.2.1", "r1-eth2"] in rows
    assert len({name for _, name in rows}) == len(rows)


@pytest.mark.parametrize(
    ("host", "changes", "message"),
    [
        ("a", {"os": "freebsd"}, "host a: os freebsd cannot run in a namespace; use linux"),
        ("a", {"address": "a.example.org"}, "host a: address 'a.example.org'; give an IPv4 address"),
        ("a", {"address": "200.9.0.1"}, "accepted: all within one /8"),
        (
            "a",
            {"interfaces": {"eth1": {"address": "10.9.0.77/25", "link": "four"}}},
            "the control network (10.9.0.0/24) and link four (10.9.0.0/25) overlap; give them separate",
        ),
        (
            "a",
            {"interfaces": {"eth1": {"address": "fd00::2/64", "link": "one"}}},
            "host a: interface eth1: address fd00::2/64; accepted: IPv4",
        ),
        (
            "a",
            {"interfaces": {"ctl0": {"address": "172.16.1.2/24", "link": "one"}}},
            "interface ctl0: this name is reserved for the lab",
        ),
    ],
)
def test_a_testbed_that_a_lab_cannot_run_is_refused_with_the_reason(
    host: str, changes: dict[str, Any], message: str
) -> None:
    testbed = chain(**{host: {**CHAIN["hosts"][host], **changes}})
    with pytest.raises(LabError) as caught:
        read_topology(testbed)
    assert message in str(caught.value)


def test_hosts_have_permanent_neighbours_for_the_other_ends_of_their_links() -> None:
    dumbbell = read_topology(load_testbed(ROOT / "hosts" / "dumbbell.yaml"))
    template = shell_environment((ROOT / "templates" / "lab",)).get_template("host.batch.j2")
    neighbours = {}
    for node in dumbbell.nodes:
        lines = template.render(node=node, links=dumbbell.links).splitlines()
        words = [line.split() for line in lines if line.startswith("neighbour ")]
        neighbours[node.name] = {address: (dev, mac) for _, _, address, _, mac, _, _, _, dev in words}
    assert neighbours["src1"]["172.16.10.1"] == ("eth1", "02:54:ac:10:0a:01")
    assert sorted(neighbours["src1"]) == ["172.16.10.1", "172.16.10.3", "172.16.10.4", "172.16.10.5"]
    assert {dev for dev, _ in neighbours["rtr"].values()} == {"eth1", "eth2"}
    macs = [port.mac for node in dumbbell.nodes for port in node.ports]
    assert len(set(macs)) == len(macs)


def test_a_wlan_is_one_device_whose_first_port_is_the_access_point() -> None:
    (air,) = [
        link for link in read_topology(load_testbed(ROOT / "hosts" / "wlan-wired.yaml")).links if link.device
    ]
    assert (air.device, air.is_cable) == ("wlan", False)
    assert [port.host for port in air.ports[:3]] == ["router1", "sta1", "sta2"]


def test_the_given_access_point_of_a_wlan_precedes_its_router() -> None:
    wlan = {"standard": "802.11b", "access_point": "a"}
    testbed = Testbed.model_validate({**CHAIN, "links": {"one": {"wlan": wlan}}})
    (air,) = [link for link in read_topology(testbed).links if link.device]
    assert [port.host for port in air.ports] == ["a", "r1"]


def test_the_first_lab_of_an_installation_without_a_checkout_says_that_it_compiles_programs(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(installation, "CHECKOUT", None)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    topology = read_topology(load_testbed(ROOT / "hosts" / "powerline.yaml"))
    boot = Boot(topology, "native", None, False, 65536, 0, 22)
    events = list[Event]()
    for _ in range(2):
        write_boot_folder(tmp_path / "boot", boot, events.append)
    assert [event.values["text"] for event in events] == ["the C programs of labs"]
