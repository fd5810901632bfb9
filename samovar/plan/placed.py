"""Where a formula stands that has no value in a treatment, or a factor whose levels change nothing."""

from __future__ import annotations

from collections.abc import Iterator

from samovar.errors import DefinitionError, SamovarError
from samovar.experiment import Experiment
from samovar.experiment.yaml.tree import Map, Node, Seq, Text
from samovar.plan.laid import UncomputedError

Steps = tuple[str, ...]


def placed(error: UncomputedError, experiment: Experiment, *below: Node | None) -> SamovarError:
    """Return the error with the place of its formula: in the experiment, or in a file that lies below it.

    It is returned as it is where no line has it.
    """
    part = _part(experiment, error.part)
    wanted = set(error.where.replace(":", "").replace(" ", ".").split("."))
    for tree in (part, *below):
        found = [(len(wanted.intersection(steps)), one) for steps, one in _texts(tree) if one == error.text]
        if found:
            nearest = max(found, key=lambda pair: pair[0])[1]
            return DefinitionError([nearest.mark.problem(str(error))])
    return error


def placed_factor(error: SamovarError, part: str, factor: str, experiment: Experiment) -> SamovarError:
    """Return the error with the place of a factor's levels; as it is where no file has them."""
    found = _part(experiment, part)
    factors = found.get("factors") if isinstance(found, Map) else None
    levels = factors.get(factor) if isinstance(factors, Map) else None
    return error if levels is None else DefinitionError([levels.mark.problem(str(error))])


def _part(experiment: Experiment, name: str) -> Node | None:
    parts = experiment.complete.get("parts") if experiment.complete is not None else None
    return parts.get(name) if isinstance(parts, Map) else None


def _texts(node: Node | None, steps: Steps = ()) -> Iterator[tuple[Steps, Text]]:
    """Yield every scalar with the words of the keys that lead to it."""
    if isinstance(node, Text):
        yield steps, node
    elif isinstance(node, Seq):
        for one in node:
            yield from _texts(one, steps)
    elif isinstance(node, Map):
        for key, one in node.items():
            yield from _texts(one, (*steps, *key.split(".")))
