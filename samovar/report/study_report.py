"""Make the report of a study: several campaigns in one PDF and page, with figures, data and checksums."""

from __future__ import annotations

import shutil
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from samovar import __version__
from samovar.atomic_files import write_json
from samovar.campaign import run_command
from samovar.campaign.collection import sha256_of
from samovar.errors import ReportError, unknown
from samovar.events import Emit
from samovar.experiment import Outputs, Section, keys
from samovar.report.bundle import COPIES, OUTPUTS, SCORECARD, bundle_files, finish_bundle, output_files
from samovar.report.campaign_data import Campaign, Json
from samovar.report.document import compose, data_files, output_names, path_section, scorecard_section
from samovar.report.number_format import moment
from samovar.report.overview import pairs, trials_text, when
from samovar.report.page import ListedCampaign, write_report
from samovar.report.provenance import one_line
from samovar.report.scorecard import DIFFERS, NO_DATA, REPRODUCED, Result, read_results
from samovar.units import counted

CAMPAIGNS = "campaigns.json"
SHOWN_DIGITS = 16
"""The PDF shows this many digits of a checksum; campaigns.json has all digits."""
SECTION_FACTS = ("Campaign", "Overrides", "When", "Bottleneck", "Trials")
CHECKED_FILES = ("plan.json", "journal.jsonl", "tables/metrics.csv")
"""The files whose checksums identify a campaign. The journal in turn has the checksums of all trials."""


@dataclass(frozen=True)
class ReportedCampaign:
    """A campaign of a study: its expectations' results, its own report, and its sections in the study.

    `name` is the experiment's name, followed by the campaign's name if the study has several campaigns of the
    same experiment.
    """

    name: str
    campaign: Campaign
    results: tuple[Result, ...]
    document: Json
    sections: list[Section]

    @property
    def checksums(self) -> dict[str, str]:
        """The SHA-256 of the files that identify the campaign."""
        files = {name: self.campaign.folder / name for name in CHECKED_FILES}
        return {name: sha256_of(file) for name, file in files.items() if file.is_file()}


ReportedSection = tuple[Section, ReportedCampaign]


def make_study(
    study: keys.StudyReport,
    find: Callable[[str], Path],
    folder: Path,
    emit: Emit,
    outputs: Outputs | None = None,
) -> tuple[Path, list[str]]:
    """Make the report of a study in a folder; return the path of its PDF and the expectations' verdicts.

    `find` returns the folder of a campaign from its name, EXPERIMENT or EXPERIMENT/CAMPAIGN. The report of
    the same campaigns always has the same bytes. Emits the events `scorecard` and `bundle-made`. Raises
    CampaignError if a campaign is missing. Raises ReportError if a campaign is not analysed, or if the PDF
    cannot be made.
    """
    found: dict[Path, ReportedCampaign] = {}
    sections: list[ReportedSection] = []
    folders = [
        find("/".join(filter(None, (one.experiment, one.campaign)))).resolve() for one in study.sections
    ]
    of_experiment = Counter(at.parent for at in set(folders))
    for section, at in zip(study.sections, folders, strict=True):
        if at not in found:
            campaign, results = read_results(at, outputs)
            name = campaign.label if of_experiment[at.parent] > 1 else campaign.plan.experiment
            found[at] = ReportedCampaign(name, campaign, results, compose(campaign, results), [])
        found[at].sections.append(section)
        sections.append((section, found[at]))
    reported = list(found.values())
    document = compose_study(study, sections, reported)
    _copy_outputs(reported, folder)
    made = [one for section in document["sections"] for one in (*section["figures"], *section["tables"])]
    document |= {"figures": [one for one in made if one.get("file")], "data": data_files(folder, made)}
    pdf = folder / f"{study.study}.pdf"
    end_s = max(one.campaign.end_s for one in reported)
    listed = [ListedCampaign(one.name, one.campaign, one.campaign.plan.ids) for one in reported]
    write_report("study", document, pdf, end_s, listed, emit)
    judged = [(one.campaign.plan.experiment, result) for one in reported for result in one.results]
    lines = [{"experiment": experiment, **vars(result)} for experiment, result in judged]
    write_json(folder / SCORECARD, lines)
    listing = [
        {
            "experiment": one.campaign.plan.experiment,
            "campaign": one.campaign.folder.name,
            "sha256": one.checksums,
            "trials_used": one.campaign.analysis.get("trials_used", []),
        }
        for one in reported
    ]
    write_json(folder / CAMPAIGNS, listing)
    return pdf, finish_bundle(folder, pdf, [result for _, result in judged], emit)


