"""Read a Python module of assignments without executing it: constants, names, arithmetic, lists and loops.

TEACUP's configuration is a Python 2 program. Lines that cannot be evaluated without executing code are
listed.
"""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from samovar.errors import DefinitionError, Problem

Value = Any


class UnreadableError(Exception):
    """A value cannot be computed without executing the file; the message says why."""


@dataclass(frozen=True)
class Unread:
    """A line that could not be read, the name that it would set, and the reason why it could not be read."""

    place: str
    name: str
    why: str

    def __str__(self) -> str:
        return f"{self.place}: {self.name}: {self.why}"


@dataclass
class Module:
    """The names that a module assigns, and the lines that could not be read.

    Attributes are names with a dot, such as `env.user`.
    """

    values: dict[str, Value] = field(default_factory=dict)
    unread: list[Unread] = field(default_factory=list)


def read_module(path: Path) -> Module:
    """Read a file and those that it includes with execfile(); raises DefinitionError if it is not Python."""
    reader = _Reader(path.parent.resolve())
    reader.read_file(path)
    return reader.module


def evaluate(node: ast.expr, names: Mapping[str, Value]) -> Value:
    """Return the value of an expression; raises UnreadableError."""
    try:
        return _evaluate(node, names)
    except RecursionError:
        raise UnreadableError("is nested too deeply") from None
    except (ArithmeticError, LookupError, TypeError, ValueError) as error:
        raise UnreadableError(f"cannot be computed: {error}") from None


def parse(text: str, file: str, mode: str = "exec") -> Any:
    """Parse a text into a syntax tree. Raises DefinitionError without the text, which can hold passwords."""
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
        self._files = set[Path]()

    def read_file(self, path: Path) -> None:
        if not path.is_file():
            raise DefinitionError.at(path, "no such file; give the config.py of TEACUP")
        try:
            text = path.read_text("utf-8", "replace")
        except OSError as error:
            raise DefinitionError.at(path, (error.strerror or "cannot be read").lower()) from None
        self._files.add(path.resolve())
        self._run(parse(text, str(path)).body, str(path))

    def _run(self, body: Sequence[ast.stmt], file: str) -> None:
        for statement in body:
            try:
                self._statement(statement, file)
            except UnreadableError as error:
                names = [ast.unparse(one) for one in getattr(statement, "targets", ())]
                what = ", ".join(names) or type(statement).__name__.lower()
                for name in names:  # an earlier value is not the one that the configuration sets
                    self.module.values.pop(name, None)
                self.module.unread.append(Unread(f"{file}:{statement.lineno}", what[:60], str(error)))

    def _statement(self, statement: ast.stmt, file: str) -> None:
        match statement:
            case ast.Assign([ast.Name(name)], ast.Dict(keys, values)) if None not in keys:
                try:
                    self.module.values[name] = self._value(statement.value)
                except UnreadableError:  # leave out only the entries that cannot be read
                    self.module.values[name] = {}
                    self._run([*map(partial(_entry, name), keys, values)], file)
            case ast.Assign(targets, value):
                for target in targets:
                    self._assign(target, self._value(value))
            case ast.AugAssign(target, op, value):
                old = ast.parse(ast.unparse(target), mode="eval").body
                self._assign(target, self._value(ast.BinOp(old, op, value)))
            case ast.Expr(ast.Call(function, arguments)):
                self._call(ast.unparse(function), arguments, file)
            case ast.For(ast.Name(name), several, body):
                for one in _listed(self._value(several)):
                    self.module.values[name] = one
                    self._run(body, file)
            case ast.Import() | ast.ImportFrom() | ast.Pass() | ast.Expr(ast.Constant()):
                pass
            case _:
                raise UnreadableError("is not an assignment")

    def _value(self, node: ast.expr) -> Value:
        return evaluate(node, self.module.values)

    def _assign(self, target: ast.expr, value: Value) -> None:
        match target:
            case ast.Name() | ast.Attribute(ast.Name("env")):
                self.module.values[ast.unparse(target)] = value
            case ast.Subscript(ast.Name(name), key) if isinstance(self.module.values.get(name), dict):
                self.module.values[name] = {**self.module.values[name], self._value(key): value}
            case _:
                raise UnreadableError("assigns to a target that cannot be read without executing the file")

    def _call(self, name: str, arguments: Sequence[ast.expr], file: str) -> None:
        owner, _, method = name.rpartition(".")
        if name in ("print", "sys.path.append", "sys.path.insert"):
            return
        if name == "execfile" and len(arguments) == 1:
            self._include(str(self._value(arguments[0])), file)
        elif method in ("append", "extend") and len(arguments) == 1 and owner in self.module.values:
            value = self._value(arguments[0])
            added = [value] if method == "append" else _listed(value)
            self.module.values[owner] = _listed(self.module.values[owner]) + added
        else:
            raise UnreadableError(f"{name}() would have to be executed")

    def _include(self, name: str, file: str) -> None:
        path = (Path(file).parent / name).resolve()
        if path in self._files or not path.is_relative_to(self._folder) or not path.is_file():
            raise UnreadableError("execfile: not another file below the configuration's folder")
        self.read_file(path)


