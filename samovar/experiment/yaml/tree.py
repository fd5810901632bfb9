"""YAML files as trees of texts: every scalar stays as written, every key and value has its position.

Nothing is typed here, so the surprises of YAML 1.1 (no, 010, 10:20, 1e6) cannot happen; the models type.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import yaml

from samovar.errors import DefinitionError, Problem
from samovar.experiment.secrets import ADVICE, find_secrets
from samovar.experiment.yaml.syntax import Position as Position
from samovar.experiment.yaml.syntax import SourceText, compose

LARGEST_FILE_BYTES = 2**17
MOST_NODES = 50_000  # counted with aliases expanded: ten lines could otherwise mean billions of values
_CONTROL_CHARACTER = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")
_PLAIN_TAGS = {f"tag:yaml.org,2002:{kind}" for kind in ("str", "seq", "map")}
_EMPTY = "the file is empty; it must be a mapping (key: value)"


class Text(str):
    """A scalar as written, with its position."""

    position: Position


class Seq(list["Node"]):
    """A list with its position."""

    def __init__(self, items: list[Node], position: Position) -> None:
        super().__init__(items)
        self.position = position


class Map(dict[str, "Node"]):
    """A mapping with its position and those of its keys.

    `overridden` holds, by key, the values of weaker layers that were replaced, the strongest first.
    """

    def __init__(self, position: Position) -> None:
        super().__init__()
        self.position = position
        self.key_positions: dict[str, Position] = {}
        self.overridden: dict[str, tuple[Node, ...]] = {}

    def put(self, key: str, value: Node, key_position: Position) -> None:
        """Set one entry and the position of its key."""
        self[key] = value
        self.key_positions[key] = key_position

    def copied(self) -> Map:
        """Return a shallow copy that can be changed."""
        copy = Map(self.position)
        copy.update(self)
        copy.key_positions.update(self.key_positions)
        copy.overridden.update(self.overridden)
        return copy


Node = Text | Seq | Map


def text(value: str, position: Position) -> Text:
    """Return a scalar with its position."""
    scalar = Text(value)
    scalar.position = position
    return scalar


def plain(node: object) -> object:
    """Return the same value in built-in types, without positions."""
    if isinstance(node, dict):
        return {str(key): plain(value) for key, value in node.items()}
    if isinstance(node, list | tuple):
        return [plain(value) for value in node]
    return str(node)


def node_at(tree: Node | None, *keys: str) -> Node | None:
    """Return the value below some nested keys, None where a mapping lacks one."""
    for key in keys:
        tree = tree.get(key) if isinstance(tree, Map) else None
    return tree


def read_yaml(path: Path) -> tuple[Map, list[Problem]]:
    """Read a YAML file that is a mapping, with the problems that leave the rest readable (a duplicate key).

    Raises DefinitionError for a file that cannot be read at all.
    """
    return parse_yaml(read_text(path), str(path))


def parse_yaml(content: str, file: str) -> tuple[Map, list[Problem]]:
    """Parse a text as read_yaml parses a file; `file` names it in messages."""
    source = SourceText(file, content)
    tree, problems = _convert(source)
    if tree is None or (isinstance(tree, Text) and tree in ("", "~", "null")):
        raise DefinitionError([source.position(0, 0).problem(_EMPTY)])
    if not isinstance(tree, Map):
        what = "list" if isinstance(tree, Seq) else "text"
        message = f"the file is a {what}; it must be a mapping (key: value)"
        raise DefinitionError([*problems, tree.position.problem(message)])
    return tree, problems


def parse_value(content: str, start: Position) -> Node:
    """Parse one value of any kind, such as that of --set; raises DefinitionError.

    Positions in it are counted from `start`.
    """
    node, problems = _convert(SourceText(start.file, content, start))
    if problems:
        raise DefinitionError(problems)
    return text("", start) if node is None else node


def _convert(source: SourceText) -> tuple[Node | None, list[Problem]]:
    """Return a text as a tree, None if it is empty; refuses secrets, which campaigns would record."""
    secrets = list(find_secrets(source.content))
    if secrets:  # the line is not shown with the message: messages are logged
        positions = [replace(source.position_at(one.start), text="") for one in secrets]
        raise DefinitionError(
            [
                position.problem(f"{one.kind}; {ADVICE}")
                for position, one in zip(positions, secrets, strict=True)
            ]
        )
    root = compose(source)
    converter = _Converter(source)
    return (None if root is None else converter.convert(root)), converter.problems


def yaml_files(folder: Path) -> list[Path]:
    """Return the YAML files of a folder, sorted; none if the folder is missing. Raises DefinitionError."""
    try:
        return sorted(path for path in folder.iterdir() if path.suffix == ".yaml")
    except FileNotFoundError:
        return []
    except OSError as error:
        raise DefinitionError(
            [Problem(str(folder), 0, 0, f"{_reason(error)}; it must be a folder")]
        ) from error


def yaml_names(folder: Path) -> list[str]:
    """Return the names of the YAML files of a folder, sorted; raises DefinitionError."""
    return [path.stem for path in yaml_files(folder)]


def yaml_path(folder: Path, name: str) -> Path:
    """Return the path of a YAML file in a folder, relative to the working folder where possible."""
    path = (folder / f"{name}.yaml").absolute()
    return path.relative_to(Path.cwd()) if path.is_relative_to(Path.cwd()) else path


def read_text(path: Path, what: str = "a YAML file") -> str:
    """Return the text of a small UTF-8 file; raises DefinitionError, which names `what` it should be."""
    try:
        with path.open("rb") as stream:
            data = stream.read(LARGEST_FILE_BYTES + 1)
    except OSError as error:
        raise DefinitionError([Problem(str(path), 0, 0, f"{_reason(error)}; it must be {what}")]) from error
    if len(data) > LARGEST_FILE_BYTES:
        message = f"the file is larger than {LARGEST_FILE_BYTES // 1024} KiB; this is not a definition file"
        raise DefinitionError([Problem(str(path), 0, 0, message)])
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise DefinitionError([_not_utf8(path, data, error.start)]) from error


def _reason(error: OSError) -> str:
    return (error.strerror or "cannot be read").lower()


def _not_utf8(path: Path, data: bytes, at: int) -> Problem:
    if data.startswith((b"\xff\xfe", b"\xfe\xff")):
        return Problem(str(path), 1, 1, "the file is UTF-16; save it as UTF-8")
    before = data[:at].decode("utf-8")
    column = len(before) - (before.rfind("\n") + 1) + 1
    return Problem(
        str(path), before.count("\n") + 1, column, "a byte that is not valid UTF-8; save the file as UTF-8"
    )


class _Converter:
    """Convert PyYAML's nodes to a tree, collecting the problems that leave the rest readable."""

    def __init__(self, source: SourceText) -> None:
        self._source = source
        self.problems: list[Problem] = []
        self._count = 0
        self._open: set[int] = set()

    def convert(self, node: yaml.Node) -> Node:
        """Return one node with all below it; raises DefinitionError for too many nodes and for recursion."""
        position = self._position(node)
        self._count += 1
        if self._count > MOST_NODES:
            message = f"more than {MOST_NODES} values with aliases expanded; use fewer aliases"
            raise DefinitionError([position.problem(message)])
        if node.tag not in _PLAIN_TAGS:
            self.problems.append(position.problem(f"tag '{node.tag}'; tags are not allowed, remove it"))
        if isinstance(node, yaml.ScalarNode):
            self._refuse_control_characters(node.value, position)
            return text(node.value, position)
        if id(node) in self._open:
            raise DefinitionError([position.problem("this alias contains itself; write the values out")])
        self._open.add(id(node))
        if isinstance(node, yaml.SequenceNode):
            result: Node = Seq([self.convert(item) for item in node.value], position)
        else:
            result = self._mapping(node, position)
        self._open.discard(id(node))
        return result

    def _mapping(self, node: yaml.Node, position: Position) -> Map:
        result = Map(position)
        for key, key_position, value in self._entries(node):
            if key in result:
                message = f"duplicate key '{key}', first in line {result.key_positions[key].line}; keep one"
                self.problems.append(key_position.problem(message))
                continue
            result.put(key, self.convert(value), key_position)
        return result

    def _entries(self, node: yaml.Node) -> Iterator[tuple[str, Position, yaml.Node]]:
        for key, value in node.value:
            position = self._position(key)
            if not isinstance(key, yaml.ScalarNode):
                self.problems.append(position.problem("the key is a list or mapping; it must be a word"))
            elif key.value == "<<" and key.style is None:
                message = "merge key '<<' is not supported; write the keys out, or use fragments"
                self.problems.append(position.problem(message))
            elif _lacks_space(key, value):
                before, _, after = key.value.partition(":")
                message = f"missing space after ':' in '{key.value}'; write '{before}: {after}'"
                self.problems.append(position.problem(message))
            else:
                self._refuse_control_characters(key.value, position)
                yield key.value, position, value

    def _refuse_control_characters(self, value: str, position: Position) -> None:
        """Report control characters (from escapes such as \\e), which could steer a terminal (ECMA-48)."""
        found = _CONTROL_CHARACTER.search(value)
        if found:
            message = f"control character U+{ord(found[0]):04X}; only printable text is allowed"
            self.problems.append(position.problem(message))

    def _position(self, node: yaml.Node) -> Position:
        return self._source.position(node.start_mark.line, node.start_mark.column)


def _lacks_space(key: yaml.ScalarNode, value: yaml.Node) -> bool:
    """Return whether a key is {rate:40Mbit}, which YAML reads as one key without a value."""
    empty = isinstance(value, yaml.ScalarNode) and value.value == "" and value.style is None
    return empty and key.style is None and ":" in key.value
