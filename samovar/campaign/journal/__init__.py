"""The journal of a campaign: its events, the file that holds them, and the state that they add up to."""

from typing import Any

from samovar.campaign.journal.campaign_state import (
    STARTS,
    CampaignState,
    SavedState,
    TrialState,
    TrialStatus,
    fold,
    is_open,
)
from samovar.campaign.journal.journal_file import (
    NAME,
    SEALING,
    Entry,
    Journal,
    broken_seals,
    holder,
    read_journal,
)

__all__ = [
    "NAME",
    "SEALING",
    "STARTS",
    "CampaignState",
    "Entry",
    "Journal",
    "SavedState",
    "TrialState",
    "TrialStatus",
    "broken_seals",
    "fold",
    "holder",
    "is_open",
    "journal_schema",
    "read_journal",
]


def journal_schema() -> dict[str, Any]:
    """Return the JSON Schema of one line of a journal."""
    from samovar.campaign.journal import entries  # only here: building its models takes time

    return entries.line_schema()
