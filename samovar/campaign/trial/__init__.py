"""One trial: its phases on the hosts, its traffic, and its result."""

from samovar.campaign.trial.attempt import TrialResult, read_result
from samovar.campaign.trial.boot_settings import BootSettings
from samovar.campaign.trial.phases import TrialRun

__all__ = ["BootSettings", "TrialResult", "TrialRun", "read_result"]
