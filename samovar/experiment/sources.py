"""What a campaign keeps of the files that defined it."""

from __future__ import annotations

from pathlib import Path

import yaml

from samovar.experiment.keys import Testbed
from samovar.experiment.layers.extends import Flattened
from samovar.experiment.yaml.tree import plain

ORIGINALS = "definition"
"""Folder of a campaign with the files that took part, as they were written."""


def kept_sources(flat: Flattened, testbed: Testbed) -> dict[str, bytes]:
    """Return the files to keep, by their name in the campaign.

    experiment.yaml needs no other file: it is the file itself where nothing was reused, and otherwise one
    tree of all files, which then stand in definition/ as they were written.
    """
    own = flat.sources[0]
    kept = {"experiment.yaml": own.read_bytes()}
    if testbed.written is not None:
        kept["testbed.yaml"] = Path(testbed.written.mark.file).read_bytes()
    if len(flat.sources) > 1:
        kept["experiment.yaml"] = _written_out(flat)
        home = own.absolute().parent
        for source in flat.sources:
            kept[f"{ORIGINALS}/{source.absolute().relative_to(home).as_posix()}"] = source.read_bytes()
    return kept


def _written_out(flat: Flattened) -> bytes:
    home = flat.sources[0].absolute().parent
    names = ", ".join(source.absolute().relative_to(home).as_posix() for source in flat.sources)
    body = yaml.safe_dump(plain(flat.tree), sort_keys=False, allow_unicode=True, width=110)
    return f"# Made of {names}, which stand in {ORIGINALS}/.\n{body}".encode()
