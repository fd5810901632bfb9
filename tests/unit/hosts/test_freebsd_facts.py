"""Facts of FreeBSD parsed from the output of real FreeBSD 13.2 and 14.0 hosts (tests/traces/freebsd)."""

from __future__ import annotations

from pathlib import Path

import pytest

from samovar.hosts import HostFacts, Interface
from samovar.hosts.fact_parsers import (
    FORMATS,
    parse_cc_available,
    parse_cc_parameters,
    parse_dmesg_rings,
    parse_ifconfig,
    parse_tools,
)
from samovar.hosts.facts import DEFAULT_PROGRAMS, DEFAULT_QDISCS, facts_of, parse_facts, script_of
from tests.unit.recipes.freebsd_sample import CATALOGUE, RELEASES, recorded_output, replay

CC = "sysctl -n net.inet.tcp.cc.available"


@pytest.mark.parametrize(
    ("release", "turn", "names"),
    [
        ("13.2", 0, "newreno reno"),
        ("13.2", 1, "cdg chd cubic dctcp hd htcp newreno reno vegas"),
        ("14.0", 0, "cubic"),
        ("14.0", 1, "cdg chd cubic dctcp hd htcp newreno reno vegas"),
    ],
)
def test_congestion_controls_are_parsed_from_a_comma_list_and_from_a_table(
    release: str, turn: int, names: str
) -> None:
    assert parse_cc_available(recorded_output(release, CC, turn)) == tuple(names.split())


def test_a_loadable_congestion_control_is_offered() -> None:
    command = facts_command("cc_offered")
    done = replay(command.replace("/boot/kernel", "/nonexistent"), {CC: recorded_output("14.0", CC)})
    assert (parse_cc_available(done.stdout), done.stderr) == (("cubic",), "")


def facts_command(name: str, system: str = "freebsd") -> str:
    return next(
        fact.command for fact in facts_of(CATALOGUE, system, DEFAULT_PROGRAMS, ()) if fact.name == name
    )


@pytest.mark.parametrize(("release", "offloads"), [("13.2", ()), ("14.0", ("tso", "lro"))])
def test_interfaces_have_the_mtu_addresses_and_offloads_of_ifconfig(
    release: str, offloads: tuple[str, ...]
) -> None:
    assert parse_ifconfig(recorded_output(release, "ifconfig")) == (
        Interface("em0", 1500, ("10.0.2.15/24",), offloads),
        Interface("em1", 1500, ("172.16.10.2/24",), offloads),
        Interface("lo0", 16384, ("127.0.0.1/8", "::1/128", "fe80::1/64")),
    )


def test_interfaces_with_rings_are_those_whose_driver_reports_its_descriptors() -> None:
    assert parse_dmesg_rings(recorded_output("13.2", "dmesg")) == ("em0", "em1")
    assert parse_dmesg_rings("vtnet0: <VirtIO Networking Adapter> on virtio_pci1\n") == ()


def test_before_iflib_interfaces_with_rings_are_those_whose_driver_has_a_tunable() -> None:
    command = facts_command("rings", "freebsd-10")
    done = replay(command, {"ifconfig -l": "em0 igb1 vtnet0 lo0", "sysctl -n hw.none.txd": ""})
    assert done.stdout.split() == ["em0", "igb1"]


@pytest.mark.parametrize(
    ("release", "name"), [("13.2", "FreeBSD 13.2-RELEASE"), ("14.0", "FreeBSD 14.0-STABLE")]
)
def test_the_system_is_named_by_os_release(release: str, name: str) -> None:
    assert FORMATS["os-release"](recorded_output(release, "cat /etc/os-release")) == name


def test_a_system_without_os_release_is_named_by_uname() -> None:
    command = facts_command("os_release").replace("/etc/os-release", "/nonexistent")
    assert (
        FORMATS["os-release"](replay(command, {"uname -sr": "FreeBSD 10.4-RELEASE"}).stdout)
        == "FreeBSD 10.4-RELEASE"
    )


def test_the_version_of_tcpdump_is_parsed_from_its_standard_error() -> None:
    first = recorded_output("13.2", "tcpdump --version", 0, "stderr").splitlines()[0]
    assert parse_tools(f"tcpdump {first}\ngzip \n") == {"tcpdump": "4.9.3", "gzip": ""}


