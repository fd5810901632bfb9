"""Where a formula stands that has no value in a treatment, or a factor whose levels change nothing."""

from __future__ import annotations

from collections.abc import Iterator

from samovar.errors import DefinitionError, SamovarError
from samovar.experiment import Experiment, Map, Node, ResolvedExperiment, Seq, Text
from samovar.plan.laid import UncomputedError

Steps = tuple[str, ...]


def placed(error: UncomputedError, resolved: ResolvedExperiment) -> SamovarError:
    """Return the error with the place of its formula, or as it is where no file has it.

    The formula stands in the part, or in a setting of a testbed or of config.yaml.
    """
    wanted = set(error.where.replace(":", "").replace(" ", ".").split("."))
    part = _part(resolved.experiment, error.part)
    found = [
        (len(wanted.intersection(steps)), one.position) for steps, one in _texts(part) if one == error.text
    ]
    for host, settings in () if found else resolved.settings[error.part].items():
        for key, setting in settings.items():
            position = setting.layers[0].position
            if setting.text == error.text and position is not None:
                found.append((len(wanted.intersection((host, key))), position))
    if not found:
        return error
    return DefinitionError([max(found, key=lambda pair: pair[0])[1].problem(str(error))])


def placed_factor(error: SamovarError, part: str, factor: str, experiment: Experiment) -> SamovarError:
    """Return the error with the place of a factor's levels; as it is where no file has them."""
    found = _part(experiment, part)
    factors = found.get("factors") if isinstance(found, Map) else None
    levels = factors.get(factor) if isinstance(factors, Map) else None
    return error if levels is None else DefinitionError([levels.position.problem(str(error))])


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
