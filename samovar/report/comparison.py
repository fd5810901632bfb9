"""Compare two campaigns, or two parts of one, and report it as PDF, page and JUnit XML.

A comparison has changes of metrics with intervals, limits on changes, and differences in provenance.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import Any, NamedTuple
from xml.etree import ElementTree

from samovar import __version__
from samovar.analyse import AnalysedPart, run_r
from samovar.atomic_files import write_whole
from samovar.errors import ReportError, unknown
from samovar.events import Emit
from samovar.experiment import Outputs
from samovar.plan import Trial, differences
from samovar.report.campaign_data import Campaign, Json, read_json
from samovar.report.document import OUTPUT_DEFAULTS, trials_shown
from samovar.report.number_format import number, quantity, scale
from samovar.report.overview import pairs, when
from samovar.report.page import ListedCampaign, write_report
from samovar.report.provenance import report_software
from samovar.units import counted

FAILED, PASSED, NO_DATA = "failed", "passed", "no data"
LIMIT = re.compile(r"\s*(\w+)\s*([<>])\s*([+-]?\d+(?:\.\d*)?(?:[eE][+-]?\d+)?)\s*(%?)\s*")
LIMIT_FORM = "write METRIC<-5% or METRIC>+5%; a change without % is in the metric's unit"
RESULT = "comparison.json"
FEWEST_PAIRS = 3
"""The smallest number of pairs for which a change has an interval."""
VOLATILE_FACTS = ("boot_id", "disk_free_bytes", "clock_offset_s", "clock_error_s", "host")
"""Recorded facts about a host that are not compared, because they differ between any two campaigns."""
COMPARISON_PDF, JUNIT = "comparison.pdf", "junit.xml"
ELEMENTS = {FAILED: "failure", NO_DATA: "error"}
"""For each verdict that does not pass, the XML element that reports it in a JUnit test case."""


@dataclass(frozen=True)
class Change:
    """A metric of one treatment in A and B: medians over `n` pairs, the change and its interval.

    `ratio` is None unless all values of A are positive. An interval needs at least three pairs; without one,
    `changed` is None. With an interval, `changed` is True if "no change" is outside it: a ratio of 1, or a
    difference of 0 if `ratio` is None.
    """

    metric: str
    unit: str
    treatment: str
    a: float | None
    b: float | None
    difference: tuple[float, float, float] | None
    ratio: tuple[float, float, float] | None
    n: int
    confidence: float | None
    changed: bool | None

    @property
    def text(self) -> str:
        """The change with its interval: `-9.1 % [-9.3, -8.9]`, or `~ [-0.4, +0.2] %` for no change.

        Without an interval, the text is `~`. The difference of two shares is in percentage points: `+0.5
        points [+0.4, +0.6]`.
        """
        if self.changed is None:
            return "~"
        values: Sequence[float] = self.difference or (0.0, 0.0, 0.0)
        divisor, symbol = scale(values, self.unit)
        if self.ratio:
            values, divisor, symbol = [100 * (one - 1) for one in self.ratio], 1.0, "%"
        elif self.unit == "share":
            symbol = "points"  # unlike a relative change in percent
        middle, low, high = (_signed(one / divisor, 3) for one in values)
        text = f"{middle} {symbol} [{low}, {high}]" if self.changed else f"~ [{low}, {high}] {symbol}"
        return " ".join(text.split())

    @property
    def sample(self) -> str:
        """The number of pairs and the confidence of the interval as text."""
        confidence = f", {number(100 * self.confidence)} %" if self.confidence else ""
        return f"n = {self.n}{confidence}"

    def values(self) -> tuple[str, str]:
        """Return the medians of A and B as text."""
        first, second = ("–" if one is None else quantity(one, self.unit) for one in (self.a, self.b))
        return first, second


def _signed(value: float, digits: int) -> str:
    text = number(value, digits)
    return text if text.startswith("-") or text == "0" else f"+{text}"


@dataclass(frozen=True)
class Limit:
    """A change that fails the comparison, such as `goodput_bps<-5%`."""

    text: str
    metric: str
    above: bool
    bound: float
    relative: bool

    def text_of(self, change: Change) -> str:
        """Return a change in the unit of the bound: in percent, or in the metric's unit."""
        return change.text if self.relative else replace(change, ratio=None).text

    def judge(self, change: Change) -> str:
        """Return `no data` without an interval, `failed` if the change is beyond the bound, or `passed`."""
        found = change.ratio if self.relative else change.difference
        if change.changed is None or found is None:
            return NO_DATA
        value = 100 * (found[0] - 1) if self.relative else found[0]
        beyond = value > self.bound if self.above else value < self.bound
        return FAILED if change.changed and beyond else PASSED


