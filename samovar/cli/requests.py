"""What a command is about: an experiment as it was asked for, and what is to be done with it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from samovar.campaign.folder import PLAN, TESTBEDS, TOGETHER, Standing
from samovar.experiment import Experiment, Testbed
from samovar.plan import Plan
from samovar.plan.several_testbeds import on_testbed


@dataclass(frozen=True)
class Study:
    """An experiment as it was asked for, on its testbed, planned."""

    path: Path
    testbed_path: Path
    experiment: Experiment
    testbed: Testbed
    plan: Plan
    sources: Mapping[str, bytes] = field(default_factory=dict)
    others: tuple[Study, ...] = ()

    @property
    def every(self) -> tuple[Study, ...]:
        """The study on each testbed that takes part."""
        return (self, *self.others)


def together(studies: Sequence[Study]) -> Study:
    """Make one study of those of several testbeds; raises PlanError where they do not serve it alike."""
    first, names = studies[0], [study.testbed.name for study in studies]
    others = [replace(one, plan=on_testbed(first.plan, one.plan)) for one in studies[1:]]
    kept = {
        f"{TESTBEDS}/{study.testbed.name}/{name}": content
        for study in (first, *others)
        for name, content in (("testbed.yaml", study.sources["testbed.yaml"]), (PLAN, study.plan.to_json()))
    }
    plan = first.plan.model_copy(update={"testbed": TOGETHER.join(names)})
    return replace(first, plan=plan, sources={**first.sources, **kept}, others=tuple(others))


@dataclass(frozen=True)
class Question:
    """Where does a value come from: the arguments of `fab explain`."""

    experiment: str
    key: str
    trial: str = ""
    profile: str = ""
    testbed: str = ""
    overrides: Sequence[str] = ()


@dataclass(frozen=True)
class Going:
    """What is to be run: a study, what a campaign has of it, whether to run only what the testbed can.

    With `fail_fast` the first trial that fails is the last; `force` takes hosts from whoever holds them.
    """

    study: Study
    standing: Standing
    allow_partial: bool = False
    fail_fast: bool = False
    force: bool = False
