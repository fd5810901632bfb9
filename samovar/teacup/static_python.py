"""Read a Python module of assignments without executing it: constants, names, arithmetic, lists and loops.

TEACUP's configuration is a Python 2 program. What cannot be computed from the text alone is listed with its
line. Sizes, loops and included files are bounded, whatever the text says.
"""

from __future__ import annotations

import ast
import operator
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from samovar.errors import DefinitionError, Problem

LARGEST_FILE_BYTES = 2**18
MOST_VALUES = 20_000
"""Most characters of a text, and most values in a list, lists within it counted."""
MOST_STATEMENTS = 20_000
MOST_FILES = 20
LARGEST_NUMBER = 10**18
WIDE = re.compile(r"%[^a-zA-Z%]*(?:\*|[0-9]{4})")
"""A format that asks for a text of thousands of characters."""

Value = Any


class UnreadableError(Exception):
    """A value cannot be computed without executing the file; the message says why."""


@dataclass(frozen=True)
class Unread:
    """A line that could not be read, the name that it would set, and why."""

    place: str
    name: str
    why: str

    def __str__(self) -> str:
        return f"{self.place}: {self.name}: {self.why}"


@dataclass
class Module:
    """The names that a module assigns, with the lines that do so, and the lines that could not be read.

    Attributes are names with a dot, such as `env.user`.
    """

    values: dict[str, Value] = field(default_factory=dict)
    places: dict[str, str] = field(default_factory=dict)
    unread: list[Unread] = field(default_factory=list)


def read_module(path: Path) -> Module:
    """Read a file and those that it includes with execfile(); raises DefinitionError if it is not Python."""
    reader = _Reader(path.parent.resolve())
    reader.read_file(path)
    return reader.module


def evaluate(node: ast.expr, names: Mapping[str, Value]) -> Value:
    """Return the value of an expression; raises UnreadableError."""
    try:
        return _bounded(_evaluate(node, names))
    except RecursionError:
        raise UnreadableError("is nested too deeply") from None
    except (ArithmeticError, LookupError, TypeError, ValueError) as error:
        raise UnreadableError(f"cannot be computed: {error}") from None


def parse(text: str, file: str, mode: str = "exec") -> Any:
    """Return the tree of a text; raises DefinitionError without quoting it, as it may hold a password."""
    try:
        return ast.parse(text, mode=mode)
    except SyntaxError as error:
        line, column, why = error.lineno or 0, error.offset or 0, error.msg
    except (ValueError, RecursionError, MemoryError) as error:
        line, column, why = 0, 0, str(error) or "nested too deeply"
    if "print" in why:
        why += " (a statement of Python 2: remove it)"
    raise DefinitionError([Problem(file, line, column, f"not Python: {why}")])


