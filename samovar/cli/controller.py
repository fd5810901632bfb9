"""Campaigns begun and gone on with, hosts put back."""

from __future__ import annotations

import platform
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from importlib import metadata
from pathlib import Path

from samovar import __version__, lab
from samovar.campaign.availability.disk_space import unusable
from samovar.campaign.availability.in_use import require_free
from samovar.campaign.availability.leases import Claimant
from samovar.campaign.availability.power_on import awaken
from samovar.campaign.folder import begin_campaign
from samovar.campaign.journal import NAME as JOURNAL
from samovar.campaign.journal import Journal
from samovar.campaign.launch import Known, ask, notifying, require, runnable_together
from samovar.campaign.policy import policy_of
from samovar.campaign.recipe_changes import RECIPES, recipe_digests
from samovar.campaign.recovery import Restored, Restorer, changed_campaigns
from samovar.campaign.run import CampaignRun, Intent, Summary, settle
from samovar.campaign.source_state import git_state
from samovar.campaign.testbed_runner import Crew
from samovar.cli.queries import Asking
from samovar.cli.requests import Going, Study
from samovar.errors import CampaignError
from samovar.events import Emit, Event
from samovar.experiment import Testbed
from samovar.hosts import HostFacts, Sessions, machines_of

REQUIREMENTS = ("fabric", "paramiko", "Jinja2", "PyYAML", "pydantic", "rich", "typst")


class Controller(Asking):
    """This checkout of samovar with its files, at work."""

    def settle(self, study: Study, folder: Path) -> Summary:
        """Take a plan of which everything is there as the campaign's; no host is touched."""
        return settle(folder, study.plan, study.sources)

    def run(self, going: Going, emit: Emit) -> Summary:
        """Run what is still open of a study's campaign, beginning one if there is none.

        Hosts that do not answer cost the trials that need them. Raises TestbedError when no trial can run
        without them, or a host lacks what the plan needs, CampaignError when nothing can be kept here;
        nothing has been changed on any host then.
        """
        studies, own = going.study.every, going.standing.folder
        why = unusable(self.results)
        if why is not None:
            raise CampaignError(f"{why}; set `results` in config.yaml to a folder")
        if own and (own / JOURNAL).exists():
            Journal(own / JOURNAL).close()  # at once, and not when the hosts have been asked
        with ExitStack() as stack:
            opened = [stack.enter_context(self._started(study, emit)) for study in studies]
            self._require_free(going, opened)
            known = [self._ask(study, one, emit) for study, one in zip(studies, opened, strict=True)]
            require([study.plan for study in studies], known, going.fail_fast)
            intent = self._intent(going, opened, known)
            folder = self.at_work = self._folder(going, emit)
            notifier = stack.enter_context(notifying(self.config.notify, folder, emit))
            run = CampaignRun(folder, intent, opened[0], self.catalogue, notifier)
            summary = run.run(self._provenances(studies, known))
            notifier.end(summary.done, summary.asked, len(summary.failed))
            return summary

    def _require_free(self, going: Going, opened: Sequence[Sessions]) -> None:
        """Refuse hosts that somebody else has, before they are asked what they are, which takes time."""
        folder = going.standing.folder or self.results
        for study, sessions in zip(going.study.every, opened, strict=True):
            require_free(sessions, Claimant(folder, study.testbed.name, force=going.force))

    def _ask(self, study: Study, sessions: Sessions, emit: Emit) -> Known:
        awaken(sessions, machines_of(study.testbed), emit)
        return ask(sessions, lambda hosts: self.facts(sessions, study.plan, hosts))

    def _intent(self, going: Going, opened: Sequence[Sessions], known: Sequence[Known]) -> Intent:
        studies = going.study.every
        cost = self.cost(going.study, going.standing)
        pairs = zip(studies, known, strict=True)
        found = {study.testbed.name: self.examine(study, one.facts, cost) for study, one in pairs}
        blocked = runnable_together(going.study.plan, found, going.allow_partial)
        each = zip(studies, opened, known, blocked, strict=True)
        crews = [self._crew(study, sessions, one, lacking) for study, sessions, one, lacking in each]
        return Intent(
            going.study.plan,
            going.study.sources,
            blocked=blocked[0],
            machines=crews[0].machines,
            policy=crews[0].policy,
            gone=known[0].gone,
            fail_fast=going.fail_fast,
            others=tuple(crews[1:]),
            force=going.force,
        )

    def _crew(
        self, study: Study, sessions: Sessions, known: Known, blocked: Mapping[str, Sequence[str]]
    ) -> Crew:
        policy = policy_of(study.experiment, study.testbed, self.config, known.boots)
        machines = machines_of(study.testbed)
        return Crew(study.testbed.name, study.plan, sessions, blocked, machines, policy, known.gone)

    def _folder(self, going: Going, emit: Emit) -> Path:
        """Find the campaign that is gone on with, or begin one."""
        folder = going.standing.folder
        if folder is None:
            return begin_campaign(going.study.plan, self.results, going.study.sources, emit)
        emit(Event("campaign-resumed", {"folder": str(folder)}))
        return folder

    def restore(self, testbed: Testbed, emit: Emit, force: bool = False) -> Restored:
        """Put every host of a testbed back as the journals of its campaigns say that it was.

        With `force` hosts are taken from whoever holds them. Touches no host when no journal names one.
        Raises LabError for a lab that is down.
        """
        folders = changed_campaigns(self.results, testbed.name)
        if not folders:
            return Restored()
        sessions = self.sessions(testbed)
        try:  # each host is connected to by itself: one that is away keeps no other from being restored
            machines = machines_of(testbed)
            restorer = Restorer(testbed.name, sessions, self.catalogue, machines, emit, force)
            return restorer.run(folders)
        finally:
            sessions.close()

    def _provenances(self, studies: Sequence[Study], known: Sequence[Known]) -> Mapping[str, object]:
        """Say with what a campaign is made; of further testbeds, what they are."""
        first, *others = [self.provenance(s, one.facts) for s, one in zip(studies, known, strict=True)]
        told = {str(one["testbed"]): {key: one[key] for key in ("lab", "hosts")} for one in others}
        return {**first, "others": told} if told else first

    def provenance(self, study: Study, facts: Mapping[str, HostFacts]) -> Mapping[str, object]:
        """Say with what a campaign is made: versions, hosts, the state of this checkout."""
        access = lab.read_access(self.lab_folder(study.testbed.name)) if study.testbed.lab else None
        return {
            "controller": {
                "samovar": __version__,
                "python": platform.python_version(),
                "kernel": platform.release(),
                "packages": {name: metadata.version(name) for name in REQUIREMENTS},
            },
            "git": git_state(self.root),
            RECIPES: recipe_digests(study.plan, self.catalogue),
            "testbed": study.testbed.name,
            "lab": {"kernel": access.kernel, "release": access.release} if access else None,
            "hosts": {host: fact.as_json() for host, fact in facts.items()},
        }
