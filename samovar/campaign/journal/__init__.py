"""The journal of a campaign: written event by event, and what the events mean for its trials."""

from samovar.campaign.journal.campaign_state import (
    STARTS,
    CampaignState,
    StateRead,
    TrialState,
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
    "StateRead",
    "TrialState",
    "broken_seals",
    "fold",
    "holder",
    "is_open",
    "read_journal",
]