class _Reader:
    def __init__(self, folder: Path) -> None:
        self.module, self._folder = Module(), folder
        self._files = self._statements = 0

    def read_file(self, path: Path) -> None:
        try:
            data = path.read_bytes() if path.is_file() else b""
        except OSError as error:
            raise _refused(path, (error.strerror or "cannot be read").lower()) from None
        if not path.is_file():
            raise _refused(path, "no such file; give the config.py of TEACUP")
        if len(data) > LARGEST_FILE_BYTES:
            raise _refused(path, f"{len(data)} bytes; a configuration has at most {LARGEST_FILE_BYTES}")
        self._files += 1
        self._run(parse(data.decode("utf-8", "replace"), str(path)).body, str(path))

    def _run(self, body: Sequence[ast.stmt], file: str) -> None:
        for statement in body:
            self._statements += 1
            if self._statements > MOST_STATEMENTS:
                raise _refused(Path(file), f"runs more than {MOST_STATEMENTS} statements")
            try:
                self._statement(statement, file)
            except UnreadableError as error:
                names = [ast.unparse(one) for one in getattr(statement, "targets", ())]
                what = ", ".join(names) or type(statement).__name__.lower()
                for name in names:  # what it was before is not what the configuration says
                    self.module.values.pop(name, None)
                self.module.unread.append(Unread(f"{file}:{statement.lineno}", what[:60], str(error)))

    def _statement(self, statement: ast.stmt, file: str) -> None:
        match statement:
            case ast.Assign(targets, value):
                found = self._value(value)
                for target in targets:
                    self._assign(target, found, f"{file}:{statement.lineno}")
            case ast.AugAssign(target, op, value):
                whole = ast.BinOp(ast.parse(ast.unparse(target), mode="eval").body, op, value)
                self._assign(target, self._value(whole), f"{file}:{statement.lineno}")
            case ast.Expr(ast.Call() as call):
                self._call(call, file)
            case ast.For(ast.Name(name), several, body):
                for one in _listed(self._value(several)):
                    self.module.values[name] = one
                    self._run(body, file)
            case ast.If(test, body, other):
                self._run(body if self._value(test) else other, file)
            case ast.Import() | ast.ImportFrom() | ast.Pass() | ast.Expr(ast.Constant()):
                pass
            case _:
                raise UnreadableError("is not an assignment")

    def _value(self, node: ast.expr) -> Value:
        return evaluate(node, self.module.values)

    def _assign(self, target: ast.expr, value: Value, place: str) -> None:
        match target:
            case ast.Name(name) | ast.Attribute(ast.Name("env"), name):
                name = name if isinstance(target, ast.Name) else f"env.{name}"
                self.module.values[name], self.module.places[name] = value, place
            case ast.Tuple(elts) | ast.List(elts):
                for one, part in zip(elts, _listed(value), strict=False):
                    self._assign(one, part, place)
            case ast.Subscript(ast.Name(name), key) if isinstance(self.module.values.get(name), dict | list):
                container = self.module.values[name].copy()
                try:
                    container[self._value(key)] = value
                except (LookupError, TypeError) as error:
                    raise UnreadableError(f"cannot be set: {error}") from None
                self.module.values[name] = _bounded(container)
            case _:
                raise UnreadableError("sets what cannot be read without executing the file")

    def _call(self, call: ast.Call, file: str) -> None:
        name = ast.unparse(call.func)
        owner, _, method = name.rpartition(".")
        if name in ("print", "sys.path.append", "sys.path.insert"):
            return
        if name == "execfile" and len(call.args) == 1:
            self._include(str(self._value(call.args[0])), file)
        elif method in ("append", "extend", "update") and owner in self.module.values and len(call.args) == 1:
            container, value = self.module.values[owner], self._value(call.args[0])
            added = [value] if method == "append" else value
            if not isinstance(container, dict if method == "update" else list) or not isinstance(
                added, type(container)
            ):
                raise UnreadableError(f"{method} of something else to {owner}")
            both: Value = container.copy()
            (both.update if isinstance(container, dict) else both.extend)(added)
            self.module.values[owner] = _bounded(both)
        else:
            raise UnreadableError(f"{name}() would have to be executed")

    def _include(self, name: str, file: str) -> None:
        path = (Path(file).parent / name).resolve()
        if self._files >= MOST_FILES or not path.is_relative_to(self._folder) or not path.is_file():
            raise UnreadableError(
                f"execfile: not one of at most {MOST_FILES} files below the configuration's folder"
            )
        self.read_file(path)


def _refused(path: Path, why: str) -> DefinitionError:
    return DefinitionError([Problem(str(path), 0, 0, why)])


def _listed(value: Value) -> list[Value]:
    if not isinstance(value, list | tuple | dict | str):
        raise UnreadableError("is not a list")
    return list(value)


def _bounded(value: Value) -> Value:
    """Return a value that is not too large; raises UnreadableError. The walk ends at the bound."""
    left, waiting = MOST_VALUES, [value]
    while waiting:
        one = waiting.pop()
        if isinstance(one, int) and abs(one) > LARGEST_NUMBER:
            raise UnreadableError("is too large a number")
        left -= len(one) if isinstance(one, str | list | tuple | dict) else 1
        if left < 0:
            raise UnreadableError(f"has more than {MOST_VALUES} values or characters")
        if isinstance(one, list | tuple):
            waiting += one
        elif isinstance(one, dict):
            waiting += [*one.keys(), *one.values()]
    return value


