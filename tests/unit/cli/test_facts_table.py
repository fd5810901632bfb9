"""The table of facts that `fab check` prints."""

from __future__ import annotations

from dataclasses import fields

from samovar.cli.show_project import facts_lines
from samovar.hosts import HostFacts, Interface
from samovar.hosts.fact_parsers import FORMATS
from samovar.hosts.facts import DEFAULT_QDISCS, facts_of
from tests.unit.plans import CATALOGUE

RICH = HostFacts(
    "src",
    kernel="Linux 6.1.0",
    os_release="Debian GNU/Linux 12",
    cc_offered=("cubic", "cdg"),
    cc_parameters={"cubic": ("beta", "hystart")},
    qdiscs=("netem",),
    interfaces=(Interface("em0", 1500, ("192.0.2.1/24",), ("tso",)), Interface("eth1", 9000)),
    rings=("em0",),
    pauses=("em0",),
    tracepoints=("tcp:tcp_probe",),
    clock_source="chrony",
    tools={"tc": "6.1.0", "gzip": ""},
    disk_free_bytes=10**9,
)
POOR = HostFacts("dst", cc_offered=("cubic",), disk_free_bytes=10**6)


def test_the_table_has_a_row_for_each_fact_that_a_host_has() -> None:
    assert list(facts_lines({"src": RICH, "dst": POOR})) == [
        "src",
        "  kernel         Linux 6.1.0",
        "  os release     Debian GNU/Linux 12",
        "  tools          tc 6.1.0",
        "  cc offered     cubic, cdg",
        "  qdiscs         netem",
        "  interfaces     name em0, mtu_bytes 1500 B, addresses 192.0.2.1/24, offloads tso; name eth1, mtu_bytes 9000 B",
        "  rings          em0",
        "  pauses         em0",
        "  cc parameters  cubic beta, hystart",
        "  tracepoints    tcp:tcp_probe",
        "  clock source   chrony",
        "  disk free      1GB",
        "dst",
        "  cc offered  cubic",
        "  disk free   1MB",
    ]


def test_every_fact_of_an_operating_system_is_a_field_of_host_facts_and_has_a_known_format() -> None:
    known = {field.name for field in fields(HostFacts)}
    formats = set()
    for system in ("linux", "freebsd", "freebsd-11"):
        for fact in facts_of(CATALOGUE, system, ["tc"], DEFAULT_QDISCS):
            assert fact.name in known
            formats |= {format_ for format_, parse in FORMATS.items() if parse is fact.parse}
    assert formats == set(FORMATS)


def test_linux_has_every_fact_except_the_clock_offset_and_its_error() -> None:
    queried = {fact.name for fact in facts_of(CATALOGUE, "linux", ["tc"], DEFAULT_QDISCS)}
    assert {field.name for field in fields(HostFacts)} - queried == {
        "host",
        "clock_offset_s",
        "clock_error_s",
    }
