"""Campaigns, menus and facts as lines of text."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from samovar.campaign.availability.requirements import Finding
from samovar.campaign.recovery import Restored
from samovar.campaign.run import Summary
from samovar.cli.wording import columns, counted
from samovar.experiment.outputs import read_exhibits
from samovar.hosts import HostFacts
from samovar.recipes import Catalogue
from samovar.units import format_bytes

SCREEN = 40
"""So many trials are shown; of more, those that a reader looks for."""


def summary_lines(summary: Summary, again: str) -> Iterator[str]:
    """Show how a campaign ended and, where something is missing, the command that tries again."""
    yield f"{summary.done} of {summary.asked} trials done: {summary.folder}"
    if summary.stopped:
        yield f"stopped: {summary.stopped}"
    yield from (f"  ✗ {host} is not used: {why}" for host, why in summary.quarantined.items())
    failed = list(summary.failed.items())
    for trial, reasons in failed[:SCREEN]:
        yield f"  ✗ {trial}: {'; '.join(reasons) or 'not run'}"
    if len(failed) > SCREEN:
        yield f"  … {len(failed) - SCREEN:,} more"
    if summary.failed:
        yield f"run what is missing: {again}"
    for reasons, number in Counter(summary.blocked.values()).items():
        yield f"  · {counted(number, 'trial')} cannot run: {'; '.join(reasons)}"


def settled_lines(summary: Summary, experiment: str, new: str) -> Iterator[str]:
    """Say of a campaign that is whole that there is nothing to run, and where what came of it is."""
    yield f"all {counted(summary.asked, 'trial')} stand: {summary.folder}"
    pdf = summary.folder / "bundle" / f"{experiment}.pdf"
    yield f"bundle: {pdf}" if pdf.is_file() else "no bundle yet: `fab analyse`, then `fab report`"
    yield f"to measure all anew: {new}"


def restored_lines(testbed: str, restored: Restored) -> Iterator[str]:
    """Say which hosts were put back after which campaign, and what could not be."""
    for campaign, hosts in restored.hosts.items():
        if hosts:
            yield f"✓ {campaign}: {', '.join(hosts)} as before"
    yield from (f"✗ {problem}" for problem in restored.problems)
    if not restored.hosts and not restored.problems:
        yield f"{testbed}: no journal names a host that is not as it was"


def menu_lines(
    root: Path, experiments: Iterable[Path], testbeds: Iterable[Path], catalogue: Catalogue
) -> Iterator[str]:
    """Show what there is to choose from: experiments, testbeds, recipes, figures and tables."""
    exhibits = read_exhibits(root / "analysis" / "R")
    yield "experiments"
    yield from columns((f"  {path.stem}", _top_level(path, "title")) for path in experiments)
    yield "testbeds"
    yield from columns((f"  {path.stem}", _top_level(path, "description")) for path in testbeds)
    for kind in ("aqm", "generator", "logger", "setting"):
        yield f"recipes: {kind}"
        yield from columns(
            (f"  {name}", os, catalogue.header(kind, name, os).summary)
            for os in catalogue.operating_systems()
            for name in sorted(catalogue.names(kind, os))
        )
    for kind in ("figure", "table"):
        yield f"{kind}s"
        yield from columns((f"  {name}", one.title) for name, one in exhibits[kind].items())


def _top_level(path: Path, key: str) -> str:
    """Find one top-level line of a definition file without judging the rest of it."""
    try:
        text = path.read_text("utf-8", errors="replace")
    except OSError as error:
        return f"({(error.strerror or 'cannot be read').lower()})"
    marked = [line for line in text.splitlines() if line.startswith(f"{key}:")]
    return marked[0].partition(":")[2].strip().rstrip(">|") if marked else ""


def facts_lines(facts: Mapping[str, HostFacts]) -> Iterator[str]:
    """Show what each host is and offers, one column a host."""
    if not facts:
        return
    yield from columns([("", *facts), *_fact_rows(list(facts.values()))])


def _fact_rows(facts: Sequence[HostFacts]) -> Iterator[tuple[str, ...]]:
    yield "kernel", *(fact.kernel for fact in facts)
    yield "system", *(fact.os_release for fact in facts)
    clocks = (f"{fact.clock_offset_s * 1000:+.1f} ± {fact.clock_error_s * 1000:.1f} ms" for fact in facts)
    yield "clock", *clocks
    yield "clock kept by", *(fact.clock_source or "-" for fact in facts)
    yield "free disk", *(format_bytes(fact.disk_free_bytes, 3) for fact in facts)
    for cc in sorted({cc for fact in facts for cc in fact.cc_offered}):
        yield f"cc {cc}", *(_control(fact, cc) for fact in facts)
    for qdisc in sorted({qdisc for fact in facts for qdisc in fact.qdiscs}):
        yield f"qdisc {qdisc}", *("yes" if qdisc in fact.qdiscs else "-" for fact in facts)
    yield "tracepoints", *(" ".join(fact.tracepoints) or "-" for fact in facts)
    for name in dict.fromkeys(interface.name for fact in facts for interface in fact.interfaces):
        yield f"interface {name}", *(_interface(fact, name) for fact in facts)
    for tool in sorted({tool for fact in facts for tool in fact.tools}):
        yield tool, *(fact.tools.get(tool) or ("yes" if tool in fact.tools else "-") for fact in facts)


def _control(fact: HostFacts, cc: str) -> str:
    """Say whether a host has a congestion control and, where its module is loaded, how many parameters."""
    number = len(fact.cc_parameters.get(cc, ()))
    offered = "yes" if cc in fact.cc_offered else "-"
    return f"{offered}, {counted(number, 'parameter')}" if number else offered


def _interface(fact: HostFacts, name: str) -> str:
    """Say what an interface has: its MTU, a ring and flow control to set, the offloads that are on."""
    known = next((interface for interface in fact.interfaces if interface.name == name), None)
    if known is None:
        return "-"
    having = [word for word, names in (("ring", fact.rings), ("pause", fact.pauses)) if name in names]
    return ", ".join([f"mtu {known.mtu_bytes}", *having, *known.offloads])


def finding_lines(findings: Sequence[Finding]) -> Iterator[str]:
    """Show what stands in the way, or that nothing does."""
    yield ""
    yield from (f"{'✗' if finding.stops else '?'} {finding}" for finding in findings)
    if not any(finding.stops for finding in findings):
        yield "✓ the testbed has what the experiment needs"
