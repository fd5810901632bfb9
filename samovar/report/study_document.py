"""What the pages of a study say: several campaigns told as one report, as one JSON value."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from samovar import __version__
from samovar.campaign.collection import sha256_of
from samovar.errors import ReportError
from samovar.experiment import Section, StudyReport, unknown
from samovar.report.campaign_data import Campaign, Json, campaign_end_s, campaign_time_s, read_json
from samovar.report.document import campaign_label, compose, rerun
from samovar.report.document import scorecard as scorecard_of
from samovar.report.number_format import count, listed, moment
from samovar.report.overview import standings, testbed_words, trials_words, when
from samovar.report.scorecard import DIFFERS, Result
from samovar.report.scored import read_scored

SHOWN_DIGITS = 16
"""Of a checksum on the page; campaigns.json has them whole."""

OF_SECTION = ("Campaign", "Changed", "When", "Bottleneck", "Trials")


@dataclass(frozen=True)
class Told:
    """A section with its campaign, what its expectations came to, and that campaign's own document."""

    section: Section
    campaign: Campaign
    results: tuple[Result, ...]
    document: Json


def read_sections(study: StudyReport, find: Callable[[str], Path]) -> tuple[Told, ...]:
    """Read the campaign of each section; `find` gives the folder of EXPERIMENT or EXPERIMENT/CAMPAIGN.

    Raises CampaignError where there is none, ReportError where one is not analysed.
    """
    names = ["/".join(filter(None, (one.experiment, one.campaign))) for one in study.sections]
    known = {name: _read(find(name)) for name in dict.fromkeys(names)}
    return tuple(Told(section, *known[name]) for section, name in zip(study.sections, names, strict=True))


def _read(folder: Path) -> tuple[Campaign, tuple[Result, ...], Json]:
    campaign, results = read_scored(folder)
    return campaign, results, compose(campaign, results)


def compose_study(study: StudyReport, told: Sequence[Told]) -> Json:
    """Return the document; raises ReportError for a figure or table that a section names in vain."""
    once = once_each(told)
    every = [result for one in once for result in one.results]
    return {
        "title": study.title,
        "experiment": study.study,
        "campaign": count(len(once), "campaign"),
        "description": " ".join((study.description or "").split()),
        "notice": " ".join(one.document["notice"] for one in once if one.document["notice"]),
        "facts": [{"name": name, "value": value} for name, value in _facts(study, once) if value],
        "samovar": __version__,
        "scorecard": scorecard_of(every),
        "sections": [_section(one, told) for one in told],
        "testbeds": _testbeds(once),
        "methods": [_method(one) for one in once],
        "deviations": list(_deviations(told)),
        "omissions": [{"of": campaign_label(one.campaign), **one.document["omissions"]} for one in once],
        "campaigns": [_campaign_row(one) for one in once],
        "provenance": once[-1].document["provenance"],
        "software": once[-1].document["software"],
        "regenerate": _regenerate(study, once),
    }


def once_each(told: Iterable[Told]) -> list[Told]:
    """Leave each campaign once: sections may share one."""
    return list({one.campaign.folder: one for one in reversed(list(told))}.values())[::-1]


def _facts(study: StudyReport, once: Sequence[Told]) -> list[tuple[str, str]]:
    campaigns = [one.campaign for one in once]
    counts: dict[str, int] = {}
    for campaign in campaigns:
        for state, amount in standings(campaign).items():
            counts[state] = counts.get(state, 0) + amount
    stand = listed([f"{amount} {state}" for state, amount in counts.items() if amount])
    first, last = min(map(campaign_time_s, campaigns)), max(map(campaign_end_s, campaigns))
    return [
        ("Study", study.study),
        ("Repeats", study.source or ""),
        ("Authors of that", study.authors or ""),
        ("Campaigns", ", ".join(map(campaign_label, campaigns))),
        ("When", f"{moment(first)} to {moment(last)}"),
        ("Trials", f"{count(sum(counts.values()), 'trial')} planned: {stand}"),
    ]


def _section(one: Told, told: Sequence[Told]) -> Json:
    section = one.section
    facts = [fact for fact in one.document["facts"] if fact["name"] in OF_SECTION]
    return {
        "title": section.title,
        "follows": section.follows or "",
        "text": " ".join((section.text or "").split()),
        "experiment": one.campaign.experiment,
        "facts": facts,
        "lines": one.document["scorecard"]["lines"] if _is_first(one, told) else [],
        "figures": [_placed(one.campaign, figure) for figure in _exhibits(one, told, "figures")],
        "tables": [_placed(one.campaign, table) for table in _exhibits(one, told, "tables")],
    }