def _entry(name: str, key: ast.expr, value: ast.expr) -> ast.stmt:
    """Return the statement `name[key] = value`."""
    return ast.copy_location(ast.Assign([ast.Subscript(ast.Name(name), key)], value), key)


def _listed(value: Value) -> list[Value]:
    if not isinstance(value, list | tuple):
        raise UnreadableError("is not a list")
    return list(value)


def _divide(left: Value, right: Value) -> Value:
    whole = isinstance(left, int) and isinstance(right, int)
    return left // right if whole else left / right  # as Python 2 does


def _range(*ends: int) -> list[int]:
    return list(range(*ends))


OPERATORS: Mapping[type[ast.AST], Callable[..., Value]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: _divide,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
    ast.USub: operator.neg,
}
FUNCTIONS: Mapping[str, Callable[..., Value]] = {
    "range": _range, "xrange": _range, "str": str, "int": int, "float": float, "len": len,
}  # fmt: skip


def _evaluate(node: ast.expr, names: Mapping[str, Value]) -> Value:
    def inner(one: ast.expr) -> Value:
        return evaluate(one, names)

    match node:
        case ast.Constant(str() | int() | float() | None as value):
            return value
        case ast.Name() | ast.Attribute(ast.Name("env")) if ast.unparse(node) in names:
            return names[ast.unparse(node)]
        case ast.Name(name):
            raise UnreadableError(f"{name[:60]} is not set by a line that could be read")
        case ast.List(elements):
            return [inner(one) for one in elements]
        case ast.Tuple(elements):
            return tuple(inner(one) for one in elements)
        case ast.Dict(keys, values) if None not in keys:
            return {inner(key): inner(one) for key, one in zip(keys, values, strict=True) if key is not None}
        case ast.Subscript(value, index):
            return inner(value)[inner(index)]
    return _computed(node, inner, names)


def _computed(node: ast.expr, inner: Callable[[ast.expr], Value], names: Mapping[str, Value]) -> Value:
    """Return the value of an operator, a call or a comprehension."""
    match node:
        case ast.BinOp(left, op, right) if type(op) in OPERATORS:
            return OPERATORS[type(op)](inner(left), inner(right))
        case ast.UnaryOp(op, operand) if type(op) in OPERATORS:
            return OPERATORS[type(op)](inner(operand))
        case ast.Call(ast.Name("map"), [ast.Name(function), several], []) if function in FUNCTIONS:
            return [FUNCTIONS[function](one) for one in _listed(inner(several))]
        case ast.Call(ast.Name(function), arguments, []) if function in FUNCTIONS:
            return FUNCTIONS[function](*map(inner, arguments))
        case ast.Call(ast.Attribute(text, "join"), [several], []):
            return str(inner(text)).join(_listed(inner(several)))
        case ast.ListComp(element, [loop]) | ast.GeneratorExp(element, [loop]):
            return _each(element, loop, names)
        case ast.Call(called):
            raise UnreadableError(f"{ast.unparse(called)[:60]}() would have to be executed")
    raise UnreadableError("would have to be executed")


def _each(element: ast.expr, loop: ast.comprehension, names: Mapping[str, Value]) -> list[Value]:
    """Return the list of a comprehension with one loop and no condition."""
    if not isinstance(loop.target, ast.Name) or loop.ifs:
        raise UnreadableError("would have to be executed")
    several = _listed(evaluate(loop.iter, names))
    return [evaluate(element, {**names, loop.target.id: one}) for one in several]