def _times(left: Value, right: Value) -> Value:
    many = next((one for one in (left, right) if isinstance(one, str | list | tuple)), None)
    count = right if many is left else left
    if many is not None and (not isinstance(count, int) or len(many) * count > MOST_VALUES):
        raise UnreadableError(f"repeats to more than {MOST_VALUES} values or characters")
    return left * right


def _modulo(left: Value, right: Value) -> Value:
    if isinstance(left, str) and WIDE.search(left):
        raise UnreadableError("formats a text of thousands of characters")
    return left % right


def _divide(left: Value, right: Value) -> Value:
    whole = isinstance(left, int) and isinstance(right, int)
    return left // right if whole else left / right  # as Python 2 does


def _range(*ends: int) -> list[int]:
    found = range(*ends)
    if len(found) > MOST_VALUES:
        raise UnreadableError(f"a range of more than {MOST_VALUES} numbers")
    return list(found)


OPERATORS: Mapping[type[ast.AST], Callable[..., Value]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: _times,
    ast.Div: _divide,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: _modulo,
    ast.USub: operator.neg,
    ast.UAdd: operator.pos,
    ast.Not: operator.not_,
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
    ast.In: lambda one, several: one in several,
    ast.NotIn: lambda one, several: one not in several,
}
FUNCTIONS: Mapping[str, Callable[..., Value]] = {
    "range": _range,
    "xrange": _range,
    **{one.__name__: one for one in (str, int, float, len, list, tuple, min, max, round, sum, sorted)},
}


def _evaluate(node: ast.expr, names: Mapping[str, Value]) -> Value:
    def inner(one: ast.expr) -> Value:
        return evaluate(one, names)

    match node:
        case ast.Constant(str() | int() | float() | None as value):
            return value
        case ast.Name(name) if name in names:
            return names[name]
        case ast.Attribute(ast.Name("env"), name) if f"env.{name}" in names:
            return names[f"env.{name}"]
        case ast.List(elements) | ast.Tuple(elements):
            found = [inner(one) for one in elements]
            return found if isinstance(node, ast.List) else tuple(found)
        case ast.Dict(keys, values) if None not in keys:
            return {inner(key): inner(one) for key, one in zip(keys, values, strict=True) if key is not None}
        case ast.Subscript(value, index):
            return inner(value)[inner(index)]
        case ast.Name(name):
            raise UnreadableError(f"{name[:60]} is not set by a line that could be read")
        case ast.Call():
            return _call(node, inner)
    return _operation(node, inner)


def _operation(node: ast.expr, inner: Callable[[ast.expr], Value]) -> Value:
    match node:
        case ast.BinOp(left, op, right) | ast.Compare(left, [op], [right]) if type(op) in OPERATORS:
            return OPERATORS[type(op)](inner(left), inner(right))
        case ast.UnaryOp(op, operand) if type(op) in OPERATORS:
            return OPERATORS[type(op)](inner(operand))
    raise UnreadableError("would have to be executed")


def _call(node: ast.Call, inner: Callable[[ast.expr], Value]) -> Value:
    match node:
        case ast.Call(ast.Name("map"), [ast.Name(function), several], []) if function in FUNCTIONS:
            return [FUNCTIONS[function](one) for one in _listed(inner(several))]
        case ast.Call(ast.Name(function), arguments, []) if function in FUNCTIONS:
            return FUNCTIONS[function](*map(inner, arguments))
        case ast.Call(ast.Attribute(text, "join"), [several], []):
            return str(inner(text)).join(_listed(inner(several)))
    raise UnreadableError(f"{ast.unparse(node.func)[:60]}() would have to be executed")
