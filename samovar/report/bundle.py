"""The bundle of a campaign: PDF, scorecard, figures, data, provenance, metadata (RO-Crate 1.1), checksums."""

from __future__ import annotations

import mimetypes
import shutil
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

from samovar.atomic_files import write_json, write_whole
from samovar.campaign import run_command
from samovar.campaign.collection import SUMS, sha256_of, write_sums
from samovar.events import Emit, Event
from samovar.experiment import Outputs
from samovar.report.campaign_data import Campaign, Json, read_json
from samovar.report.document import compose
from samovar.report.scorecard import VERDICTS, Result, read_results
from samovar.report.typeset import typeset

SCORECARD, README, CRATE = "scorecard.json", "README.txt", "ro-crate-metadata.json"
COPIES = {
    "provenance": ("experiment.yaml", "testbed.yaml", "plan.json", "provenance.json", "journal.jsonl"),
    "data": ("tables/summary.csv", "tables/flows.csv", "tables/metrics.csv"),
}
"""Files of the campaign that are copied to folders of the bundle."""
README_TEXT = """\
{title}
{label}

  {pdf:<24}  the report
  figures/                  its figures (vector PDF)
  data/                     the data of figures and tables (CSV; column names end in the unit)
  scorecard.json            the expectations and what was measured
  provenance/               experiment, testbed, plan and journal of the campaign; software versions
  ro-crate-metadata.json    machine-readable description of this folder (RO-Crate 1.1)
  SHA256SUMS                checksums

To verify the checksums:

  sha256sum -c SHA256SUMS

To repeat the work, use a checkout of samovar {samovar} with provenance/experiment.yaml in experiments/ and
provenance/testbed.yaml in hosts/. The first command runs a new campaign; the others repeat the analysis
and the report of this one:

{commands}
"""
CRATE_CONTEXT, CRATE_PROFILE = "https://w3id.org/ro/crate/1.1/context", "https://w3id.org/ro/crate/1.1"
FORMATS = {".yaml": "application/yaml", ".jsonl": "application/jsonl", ".csv": "text/csv"}
"""Media types that Python does not know on every system."""


def make_bundle(campaign_folder: Path, emit: Emit, outputs: Outputs | None = None) -> Path:
    """Make the bundle of an analysed campaign and return the path of its PDF.

    The same campaign gives the same bytes. Expectations may name the metrics of `outputs`, by default those
    of the R package. Emits the events `scorecard` and `bundle-made`. Raises ReportError if the campaign is
    not analysed or the PDF cannot be made, DefinitionError if its experiment.yaml is broken.
    """
    campaign, results = read_results(campaign_folder, outputs)
    bundle = campaign.bundle
    for folder, names in COPIES.items():
        (bundle / folder).mkdir(parents=True, exist_ok=True)
        for file in (campaign.folder / name for name in names):
            if file.is_file():
                shutil.copyfile(file, bundle / folder / file.name)
    document = compose(campaign, results)
    pdf = bundle / f"{campaign.plan.experiment}.pdf"
    write_whole(pdf, typeset(document, bundle, campaign.start_s))
    write_json(bundle / SCORECARD, [result.as_json() for result in results])
    (bundle / README).write_text(_readme(campaign, document), encoding="utf-8")
    described = [file for file in bundle_files(bundle) if file.name not in (SUMS, CRATE)]
    write_json(bundle / CRATE, _crate(document, bundle, described, campaign.start_s))
    finish_bundle(bundle, pdf, results, emit)
    return pdf


def finish_bundle(bundle: Path, pdf: Path, results: Sequence[Result], emit: Emit) -> None:
    """Write the checksums of a bundle and emit what was made."""
    write_sums(bundle)
    emit(Event("scorecard", {word: sum(one.verdict == word for one in results) for word in VERDICTS}))
    emit(Event("bundle-made", {"pdf": str(pdf), "files": len(bundle_files(bundle))}))


def read_verdicts(campaign_folder: Path) -> list[str]:
    """Return the verdicts in a bundle's scorecard.json; raises ReportError if there is none."""
    return [str(line["verdict"]) for line in read_json(campaign_folder / "bundle" / SCORECARD, list)]


def bundle_files(folder: Path) -> list[Path]:
    """Return the files of a folder, in the same order on every machine."""
    return sorted((file for file in folder.rglob("*") if file.is_file()), key=lambda file: file.as_posix())


def _readme(campaign: Campaign, document: Json) -> str:
    commands = "\n".join(f"  {line}" for line in (run_command(campaign.plan), *document["regenerate"]))
    return README_TEXT.format(
        title=document["title"],
        label=f"{campaign.plan.experiment}, campaign {campaign.folder.name}",
        pdf=f"{campaign.plan.experiment}.pdf",
        commands=commands,
        samovar=document["samovar"],
    )


def _crate(document: Json, bundle: Path, files: list[Path], t_s: float) -> Json:
    """Return the RO-Crate metadata of files in a bundle; its paths are relative to the bundle."""
    entities = [_file_entity(bundle, file) for file in files]
    versions = {"samovar": document["samovar"], **document["software"]}
    software = [
        {"@id": f"#software-{name}", "@type": "SoftwareApplication", "name": name, "softwareVersion": version}
        for name, version in versions.items()
    ]
    metadata = {
        "@id": CRATE,
        "@type": "CreativeWork",
        "about": {"@id": "./"},
        "conformsTo": {"@id": CRATE_PROFILE},
    }
    root = {
        "@id": "./",
        "@type": "Dataset",
        "name": f"{document['title']} ({document['campaign']})",
        "description": document["description"] or document["title"],
        "identifier": f"{document['experiment']}/{document['campaign']}",
        "datePublished": datetime.fromtimestamp(t_s, UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
        "hasPart": [{"@id": entity["@id"]} for entity in entities],
        "mentions": [{"@id": "#analysis"}],
    }
    action = {
        "@id": "#analysis",
        "@type": "CreateAction",
        "name": "Measurement, analysis and typesetting of the report",
        "instrument": [{"@id": entity["@id"]} for entity in software],
        "result": [{"@id": "./"}],
    }
    return {"@context": CRATE_CONTEXT, "@graph": [metadata, root, *entities, action, *software]}


def _file_entity(bundle: Path, file: Path) -> Json:
    return {
        "@id": file.relative_to(bundle).as_posix(),
        "@type": "File",
        "name": file.name,
        "contentSize": str(file.stat().st_size),
        "encodingFormat": FORMATS.get(file.suffix) or mimetypes.guess_type(file.name)[0] or "text/plain",
        "sha256": sha256_of(file),
    }
