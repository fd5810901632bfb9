"""Campaigns: a plan run on testbeds, with the journal and the folder that record it.

The names below are imported when they are first used: commands that only read a campaign's journal start
without the modules that run trials.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from samovar.campaign.folder import (
        PLAN,
        TESTBEDS,
        ResumePoint,
        begin_campaign,
        find_resume_point,
        join_testbeds,
        read_plan,
        read_state,
        run_command,
        testbeds_of,
    )
    from samovar.campaign.interrupts import EXIT_CODE, RESUMES, Interrupts, unrestored_lines
    from samovar.campaign.notifier import notifying
    from samovar.campaign.past_campaigns import Archive
    from samovar.campaign.policy import policy_of
    from samovar.campaign.provenance_json import changed_recipes, provenance_of
    from samovar.campaign.recovery import Restored, Restorer, changed_campaigns
    from samovar.campaign.retries import TestbedSetup
    from samovar.campaign.run import CampaignRun, Summary, adopt_plan

_MODULES = (
    *("interrupts", "folder", "notifier", "past_campaigns", "policy", "provenance_json", "recovery", "run"),
    "retries",
)
"""Modules in the order in which they are searched for a name, those that import little first."""

__all__ = [
    "EXIT_CODE",
    "PLAN",
    "RESUMES",
    "TESTBEDS",
    "Archive",
    "CampaignRun",
    "Interrupts",
    "Restored",
    "Restorer",
    "ResumePoint",
    "Summary",
    "TestbedSetup",
    "adopt_plan",
    "begin_campaign",
    "changed_campaigns",
    "changed_recipes",
    "find_resume_point",
    "join_testbeds",
    "notifying",
    "policy_of",
    "provenance_of",
    "read_plan",
    "read_state",
    "run_command",
    "testbeds_of",
    "unrestored_lines",
]


def __getattr__(name: str) -> Any:
    """Import a name of the public face."""
    if name in __all__:
        for module in map(import_module, (f"{__name__}.{one}" for one in _MODULES)):
            if hasattr(module, name):
                return getattr(module, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
