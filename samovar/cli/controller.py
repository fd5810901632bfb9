"""Start and resume campaigns of a project, and restore hosts that campaigns have left changed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import ExitStack, closing
from functools import partial
from pathlib import Path

from samovar import campaign, lab
from samovar.campaign import availability
from samovar.campaign.journal import JOURNAL, Journal, holder
from samovar.cli.connections import Connections
from samovar.cli.preflight import Preflight
from samovar.cli.project import PlannedExperiment, Project, RunRequest
from samovar.errors import CampaignError, LabError, SamovarError
from samovar.events import Emit, Event
from samovar.experiment import Testbed, load_testbed
from samovar.hosts import Sessions, machines_of


class Controller:
    """Runs the campaigns of a project, with the project's files, its testbeds and the preflight."""

    def __init__(self, root: Path) -> None:
        self.project = Project(root)
        self.connections = Connections(self.project)
        self.preflight = Preflight(self.project, self.connections)
        self.running: Path | None = None  # the folder of the running campaign

    def run(self, request: RunRequest, emit: Emit) -> campaign.Summary:
        """Run the open trials of a campaign; start a campaign if there is none to resume.

        If hosts do not answer, only the trials that need them are left out. Raises TestbedError if no trial
        can run without these hosts, or if a host lacks what the plan needs. Raises CampaignError if the
        results folder cannot be written. These errors are raised before any host is changed.
        """
        project = self.project
        planned, folder = request.planned.by_testbed, request.resume.folder
        why = availability.unusable(project.results)
        if why is not None:
            raise CampaignError(f"{why}; set `results` in config.yaml to a folder")
        if folder and (folder / JOURNAL).exists():
            # Raises CampaignError before hosts are contacted if another controller runs this campaign.
            Journal(folder / JOURNAL).close()
        with ExitStack() as stack:
            sessions = [stack.enter_context(self.connections.sessions_with_lab(one, emit)) for one in planned]
            home = folder or project.results
            for one, hosts in zip(planned, sessions, strict=True):
                lease = availability.LeaseRequest(home, one.testbed.name, force=request.force)
                availability.require_free(hosts, lease)  # first, because gathering facts takes time
            surveys = []
            for one, hosts in zip(planned, sessions, strict=True):
                availability.power_on_silent(hosts, machines_of(one.testbed), emit)
                facts = partial(self.preflight.facts, hosts, one.plan)
                surveys.append(availability.survey_hosts(hosts, facts))
            picked = request.resume.picked
            availability.require_reachable(
                [one.plan for one in planned], surveys, request.fail_fast, picked.ids if picked else None
            )
            testbeds = self._testbeds(request, sessions, surveys)
            if folder is None:
                folder = campaign.begin_campaign(
                    request.planned.plan, project.results, request.planned.sources, emit
                )
            else:
                emit(Event("campaign-resumed", {"folder": str(folder)}))
            self.running = folder
            notifier = stack.enter_context(campaign.notifying(project.config.notify, folder, emit))
            run = campaign.CampaignRun(
                folder,
                request.planned.plan,
                request.planned.sources,
                testbeds,
                project.catalogue,
                notifier,
                fail_fast=request.fail_fast,
                force=request.force,
                picked=picked,
            )
            summary = run.run(self._provenance(planned, surveys))
            notifier.end(summary.done, summary.trials, len(summary.failed))
            return summary

    def _testbeds(
        self, request: RunRequest, sessions: Sequence[Sessions], surveys: Sequence[availability.HostSurvey]
    ) -> list[campaign.TestbedSetup]:
        """Return the setup of each testbed, with the trials that it cannot run.

        Raises TestbedError if the hosts lack what the plan needs.
        """
        planned = request.planned.by_testbed
        cost = self.preflight.cost(request.planned, request.resume)
        findings = {
            one.testbed.name: self.preflight.compare(one, survey.facts, cost)
            for one, survey in zip(planned, surveys, strict=True)
        }
        ids = request.resume.picked.ids if request.resume.picked else None
        if ids is not None:
            findings = {name: availability.findings_of(found, ids) for name, found in findings.items()}
        blocked = availability.require_runnable(request.planned.plan, findings, request.allow_partial, ids)
        return [
            campaign.TestbedSetup(
                one.testbed.name,
                one.plan,
                hosts,
                lacking,
                machines_of(one.testbed),
                campaign.policy_of(one.experiment, one.testbed, self.project.config, survey.boots),
                survey.unreachable,
            )
            for one, hosts, survey, lacking in zip(planned, sessions, surveys, blocked, strict=True)
        ]

    def restore(self, testbed: Testbed, emit: Emit, force: bool = False) -> campaign.Restored:
        """Restore the hosts of a testbed that campaigns left changed, to the states that journals recorded.

        With `force`, leases that other campaigns hold on these hosts are taken over. If no host was left
        changed, none is contacted. A lab that is down is reported as a problem.
        """
        folders = campaign.changed_campaigns(self.project.results, testbed.name).get(testbed.name, [])
        restored = campaign.Restored()
        self._restore(testbed, folders, emit, force, restored)
        return restored

    def restore_all(self, emit: Emit, force: bool = False) -> campaign.Restored:
        """Restore, on every testbed, the hosts that interrupted campaigns have left changed.

        Hosts of running campaigns are not restored. An error of one testbed is reported as a problem, and the
        next testbed is restored.
        """
        restored = campaign.Restored()
        for name, folders in campaign.changed_campaigns(self.project.results).items():
            ended = [folder for folder in folders if holder(folder / JOURNAL) is None]
            try:
                bed = load_testbed(self.project.testbed_path(name))
                self._restore(bed, ended, emit, force, restored)
            except SamovarError as error:
                restored.problems.append(f"{name}: {error}")
        return restored

    def _restore(
        self, testbed: Testbed, folders: list[Path], emit: Emit, force: bool, restored: campaign.Restored
    ) -> None:
        """Restore the hosts that campaigns have left changed, and add the result to `restored`."""
        catalogue, machines = self.project.catalogue, machines_of(testbed)
        for shard in dict.fromkeys(map(campaign.shard_of, folders)):  # each has a lab of its own
            own = [folder for folder in folders if campaign.shard_of(folder) == shard]
            try:
                sessions = self.connections.sessions(testbed, shard)
            except LabError as error:
                restored.problems.append(str(error))
                continue
            # Hosts are connected one by one, so that an unreachable host does not prevent restoring others.
            with closing(sessions):
                restorer = campaign.Restorer(testbed.name, sessions, catalogue, machines, emit, force)
                restorer.run(own, restored)

    def _provenance(
        self, planned: Sequence[PlannedExperiment], surveys: Sequence[availability.HostSurvey]
    ) -> Mapping[str, object]:
        testbeds: dict[str, Mapping[str, object]] = {}
        for one, survey in zip(planned, surveys, strict=True):
            folder = self.connections.lab_folder(one.testbed.name, one.plan.shard)
            access = lab.read_access(folder) if one.testbed.lab else None
            testbeds[one.testbed.name] = {
                "lab": {"kernel": access.kernel, "release": access.release} if access else None,
                "hosts": {host: facts.as_json() for host, facts in survey.facts.items()},
            }
        return campaign.provenance_of(self.project.root, planned[0].plan, self.project.catalogue, testbeds)
