"""What a campaign has measured of its testbed once: files below its folder, each named by what decides it."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from samovar.atomic_files import write_json
from samovar.campaign.collection import sha256_of
from samovar.campaign.context import CampaignContext

FOLDER = "calibration"
ATTEMPTS = 3
"""A machine that is disturbed for a moment measures something else than the path; none measures it better."""


class CalibrationCache:
    """The files of measures, each named by all that decides what comes of measuring."""

    def __init__(self, context: CampaignContext) -> None:
        self._context = context

    def digest(self, told: Mapping[str, object]) -> str:
        """Name what is measured by all that decides it; of testbeds that share a campaign, by which it is."""
        whole = {**told, **({"testbed": self._context.testbed} if self._context.shared else {})}
        return hashlib.sha256(json.dumps(whole, sort_keys=True).encode()).hexdigest()[:12]

    def boot(self, host: str) -> str:
        """Return what tells the present boot of a host apart, after which nothing measured before counts."""
        return self._context.boots.get(host) or self._context.policy.boots.get(host, "")

    def read(self, name: str) -> Any:
        """Return what an earlier controller wrote; None where there is nothing."""
        file = self._file(name)
        return json.loads(file.read_bytes()) if file.is_file() else None

    def write(self, name: str, told: Mapping[str, object]) -> dict[str, str]:
        """Write a measure; return its place in the campaign's folder and its checksum, for the journal."""
        file = self._file(name)
        write_json(file, {"schema": 1, **told})
        return {"file": str(file.relative_to(self._context.folder)), "sha256": sha256_of(file)}

    def _file(self, name: str) -> Path:
        return self._context.folder / FOLDER / f"{name}.json"
