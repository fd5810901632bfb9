"""Whether hosts can be used: what a plan needs of them, leases, disk space, reboots, quarantine."""

from samovar.campaign.availability.disk_space import free_here, needed_here, shortage, space_here, unusable
from samovar.campaign.availability.findings import (
    HERE,
    Finding,
    blocked_trials,
    combine_findings,
    require_runnable,
)
from samovar.campaign.availability.leases import LeaseRequest, Leases, require_free, require_idle
from samovar.campaign.availability.needed_hosts import (
    blamed,
    errors_by_host,
    needed_hosts_by_trial,
    without_hosts,
)
from samovar.campaign.availability.reboot import Reboots
from samovar.campaign.availability.requirements import (
    FEATURE,
    HostNeeds,
    find_missing,
    host_needs,
    needs_of,
    predict_missing,
    recipes_at,
    recipes_view,
)
from samovar.campaign.availability.root_access import ROOT_COMMAND, ROOT_LOGIN, sudoers_lines
from samovar.campaign.availability.survey import HostSurvey, power_on_silent, require_reachable, survey_hosts
from samovar.campaign.availability.unsupported_paths import unsupported_paths

__all__ = [
    "FEATURE",
    "HERE",
    "ROOT_COMMAND",
    "ROOT_LOGIN",
    "Finding",
    "HostNeeds",
    "HostSurvey",
    "LeaseRequest",
    "Leases",
    "Reboots",
    "blamed",
    "blocked_trials",
    "combine_findings",
    "errors_by_host",
    "find_missing",
    "free_here",
    "host_needs",
    "needed_here",
    "needed_hosts_by_trial",
    "needs_of",
    "power_on_silent",
    "predict_missing",
    "recipes_at",
    "recipes_view",
    "require_free",
    "require_idle",
    "require_reachable",
    "require_runnable",
    "shortage",
    "space_here",
    "sudoers_lines",
    "survey_hosts",
    "unsupported_paths",
    "unusable",
    "without_hosts",
]
