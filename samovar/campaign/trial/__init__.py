"""Run one trial: its phases on the hosts, its traffic, and its result."""

from samovar.campaign.trial.boot_settings import BootSettings as BootSettings
from samovar.campaign.trial.trial_run import TrialResult as TrialResult
from samovar.campaign.trial.trial_run import TrialRun as TrialRun
from samovar.campaign.trial.trial_run import read_result as read_result
