"""Run campaigns, restore hosts that they left changed, and find what testbeds lack for a plan."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing
from functools import partial
from pathlib import Path

from samovar import campaign, lab
from samovar.campaign import availability
from samovar.campaign.availability import Finding
from samovar.campaign.collection import require_unarchived
from samovar.campaign.journal import JOURNAL, Journal, is_running
from samovar.cli.connections import Connections
from samovar.cli.project import PlannedExperiment, Project, RunRequest
from samovar.cli.show_plan import PlanPreview
from samovar.errors import CampaignError, LabError, SamovarError, TestbedError
from samovar.events import Emit, Event
from samovar.experiment import Testbed
from samovar.hosts import HostFacts, Sessions, gather_facts, machines_of
from samovar.plan import Cost, Pick, Plan, estimate_cost
from samovar.recipes import SudoCommand, allowed_commands


class Controller:
    """What commands do with the files and testbeds of a project, without the command line and its output."""

    def __init__(self, root: Path) -> None:
        self.project = Project(root)
        self.connections = Connections(self.project)
        self.running: Path | None = None  # the folder of the running campaign

    def run(self, request: RunRequest, emit: Emit) -> campaign.Summary:
        """Run the open trials of the campaign to resume, or of a new campaign.

        If hosts do not answer, only the trials that need them are left out. Raises TestbedError if no trial
        can run without these hosts, or if a host lacks what the plan needs. Raises CampaignError if the
        results folder cannot be written, or if the campaign's traces are archived. These errors are raised
        before any host is changed.
        """
        project = self.project
        planned, folder = request.planned.by_testbed, request.resume.folder
        why = availability.unusable(project.results)
        if why is not None:
            raise CampaignError(f"{why}; set `results` in config.yaml to a folder")
        if folder and (folder / JOURNAL).exists():
            # Raises CampaignError before hosts are contacted if another controller runs this campaign.
            Journal(folder / JOURNAL).close()
            require_unarchived(folder)  # the archive could not be restored beside newer trials
        with ExitStack() as stack:
            sessions = [stack.enter_context(self.connections.sessions_with_lab(one, emit)) for one in planned]
            home = folder or project.results
            for one, hosts in zip(planned, sessions, strict=True):
                lease = availability.LeaseRequest(home, one.testbed.name, force=request.force)
                availability.require_free(hosts, lease)  # first, because gathering facts takes time
            surveys = []
            for one, hosts in zip(planned, sessions, strict=True):
                availability.power_on_silent(hosts, machines_of(one.testbed), emit)
                facts = partial(self.facts, hosts, one.plan)
                surveys.append(availability.survey_hosts(hosts, facts))
            picked = request.resume.picked
            plans = [one.plan for one in planned]
            availability.require_reachable(plans, surveys, request.fail_fast, picked.ids)
            testbeds = self._testbeds(request, sessions, surveys)
            if folder is None:
                folder = campaign.begin_campaign(
                    request.planned.plan, project.results, request.planned.sources, emit
                )
            else:
                emit(Event("campaign-resumed", {"folder": str(folder)}))
            self.running = folder
            notifier = stack.enter_context(campaign.Notifier(project.config.notify, folder, emit))
            run = campaign.CampaignRun(
                folder,
                request.planned.plan,
                request.planned.sources,
                picked,
                testbeds,
                project.catalogue,
                notifier,
                fail_fast=request.fail_fast,
                force=request.force,
            )
            summary = run.run(self._provenance(planned, surveys))
            notifier.end(summary.done, summary.trials, len(summary.failed))
            return summary

    def _testbeds(
        self, request: RunRequest, sessions: Sequence[Sessions], surveys: Sequence[availability.HostSurvey]
    ) -> list[campaign.TestbedSetup]:
        """Return the setup of each testbed, with the open trials that it cannot run.

        Raises TestbedError if the hosts lack what the open trials need.
        """
        planned, resume = request.planned.by_testbed, request.resume
        cost, ids = self.cost(request.planned, resume), resume.picked.ids
        findings = {
            one.testbed.name: availability.findings_of(
                self.compare(one, survey.facts, cost), resume.comparison.runs
            )
            for one, survey in zip(planned, surveys, strict=True)
        }
        blocked = availability.require_runnable(request.planned.plan, findings, request.allow_partial, ids)
        return [
            campaign.TestbedSetup(
                one.testbed.name,
                one.plan,
                hosts,
                lacking,
                machines_of(one.testbed),
                campaign.policy_of(one.experiment, one.testbed, self.project.config),
                survey,
            )
            for one, hosts, survey, lacking in zip(planned, sessions, surveys, blocked, strict=True)
        ]

    def restore(self, testbed: Testbed | None, emit: Emit, force: bool = False) -> campaign.Restored:
        """Restore hosts that campaigns left changed, to the states that journals recorded.

        If `testbed` is None, the hosts of all testbeds are restored, except those of running campaigns. With
        `force`, leases that other campaigns hold on the hosts are taken over. If no host was left changed,
        none is contacted. An error, such as a lab that is down, is reported as a problem, and does not
        prevent other hosts from being restored.
        """
        restored, project = campaign.Restored(), self.project
        for name, folder in campaign.changed_campaigns(project.results, testbed.name if testbed else ""):
            try:
                if not testbed and is_running(folder / JOURNAL):
                    continue
                bed = testbed or project.testbed(name)
                # Hosts are connected one by one, because one that does not answer must not prevent restoring
                # the others.
                with closing(self.connections.sessions(bed, campaign.shard_of(folder))) as sessions:
                    campaign.restore_campaign(
                        folder,
                        bed.name,
                        sessions,
                        project.catalogue,
                        machines_of(bed),
                        emit,
                        project.config,
                        restored,
                        force,
                    )
            except SamovarError as error:
                restored.problems.append(str(error))
        restored.problems = list(dict.fromkeys(restored.problems))  # campaigns may have equal problems
        return restored

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

    def preview(
        self, planned: PlannedExperiment, new_campaign: bool, pick: Pick | None = None
    ) -> PlanPreview:
        """Return what `fab plan` shows. Hosts are queried if they can be reached."""
        resume = self.project.resume_point(planned, new_campaign, pick)
        remaining = self.cost(planned, resume)
        all_findings, not_queried = self.check_running(planned, remaining)
        findings = availability.findings_of(all_findings, resume.comparison.runs)
        left_out = set(planned.plan.ids).difference(resume.picked.ids)
        blocked = availability.blocked_trials(findings)
        return PlanPreview(
            planned.plan,
            resume,
            self.cost(planned, without=left_out),
            remaining,
            findings,
            blocked,
            not_queried,
            cost_possible=self.cost(planned, resume, blocked) if blocked else remaining,
            changed_recipes=campaign.changed_recipes(planned.plan, resume, self.project.catalogue),
        )

    def cost(
        self,
        planned: PlannedExperiment,
        resume: campaign.ResumePoint | None = None,
        without: Collection[str] = (),
    ) -> Cost:
        """Estimate the cost of a plan; with `resume`, only the cost of the trials that are still to run.

        The trials with ids in `without` are left out.
        """
        ids = resume.comparison.runs if resume else planned.plan.ids
        only = {id_ for id_ in ids if id_ not in without}
        testbed = planned.testbed
        policy = campaign.policy_of(planned.experiment, testbed, self.project.config)
        lab_hosts = len(testbed.hosts) if testbed.lab else 0
        times = campaign.measured_times(self.project.results, testbed.name, lab_hosts)
        testbeds = len(planned.by_testbed)
        return estimate_cost(planned.plan, self.project.catalogue, times, only, policy.calibrate, testbeds)

    def facts(
        self, sessions: Sessions, plan: Plan, hosts: Iterable[str] | None = None
    ) -> Mapping[str, HostFacts]:
        """Gather facts about all hosts, or those in `hosts`, including what the plan needs there."""
        catalogue = self.project.catalogue
        needs = availability.host_needs(plan, catalogue)
        programs = {program for need in needs.values() for program in need.probed_programs}
        qdiscs = {name for need in needs.values() for name in need.names(availability.FEATURE)}
        systems = {name: host.system for name, host in plan.trials[0].resolved.hosts.items()}
        commands = _root_commands(plan, needs, sessions)
        return sessions.map(
            lambda session: gather_facts(
                session, catalogue, systems[session.host], programs, qdiscs, commands[session.host]
            ),
            hosts,
        )

    def sudoers(self, planned: PlannedExperiment) -> Iterator[str]:
        """Query the hosts, and return the lines of sudoers(5) that each host needs for an experiment."""
        needs = availability.host_needs(planned.plan, self.project.catalogue)
        with self.connections.sessions(planned.testbed) as sessions:
            facts = self.facts(sessions, planned.plan)
            commands = _root_commands(planned.plan, needs, sessions)
        only_root = {host: need.names(availability.ROOT_LOGIN) for host, need in needs.items()}
        return availability.sudoers_lines(commands, only_root, facts)

    def check(
        self, planned: PlannedExperiment, emit: Emit
    ) -> tuple[Mapping[str, HostFacts], Sequence[Finding]]:
        """Return the facts of every host of every testbed, and what the hosts lack for the plan.

        If a lab has to be started for this, it is stopped afterwards. Raises TestbedError if a host does not
        answer.
        """
        cost = self.cost(planned, self.project.resume_point(planned))
        all_facts: dict[str, HostFacts] = {}
        findings: dict[str, Sequence[Finding]] = {}
        for one in planned.by_testbed:
            with self.connections.sessions_with_lab(one, emit) as sessions, sessions:
                facts = self.facts(sessions, one.plan)
            name = one.testbed.name
            all_facts |= {f"{name}: {host}" if planned.others else host: fact for host, fact in facts.items()}
            findings[name] = self.compare(one, facts, cost)
        return all_facts, availability.combine_findings(findings)

    def check_running(self, planned: PlannedExperiment, cost: Cost) -> tuple[Sequence[Finding], str]:
        """Return what the testbeds lack for a plan.

        If a testbed does not answer, only recipes are checked for it. The second value is a text that says
        which testbeds were not queried, and why; it is empty if all were queried.
        """
        findings: dict[str, Sequence[Finding]] = {}
        not_queried: list[str] = []
        for one in planned.by_testbed:
            name = one.testbed.name
            try:
                with self.connections.sessions(one.testbed) as sessions:
                    findings[name] = self.compare(one, self.facts(sessions, one.plan), cost)
            except (TestbedError, LabError) as error:
                findings[name] = self.compare(one, {}, cost)
                reason = f"{error} (only the recipes were checked)"
                not_queried.append(f"{name}: {reason}" if planned.others else reason)
        return availability.combine_findings(findings), "\n".join(not_queried)

    def compare(
        self, planned: PlannedExperiment, facts: Mapping[str, HostFacts], cost: Cost
    ) -> Sequence[Finding]:
        """Return what hosts and the controller's disk lack for a plan, and what recipes do not support."""
        plan, catalogue = planned.plan, self.project.catalogue
        policy = campaign.policy_of(planned.experiment, planned.testbed, self.project.config)
        found = availability.find_missing(plan, catalogue, facts, policy)
        results = self.project.results
        if why := availability.unusable(results):
            here = [Finding(availability.HERE, why, "set `results` in config.yaml to a folder", True)]
        else:
            here = [*availability.space_here(cost, results, self.project.config.free_space)]
        return [*here, *availability.unsupported_paths(plan, catalogue), *found]


def _root_commands(
    plan: Plan, needs: Mapping[str, availability.HostNeeds], sessions: Sessions
) -> dict[str, list[SudoCommand]]:
    """Return for each host the commands that its login user must be able to run as root."""
    hosts = plan.trials[0].resolved.hosts
    return {
        name: allowed_commands(
            sorted(needs[name].names(availability.ROOT_COMMAND)),
            sessions[name].target.user,
            hosts[name].interfaces,
        )
        for name in sessions.hosts
        if name in needs
    }
