"""What a testbed has and what a plan needs of it; changes nothing."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from samovar import lab
from samovar.command.privilege import Allowed
from samovar.controller.reaching import Reaching
from samovar.controller.study import Study
from samovar.plan import Cost, Plan, estimate_cost
from samovar.runner.archive import Archive
from samovar.runner.folder import Standing, standing_of
from samovar.runner.policy import policy_of
from samovar.runner.preflight import (
    FEATURE,
    Finding,
    HostNeeds,
    examine,
    foreseen,
    host_needs,
    needs_of,
    space_here,
)
from samovar.runner.privileges import ROOT_COMMAND, ROOT_LOGIN, root_commands, sudoers_lines
from samovar.runner.refusals import refusals
from samovar.testbed import HostFacts, Sessions, gather_facts
from samovar.testbed.facts import PROGRAMS, QDISCS


class Asking(Reaching):
    """A checkout that compares plans with what its testbeds have."""

    def cost(self, study: Study, standing: Standing | None = None) -> Cost:
        """Estimate what a plan costs, or what is still to run of it."""
        only = standing.comparison.runs.keys() if standing else None
        return estimate_cost(study.plan, Archive(self.results).known(study.testbed.name), only)

    def facts(
        self, sessions: Sessions, plan: Plan, hosts: Iterable[str] | None = None
    ) -> Mapping[str, HostFacts]:
        """Ask every host, or some, what it is and has, of what the plan needs and beyond."""
        needs = host_needs(plan, self.catalogue)
        programs = {program for need in needs.values() for program in need.names("program")}
        qdiscs = {name for need in needs.values() for name in need.names(FEATURE)}
        systems = {name: host.system for name, host in plan.trials[0].resolved.hosts.items()}
        commands = _as_root(plan, needs, sessions)
        return sessions.map(
            lambda session: gather_facts(
                session,
                self.catalogue,
                systems[session.host],
                {*PROGRAMS, *programs},
                {*QDISCS, *qdiscs},
                commands[session.host],
            ),
            hosts,
        )

    def sudoers(self, study: Study) -> Iterator[str]:
        """Write what sudoers(5) takes on each host of a testbed for an experiment; asks the hosts."""
        needs = host_needs(study.plan, self.catalogue)
        with self.sessions(study.testbed) as sessions:
            facts = self.facts(sessions, study.plan)
            commands = _as_root(study.plan, needs, sessions)
        only_root = {host: need.names(ROOT_LOGIN) for host, need in needs.items()}
        return sudoers_lines(commands, only_root, facts)

    def foresee(self, study: Study) -> tuple[Sequence[Finding], str]:
        """Tell without asking the testbed what of a plan it cannot run, and what was looked at instead.

        Raises RecipeError for a recipe that is not there, and LabError where no lab could be started.
        """
        needs = needs_of(study.plan, self.catalogue)
        if study.testbed.lab is None:
            return refusals(study.plan, self.catalogue), "only its recipes were looked at"
        lacking = lab.foresee(study.testbed.lab.kernel, lab.Needs(*needs))
        looked = "only its recipes and the kernel's modules were looked at"
        return [*refusals(study.plan, self.catalogue), *foreseen(study.plan, self.catalogue, lacking)], looked

    def examine(self, study: Study, facts: Mapping[str, HostFacts], cost: Cost) -> Sequence[Finding]:
        """Compare what a plan needs with what the hosts and this machine have."""
        policy = policy_of(study.experiment, study.testbed, self.config, {})
        clock_s = self.config.clock_tolerance_s
        found = examine(study.plan, self.catalogue, facts, clock_s, policy.calibrate)
        return [*self.space(cost), *refusals(study.plan, self.catalogue), *found]

    def space(self, cost: Cost) -> Sequence[Finding]:
        """Compare what trials will leave in the results folder with its disk."""
        return tuple(space_here(cost, self.results))

    def standing(self, study: Study, new: bool = False) -> Standing:
        """Set a study's plan against the campaign that it goes on in; `new` begins another."""
        return standing_of(study.plan, self.results, new)


def _as_root(plan: Plan, needs: Mapping[str, HostNeeds], sessions: Sessions) -> dict[str, list[Allowed]]:
    """List for each host what the user who logs in there must be able to do as root."""
    hosts = plan.trials[0].resolved.hosts
    return {
        name: root_commands(
            needs[name].names(ROOT_COMMAND), hosts[name].interfaces, sessions[name].target.user
        )
        for name in sessions.hosts
        if name in needs
    }