def compose_study(
    study: keys.StudyReport, sections: Sequence[ReportedSection], reported: Sequence[ReportedCampaign]
) -> Json:
    """Return the content of a study's report as a JSON value.

    Raises ReportError if a section names a figure or table that no campaign has.
    """
    campaigns = [one.campaign for one in reported]
    runs: list[str] = []
    notices: list[str] = []
    testbeds: dict[str, list[Campaign]] = {}
    for one in reported:
        plan, options = one.campaign.plan, one.campaign.shown.get("options", "")
        runs += [run_command(plan), f"fab analyse {plan.experiment} {options}".rstrip()]
        notices += [f"{one.name}: {one.document['notice']}"] if one.document["notice"] else []
        testbeds.setdefault(plan.testbed, []).append(one.campaign)
    shown = [_section(section, one) for section, one in sections]
    scorecard = scorecard_section([result for one in reported for result in one.results])
    scorecard["brief"] = scorecard["brief"] or [_brief_line(one) for one in shown if one["lines"]]
    start, end = moment(min(one.start_s for one in campaigns)), moment(max(one.end_s for one in campaigns))
    facts = {
        "Study": study.study,
        "Original study": study.source or "",
        "Original authors": study.authors or "",
        "Campaigns": ", ".join(one.label for one in campaigns),
        "When": f"{start} to {end}",
        "Trials": trials_text(campaigns),
    }
    return {
        "title": study.title,
        "experiment": study.study,
        "campaign": counted(len(reported), "campaign"),
        "description": one_line(study.description),
        "notice": " ".join(notices),
        "facts": pairs(facts),
        "samovar": __version__,
        "scorecard": scorecard,
        "sections": shown,
        "testbeds": [path_section(own) for own in testbeds.values()],
        "methods": [one.document for one in reported],
        "deviations": list(_deviations(sections)),
        "omissions": [{"of": one.campaign.label, **one.document["omissions"]} for one in reported],
        "campaigns": [_campaign_row(one) for one in reported],
        "provenance": _provenance(reported),
        "regenerate": [*runs, f"fab report --study {study.study}"],
    }


def _provenance(reported: Sequence[ReportedCampaign]) -> list[Json]:
    """Return the provenance of all campaigns, merged: groups of facts about software.

    If not all campaigns have the same value of a fact, each value is followed by the names of its campaigns.
    """
    groups: dict[str, dict[str, dict[str, list[str]]]] = {}
    for one in reported:
        for group in one.document["provenance"]:
            facts = groups.setdefault(group["name"], {})
            for fact in group["facts"]:
                facts.setdefault(fact["name"], {}).setdefault(fact["value"], []).append(one.name)

    def text(values: dict[str, list[str]]) -> str:
        named = (f"{value} ({', '.join(names)})" for value, names in values.items())
        same = len(values) == 1 and len(*values.values()) == len(reported)
        return next(iter(values)) if same else "; ".join(named)

    return [
        {"name": group, "facts": pairs({name: text(values) for name, values in facts.items()})}
        for group, facts in groups.items()
    ]


def _section(section: Section, one: ReportedCampaign) -> Json:
    """Return the content of a section.

    Raises ReportError if the section is about a part that the campaign does not have.
    """
    parts = dict.fromkeys(trial.part for trial in one.campaign.plan.trials)
    if section.part is not None and section.part not in parts:
        words = unknown("part", section.part, parts)
        raise ReportError(f"section '{section.title}' of {one.campaign.label}: {words}")
    lines = one.document["scorecard"]["lines"]
    return {
        "title": section.title,
        "follows": section.follows or "",
        "text": one_line(section.text),
        "experiment": one.campaign.plan.experiment,
        "facts": [fact for fact in one.document["facts"] if fact["name"] in SECTION_FACTS],
        "lines": [line for line in lines if _about(line["part"], one.sections) is section],
        "figures": _outputs(section, one, "figures"),
        "tables": _outputs(section, one, "tables"),
    }


