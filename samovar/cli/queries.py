"""What a testbed has and what a plan needs of it; changes nothing."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

from samovar import lab
from samovar.campaign.availability.disk_space import unusable
from samovar.campaign.availability.preflight import (
    FEATURE,
    HERE,
    Finding,
    HostNeeds,
    examine,
    foreseen,
    host_needs,
    needs_of,
    space_here,
)
from samovar.campaign.availability.root_access import ROOT_COMMAND, ROOT_LOGIN, root_commands, sudoers_lines
from samovar.campaign.availability.unsupported_paths import refusals
from samovar.campaign.folder import Standing, standing_of
from samovar.campaign.launch import between
from samovar.campaign.past_campaigns import Archive
from samovar.campaign.policy import Policy, policy_of
from samovar.campaign.recipe_changes import changed_recipes
from samovar.cli.connections import Reaching
from samovar.cli.requests import Study
from samovar.errors import LabError, TestbedError
from samovar.events import Emit
from samovar.hosts import HostFacts, Sessions, gather_facts
from samovar.hosts.facts import PROGRAMS, QDISCS
from samovar.plan import Cost, Plan, estimate_cost
from samovar.plan.cost import shared
from samovar.recipes.sudo_rules import Allowed


class Asking(Reaching):
    """A checkout that compares plans with what its testbeds have."""

    def cost(self, study: Study, standing: Standing | None = None, without: Collection[str] = ()) -> Cost:
        """Estimate what a plan costs, or what is still to run of it, on the testbeds that share it.

        Some trials may be left `without`, by their ids.
        """
        return shared(list(self.costs(study, standing, without).values()))

    def costs(
        self, study: Study, standing: Standing | None = None, without: Collection[str] = ()
    ) -> Mapping[str, Cost]:
        """Estimate the same for each testbed, as if it ran all by itself."""
        only = standing.comparison.runs.keys() if standing else None
        if without:
            asked = study.plan.table.ids if only is None else only
            only = dict.fromkeys(id_ for id_ in asked if id_ not in without).keys()
        archive = Archive(self.results)
        return {
            one.testbed.name: estimate_cost(
                one.plan, archive.known(one.testbed.name), only, self._policy(one).calibrate
            )
            for one in study.every
        }

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
        lacking = lab.foresee(study.testbed.lab.kernel, lab.Needs(*needs), self.user_mode)
        looked = "only its recipes and the kernel's modules were looked at"
        return [*refusals(study.plan, self.catalogue), *foreseen(study.plan, self.catalogue, lacking)], looked

    def look(self, study: Study, cost: Cost) -> tuple[Sequence[Finding], str]:
        """Ask every testbed of a study what it cannot run; foresee it where one does not answer.

        Returns what was found, and which were not asked and why, empty when all were.
        """
        looked = {one.testbed.name: self._look(one, cost) for one in study.every}
        unasked = [(name, why) for name, (_, why) in looked.items() if why]
        words = [f"{name}: {why}" if study.others else why for name, why in unasked]
        return between({name: findings for name, (findings, _) in looked.items()}), "\n".join(words)

    def _look(self, study: Study, cost: Cost) -> tuple[Sequence[Finding], str]:
        try:
            with self.sessions(study.testbed) as sessions:
                return self.examine(study, self.facts(sessions, study.plan), cost), ""
        except (TestbedError, LabError) as error:
            foreseen, known = self.foresee(study)
            return [*self.space(cost), *foreseen], f"{known}: {error}"

    def check(self, study: Study, emit: Emit) -> tuple[Mapping[str, HostFacts], Sequence[Finding]]:
        """Ask every host of every testbed of a study what it has, and compare; changes nothing there.

        A lab that this has to start is stopped again. Raises TestbedError when a host does not answer.
        """
        cost = self.cost(study, self.standing(study))
        every: dict[str, HostFacts] = {}
        found: dict[str, Sequence[Finding]] = {}
        for one in study.every:
            with self.opened(one, emit) as sessions:
                facts = self.facts(sessions, one.plan)
            every |= {f"{one.testbed.name}: {h}" if study.others else h: fact for h, fact in facts.items()}
            found[one.testbed.name] = self.examine(one, facts, cost)
        return every, between(found)

    def examine(self, study: Study, facts: Mapping[str, HostFacts], cost: Cost) -> Sequence[Finding]:
        """Compare what a plan needs with what the hosts and this machine have."""
        policy = self._policy(study)
        clock_s = self.config.clock_tolerance_s
        found = examine(study.plan, self.catalogue, facts, clock_s, policy.calibrate, policy.free_bytes)
        return [*self.space(cost), *refusals(study.plan, self.catalogue), *found]

    def _policy(self, study: Study) -> Policy:
        return policy_of(study.experiment, study.testbed, self.config, {})

    def space(self, cost: Cost) -> Sequence[Finding]:
        """Compare what trials will leave in the results folder with its disk, if they can be kept there."""
        why = unusable(self.results)
        if why is not None:
            return (Finding(HERE, why, "set `results` in config.yaml to a folder", True),)
        return tuple(space_here(cost, self.results, self.config.free_space))

    def changed_recipes(self, study: Study, standing: Standing) -> Sequence[str]:
        """Name the recipes that were others when the results that stand were measured last."""
        return changed_recipes(study.plan, standing, self.catalogue)

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
