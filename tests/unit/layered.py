"""Experiments with one of their profiles, without checks of names, recipes and testbed."""

from samovar.errors import DefinitionError, Problem
from samovar.experiment import Experiment, validate
from samovar.experiment.layers.merge import merge_layers
from samovar.experiment.layers.reuse import read_profiles


def apply_profile(experiment: Experiment, name: str) -> Experiment:
    """Return an experiment with a profile applied; raises DefinitionError."""
    tree, problems = experiment.written, list[Problem]()
    assert tree is not None
    whole = merge_layers([tree, read_profiles(tree, problems)[name]], problems)
    checked = validate(Experiment, whole)
    if problems or checked.problems or checked.model is None:
        raise DefinitionError([*problems, *checked.problems])
    return checked.model.with_source(tree, whole)