def parse_limit(text: str, outputs: Outputs) -> Limit:
    """Return a limit of --fail-if; raises ReportError."""
    place = f"--fail-if '{text}'"
    match = LIMIT.fullmatch(text)
    if match is None:
        raise ReportError(f"{place}: not a limit; {LIMIT_FORM}")
    metric, sign, bound, percent = match.groups()
    if metric not in outputs.metrics:
        raise ReportError(f"{place}: {unknown('metric', metric, outputs.metrics)}")
    above, value = sign == ">", float(bound)
    if value < 0 if above else value > 0:
        raise ReportError(f"{place}: even an unchanged metric would be beyond this limit; {LIMIT_FORM}")
    return Limit(text, metric, above, value, bool(percent))


def change_of(row: Mapping[str, Any]) -> Change:
    """Return the change in one row of the R package's table of changes."""

    def interval(name: str) -> tuple[float, float, float] | None:
        middle, low, high = (row.get(name + end) for end in ("", "_lo", "_hi"))
        return None if middle is None or low is None or high is None else (middle, low, high)

    confidence = row.get("confidence")
    return Change(
        metric=row["metric"],
        unit=row["unit"],
        treatment=row["treatment"],
        a=row.get("a"),
        b=row.get("b"),
        difference=interval("difference"),
        ratio=interval("ratio"),
        n=row["n"],
        confidence=confidence,
        changed=None if confidence is None else row["distinct"],
    )


def judged(limits: Sequence[Limit], changes: Sequence[Change]) -> Iterator[tuple[Limit, Change, str]]:
    """Yield the verdict of each limit on each treatment; raises ReportError for a metric without values."""
    measured = dict.fromkeys(change.metric for change in changes)
    for limit in limits:
        if limit.metric not in measured:
            known = ", ".join(measured)
            raise ReportError(f"--fail-if '{limit.text}': {limit.metric} was not measured; measured: {known}")
        yield from ((limit, one, limit.judge(one)) for one in changes if one.metric == limit.metric)


class Side(NamedTuple):
    """One of the two campaigns of a comparison, or a picked part of its trials."""

    campaign: Campaign
    part: AnalysedPart | None

    @property
    def name(self) -> str:
        """The campaign's name, and how its trials were picked."""
        return self.campaign.label + (f" ({self.part.picked})" if self.part else "")

    @property
    def ids(self) -> Sequence[str]:
        """The ids of the trials that are compared."""
        return self.part.trials if self.part else self.campaign.plan.ids


@dataclass(frozen=True)
class CampaignComparison:
    """The result of comparing two campaigns. `judged` has the verdict of each limit on each treatment."""

    sides: tuple[Side, Side]
    changes: tuple[Change, ...]
    judged: tuple[tuple[Limit, Change, str], ...]
    differences: tuple[str, ...]
    result: Json

    @property
    def exit_code(self) -> int:
        """1 if a treatment fails a limit, 2 if one cannot be judged, otherwise 0."""
        verdicts = {verdict for _, _, verdict in self.judged}
        return 1 if FAILED in verdicts else 2 if NO_DATA in verdicts else 0

    @property
    def by_metric(self) -> dict[str, list[Change]]:
        """The changes of each metric, without treatments that A or B lacks."""
        found: dict[str, list[Change]] = {}
        for change in self.changes:
            if change.n:
                found.setdefault(change.metric, []).append(change)
        return found

    @property
    def unchanged(self) -> list[str]:
        """The metrics that are `~` in all treatments: unchanged, or without an interval."""
        return [metric for metric, ones in self.by_metric.items() if not any(one.changed for one in ones)]

    @property
    def notes(self) -> list[str]:
        """Notes: how trials were matched, missing intervals, changes by chance, unmatched treatments."""
        used = [change for change in self.changes if change.n]
        present = {change.treatment for change in used}
        lacking = dict.fromkeys(one.treatment for one in self.changes if one.treatment not in present)
        matched = ", ".join(self.result["matched"]["treatments"]) or "no factor"
        found = [f"{counted(len(present), 'treatment')}, matched by {matched}", str(self.result["pairing"])]
        if few := sum(change.n < FEWEST_PAIRS for change in used):
            found.append(f"{counted(few, 'change')} of fewer than {FEWEST_PAIRS} pairs: no interval")
        if apart := sum(change.n >= FEWEST_PAIRS and change.changed is None for change in used):
            found.append(
                f"{counted(apart, 'change')} where A's trials all ran before or after B's trials: no interval"
            )
        if risks := [1 - change.confidence for change in used if change.confidence]:
            chance = number(sum(risks), 2)
            text = f"of which up to {chance} would show a change by chance alone"
            found.append(f"{counted(len(risks), 'interval')}, {text}")
        if lacking:
            found.append(f"in one campaign only: {'; '.join(lacking)}")
        return found


