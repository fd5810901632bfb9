"""What is said by a command that leaves at once."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from samovar.campaign.folder import PLAN, read_head, read_state
from samovar.campaign.journal import CampaignState
from samovar.errors import SamovarError


def left_lines(folder: Path | None) -> Iterator[str]:
    """Say what remains to be put back of the campaign that ran, on which hosts, and what makes sure of it."""
    if folder is None:
        yield "left at once; no campaign had begun, no host is changed"
        return
    try:
        state = read_state(folder)
    except SamovarError as error:
        yield f"left at once; what remains to be put back is not known: {error}"
        return
    yield from _remains(state, str(read_head(folder / PLAN).get("testbed", "")))
    yield "the same command goes on with the campaign; what was half written is kept"


def _remains(state: CampaignState, testbeds: str) -> Iterator[str]:
    if not state.unrestored:
        yield "left at once; every host is as it was found"
        return
    yield "left at once; to be put back as they were found:"
    for host, reads in state.unrestored.items():
        lasting = ", what takes a reboot among it" if any(read.lasting for read in reads) else ""
        yield f"  {host}: as before trial {reads[0].id}{lasting}"
    yield "each host does that itself now that it has lost its controller; this makes sure:"
    for testbed in testbeds.split(","):
        yield f"  fab restore --testbed {testbed}"
