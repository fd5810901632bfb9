"""Cache calibration results in files of a campaign, each named after a hash of its inputs."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Any

from samovar.atomic_files import write_json
from samovar.campaign.collection import sha256_of
from samovar.campaign.context import CampaignContext

FOLDER = "calibration"
ATTEMPTS = 3
"""The largest number of attempts at a measurement. A failed measurement is repeated, because other work on
the machine may have disturbed it."""


def cache_key(context: CampaignContext, inputs: Mapping[str, object]) -> str:
    """Return the hash of a measurement's inputs.

    The inputs include the boot ids of hosts, so a reboot invalidates results. If several testbeds share the
    campaign, the name of the testbed is an input too.
    """
    inputs = {**inputs, **({"testbed": context.testbed} if context.shared else {})}
    return hashlib.sha256(json.dumps(inputs, sort_keys=True).encode()).hexdigest()[:12]


def read_result(context: CampaignContext, name: str) -> Any:
    """Return the content of a calibration file, or None if it does not exist or is damaged."""
    file = context.folder / FOLDER / f"{name}.json"
    try:
        return json.loads(file.read_bytes()) if file.is_file() else None
    except ValueError:
        return None  # the measurement is made again


def write_result(context: CampaignContext, name: str, result: Mapping[str, object]) -> dict[str, str]:
    """Write a calibration file; return its path in the campaign and its checksum, for the journal."""
    file = context.folder / FOLDER / f"{name}.json"
    write_json(file, {"schema": 1, **result})
    return {"file": str(file.relative_to(context.folder)), "sha256": sha256_of(file)}