def make_comparison(
    sides: tuple[Side, Side], by: Sequence[str], limits: Sequence[Limit], root: Path, to: Path, emit: Emit
) -> CampaignComparison:
    """Compare two campaigns; write PDF, page, junit.xml, figures and changes.csv into a folder.

    R first measures the trials that the cache lacks, and then compares the campaigns. Raises AnalysisError
    with R's message if the campaigns have nothing in common. Raises ReportError if a limit is on a metric
    that was not measured, or if the PDF cannot be made.
    """
    request: Json = {
        name: {"folder": str(side.campaign.folder)} | ({"part": side.part._asdict()} if side.part else {})
        for name, side in zip("ab", sides, strict=True)
    }
    request |= {"to": str(to), "by": list(by) or None}
    with NamedTemporaryFile("w", encoding="utf-8", suffix=".json") as file:
        json.dump(request, file)
        file.flush()
        run_r("compare", [file.name], root, emit)
    result = read_json(to / RESULT, dict)
    changes = tuple(change_of(row) for row in result["changes"])
    matched = [*result["matched"]["treatments"], *result["matched"]["pairs"]]
    different = tuple(_differences(*sides, matched))
    comparison = CampaignComparison(sides, changes, tuple(judged(limits, changes)), different, result)
    write_whole(to / JUNIT, junit_xml(comparison))
    t_s = max(side.campaign.end_s for side in sides)
    listed = [ListedCampaign(name, one.campaign, one.ids) for name, one in zip("AB", sides, strict=True)]
    write_report("comparison", compose_comparison(comparison), to / COMPARISON_PDF, t_s, listed, emit)
    return comparison


def _differences(first: Side, second: Side, factors: Sequence[str]) -> Iterator[str]:
    """Yield what differs in software, hosts, testbed and settings of trials.

    Trials are matched by their levels of `factors`.
    """
    one, other = first.campaign, second.campaign
    a, b = one.provenance, other.provenance
    for name in ("controller", "git"):
        yield from differences(a.get(name), b.get(name), name)
    labs, other_labs = (
        {name: side.recorded(name).get("lab") for name in side.testbeds} for side in (one, other)
    )
    yield from differences(_only(labs), _only(other_labs), "lab")
    old, new = a.get("recipes") or {}, b.get("recipes") or {}
    changed = sum(old.get(name) != new.get(name) for name in old | new)
    if changed:
        yield f"{counted(changed, 'recipe')} of {len(old | new)} changed"
    facts = [{name: recorded for name, (_, recorded) in side.hosts.items()} for side in (one, other)]
    yield from _by_host(*facts)
    yield from differences(_only(one.testbeds), _only(other.testbeds), "testbed")
    yield from _settings(_first_trials(first, factors), _first_trials(second, factors))


def _only(by_testbed: Mapping[str, Any]) -> Any:
    """Return the value of a campaign's testbed, or the values by testbed if several share the campaign."""
    return by_testbed if len(by_testbed) > 1 else next(iter(by_testbed.values()))


def _by_host(first: Json, second: Json) -> Iterator[str]:
    """Yield the differences between recorded hosts; hosts with the same difference share one text."""
    found: dict[str, list[str]] = {}
    for name in first | second:
        before, after = (
            {key: fact for key, fact in (one.get(name) or {}).items() if key not in VOLATILE_FACTS}
            for one in (first, second)
        )
        for text in differences(before, after):
            found.setdefault(text, []).append(name)
    yield from (f"{', '.join(names)}: {text}" for text, names in found.items())


Treatments = Mapping[tuple[str, ...], Trial]


def _first_trials(side: Side, factors: Sequence[str]) -> Treatments:
    """Return the first trial of each combination of levels of some factors."""
    found: dict[tuple[str, ...], Trial] = {}
    ids = set(side.ids)
    for trial in (one for one in side.campaign.plan.trials if one.id in ids):
        levels = {"part": trial.part, **trial.treatment}
        found.setdefault(tuple(levels.get(name, "") for name in factors), trial)
    return found


def _settings(first: Treatments, second: Treatments) -> Iterator[str]:
    """Yield each difference between matched treatments, with the number of treatments that have it."""
    shared = [key for key in first if key in second]
    found: Counter[str] = Counter()
    for a, b in ((first[key], second[key]) for key in shared):
        found.update(differences(dict(a.treatment), dict(b.treatment)))
        found.update(differences(a.resolved.as_json(), b.resolved.as_json()))
    for text, amount in found.items():
        some = f" (in {amount} of {counted(len(shared), 'treatment')})" if amount < len(shared) else ""
        yield f"{text}{some}"


