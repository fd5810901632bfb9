"""Arguments of the commands as values: a planned experiment, and what to run, explain or switch."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from samovar.campaign import PLAN, TESTBEDS, ResumePoint, join_testbeds
from samovar.experiment import Experiment, Testbed
from samovar.plan import Plan, on_testbed


@dataclass(frozen=True)
class PlannedExperiment:
    """An experiment with the profile and overrides of the command line, planned for its testbed.

    `sources` are the definition files by the name that they get in a campaign's folder. `others` is the same
    experiment on each further testbed that shares the campaign.
    """

    experiment: Experiment
    testbed: Testbed
    plan: Plan
    sources: Mapping[str, bytes] = field(default_factory=dict)
    others: tuple[PlannedExperiment, ...] = ()

    @property
    def by_testbed(self) -> tuple[PlannedExperiment, ...]:
        """The experiment as planned for each testbed that takes part."""
        return (self, *self.others)


def share_between_testbeds(planned: Sequence[PlannedExperiment]) -> PlannedExperiment:
    """Combine an experiment planned for several testbeds; raises PlanError if their trials differ."""
    first, names = planned[0], [one.testbed.name for one in planned]
    others = [replace(one, plan=on_testbed(first.plan, one.plan)) for one in planned[1:]]
    copies = {
        f"{TESTBEDS}/{one.testbed.name}/{name}": content
        for one in (first, *others)
        for name, content in (("testbed.yaml", one.sources["testbed.yaml"]), (PLAN, one.plan.to_json()))
    }
    plan = first.plan.model_copy(update={"testbed": join_testbeds(names)})
    return replace(first, plan=plan, sources={**first.sources, **copies}, others=tuple(others))


@dataclass(frozen=True)
class ExplainRequest:
    """Arguments of `fab explain`: the key whose value to trace, in one trial if `trial` is given."""

    experiment: str
    key: str
    trial: str = ""
    profile: str = ""
    testbed: str = ""
    overrides: Sequence[str] = ()


@dataclass(frozen=True)
class RunRequest:
    """Arguments of `fab run`: the planned experiment and the campaign that it resumes, if any.

    With `allow_partial`, trials that the testbed cannot run are left out; with `fail_fast`, the first failed
    trial ends the run; with `force`, hosts are taken from the campaign that holds their lease.
    """

    planned: PlannedExperiment
    resume: ResumePoint
    allow_partial: bool = False
    fail_fast: bool = False
    force: bool = False


@dataclass(frozen=True)
class PowerRequest:
    """Arguments of `fab power`; `action` is on, off, cycle or status; `force` may disturb a campaign."""

    host: str
    action: str
    testbed: str = ""
    force: bool = False
