"""Preflight of a planned experiment: estimate its cost, and find what its testbeds lack. Changes no host."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

from samovar.campaign import Archive, ResumePoint, availability, policy_of
from samovar.campaign.availability import Finding
from samovar.cli.connections import Connections
from samovar.cli.project import PlannedExperiment, Project
from samovar.errors import LabError, TestbedError
from samovar.events import Emit
from samovar.hosts import HostFacts, Sessions, gather_facts
from samovar.plan import Cost, Plan, estimate_cost
from samovar.recipes import SudoCommand, allowed_commands


class Preflight:
    """Estimates costs of plans, and compares plans with the testbeds of a project."""

    def __init__(self, project: Project, connections: Connections) -> None:
        self._project, self._connections = project, connections

    def cost(
        self, planned: PlannedExperiment, resume: ResumePoint | None = None, without: Collection[str] = ()
    ) -> Cost:
        """Estimate the cost of a plan; with `resume`, only of the trials that are still to run.

        The trials with ids in `without` are left out.
        """
        ids = resume.comparison.runs if resume else planned.plan.ids
        only = {id_ for id_ in ids if id_ not in without}
        policy = policy_of(planned.experiment, planned.testbed, self._project.config, {})
        times = Archive(self._project.results).measured_times(planned.testbed.name)
        testbeds = len(planned.by_testbed)
        return estimate_cost(planned.plan, self._project.catalogue, times, only, policy.calibrate, testbeds)

    def facts(
        self, sessions: Sessions, plan: Plan, hosts: Iterable[str] | None = None
    ) -> Mapping[str, HostFacts]:
        """Gather the facts of all hosts, or of those in `hosts`, including facts about the plan's needs."""
        catalogue = self._project.catalogue
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
        needs = availability.host_needs(planned.plan, self._project.catalogue)
        with self._connections.sessions(planned.testbed) as sessions:
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
        cost = self.cost(planned, self._project.resume_point(planned))
        all_facts: dict[str, HostFacts] = {}
        findings: dict[str, Sequence[Finding]] = {}
        for one in planned.by_testbed:
            with self._connections.sessions_with_lab(one, emit) as sessions, sessions:
                facts = self.facts(sessions, one.plan)
            name = one.testbed.name
            all_facts |= {f"{name}: {host}" if planned.others else host: fact for host, fact in facts.items()}
            findings[name] = self.compare(one, facts, cost)
        return all_facts, availability.combine_findings(findings)

    def check_running(self, planned: PlannedExperiment, cost: Cost) -> tuple[Sequence[Finding], str]:
        """Return what the testbeds lack for a plan.

        If a testbed does not answer, only recipes are checked for it. The second value is a text on which
        testbeds were not queried, and why; it is empty if all were queried.
        """
        findings: dict[str, Sequence[Finding]] = {}
        not_queried: list[str] = []
        for one in planned.by_testbed:
            name = one.testbed.name
            try:
                with self._connections.sessions(one.testbed) as sessions:
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
        plan, catalogue = planned.plan, self._project.catalogue
        policy = policy_of(planned.experiment, planned.testbed, self._project.config, {})
        found = availability.find_missing(plan, catalogue, facts, policy)
        return [*self._disk_space(cost), *availability.unsupported_paths(plan, catalogue), *found]

    def _disk_space(self, cost: Cost) -> Sequence[Finding]:
        """Return a finding if the results folder is not writable, or has too little space for the trials."""
        why = availability.unusable(self._project.results)
        if why is not None:
            return (Finding(availability.HERE, why, "set `results` in config.yaml to a folder", True),)
        return tuple(availability.space_here(cost, self._project.results, self._project.config.free_space))


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
