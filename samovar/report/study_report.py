"""The report of a study: several campaigns in one PDF, with their figures, data and checksums."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from samovar import __version__
from samovar.atomic_files import write_json, write_whole
from samovar.campaign.collection import sha256_of
from samovar.errors import ReportError
from samovar.events import Emit
from samovar.experiment import Section, StudyReport, unknown
from samovar.report.bundle import SCORECARD, bundle_files, finish_bundle
from samovar.report.campaign_data import Campaign, Json, read_json_object
from samovar.report.document import compose, data_files, scorecard_section
from samovar.report.number_format import count, moment
from samovar.report.overview import testbed_text, trials_text, when
from samovar.report.scorecard import DIFFERS, Result, read_results
from samovar.report.typeset import typeset

TEMPLATE, CAMPAIGNS = "study.typ.j2", "campaigns.json"
SHOWN_DIGITS = 16
"""Digits of a checksum in the PDF; campaigns.json has all of them."""
SECTION_FACTS = ("Campaign", "Overrides", "When", "Bottleneck", "Trials")
CHECKED_FILES = ("plan.json", "journal.jsonl", "tables/metrics.csv")
"""Files whose checksums identify a campaign: the journal has the checksums of all trials."""


@dataclass(frozen=True)
class ReportedSection:
    """A section of a study with its campaign, the results of its expectations and its own document."""

    section: Section
    campaign: Campaign
    results: tuple[Result, ...]
    document: Json


def make_study(
    study: StudyReport, find: Callable[[str], Path], folder: Path, emit: Emit
) -> tuple[Path, list[str]]:
    """Make the report of a study in a folder; return the path of its PDF and the verdicts.

    `find` returns the folder of EXPERIMENT or EXPERIMENT/CAMPAIGN. The same campaigns give the same bytes.
    Emits the events `scorecard` and `bundle-made`. Raises ReportError and CampaignError if a campaign is
    missing or not analysed, or the PDF cannot be made.
    """
    sections = read_sections(study, find)
    once = unique_campaigns(sections)
    document = compose_study(study, sections)
    _copy_outputs(sections, folder)
    outputs = [one for section in document["sections"] for one in (*section["figures"], *section["tables"])]
    document |= {"figures": [one for one in outputs if one.get("file")], "data": data_files(folder, outputs)}
    pdf = folder / f"{study.study}.pdf"
    write_whole(pdf, typeset(document, folder, max(one.campaign.end_s for one in once), template=TEMPLATE))
    results = [(one.campaign.experiment, result) for one in once for result in one.results]
    lines = [{"experiment": experiment, **result.as_json()} for experiment, result in results]
    write_json(folder / SCORECARD, lines)
    write_json(folder / CAMPAIGNS, _campaigns_json(once))
    finish_bundle(folder, pdf, [result for _, result in results], emit)
    return pdf, [result.verdict for _, result in results]


def read_sections(study: StudyReport, find: Callable[[str], Path]) -> tuple[ReportedSection, ...]:
    """Read the campaign of each section, each campaign once."""
    names = ["/".join(filter(None, (one.experiment, one.campaign))) for one in study.sections]
    found: dict[str, tuple[Campaign, tuple[Result, ...], Json]] = {}
    for name in dict.fromkeys(names):
        campaign, results = read_results(find(name))
        found[name] = campaign, results, compose(campaign, results)
    pairs = zip(study.sections, names, strict=True)
    return tuple(ReportedSection(section, *found[name]) for section, name in pairs)


def unique_campaigns(sections: Iterable[ReportedSection]) -> list[ReportedSection]:
    """Return the first section of each campaign."""
    first: dict[Path, ReportedSection] = {}
    for one in sections:
        first.setdefault(one.campaign.folder, one)
    return list(first.values())


def compose_study(study: StudyReport, sections: Sequence[ReportedSection]) -> Json:
    """Return the document; raises ReportError if a section names a figure or table that was not made."""
    once = unique_campaigns(sections)
    campaigns = [one.campaign for one in once]
    runs = [(one.run_command, f"fab analyse --campaign {one.experiment}") for one in campaigns]
    start, end = moment(min(one.start_s for one in campaigns)), moment(max(one.end_s for one in campaigns))
    facts = [
        ("Study", study.study),
        ("Replicates", study.source or ""),
        ("Original authors", study.authors or ""),
        ("Campaigns", ", ".join(one.label for one in campaigns)),
        ("When", f"{start} to {end}"),
        ("Trials", trials_text(campaigns)),
    ]
    return {
        "title": study.title,
        "experiment": study.study,
        "campaign": count(len(once), "campaign"),
        "description": _one_paragraph(study.description),
        "notice": " ".join(one.document["notice"] for one in once if one.document["notice"]),
        "facts": [{"name": name, "value": value} for name, value in facts if value],
        "samovar": __version__,
        "scorecard": scorecard_section([result for one in once for result in one.results]),
        "sections": [_section(one, sections) for one in sections],
        "testbeds": _testbeds(once),
        "methods": [_method(one) for one in once],
        "deviations": list(_deviations(sections)),
        "omissions": [{"of": one.campaign.label, **one.document["omissions"]} for one in once],
        "campaigns": [_campaign_row(one) for one in campaigns],
        "provenance": once[-1].document["provenance"],
        "software": once[-1].document["software"],
        "regenerate": [*(line for pair in runs for line in pair), f"fab report --study {study.study}"],
    }


def _one_paragraph(text: str | None) -> str:
    return " ".join((text or "").split())


def _section(one: ReportedSection, sections: Sequence[ReportedSection]) -> Json:
    section, is_first = one.section, any(one is other for other in unique_campaigns(sections))
    return {
        "title": section.title,
        "follows": section.follows or "",
        "text": _one_paragraph(section.text),
        "experiment": one.campaign.experiment,
        "facts": [fact for fact in one.document["facts"] if fact["name"] in SECTION_FACTS],
        "lines": one.document["scorecard"]["lines"] if is_first else [],
        "figures": [_moved(one.campaign, figure) for figure in _outputs(one, sections, "figures")],
        "tables": [_moved(one.campaign, table) for table in _outputs(one, sections, "tables")],
    }


def _outputs(one: ReportedSection, sections: Sequence[ReportedSection], kind: str) -> list[Json]:
    """Return the figures or tables that a section names.

    The first section that names none has all of its campaign that no section names.
    """
    made = {str(output["name"]): output for output in one.document[kind]}
    wanted: Sequence[str] | None = getattr(one.section, kind)
    if wanted is not None:
        for name in wanted:
            if name not in made:
                words = unknown(kind.removesuffix("s"), name, made)
                raise ReportError(f"section '{one.section.title}' of {one.campaign.label}: {words}")
        return [made[name] for name in wanted]
    of_campaign = [other for other in sections if other.campaign.folder == one.campaign.folder]
    if one is not next(other for other in of_campaign if getattr(other.section, kind) is None):
        return []
    named = {name for other in of_campaign for name in getattr(other.section, kind) or ()}
    return [output for name, output in made.items() if name not in named]


def _moved(campaign: Campaign, output: Json) -> Json:
    """Return a figure or table with the paths of its files in the folder of the study."""
    files = {key: _path_in_study(campaign, str(output[key])) for key in ("file", "data") if output.get(key)}
    return {**output, **files}


def _path_in_study(campaign: Campaign, file: str) -> str:
    """Return the path in the folder of the study of a file of a bundle: below the experiment's name."""
    kind, _, rest = file.partition("/")
    return f"{kind}/{campaign.experiment}/{rest}" if rest else f"data/{campaign.experiment}/{kind}"