def _brief_line(section: Json) -> Json:
    """Return the line on the cover that says how many of a section's expectations were reproduced."""
    verdicts = [line["verdict"] for line in section["lines"]]
    worst = next(word for word in (DIFFERS, NO_DATA, REPRODUCED) if word in verdicts)
    follows = f" ({section['follows']})" if section["follows"] else ""
    glance = f"{verdicts.count(REPRODUCED)} of {len(verdicts)}"
    return {"verdict": worst, "say": f"{section['title']}{follows}", "glance": glance}


def _about(part: object, sections: Sequence[Section]) -> Section:
    """Return the section for results of a part: the first one about this part, otherwise the first of all."""
    return next((one for one in sections if part and one.part == part), sections[0])


def _outputs(section: Section, one: ReportedCampaign, kind: str) -> list[Json]:
    """Return the figures or tables that a section names, with the paths of their files in the study's folder.

    A section that names no outputs shows the outputs of its part that no other section names. If a part
    has no such section, its outputs that no section names are shown by the campaign's first section that
    names no outputs.
    """
    made: dict[str, Json] = {}
    for output in one.document[kind]:
        files = {key: output[key] for key in ("file", "data") if output.get(key)}
        moved = {key: _path_in_study(one, str(file)) for key, file in files.items()}
        made[str(output["name"])] = {**output, **moved, "of": one.name}
    wanted: Sequence[str] | None = getattr(section, kind)
    if wanted is None:
        singular = kind.removesuffix("s")
        planned = getattr(one.campaign.plan, kind)
        parts = {
            name: entry.get("part")
            for name, entry in zip(output_names(planned, singular), planned, strict=True)
        }
        naming_none = [other for other in one.sections if getattr(other, kind) is None]
        named = {name for other in one.sections for name in getattr(other, kind) or ()}
        shown = (name for name in made if _about(parts.get(name), naming_none) is section)
        return [made[name] for name in shown if name not in named]
    for name in wanted:
        if name not in made:
            words = unknown(kind.removesuffix("s"), name, made)
            raise ReportError(f"section '{section.title}' of {one.campaign.label}: {words}")
    return [made[name] for name in wanted]


def _path_in_study(one: ReportedCampaign, file: str) -> str:
    """Return the path that a file of a campaign's bundle has in the study's folder."""
    kind, _, rest = file.partition("/")
    return f"{kind}/{one.name}/{rest}" if rest else f"data/{one.name}/{kind}"


def _copy_outputs(reported: Sequence[ReportedCampaign], folder: Path) -> None:
    """Replace figures/ and data/ in the folder of a study by those of the campaigns."""
    folder.mkdir(parents=True, exist_ok=True)
    for kind in OUTPUTS:
        shutil.rmtree(folder / kind, ignore_errors=True)
    for one in reported:
        bundle, current = one.campaign.bundle, output_files(one.document)
        made = (file for kind in OUTPUTS for file in bundle_files(bundle / kind))
        sources = {file.relative_to(bundle).as_posix(): file for file in made}
        # The bundle has copies of these tables only after `fab report`, perhaps from an earlier analysis.
        tables = (one.campaign.folder / name for name in COPIES["data"])
        sources |= {f"data/{file.name}": file for file in tables if file.is_file()}
        for name in sources.keys() & current:
            target = folder / _path_in_study(one, name)
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(sources[name], target)


def _deviations(sections: Sequence[ReportedSection]) -> Iterator[Json]:
    """Yield each section's deviation from the original study, and its results that differ from expectations.

    Sections without a deviation and without such results are left out.
    """
    for section, one in sections:
        results = (result for result in one.results if _about(result.part, one.sections) is section)
        differing = [vars(result) for result in results if result.verdict == DIFFERS]
        deviation = one_line(section.deviation)
        if deviation or differing:
            yield {"title": section.title, "text": deviation, "differ": differing}


def _campaign_row(one: ReportedCampaign) -> Json:
    git = one.campaign.provenance.get("git") or {}
    return {
        "name": one.campaign.label,
        "when": when(one.campaign),
        "trials": trials_text([one.campaign]),
        "revision": str(git.get("revision") or "")[:12],
        "sums": [f"{name} {value[:SHOWN_DIGITS]}" for name, value in one.checksums.items()],
    }
