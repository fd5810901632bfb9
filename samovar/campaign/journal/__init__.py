"""The journal of a campaign: the file of its events, and the state derived from them."""

from samovar.campaign.journal.campaign_state import CONTROLLER_KILLED as CONTROLLER_KILLED
from samovar.campaign.journal.campaign_state import STARTS as STARTS
from samovar.campaign.journal.campaign_state import TRIAL_EVENTS as TRIAL_EVENTS
from samovar.campaign.journal.campaign_state import CampaignState as CampaignState
from samovar.campaign.journal.campaign_state import SavedState as SavedState
from samovar.campaign.journal.campaign_state import fold as fold
from samovar.campaign.journal.campaign_state import is_open as is_open
from samovar.campaign.journal.journal_file import JOURNAL as JOURNAL
from samovar.campaign.journal.journal_file import LOCKED as LOCKED
from samovar.campaign.journal.journal_file import Entry as Entry
from samovar.campaign.journal.journal_file import Journal as Journal
from samovar.campaign.journal.journal_file import Note as Note
from samovar.campaign.journal.journal_file import failed_checksums as failed_checksums
from samovar.campaign.journal.journal_file import is_running as is_running
from samovar.campaign.journal.journal_file import journal_bytes as journal_bytes
from samovar.campaign.journal.journal_file import read_journal as read_journal
