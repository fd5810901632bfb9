"""Write, read and plan experiments in tests, and plan each treatment separately."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from samovar.experiment import Experiment, Testbed, load_testbed, resolve_experiment
from samovar.experiment.layers.host_settings import resolve_settings
from samovar.experiment.layers.merge import merge_layers
from samovar.experiment.yaml_tree import parse_yaml
from samovar.plan import Plan, Resolved, make_plan
from samovar.plan.level_precedence import PartContext
from samovar.plan.placement import Placement
from samovar.plan.resolve import matrix_of, resolve_part
from samovar.plan.trials import Components, Slot, ids_of
from samovar.recipes import Catalogue

ROOT = Path(__file__).parents[2]
CATALOGUE = Catalogue(ROOT / "templates")
LAB = load_testbed(ROOT / "hosts" / "lab.yaml")
DUMBBELL = load_testbed(ROOT / "hosts" / "dumbbell.yaml")
BULK = "traffic: [{flow: bulk, generator: nuttcp, from: sender, to: receiver}]\n"
HEAD = """\
experiment: study
testbed: lab
path: {rate: 8Mbit, rtt: 10ms, buffer: 50packets}
duration: 30s
"""


def experiment_of(text: str) -> Experiment:
    """Read the text of an experiment without checks of its recipes and testbed."""
    tree, mistakes = parse_yaml(text, "study.yaml")
    problems = list(mistakes)
    whole = merge_layers([tree], problems)
    assert not problems, problems
    return Experiment.model_validate(whole).with_tree(whole)


def planned(text: str, testbed: Testbed = LAB, catalogue: Catalogue = CATALOGUE) -> Plan:
    """Plan the experiment that this YAML text defines."""
    return make_plan(resolve_experiment(experiment_of(text), testbed), catalogue)


def study(more: str, traffic: str = BULK) -> str:
    """Return the text of an experiment: HEAD, the traffic and more keys."""
    return HEAD + traffic + more


def treatments_alone(experiment: Experiment, testbed: Testbed) -> Iterator[tuple[str, Resolved]]:
    """Yield the id and resolved values of each trial in the order of the file; plan each treatment separately."""
    for name, part in experiment.parts.items():
        settings = resolve_settings(experiment, name, testbed)
        factors, rows = matrix_of(name, part)
        for row in rows:
            levels = zip(factors, row, strict=True)
            alone = tuple(replace(factor, levels=(factor.levels[level],)) for factor, level in levels)
            context = PartContext(
                name, part, alone, Placement(testbed), settings, experiment.order.seed, CATALOGUE
            )
            treatments = resolve_part(context, [(0,) * len(row)], part.replicates, Components())
            slots = [Slot(0, replicate, 1) for replicate in range(1, part.replicates + 1)]
            for id_, slot in zip(ids_of(treatments, slots), slots, strict=True):
                yield id_, treatments.resolved(0, slot.replicate)
