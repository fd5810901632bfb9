"""Run a plan on testbeds as a campaign, and record it in a folder with a journal.

Each name below is imported when it is first used. Commands that only read a campaign's journal therefore
start fast: they do not load the modules that run trials.
"""

from __future__ import annotations

from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from samovar.campaign.dry_run import render_trial as render_trial
    from samovar.campaign.folder import PLAN as PLAN
    from samovar.campaign.folder import TESTBEDS as TESTBEDS
    from samovar.campaign.folder import ResumePoint as ResumePoint
    from samovar.campaign.folder import begin_campaign as begin_campaign
    from samovar.campaign.folder import find_resume_point as find_resume_point
    from samovar.campaign.folder import point_latest as point_latest
    from samovar.campaign.folder import read_plan as read_plan
    from samovar.campaign.folder import read_state as read_state
    from samovar.campaign.folder import run_command as run_command
    from samovar.campaign.folder import shard_of as shard_of
    from samovar.campaign.folder import testbeds_of as testbeds_of
    from samovar.campaign.interrupts import EXIT_CODE as EXIT_CODE
    from samovar.campaign.interrupts import Interrupts as Interrupts
    from samovar.campaign.interrupts import unrestored_lines as unrestored_lines
    from samovar.campaign.merge_campaigns import Merged as Merged
    from samovar.campaign.merge_campaigns import latest_shards as latest_shards
    from samovar.campaign.merge_campaigns import merge_shards as merge_shards
    from samovar.campaign.merge_campaigns import shards_of as shards_of
    from samovar.campaign.notifier import Notifier as Notifier
    from samovar.campaign.past_campaigns import campaigns_in as campaigns_in
    from samovar.campaign.past_campaigns import expected_overhead_s as expected_overhead_s
    from samovar.campaign.past_campaigns import find_campaign as find_campaign
    from samovar.campaign.past_campaigns import measured_times as measured_times
    from samovar.campaign.policy import policy_of as policy_of
    from samovar.campaign.provenance_json import changed_recipes as changed_recipes
    from samovar.campaign.provenance_json import provenance_of as provenance_of
    from samovar.campaign.provenance_json import this_node as this_node
    from samovar.campaign.recovery import Restored as Restored
    from samovar.campaign.recovery import changed_campaigns as changed_campaigns
    from samovar.campaign.recovery import restore_campaign as restore_campaign
    from samovar.campaign.retries import TestbedSetup as TestbedSetup
    from samovar.campaign.run import CampaignRun as CampaignRun
    from samovar.campaign.run import Summary as Summary
    from samovar.campaign.run import adopt_plan as adopt_plan
    from samovar.campaign.run import summarise as summarise

_MODULES = (
    *("interrupts", "folder", "notifier", "past_campaigns", "policy", "provenance_json", "recovery", "run"),
    *("retries", "dry_run", "merge_campaigns"),
)
"""Modules in the order in which __getattr__ searches them for a name. Modules that import little come first,
because a search loads every module up to the one that has the name."""


def __getattr__(name: str) -> Any:
    """Return the object with this public name, imported at its first use. Raises AttributeError."""
    if not name.startswith("_") and find_spec(f"{__name__}.{name}") is None:
        for module in map(import_module, (f"{__name__}.{one}" for one in _MODULES)):
            if hasattr(module, name):
                return getattr(module, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
