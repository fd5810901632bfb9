"""ro-crate-metadata.json: the bundle described for machines, after RO-Crate 1.1."""

from __future__ import annotations

import mimetypes
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from samovar.campaign.collection import sha256_of
from samovar.report.campaign_data import Json

NAME = "ro-crate-metadata.json"
CONTEXT = "https://w3id.org/ro/crate/1.1/context"
PROFILE = "https://w3id.org/ro/crate/1.1"
# Python's table differs between systems; these are the kinds of file that a bundle holds.
FORMATS = {".yaml": "application/yaml", ".jsonl": "application/jsonl", ".csv": "text/csv"}


def crate(document: Json, bundle: Path, files: list[Path], t_s: float, licence: str | None) -> Json:
    """Return the crate's graph over the files of a bundle; paths in it are relative to the bundle."""
    entities = [file_entity(bundle, file) for file in files]
    software = software_entities(document)
    root: dict[str, Any] = {
        "@id": "./",
        "@type": "Dataset",
        "name": f"{document['title']} ({document['campaign']})",
        "description": document["description"] or document["title"],
        "identifier": f"{document['experiment']}/{document['campaign']}",
        "datePublished": datetime.fromtimestamp(t_s, UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
        "hasPart": [{"@id": entity["@id"]} for entity in entities],
        "mentions": [{"@id": "#analysis"}],
    }
    if licence:
        root["license"] = {"@id": licence} if "://" in licence else licence
    action = {
        "@id": "#analysis",
        "@type": "CreateAction",
        "name": "Measurement, analysis and setting of the report",
        "instrument": [{"@id": entity["@id"]} for entity in software],
        "result": [{"@id": "./"}],
    }
    return {"@context": CONTEXT, "@graph": [descriptor(), root, *entities, action, *software]}


def descriptor() -> Json:
    """Return the entity that makes the file a crate's metadata."""
    return {"@id": NAME, "@type": "CreativeWork", "about": {"@id": "./"}, "conformsTo": {"@id": PROFILE}}


def file_entity(bundle: Path, file: Path) -> Json:
    """Describe one file."""
    return {
        "@id": file.relative_to(bundle).as_posix(),
        "@type": "File",
        "name": file.name,
        "contentSize": str(file.stat().st_size),
        "encodingFormat": FORMATS.get(file.suffix) or mimetypes.guess_type(file.name)[0] or "text/plain",
        "sha256": sha256_of(file),
    }


def software_entities(document: Json) -> list[Json]:
    """Describe the programs whose versions are recorded one by one."""
    versions = {"samovar": document["samovar"], **document["software"]}
    return [
        {"@id": f"#software-{name}", "@type": "SoftwareApplication", "name": name, "softwareVersion": version}
        for name, version in versions.items()
    ]
