"""The expect lines of a campaign, from its own copy of the experiment.

Only these lines are read: the rest of the file was checked before the campaign ran, and a later samovar
that knows other keys must still be able to judge an old campaign.
"""

from __future__ import annotations

from pathlib import Path

from samovar.definition.experiment import Expect
from samovar.definition.validate import validate
from samovar.definition.yamltext import Map, Node, Seq, read_yaml
from samovar.errors import DefinitionError, Problem

LINE = "{say: ..., metric: ..., below: 20}"


def expectations(file: Path) -> tuple[Expect, ...]:
    """Read the expect lines of an experiment file; raises DefinitionError with all that is wrong."""
    tree, problems = read_yaml(file)
    lines = tree.get("expect") or Seq([], tree.mark)
    if not isinstance(lines, Seq):
        raise DefinitionError([lines.mark.problem(f"expect: expected a list of lines, each {LINE}")])
    found = [expectation(line, problems) for line in lines]
    if problems:
        raise DefinitionError(problems)
    return tuple(line for line in found if line is not None)


def expectation(line: Node, problems: list[Problem]) -> Expect | None:
    """Type one line, or say what is wrong with it."""
    if not isinstance(line, Map):
        problems.append(line.mark.problem(f"expect: expected a mapping such as {LINE}"))
        return None
    checked = validate(Expect, line)
    problems += checked.problems
    return checked.model
