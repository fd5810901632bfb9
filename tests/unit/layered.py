"""Read experiments, with or without a profile, but without checks of names, recipes and testbed."""

from pathlib import Path

from samovar.errors import DefinitionError
from samovar.experiment import Experiment, validate
from samovar.experiment.layers.merge import merge_layers
from samovar.experiment.layers.reuse import merge_reused, read_profiles
from samovar.experiment.yaml_tree import read_yaml


def read_experiment(path: Path, profile: str = "") -> Experiment:
    """Read an experiment, with a profile if one is named; raises DefinitionError."""
    tree, problems = read_yaml(path)
    merged = merge_reused(tree, path, problems).tree
    layers = [merged, read_profiles(merged, problems)[profile]] if profile else [merged]
    checked = validate(Experiment, merge_layers(layers, problems))
    if problems or checked.problems or checked.model is None:
        raise DefinitionError(list(dict.fromkeys([*problems, *checked.problems])))
    return checked.model.with_tree(checked.tree)


def apply_profile(experiment: Experiment, name: str) -> Experiment:
    """Read the file of an experiment again with a profile; raises DefinitionError."""
    assert experiment.tree is not None
    return read_experiment(Path(experiment.tree.position.file), name)
