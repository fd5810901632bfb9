"""Make the bundle of a campaign: PDF, page, scorecard, figures, data, provenance, metadata, checksums."""

from __future__ import annotations

import mimetypes
import shutil
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

from samovar.atomic_files import write_json
from samovar.campaign import run_command
from samovar.campaign.collection import SUMS, sha256_of, write_sums
from samovar.events import Emit, Event
from samovar.experiment import Outputs
from samovar.report.campaign_data import Json
from samovar.report.document import compose, data_files
from samovar.report.page import PAGE, ListedCampaign, write_report
from samovar.report.scorecard import VERDICTS, Result, read_results
from samovar.report.typeset import TEMPLATES

SCORECARD, README, CRATE = "scorecard.json", "README.txt", "ro-crate-metadata.json"
COPIES = {
    "provenance": ("experiment.yaml", "testbed.yaml", "plan.json", "provenance.json", "journal.jsonl"),
    "data": ("tables/summary.csv", "tables/flows.csv", "tables/metrics.csv"),
}
"""Maps each folder of the bundle to the campaign's files that are copied into it."""
OUTPUTS = ("figures", "data")
"""The folders of the bundle with the files of figures and tables."""
FORMATS = {".yaml": "application/yaml", ".jsonl": "application/jsonl", ".csv": "text/csv"}
"""The media types of suffixes that Python's module mimetypes does not know on every system."""


def make_bundle(campaign_folder: Path, emit: Emit, outputs: Outputs | None = None) -> tuple[Path, list[str]]:
    """Make the bundle of an analysed campaign; return the path of its PDF and the expectations' verdicts.

    The bundle of the same campaign always has the same bytes. Expectations may use the metrics in `outputs`,
    or those of the R package if `outputs` is None. Emits the events `scorecard` and `bundle-made`. Raises
    ReportError if the campaign is not analysed, or if the PDF cannot be made. Raises DefinitionError if the
    campaign's experiment.yaml is invalid.
    """
    campaign, results = read_results(campaign_folder, outputs)
    bundle = campaign.bundle
    for folder, names in COPIES.items():
        (bundle / folder).mkdir(parents=True, exist_ok=True)
        for file in (campaign.folder / name for name in names):
            if file.is_file():
                shutil.copyfile(file, bundle / folder / file.name)
    document = compose(campaign, results)
    current = output_files(document)
    for file in (one for kind in OUTPUTS for one in bundle_files(bundle / kind)):
        if file.relative_to(bundle).as_posix() not in current:  # the plan no longer has this output
            file.unlink()
    document["data"] = data_files(bundle, [*document["figures"], *document["tables"]])
    pdf = bundle / f"{campaign.plan.experiment}.pdf"
    listed = [ListedCampaign("", campaign, campaign.plan.ids)]
    write_report("report", document, pdf, campaign.start_s, listed, emit)
    write_json(bundle / SCORECARD, [vars(result) for result in results])
    commands = (run_command(campaign.plan), *document["regenerate"])
    repeat = "\n".join(f"  {line}" for line in commands)
    readme = (TEMPLATES / README).read_text("utf-8")
    unmade = document["omissions"]["unavailable"]
    notes = "".join(f"  {one['name']} could not be made: {one['reason']}\n" for one in unmade)
    readme = readme.format(
        **document,
        unmade=notes,
        pdf=pdf.name,
        page=PAGE,
        label=campaign.label,
        repeat=repeat,
        host_file=f"{next(iter(campaign.testbeds))}.yaml",
    )
    (bundle / README).write_text(readme, encoding="utf-8")
    described = [file for file in bundle_files(bundle) if file.name not in (SUMS, CRATE)]
    write_json(bundle / CRATE, _crate(document, bundle, described, campaign.start_s))
    return pdf, finish_bundle(bundle, pdf, results, emit)


def output_files(document: Json) -> set[str]:
    """Return the files that a campaign's bundle has in the folders OUTPUTS, relative to the bundle."""
    outputs = [*document["figures"], *document["tables"]]
    copies = (f"data/{Path(name).name}" for name in COPIES["data"])
    return {*copies, *(one[key] for one in outputs for key in ("file", "data") if one[key])}


def finish_bundle(bundle: Path, pdf: Path, results: Sequence[Result], emit: Emit) -> list[str]:
    """Write the checksums of a bundle, emit events about it, and return the verdicts of the expectations."""
    write_sums(bundle)
    verdicts = [one.verdict for one in results]
    emit(Event("scorecard", {word: verdicts.count(word) for word in VERDICTS}))
    emit(Event("bundle-made", {"pdf": str(pdf), "files": len(bundle_files(bundle))}))
    return verdicts


def bundle_files(folder: Path) -> list[Path]:
    """Return all files below a folder, sorted in the same order on every machine."""
    return sorted((file for file in folder.rglob("*") if file.is_file()), key=lambda file: file.as_posix())


def _crate(document: Json, bundle: Path, files: list[Path], t_s: float) -> Json:
    """Return the RO-Crate 1.1 metadata of a bundle's files, with paths relative to the bundle."""
    version = "https://w3id.org/ro/crate/1.1"

    def entity(id_: str, kind: str, **values: object) -> Json:
        return {"@id": id_, "@type": kind, **values}

    def refer(entities: list[Json]) -> list[Json]:
        return [{"@id": one["@id"]} for one in entities]

    here = {"@id": "./"}
    entities = [
        entity(
            file.relative_to(bundle).as_posix(),
            "File",
            name=file.name,
            contentSize=str(file.stat().st_size),
            encodingFormat=FORMATS.get(file.suffix) or mimetypes.guess_type(file.name)[0] or "text/plain",
            sha256=sha256_of(file),
        )
        for file in files
    ]
    software = [
        entity(f"#software-{name}", "SoftwareApplication", name=name, softwareVersion=number)
        for name, number in {"samovar": document["samovar"], **document["software"]}.items()
    ]
    work = "Measurement, analysis and typesetting of the report"
    action = entity("#analysis", "CreateAction", name=work, instrument=refer(software), result=[here])
    dataset = entity(
        "./",
        "Dataset",
        name=f"{document['title']} ({document['campaign']})",
        description=document["description"] or document["title"],
        identifier=f"{document['experiment']}/{document['campaign']}",
        datePublished=datetime.fromtimestamp(t_s, UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
        hasPart=refer(entities),
        mentions=refer([action]),
    )
    metadata = entity(CRATE, "CreativeWork", about=here, conformsTo={"@id": version})
    return {"@context": f"{version}/context", "@graph": [metadata, dataset, *entities, action, *software]}