def _is_first(one: Told, told: Sequence[Told]) -> bool:
    return next(other for other in told if other.campaign.folder == one.campaign.folder) is one


def _exhibits(one: Told, told: Sequence[Told], kind: str) -> list[Json]:
    """Return the exhibits that a section names, or all of its campaign that no section does."""
    there = {str(exhibit["name"]): exhibit for exhibit in one.document[kind]}
    asked = getattr(one.section, kind)
    if asked is not None:
        for name in asked:
            if name not in there:
                words = unknown(kind.removesuffix("s"), name, there)
                raise ReportError(f"section '{one.section.title}' of {campaign_label(one.campaign)}: {words}")
        return [there[name] for name in asked]
    others = [other for other in told if other.campaign.folder == one.campaign.folder]
    taken = {name for other in others for name in getattr(other.section, kind) or ()}
    whole = [other for other in others if getattr(other.section, kind) is None]
    return [exhibit for name, exhibit in there.items() if name not in taken] if whole[0] is one else []


def _placed(campaign: Campaign, exhibit: Json) -> Json:
    """Return an exhibit with its files where the study's folder has them: below the experiment's name."""
    moved = dict(exhibit)
    for key in ("file", "data"):
        if moved.get(key):
            moved[key] = placed(campaign, str(moved[key]))
    return moved


def placed(campaign: Campaign, file: str) -> str:
    """Say where a file of a campaign's bundle stands in the study's folder."""
    kind, _, rest = file.partition("/")
    return f"{kind}/{campaign.experiment}/{rest}" if rest else f"data/{campaign.experiment}/{kind}"


def _testbeds(once: Sequence[Told]) -> list[Json]:
    """Return each testbed once, with its path as the first campaign on it drew it."""
    first = {str(one.campaign.plan.get("testbed")): one for one in reversed(once)}
    keys = ("path", "callout", "path-caption", "hosts")
    return [
        {"words": testbed_words(one.campaign), **{key: one.document[key] for key in keys}}
        for one in reversed(first.values())
    ]


def _method(one: Told) -> Json:
    return {
        "experiment": one.campaign.experiment,
        "title": one.document["title"],
        "text": one.document["description"],
        "source": str(one.campaign.plan.get("source") or ""),
        **one.document["treatments"],
    }


def _deviations(told: Sequence[Told]) -> Iterable[Json]:
    """Yield what was done otherwise, section by section, and why expectations differ where that is said."""
    for one in told:
        differ = [
            {"say": result.say, "expected": result.expected, "observed": result.observed, "why": result.why}
            for result in one.results
            if result.verdict == DIFFERS and _is_first(one, told)
        ]
        deviation = " ".join((one.section.deviation or "").split())
        if deviation or differ:
            yield {"title": one.section.title, "text": deviation, "differ": differ}


def _campaign_row(one: Told) -> Json:
    campaign = one.campaign
    git = campaign.provenance.get("git") or {}
    revision = str(git.get("revision") or git.get("commit") or "") if isinstance(git, dict) else str(git)
    sums = checksums(campaign)
    return {
        "name": campaign_label(campaign),
        "when": when(campaign),
        "trials": trials_words(campaign),
        "revision": revision[:12],
        "sums": [f"{name} {value[:SHOWN_DIGITS]}" for name, value in sums.items()],
    }


def checksums(campaign: Campaign) -> dict[str, str]:
    """Return the SHA-256 of the plan, of the journal, which holds the trials' sums, and of the metrics."""
    names = ("plan.json", "journal.jsonl", "tables/metrics.csv")
    return {name: sha256_of(campaign.folder / name) for name in names if (campaign.folder / name).is_file()}


def _regenerate(study: StudyReport, once: Sequence[Told]) -> list[str]:
    runs = [
        line
        for one in once
        for line in (rerun(one.campaign), f"fab analyse --campaign {one.campaign.experiment}")
    ]
    return [*runs, f"fab report --study {study.study}"]


def campaigns_json(told: Sequence[Told]) -> list[Json]:
    """Return what a study rests on: each campaign with its checksums in full."""
    return [
        {
            "experiment": one.campaign.experiment,
            "campaign": one.campaign.name,
            "sha256": checksums(one.campaign),
            "trials_used": read_json(one.campaign.bundle / "analysis.json").get("trials_used", []),
        }
        for one in once_each(told)
    ]
