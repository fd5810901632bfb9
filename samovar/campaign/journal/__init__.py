"""The journal of a campaign: its events, the file that holds them, and the state that they add up to."""

from samovar.campaign.journal.campaign_state import (
    STARTS,
    CampaignState,
    SavedState,
    TrialState,
    fold,
    is_open,
)
from samovar.campaign.journal.journal_file import (
    NAME,
    Entry,
    Journal,
    Note,
    broken_seals,
    holder,
    read_journal,
)

__all__ = [
    "NAME",
    "STARTS",
    "CampaignState",
    "Entry",
    "Journal",
    "Note",
    "SavedState",
    "TrialState",
    "broken_seals",
    "fold",
    "holder",
    "is_open",
    "read_journal",
]
