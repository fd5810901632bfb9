"""Studies to plan in tests, and the plain, slow way to plan them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from samovar.experiment import Experiment, Testbed, load_testbed, resolve_experiment, resolve_settings
from samovar.experiment.keys.treatments import treatments_of
from samovar.experiment.layers.merge import merge_layers
from samovar.experiment.yaml.tree import parse_yaml
from samovar.plan import Plan, Resolved, Site, make_plan
from samovar.plan.ids import HASH_DIGITS, digest, name_of, prefix, word
from samovar.plan.places import Places
from samovar.plan.pool import canonical, digest_of, resolved_of
from samovar.plan.resolve import Where, components_of
from samovar.plan.treatments import Reader, design_of
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
    """Read an experiment without its recipes and testbed."""
    tree, mistakes = parse_yaml(text, "study.yaml")
    problems = list(mistakes)
    whole = merge_layers([tree], problems)
    assert not problems, problems
    return Experiment.model_validate(whole).with_source(tree, whole)


def planned(text: str, testbed: Testbed = LAB, headers: Catalogue | None = None) -> Plan:
    """Plan the text of an experiment."""
    return make_plan(resolve_experiment(experiment_of(text), testbed), site=Site(headers=headers))


def study(more: str, traffic: str = BULK) -> str:
    """Write an experiment: the head above, the traffic, and more."""
    return HEAD + traffic + more


def plain_plan(experiment: Experiment, testbed: Testbed) -> Iterator[tuple[str, Resolved]]:
    """Yield the id and value of every trial, each worked out by itself, in the order of the file."""
    for name, part in experiment.parts.items():
        settings = resolve_settings(experiment, name, testbed)
        where = Where(name, Places(testbed), settings, experiment.order.seed)
        for treatment in treatments_of(part):
            factors = {
                factor: replace(part.factors[factor], levels=(treatment[factor],)) for factor in treatment
            }
            alone = part.model_copy(update={"factors": factors, "exclude": (), "include": ()})
            design = design_of(name, alone)
            for replicate in range(1, part.replicates + 1):
                reader = Reader(design, (0,) * len(factors), replicate)
                values = {one: make(reader) for one, make in components_of(where).items()}
                hashed = digest(
                    prefix(name, list(values)), [digest_of(canonical(one)) for one in values.values()]
                ).hex()
                before = name_of(name, [word(level.label) for level in treatment.values()])
                yield f"{before}r{replicate}-{hashed[:HASH_DIGITS]}", resolved_of(values)
