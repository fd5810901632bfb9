"""One trial: its phases on the hosts, its traffic, and its result."""

from samovar.campaign.trial.boot_settings import BootSettings
from samovar.campaign.trial.trial_run import TrialResult, TrialRun, read_result

__all__ = ["BootSettings", "TrialResult", "TrialRun", "read_result"]
