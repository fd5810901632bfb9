"""Experiments read without checks of names, recipes and testbed, and with one of their profiles."""

from pathlib import Path

from samovar.errors import DefinitionError
from samovar.experiment import Experiment, validate
from samovar.experiment.layers.merge import merge_layers
from samovar.experiment.layers.reuse import merge_reused, read_profiles
from samovar.experiment.yaml_tree import read_yaml


def read_experiment(path: Path, profile: str = "") -> Experiment:
    """Return an experiment without its testbed; raises DefinitionError."""
    tree, problems = read_yaml(path)
    merged = merge_reused(tree, path, problems).tree
    layers = [merged, read_profiles(merged, problems)[profile]] if profile else [merged]
    checked = validate(Experiment, merge_layers(layers, problems))
    if problems or checked.problems or checked.model is None:
        raise DefinitionError(list(dict.fromkeys([*problems, *checked.problems])))
    return checked.model.with_tree(checked.tree)


def apply_profile(experiment: Experiment, name: str) -> Experiment:
    """Return an experiment with a profile applied; raises DefinitionError."""
    assert experiment.tree is not None
    return read_experiment(Path(experiment.tree.position.file), name)