def _copy_outputs(sections: Sequence[ReportedSection], folder: Path) -> None:
    """Copy figures and data of the bundles to the folder of the study, in place of earlier ones."""
    folder.mkdir(parents=True, exist_ok=True)
    for kind in ("figures", "data"):
        shutil.rmtree(folder / kind, ignore_errors=True)
        for campaign in (one.campaign for one in unique_campaigns(sections)):
            for file in bundle_files(campaign.bundle / kind):
                target = folder / _path_in_study(campaign, file.relative_to(campaign.bundle).as_posix())
                target.parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(file, target)


def _testbeds(once: Sequence[ReportedSection]) -> list[Json]:
    """Return each testbed once, with the drawing of its path from the first campaign on it."""
    first: dict[str, ReportedSection] = {}
    for one in once:
        first.setdefault(str(one.campaign.plan.get("testbed")), one)
    keys = ("path", "callout", "path-caption", "hosts")
    return [
        {"words": testbed_text(one.campaign), **{key: one.document[key] for key in keys}}
        for one in first.values()
    ]


def _method(one: ReportedSection) -> Json:
    return {
        "experiment": one.campaign.experiment,
        "title": one.document["title"],
        "text": one.document["description"],
        "source": str(one.campaign.plan.get("source") or ""),
        **one.document["treatments"],
    }


def _deviations(sections: Sequence[ReportedSection]) -> Iterator[Json]:
    """Yield what each section did differently from the original, and its expectations that differ."""
    once = unique_campaigns(sections)
    for one in sections:
        differing = [
            {"say": result.say, "expected": result.expected, "observed": result.observed, "why": result.why}
            for result in (one.results if any(one is other for other in once) else ())
            if result.verdict == DIFFERS
        ]
        deviation = _one_paragraph(one.section.deviation)
        if deviation or differing:
            yield {"title": one.section.title, "text": deviation, "differ": differing}


def _campaign_row(campaign: Campaign) -> Json:
    git = campaign.provenance.get("git") or {}
    revision = str(git.get("revision") or git.get("commit") or "") if isinstance(git, dict) else str(git)
    return {
        "name": campaign.label,
        "when": when(campaign),
        "trials": trials_text([campaign]),
        "revision": revision[:12],
        "sums": [f"{name} {value[:SHOWN_DIGITS]}" for name, value in _checksums(campaign).items()],
    }


def _checksums(campaign: Campaign) -> dict[str, str]:
    files = {name: campaign.folder / name for name in CHECKED_FILES}
    return {name: sha256_of(file) for name, file in files.items() if file.is_file()}


def _campaigns_json(once: Sequence[ReportedSection]) -> list[Json]:
    """Return the campaigns of a study with their full checksums."""
    return [
        {
            "experiment": one.campaign.experiment,
            "campaign": one.campaign.name,
            "sha256": _checksums(one.campaign),
            "trials_used": read_json_object(one.campaign.bundle / "analysis.json").get("trials_used", []),
        }
        for one in once
    ]
