"""Validate the tree of a YAML file against a pydantic model, and give each error its position in the file.

Invalid values are reported and left out, and the rest is validated again, so that later checks still find
errors elsewhere in the file.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field, replace
from typing import Any, Generic, TypeVar, cast, get_args

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from samovar.errors import Problem, nearest, unknown
from samovar.experiment.keys import Strict, bare, is_union, keys_of
from samovar.experiment.values import UNKNOWN_KEY
from samovar.experiment.yaml_tree import Map, Node, Position, Seq
from samovar.units import quoted

Loc = tuple[int | str, ...]
M = TypeVar("M", bound=Strict)
_MUST_BE = {"tuple_type": "must be a list"} | dict.fromkeys(("model_type", "dict_type"), "must be a mapping")
"""Messages for some of pydantic's types of errors."""


@dataclass
class Validation(Generic[M]):
    """The result of validating a tree: its model, the tree without invalid values, and the problems.

    The model is None if too much is invalid. `left_out` are the places of the invalid values. `reported` are
    the places of problems that later checks have found.
    """

    model: M | None
    tree: Map
    problems: list[Problem]
    left_out: list[Loc] = field(default_factory=list)
    reported: list[Loc] = field(default_factory=list)
    prefix: Loc = ()

    def below(self, *prefix: int | str) -> Validation[M]:
        """Return a copy of this validation in which checks give places relative to `prefix`."""
        return replace(self, prefix=prefix)

    def intact(self, *loc: int | str) -> bool:
        """Return whether all values at and below a place were kept as valid."""
        place = (*self.prefix, *loc)
        return not any(one[: len(place)] == place for one in self.left_out)

    def valid(self, *loc: int | str) -> bool:
        """Return whether all values at and below a place were kept, and no problem was reported there."""
        place = (*self.prefix, *loc)
        return not any(one[: len(place)] == place for one in (*self.left_out, *self.reported))

    def report(
        self, loc: Sequence[int | str], message: str, *, key: bool = False, once: bool = False
    ) -> None:
        """Add a problem about the value at a place or, with `key`, about its key.

        With `once`, the problem is added only if none was reported at this place before.
        """
        self.reported.append((*self.prefix, *loc))
        problem = position_at(self.tree, self.reported[-1], key=key).problem(message)
        place = problem.file, problem.line, problem.column
        if not once or place not in [(one.file, one.line, one.column) for one in self.problems]:
            self.problems.append(problem)

    def check_name(
        self, loc: Loc, what: str, name: str, known: Collection[str] | None, *, key: bool = False
    ) -> bool:
        """Return whether a name is known; report an unknown name. If `known` is None, accept every name."""
        if known is None or name in known:
            return True
        self.report(loc, unknown(what, name, known), key=key)
        return False


def validate(model: type[M], tree: Map) -> Validation[M]:
    """Validate a tree; leave out invalid values and validate the rest again, until all of it is valid."""
    checked: Validation[M] = Validation(None, tree, [])
    while True:
        try:
            checked.model = model.model_validate(checked.tree)
            return checked
        except ValidationError as error:
            every = error.errors(include_url=False)
            new = [one for one in every if checked.intact(*_place_of(one))]  # not caused by left_out
            own = [one for one in new if not _is_explained(one, every)]
            checked.problems += [_problem(one, model, checked.tree) for one in own]
            invalid = {tuple(step for step, _, _ in _walk(checked.tree, _place_of(one))) for one in every}
            if () in invalid:  # the tree as a whole is invalid
                return checked
            checked.left_out += invalid
            checked.tree = cast(Map, _without(checked.tree, invalid))


def _place_of(error: ErrorDetails) -> Loc:
    """Return the place of the invalid value; for a missing key, this is the mapping that lacks it."""
    return error["loc"][:-1] if error["type"] == "missing" else error["loc"]


def _is_explained(error: ErrorDetails, every: Sequence[ErrorDetails]) -> bool:
    """Return whether an error is the consequence of an invalid key, invalid list item or misspelt key."""
    loc, kind = error["loc"], error["type"]
    if kind == "too_short":
        return any(one["loc"][: len(loc)] == loc for one in every if one is not error)
    keys = [one["loc"][:-1] for one in every if one["loc"][-1:] == ("[key]",)]
    if loc[-1:] != ("[key]",) and any(loc[: len(key)] == key for key in keys):
        return True
    beside = [one["loc"] for one in every if one["type"] == "extra_forbidden" and one["loc"][:-1] == loc[:-1]]
    return kind == "missing" and nearest(str(loc[-1]), [str(one[-1]) for one in beside]) is not None