def test_the_free_space_of_the_disk_is_parsed_from_the_kilobytes_that_df_prints() -> None:
    heading = recorded_output("13.2", "df -h").splitlines()[0]
    assert heading.split()[:4] == ["Filesystem", "Size", "Used", "Avail"]
    text = "Filesystem 1024-blocks  Used  Avail Capacity  Mounted on\ntmpfs          439296    8 439288     0%    /tmp\n"
    assert FORMATS["df"](text) == 439288 * 1024


def test_parameters_of_loaded_congestion_controls_are_their_sysctls() -> None:
    names = "\n".join(
        line.partition(":")[0] for line in recorded_output("13.2", "sysctl net.inet.tcp.cc", 1).splitlines()
    )
    found = parse_cc_parameters(names)
    assert set(found) == {"dctcp", "htcp", "chd", "hd", "vegas", "cdg", "newreno"}
    assert {"beta_delay", "beta_loss", "exp_backoff_scale", "smoothing_factor"} <= set(found["cdg"])


def features_of_host(
    osreldate: str, loaded: set[str], files: set[str], qdiscs: tuple[str, ...], folder: Path
) -> set[str]:
    """Return the kernel features of a host with modules that are loaded or that are files below /boot/kernel."""
    facts = facts_of(CATALOGUE, "freebsd", DEFAULT_PROGRAMS, qdiscs)
    command = next(fact.command for fact in facts if fact.name == "qdiscs")
    for name in files:
        (folder / f"{name}.ko").touch()
    program = f'kldstat() {{ case " {" ".join(loaded)} " in *" $3 "*) return 0 ;; esac; return 1; }}'
    done = replay(
        command.replace("/boot/kernel", str(folder)).replace("/boot/modules", "/nonexistent"),
        {"sysctl -n kern.osreldate": osreldate},
        program,
    )
    assert done.stderr == ""
    return set(FORMATS["words"](done.stdout))


AQMS = {"codel", "pie", "fq_codel"}


@pytest.mark.parametrize(
    ("osreldate", "aqms"),
    [
        ("1400507", AQMS),  # 14.0-STABLE, whose fq_pie lets no forwarded packet pass
        ("1302001", AQMS | {"fq_pie"}),
    ],
)
def test_the_aqms_of_dummynet_depend_on_the_release(osreldate: str, aqms: set[str], tmp_path: Path) -> None:
    assert (
        features_of_host(osreldate, {"ipfw", "dummynet"}, set(), (), tmp_path) == {"ipfw", "dummynet"} | aqms
    )
    assert features_of_host(osreldate, set(), set(), ("fq_pie", "codel"), tmp_path) == aqms


@pytest.mark.parametrize("release", ["13.2", "14.0"])
def test_siftr_is_offered_if_its_module_is_a_file_that_is_not_loaded(release: str, tmp_path: Path) -> None:
    files = {
        name.removesuffix(".ko")
        for name in recorded_output(release, "ls /boot/kernel").split()
        if name.endswith(".ko")
    }
    assert recorded_output(release, "kldstat -q -m siftr; echo rc=$?") == "rc=1\n"
    found = features_of_host("1302001", {"cubic"}, files, DEFAULT_QDISCS, tmp_path)
    assert found >= {"siftr", "ipfw", "dummynet"}
    assert not found & {"cake", "tbf", "netem"}


def test_a_module_that_a_recipe_needs_is_offered_only_if_it_is_loaded(tmp_path: Path) -> None:
    assert "netmap" in features_of_host("1400507", {"netmap"}, set(), ("netmap",), tmp_path)
    assert "netmap" not in features_of_host("1400507", set(), set(), ("netmap",), tmp_path)
    assert features_of_host("1400507", {"siftr"}, set(), (), tmp_path) >= {"siftr"}, "built into the kernel"


@pytest.mark.parametrize("release", RELEASES)
def test_every_fact_of_freebsd_is_a_field_and_empty_without_output(release: str) -> None:
    facts = facts_of(CATALOGUE, f"freebsd-{release}", DEFAULT_PROGRAMS, ())
    assert HostFacts("src", **parse_facts("src", facts, "")) == HostFacts("src")
    assert {fact.name for fact in facts} >= {
        "kernel",
        "boot_id",
        "cc_offered",
        "qdiscs",
        "interfaces",
        "rings",
    }
    assert "/proc/" not in script_of(facts)
