"""Routes are the shortest paths over the links and routers of a testbed."""

from pathlib import Path

import pytest

from samovar.experiment import load_testbed, yaml_tree
from samovar.plan import shortest_path

ROOT = Path(__file__).parents[3]


@pytest.mark.parametrize("name", yaml_tree.yaml_names(ROOT / "hosts"))
def test_a_shipped_testbed_is_valid_and_connects_senders_to_receivers(name: str) -> None:
    testbed = load_testbed(ROOT / "hosts" / f"{name}.yaml")
    (sender,), (receiver,) = testbed.hosts_by_name["sender"], testbed.hosts_by_name["receiver"]
    assert shortest_path(testbed, sender, receiver)


def test_a_path_lists_the_interface_and_the_next_host_of_each_hop() -> None:
    testbed = load_testbed(ROOT / "hosts" / "lab.yaml")
    hops = shortest_path(testbed, "src", "dst") or ()
    assert [(hop.host, hop.out_interface, hop.next_host) for hop in hops] == [
        ("src", "eth1", "rtr"),
        ("rtr", "eth2", "dst"),
    ]