def _without(node: Node, places: Set[Loc], here: Loc = ()) -> Node:
    """Return a copy of a tree without the values at these places. The tree itself is at `here`."""
    if isinstance(node, Seq):
        items = ((one, (*here, index)) for index, one in enumerate(node))
        return Seq([_without(one, places, at) for one, at in items if at not in places], node.position)
    if not isinstance(node, Map):
        return node
    copy = node.copied()
    for key, value in node.items():
        if (*here, key) in places:
            del copy[key]
        else:
            copy[key] = _without(value, places, (*here, key))
    return copy


def position_at(tree: Map, loc: Sequence[int | str], *, key: bool = False) -> Position:
    """Return the position of a value or, if `key` is True, of the value's key.

    If the value is missing, this is the position of the innermost mapping or list that exists.
    """
    key_position, node = _last(tree, loc)
    return key_position if key else node.position


def _last(tree: Map, loc: Sequence[int | str]) -> tuple[Position, Node]:
    """Follow nested keys as far as they exist; return the position of the last key, and its value."""
    return [(tree.position, cast(Node, tree)), *((at, node) for _, at, node in _walk(tree, loc))][-1]


def _walk(tree: Map, loc: Sequence[int | str]) -> Iterator[tuple[int | str, Position, Node]]:
    """Follow nested keys as far as they exist; yield each key, its position and its value.

    For a list item, the key is the index, and the position is that of the item.
    """
    node: Node = tree
    for step in loc:
        if isinstance(node, Map) and step in node:
            position, node = node.key_positions[str(step)], node[str(step)]
            yield step, position, node
        elif isinstance(node, Seq) and isinstance(step, int) and step < len(node):
            node = node[step]
            yield step, node.position, node


# Messages for the errors of pydantic


def _problem(error: ErrorDetails, model: type[Strict], tree: Map) -> Problem:
    """Convert an error of pydantic to a problem with a position in the file."""
    kind, loc = error["type"], error["loc"]
    name = next((str(step) for step in reversed(loc) if isinstance(step, str) and step != "[key]"), "")
    if kind == UNKNOWN_KEY:
        return position_at(tree, loc, key=True).problem(error["msg"])
    if kind == "extra_forbidden":
        message = unknown("key", name, _keys_at(model, loc[:-1]))
        return position_at(tree, loc, key=True).problem(message)
    if kind == "missing":
        keys, here = _keys_at(model, loc[:-1]), _last(tree, loc[:-1])[1]
        near = nearest(name, here.keys() - keys if isinstance(here, Map) else ())
        hint = f"is '{near}' misspelt?" if near else f"known keys: {', '.join(sorted(keys))}"
        return here.position.problem(f"key '{name}' is missing; {hint}")
    of_whole = not name or (kind == "value_error" and (not loc or isinstance(loc[-1], int)))
    message = _sentence(error, model)
    where = position_at(tree, loc, key="[key]" in loc)
    return where.problem(message if of_whole else f"{name}: {message}")


def _sentence(error: ErrorDetails, model: type[Strict]) -> str:
    """Return the message for an invalid value: what it must be, and what it is."""
    kind, value = error["type"], error["input"]
    if kind == "value_error":
        return str(error.get("ctx", {}).get("error", error["msg"]))
    if kind == "too_short":
        return "is empty; it needs at least one entry"
    given = "a mapping" if isinstance(value, Mapping) else "a list"
    if isinstance(value, str):
        given = quoted(value) if value.strip() else "an empty value"
    entry = (0,) if kind == "tuple_type" else ()
    keys = ", ".join(sorted(_keys_at(model, (*error["loc"], *entry))))
    must_be = _MUST_BE.get(kind, error["msg"].lower().replace("input should be", "must be"))
    if keys:
        must_be += f"{' of mappings' if entry else ''} with the keys {keys}"
    return f"{must_be}, not {given}"


def _keys_at(annotation: Any, loc: Loc) -> frozenset[str]:
    """Follow nested keys from a type; return the keys of the model to which they lead, or no keys."""
    plain = bare(annotation)
    options = get_args(plain) if is_union(plain) else (plain,)
    model = next((one for one in options if isinstance(one, type) and issubclass(one, Strict)), None)
    if not loc:
        return frozenset() if model is None else frozenset(keys_of(model))
    if model is not None:
        key = keys_of(model).get(str(loc[0]))
        return _keys_at(key.field.annotation, loc[1:]) if key else frozenset()
    within = [one for one in get_args(plain) if one is not Ellipsis]  # the last is the type of the values
    return _keys_at(within[-1], loc[1:]) if within else frozenset()