def compose_comparison(comparison: CampaignComparison) -> Json:
    """Return the document of the PDF and the page."""
    first, second = (side.campaign for side in comparison.sides)
    facts = {
        **{name: side.name for name, side in zip("AB", comparison.sides, strict=True)},
        "A ran": when(first),
        "B ran": when(second),
        "Matched": comparison.notes[0],
    }
    result = comparison.result
    states = {
        f"{name}:{id_}": side.campaign.trial_state(id_)
        for name, side in zip("AB", comparison.sides, strict=True)
        for id_ in side.ids
    }
    figures = [
        one | {"ids": ids, "trials": trials_shown(len(ids), (states.get(id_, "") for id_ in ids))}
        for one in result["figures"]
        for ids in [one["trials"]]
    ]
    return {
        "title": f"{first.plan.title or first.plan.experiment}: comparison",
        "experiment": first.plan.experiment,
        "campaign": f"{first.folder.name} and {second.folder.name}",
        "description": "",
        "notice": "",
        "samovar": __version__,
        "facts": pairs(facts),
        "notes": comparison.notes[1:],
        "limits": [_limits_table(comparison)] if comparison.judged else [],
        "changes": list(_change_tables(comparison)),
        "differences": list(comparison.differences),
        "figures": [OUTPUT_DEFAULTS | one for one in [*figures, *result["unmade"]]],
        "left_out": [f"{one['campaign']}: {one['id']}: {one['reason']}" for one in result["left_out"]],
        "software": pairs({**report_software(), "R": result["r_version"]}),
    }


def _limits_table(comparison: CampaignComparison) -> Json:
    rows = [
        [limit.text, one.treatment, limit.text_of(one), one.sample, how]
        for limit, one, how in comparison.judged
    ]
    caption = "A treatment fails if its change is beyond the limit and its interval excludes zero change."
    names = ("Fails if", "Treatment", "Change", "Pairs", "Verdict")
    return _table("limits", "Limits", caption, names, rows)


def _change_tables(comparison: CampaignComparison) -> Iterator[Json]:
    """Yield the table of metrics that changed, and the table of metrics that are `~` in all treatments."""
    names = ("Metric", "Treatment", "A", "B", "Change of B against A", "Pairs")
    caption = (
        "Medians over pairs of trials, and the median of the changes within pairs, with its interval (order"
        " statistics) and the interval’s confidence. ~: the interval includes zero change, or is missing."
    )
    for title, same in (("Metrics that changed", False), ("Metrics with ~ in all treatments", True)):
        rows = [
            [metric if place == 0 else "", one.treatment, *one.values(), one.text, one.sample]
            for metric, ones in comparison.by_metric.items()
            if (metric in comparison.unchanged) == same
            for place, one in enumerate(ones)
        ]
        if rows:
            yield _table("changes", title, caption, names, rows)


def _table(name: str, title: str, caption: str, names: Iterable[str], rows: list[list[str]]) -> Json:
    columns = [{"name": one, "align": "left"} for one in names]
    return OUTPUT_DEFAULTS | {
        "name": name,
        "title": title,
        "caption": caption,
        "columns": columns,
        "rows": rows,
        "trials": "",
    }


def junit_xml(comparison: CampaignComparison) -> bytes:
    """Return JUnit XML: a failure for a treatment beyond a limit, an error for one that cannot be judged.

    Without limits, no test case fails, and the cases only report the changes.
    """
    root = ElementTree.Element("testsuites", name=" → ".join(side.name for side in comparison.sides))
    verdicts: dict[Change, list[tuple[str, str]]] = {}
    for judged, change, verdict in comparison.judged:
        verdicts.setdefault(change, []).append((judged.text, verdict))
    for metric in dict.fromkeys(change.metric for change in comparison.changes):
        suite = ElementTree.SubElement(root, "testsuite", name=metric)
        counts = dict.fromkeys(("tests", "failures", "errors", "skipped"), 0)
        for change in (one for one in comparison.changes if one.metric == metric):
            for limit, verdict in verdicts.get(change, [("", "")]):
                name = f"{change.treatment}: {limit}" if limit else change.treatment
                case = ElementTree.SubElement(suite, "testcase", classname=metric, name=name)
                text = f"{change.text} ({', '.join(change.values())}, {change.sample})"
                kind = ELEMENTS.get(verdict, "" if limit or change.changed is not None else "skipped")
                counts["tests"] += 1
                if kind:
                    ElementTree.SubElement(case, kind, message=text)
                    counts[kind if kind == "skipped" else f"{kind}s"] += 1
                ElementTree.SubElement(case, "system-out").text = text
        for key, amount in counts.items():
            suite.set(key, str(amount))
    xml: bytes = ElementTree.tostring(root, encoding="utf-8", xml_declaration=True)
    return xml
