"""Validate a tree against a pydantic model: a typed model, or problems with positions in the file.

Invalid values are reported and left out, and the rest is validated again, so that later checks still find
errors elsewhere in the file.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from types import UnionType
from typing import Any, Generic, TypeVar, Union, cast, get_args, get_origin

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from samovar.errors import Problem
from samovar.experiment.keys import Strict, bare, keys_of, own_keys
from samovar.experiment.layers.merge import unknown_key
from samovar.experiment.nearest import nearest
from samovar.experiment.yaml_tree import Map, Node, Position, Seq, text
from samovar.units import quoted

Loc = tuple[int | str, ...]
M = TypeVar("M", bound=Strict)
_NOT_MAPPING = {"model_type", "mapping_type", "dict_type", "model_attributes_type"}
_MOST_ROUNDS = 50
_STAND_INS = {("experiment",), ("testbed",)}  # names that the rest can be checked without


@dataclass
class Validation(Generic[M]):
    """The result for one tree: the model (None if too much is invalid), its tree, and the problems."""

    model: M | None
    tree: Map
    problems: list[Problem]
    left_out: list[Loc] = field(default_factory=list)
    reported: list[Loc] = field(default_factory=list)

    def intact(self, *prefix: int | str) -> bool:
        """Return whether nothing below a key was left out."""
        return not any(loc[: len(prefix)] == prefix for loc in self.left_out)

    def valid(self, *prefix: int | str) -> bool:
        """Return whether nothing below a key was left out or reported: what refers to it can be checked."""
        return self.intact(*prefix) and not any(loc[: len(prefix)] == prefix for loc in self.reported)

    def report(self, loc: Sequence[int | str], message: str, *, key: bool = False) -> None:
        """Add a problem at the value, or at the key, of nested keys."""
        self.reported.append(tuple(loc))
        self.problems.append(position_at(self.tree, loc, key=key).problem(message))


def validate(model: type[M], tree: Map) -> Validation[M]:
    """Validate a tree; invalid values are reported and left out until the rest is valid."""
    checked: Validation[M] = Validation(None, tree, [])
    for _ in range(_MOST_ROUNDS):
        try:
            checked.model = model.model_validate(checked.tree)
            return checked
        except ValidationError as error:
            every = error.errors(include_url=False)
            errors = [one for one in every if _is_new(one, checked) and not _is_explained(one, every)]
            checked.problems += [_problem(one, model, checked.tree) for one in errors]
            if not _leave_out(checked, every):
                return checked
    return checked


def _leave_out(checked: Validation[M], errors: Sequence[ErrorDetails]) -> bool:
    """Remove invalid values from the tree; return whether something is left to validate."""
    nameless = [one["loc"] for one in errors if one["type"] == "missing" and one["loc"] in _STAND_INS]
    for loc in nameless:
        checked.tree = checked.tree.copied()
        checked.tree.put(str(loc[0]), text("unnamed", checked.tree.position), checked.tree.position)
    victims = _outermost(_steps(checked.tree, one) for one in errors if one["loc"] not in nameless)
    if () in victims:
        return False
    checked.left_out += [*victims, *nameless]
    for victim in sorted(victims, key=_last_first):
        checked.tree = _without(checked.tree, victim)
    return True


def errors_of(error: ValueError) -> Iterator[tuple[Loc, str, bool]]:
    """Yield each error of reading a value: place below the value, message, whether it is at the key."""
    if not isinstance(error, ValidationError):
        yield (), str(error), False
        return
    for one in error.errors(include_url=False):
        at_key = "[key]" in one["loc"]
        loc = one["loc"][: one["loc"].index("[key]")] if at_key else one["loc"]
        yield loc, str(one.get("ctx", {}).get("error", one["msg"])), at_key


def position_at(tree: Map, loc: Sequence[int | str], *, key: bool = False) -> Position:
    """Return the position of a value (or of its key); keys that the tree lacks are skipped."""
    _, key_position, node = [("", tree.position, cast(Node, tree)), *_walk(tree, loc)][-1]
    return key_position if key else node.position


def _walk(tree: Map, loc: Sequence[int | str]) -> Iterator[tuple[int | str, Position, Node]]:
    """Yield each of the nested keys that the tree has, its position (in a list the item's), and the value."""
    node: Node = tree
    for step in loc:
        if isinstance(node, Map) and step in node:
            position, node = node.key_positions[str(step)], node[str(step)]
            yield step, position, node
        elif isinstance(node, Seq) and isinstance(step, int) and step < len(node):
            node = node[step]
            yield step, node.position, node


def _node_at(tree: Map, loc: Sequence[int | str]) -> Node:
    return [cast(Node, tree), *(node for _, _, node in _walk(tree, loc))][-1]


def _is_new(error: ErrorDetails, checked: Validation[M]) -> bool:
    """Return whether an error does not merely follow from a value that was left out."""
    loc = error["loc"]
    if error["type"] == "value_error":  # of a whole model, when a field of it was left out
        return not any(gone[: len(loc)] == loc for gone in checked.left_out)
    follows = error["type"] in ("missing", "too_short")
    return not (follows and any(_starts(gone, loc) for gone in checked.left_out))


def _is_explained(error: ErrorDetails, every: Sequence[ErrorDetails]) -> bool:
    """Return whether another error explains it: of its key, of an entry of its list, of a similar key."""
    *here, name = error["loc"] or ("",)
    if error["type"] == "too_short":
        return any(one["loc"][: len(error["loc"])] == error["loc"] for one in every if one is not error)
    keys = [one["loc"][:-1] for one in every if one["loc"][-1:] == ("[key]",)]
    if name != "[key]" and any(error["loc"][: len(loc)] == loc for loc in keys):
        return True
    strange = [one["loc"] for one in every if one["type"] == "extra_forbidden"]
    beside = [str(loc[-1]) for loc in strange if list(loc[:-1]) == here]
    return error["type"] == "missing" and nearest(str(name), beside) is not None


def _starts(loc: Loc, error_loc: Loc) -> bool:
    parent = error_loc if loc[: len(error_loc)] == error_loc else error_loc[:-1]
    return loc[: len(parent)] == parent


def _steps(tree: Map, error: ErrorDetails) -> Loc:
    """Return the nested keys of the tree that an error is about."""
    loc = error["loc"][:-1] if error["type"] == "missing" else error["loc"]
    return tuple(step for step, _, _ in _walk(tree, loc))


def _outermost(victims: Iterator[Loc]) -> list[Loc]:
    unique = set(victims)
    return [loc for loc in unique if not any(loc[:size] in unique for size in range(len(loc)))]


def _last_first(loc: Loc) -> tuple[int, tuple[int, ...]]:
    """Return a sort key that puts later list items first, so that earlier indices stay valid."""
    return -len(loc), tuple(-step for step in loc if isinstance(step, int))


def _copied(node: Node) -> Map | Seq:
    return node.copied() if isinstance(node, Map) else Seq(list(cast(Seq, node)), node.position)


def _without(tree: Map, loc: Loc) -> Map:
    changed = tree.copied()
    node: Map | Seq = changed
    for step in loc[:-1]:
        node[step] = node = _copied(node[step])  # type: ignore[index]
    del node[loc[-1]]  # type: ignore[arg-type]
    return changed


def _problem(error: ErrorDetails, model: type[Strict], tree: Map) -> Problem:
    kind, loc = error["type"], error["loc"]
    name = next((str(step) for step in reversed(loc) if isinstance(step, str) and step != "[key]"), "")
    if kind == "extra_forbidden":
        return position_at(tree, loc, key=True).problem(unknown_key("key", name, _keys_at(model, loc[:-1])))
    if kind == "missing":
        return position_at(tree, loc[:-1]).problem(_missing(name, model, tree, loc[:-1]))
    at_key = "[key]" in loc
    message = _sentence(error, model, loc)
    of_whole = kind == "value_error" and (not loc or isinstance(loc[-1], int))
    return position_at(tree, loc, key=at_key).problem(
        message if of_whole or not name else f"{name}: {message}"
    )


def _missing(name: str, model: type[Strict], tree: Map, loc: Loc) -> str:
    here = _node_at(tree, loc)
    keys = _keys_at(model, loc)
    others = [key for key in here if key not in keys] if isinstance(here, Map) else []
    near = nearest(name, others)
    hint = f"is '{near}' misspelt?" if near else f"known keys: {', '.join(sorted(keys))}"
    return f"key '{name}' is missing; {hint}"


def _sentence(error: ErrorDetails, model: type[Strict], loc: Loc) -> str:
    kind = error["type"]
    if kind == "value_error":
        return str(error.get("ctx", {}).get("error", error["msg"]))
    given = _given(error["input"])
    if kind in _NOT_MAPPING:
        keys = ", ".join(sorted(_keys_at(model, loc)))
        return f"must be a mapping{f' with the keys {keys}' if keys else ' (key: value)'}, not {given}"
    if kind == "tuple_type":
        return f"must be a list{_like(error['input'], _keys_at(model, (*loc, 0)))}, not {given}"
    if kind == "too_short":
        return "is empty; it needs at least one"
    return f"{error['msg'].lower()}, not {given}"


def _like(value: object, keys: frozenset[str]) -> str:
    """Return what a list must contain: mappings with these keys, or values such as the one given."""
    if keys:
        return f" of mappings with the keys {', '.join(sorted(keys))}"
    return f" such as [{value}]" if isinstance(value, str) and value.strip() else ""


def _given(value: object) -> str:
    if isinstance(value, str):
        return quoted(value) if value.strip() else "nothing"
    return "a mapping" if isinstance(value, Mapping) else "a list"


def _keys_at(model: type[Strict], loc: Loc) -> frozenset[str]:
    """Return the known keys of the model below nested keys."""
    here: Any = model
    for step in loc:
        here = _below(here, step)
    found = _model_in(here)
    return frozenset() if found is None else own_keys(found)


def _below(annotation: Any, step: int | str) -> Any:
    """Return the type of the value at a key or index of a type; None if it is not known."""
    model = _model_in(annotation)
    if model is not None:
        key = keys_of(model).get(str(step))
        return key.field.annotation if key else None
    arguments = get_args(bare(annotation))
    origin = get_origin(bare(annotation))
    if origin is tuple and arguments:
        return arguments[0]
    return arguments[1] if len(arguments) == 2 and isinstance(origin, type) else None


def _model_in(annotation: Any) -> type[Strict] | None:
    """Return the first model of a type, which may be one of several."""
    plain = bare(annotation)
    for option in (plain, *get_args(plain)) if get_origin(plain) in (Union, UnionType) else (plain,):
        if isinstance(option, type) and issubclass(option, Strict):
            return option
    return None
