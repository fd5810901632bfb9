"""Make the bundle of a campaign: the scorecard, the PDF, and what lets others check and repeat them."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from pathlib import Path

from samovar.atomic_files import write_json, write_whole
from samovar.campaign.collection import SUMS, write_sums
from samovar.events import Emit, Event
from samovar.report import ro_crate
from samovar.report.campaign_data import Campaign, Json, campaign_time_s, read_any_json
from samovar.report.document import compose, rerun
from samovar.report.scorecard import VERDICTS, Result
from samovar.report.scored import read_scored
from samovar.report.typeset import typeset

SCORECARD, README = "scorecard.json", "README.txt"
# What a reader needs to repeat the campaign, and the tables behind the scorecard, copied beside the results.
INPUTS = ("experiment.yaml", "testbed.yaml", "plan.json", "provenance.json", "journal.jsonl")
TABLES = ("tables/summary.csv", "tables/flows.csv", "tables/metrics.csv")
README_TEXT = """\
{title}
{label}

  {pdf:<24}  the report
  figures/                  its figures (vector PDF)
  data/                     the data behind figures and tables (CSV, a unit in each column's name)
  scorecard.json            expectations against what was measured
  provenance/               the experiment, testbed, plan and journal of the campaign, and the versions used
  ro-crate-metadata.json    this folder described for machines (RO-Crate 1.1)
  SHA256SUMS                checksums; sha256sum -c SHA256SUMS

To check that nothing was changed:

  sha256sum -c SHA256SUMS

To run it again, in a checkout of samovar {samovar} with provenance/experiment.yaml in experiments/ and
provenance/testbed.yaml in hosts/ (the first line makes a new campaign, the others redo the analysis and
the report of this one):

{commands}
"""


def make_bundle(campaign_folder: Path, emit: Emit, *, licence: str | None = None) -> Path:
    """Make the bundle of an analysed campaign and return the path of its PDF.

    The same campaign gives the same bytes. `licence` (an address or a name) goes into the metadata.
    Emits `scorecard` {reproduced, differs, no data} and `bundle-made` {pdf, files}. Raises ReportError
    where the campaign is not analysed or cannot be set, DefinitionError where its experiment is broken.
    """
    campaign, results = read_scored(campaign_folder)
    copy_inputs(campaign)
    document = compose(campaign, results)
    pdf = campaign.bundle / f"{campaign.experiment}.pdf"
    write_whole(pdf, typeset(document, campaign.bundle, campaign_time_s(campaign)))
    write_json(campaign.bundle / SCORECARD, [result.as_json() for result in results])
    describe(campaign, document, licence)
    emit(Event("scorecard", tally(results)))
    emit(Event("bundle-made", {"pdf": str(pdf), "files": len(files(campaign.bundle))}))
    return pdf


def read_verdicts(campaign_folder: Path) -> list[str]:
    """Return the verdicts of a bundle's scorecard; raises ReportError where there is none."""
    return [str(line["verdict"]) for line in read_any_json(campaign_folder / "bundle" / SCORECARD)]


def tally(results: Sequence[Result]) -> dict[str, int]:
    """Count the verdicts."""
    return {word: sum(1 for one in results if one.verdict == word) for word in VERDICTS}


def copy_inputs(campaign: Campaign) -> None:
    """Put what the campaign was made from, and its tables, into the bundle."""
    for names, folder in ((INPUTS, "provenance"), (TABLES, "data")):
        target = campaign.bundle / folder
        target.mkdir(parents=True, exist_ok=True)
        for name in names:
            if (campaign.folder / name).is_file():
                shutil.copyfile(campaign.folder / name, target / Path(name).name)


def describe(campaign: Campaign, document: Json, licence: str | None) -> None:
    """Write what tells of the bundle: how to repeat it, its metadata, its checksums."""
    bundle = campaign.bundle
    (bundle / README).write_text(readme(campaign, document), encoding="utf-8")
    content = [file for file in files(bundle) if file.name not in (SUMS, ro_crate.NAME)]
    described = ro_crate.crate(document, bundle, content, campaign_time_s(campaign), licence)
    write_json(bundle / ro_crate.NAME, described)
    write_sums(bundle)


def files(bundle: Path) -> list[Path]:
    """List the bundle's files, in one order on every machine."""
    return sorted((file for file in bundle.rglob("*") if file.is_file()), key=lambda file: file.as_posix())


def readme(campaign: Campaign, document: Json) -> str:
    """Say in plain text what is here and how to repeat it."""
    commands = "\n".join(f"  {line}" for line in (rerun(campaign), *document["regenerate"]))
    return README_TEXT.format(
        title=document["title"],
        label=f"{campaign.experiment}, campaign {campaign.name}",
        pdf=f"{campaign.experiment}.pdf",
        commands=commands,
        samovar=document["samovar"],
    )
