"""The table of facts that `fab check` prints."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import fields

from samovar.cli.plan_commands import facts_lines
from samovar.hosts import DEFAULT_QDISCS, HostFacts, Interface
from samovar.hosts.fact_parsers import FORMATS
from samovar.hosts.facts import facts_of
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


def test_every_kind_of_fact_has_a_row_with_a_dash_for_hosts_that_lack_it() -> None:
    rows = {
        line[:14].strip(): line[14:].split("  ") for line in _padded(facts_lines({"src": RICH, "dst": POOR}))
    }
    shown = {name: [cell.strip() for cell in cells if cell.strip()] for name, cells in rows.items()}
    assert shown["clock source"] == ["chrony", "-"]
    assert shown["cc cubic"] == ["yes, 2 parameters", "yes"]
    assert shown["cc cdg"] == ["yes", "-"]
    assert shown["tracepoints"] == ["tcp:tcp_probe", "-"]
    assert shown["interface em0"] == ["mtu 1500, ring, pause, tso", "-"]
    assert shown["interface eth1"] == ["mtu 9000", "-"]
    assert shown["qdisc netem"] == ["yes", "-"]
    assert shown["tc"] == ["6.1.0", "-"]


def _padded(lines: Iterable[str]) -> list[str]:
    """The first column of the table is as wide as its longest name."""
    made = list(lines)
    width = len("clock source")
    assert all(len(line) > width for line in made)
    return made


def test_every_fact_of_a_system_is_a_field_with_a_known_format() -> None:
    known = {field.name for field in fields(HostFacts)}
    forms = set()
    for system in ("linux", "freebsd", "freebsd-11"):
        for fact in facts_of(CATALOGUE, system, ["tc"], DEFAULT_QDISCS):
            assert fact.name in known
            forms |= {form for form, parse in FORMATS.items() if parse is fact.parse}
    assert forms == set(FORMATS)


def test_linux_has_every_fact_except_the_clock_offset() -> None:
    asked = {fact.name for fact in facts_of(CATALOGUE, "linux", ["tc"], DEFAULT_QDISCS)}
    assert {field.name for field in fields(HostFacts)} - asked == {"host", "clock_offset_s", "clock_error_s"}
