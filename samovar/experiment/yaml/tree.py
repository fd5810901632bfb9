"""YAML as text with places: every scalar stays as written, every key and value knows its line and column.

Nothing is typed here, so YAML 1.1's surprises (no, 010, 10:20, 1e6) never happen; the schema types.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import yaml

from samovar.errors import DefinitionError, Problem
from samovar.experiment.secrets import ACCEPTED, secrets_in
from samovar.experiment.yaml.positions import Mark as Mark
from samovar.experiment.yaml.positions import Places
from samovar.experiment.yaml.syntax import compose

LARGEST_FILE_BYTES = 2**17
MOST_NODES = 50_000  # after aliases are followed: a file of ten lines can otherwise mean billions
_STEERING = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")
PLAIN_TAGS = {f"tag:yaml.org,2002:{kind}" for kind in ("str", "seq", "map")}


class Text(str):
    """A scalar as written."""

    mark: Mark


class Seq(list["Node"]):
    """A list with its place."""

    def __init__(self, items: list[Node], mark: Mark) -> None:
        super().__init__(items)
        self.mark = mark


class Map(dict[str, "Node"]):
    """A mapping with its place, the places of its keys, and what other layers said that it hides."""

    def __init__(self, mark: Mark) -> None:
        super().__init__()
        self.mark = mark
        self.key_marks: dict[str, Mark] = {}
        self.hidden: dict[str, tuple[Node, ...]] = {}

    def put(self, key: str, value: Node, key_mark: Mark) -> None:
        """Set one entry and the place of its key."""
        self[key] = value
        self.key_marks[key] = key_mark

    def copied(self) -> Map:
        """Return a shallow copy that can be changed."""
        copy = Map(self.mark)
        copy.update(self)
        copy.key_marks.update(self.key_marks)
        copy.hidden.update(self.hidden)
        return copy


Node = Text | Seq | Map


def text(value: str, mark: Mark) -> Text:
    """Return a scalar with its place."""
    scalar = Text(value)
    scalar.mark = mark
    return scalar


def plain(node: object) -> object:
    """Return the same value in built-in types, without places."""
    if isinstance(node, dict):
        return {str(key): plain(value) for key, value in node.items()}
    if isinstance(node, list | tuple):
        return [plain(value) for value in node]
    return str(node)


def read_yaml(path: Path) -> tuple[Map, list[Problem]]:
    """Read a file whose root is a mapping; raises DefinitionError when there is nothing to go on with.

    Mistakes that leave the rest readable (a duplicate key, a tag) are returned.
    """
    return parse_yaml(read_text(path), str(path))


def parse_yaml(content: str, file: str) -> tuple[Map, list[Problem]]:
    """Parse a text like read_yaml does; `file` names it in messages."""
    places = Places(file, content)
    _refuse_secrets(content, places)
    root = compose(content, places)
    start = places.at(0, 0)
    if root is None:
        raise DefinitionError([start.problem("the file is empty; expected a mapping (key: value)")])
    converter = _Converter(places)
    tree = converter.convert(root)
    if isinstance(tree, Text) and tree in ("", "~", "null"):
        raise DefinitionError([start.problem("the file is empty; expected a mapping (key: value)")])
    if not isinstance(tree, Map):
        what = "a list" if isinstance(tree, Seq) else "text"
        message = f"the file holds {what}; expected a mapping (key: value)"
        raise DefinitionError([*converter.problems, tree.mark.problem(message)])
    return tree, converter.problems


def parse_value(content: str, start: Mark) -> Node:
    """Parse one value of any kind, such as that of --set; raises DefinitionError.

    Every place in it is counted from `start` in the line that it stands in.
    """
    places = Places(start.file, content, start)
    _refuse_secrets(content, places)
    root = compose(content, places)
    if root is None:
        return text("", start)
    converter = _Converter(places)
    node = converter.convert(root)
    if converter.problems:
        raise DefinitionError(converter.problems)
    return node


def _refuse_secrets(content: str, places: Places) -> None:
    """Refuse a text with a secret in it, also in a comment: campaigns keep these files as they are."""
    problems = [
        _place(content, places, found.at).problem(f"{found.what}; {ACCEPTED}")
        for found in secrets_in(content)
    ]
    if problems:
        raise DefinitionError(problems)


def _place(content: str, places: Places, at: int) -> Mark:
    before = content[:at]
    mark = places.at(before.count("\n"), len(before) - (before.rfind("\n") + 1))
    return replace(mark, text="")  # the line is not shown: messages go into logs


def yaml_files(folder: Path) -> list[Path]:
    """List the YAML files of a folder, sorted, none where there is no such folder; raises DefinitionError."""
    try:
        return sorted(path for path in folder.iterdir() if path.suffix == ".yaml")
    except FileNotFoundError:
        return []
    except OSError as error:
        raise DefinitionError([Problem(str(folder), 0, 0, f"{_reason(error)}; expected a folder")]) from error


def near(folder: Path, name: str) -> Path:
    """Name a YAML file of a folder as briefly as the working folder allows."""
    path = (folder / f"{name}.yaml").absolute()
    return path.relative_to(Path.cwd()) if path.is_relative_to(Path.cwd()) else path


def read_text(path: Path, what: str = "a YAML file") -> str:
    """Read a file of UTF-8 text that is no data; raises DefinitionError, which says what was expected."""
    try:
        with path.open("rb") as stream:
            data = stream.read(LARGEST_FILE_BYTES + 1)
    except OSError as error:
        raise DefinitionError([Problem(str(path), 0, 0, f"{_reason(error)}; expected {what}")]) from error
    if len(data) > LARGEST_FILE_BYTES:
        message = f"the file is larger than {LARGEST_FILE_BYTES // 1024} KiB; expected a definition, not data"
        raise DefinitionError([Problem(str(path), 0, 0, message)])
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise DefinitionError([_no_utf8(path, data, error.start)]) from error


def _reason(error: OSError) -> str:
    return (error.strerror or "cannot be read").lower()


def _no_utf8(path: Path, data: bytes, at: int) -> Problem:
    if data.startswith((b"\xff\xfe", b"\xfe\xff")):
        return Problem(str(path), 1, 1, "the file is UTF-16; expected UTF-8 text")
    before = data[:at].decode("utf-8")
    column = len(before) - (before.rfind("\n") + 1) + 1
    return Problem(str(path), before.count("\n") + 1, column, "a byte that is no UTF-8; expected UTF-8 text")


class _Converter:
    """From PyYAML's nodes to ours, collecting the mistakes that leave the rest readable."""

    def __init__(self, places: Places) -> None:
        self._places = places
        self.problems: list[Problem] = []
        self._count = 0
        self._open: set[int] = set()

    def convert(self, node: yaml.Node) -> Node:
        """Convert one node and all below it; raises DefinitionError on explosion and recursion."""
        mark = self._mark(node)
        self._count += 1
        if self._count > MOST_NODES:
            message = f"more than {MOST_NODES} values once aliases are followed; write them out or use fewer"
            raise DefinitionError([mark.problem(message)])
        if node.tag not in PLAIN_TAGS:
            self.problems.append(mark.problem(f"tag '{node.tag}'; expected plain YAML without tags"))
        if isinstance(node, yaml.ScalarNode):
            self._refuse_controls(node.value, mark)
            return text(node.value, mark)
        return self._collection(node, mark)

    def _refuse_controls(self, value: str, mark: Mark) -> None:
        """Report what an escape such as \\e brings in: it would steer a terminal (ECMA-48)."""
        steering = _STEERING.search(value)
        if steering:
            code = f"U+{ord(steering[0]):04X}"
            self.problems.append(mark.problem(f"a control character ({code}); expected printable text"))

    def _collection(self, node: yaml.Node, mark: Mark) -> Node:
        if id(node) in self._open:
            raise DefinitionError([mark.problem("an alias holds itself; expected values that end")])
        self._open.add(id(node))
        if isinstance(node, yaml.SequenceNode):
            result: Node = Seq([self.convert(item) for item in node.value], mark)
        else:
            result = self._mapping(node, mark)
        self._open.discard(id(node))
        return result

    def _mapping(self, node: yaml.Node, mark: Mark) -> Map:
        result = Map(mark)
        for key, key_mark, value in self._entries(node):
            if key in result:
                first = f"first in line {result.key_marks[key].line}"
                message = f"key '{key}' stands here again ({first}); expected it once"
                self.problems.append(key_mark.problem(message))
                continue
            result.put(key, self.convert(value), key_mark)
        return result

    def _entries(self, node: yaml.Node) -> Iterator[tuple[str, Mark, yaml.Node]]:
        for key, value in node.value:
            mark = self._mark(key)
            if not isinstance(key, yaml.ScalarNode):
                self.problems.append(mark.problem("a key that is a list or mapping; expected a word"))
            elif key.value == "<<" and key.style is None:
                message = "a merge key '<<'; expected the keys themselves, or fragments and use: [NAME]"
                self.problems.append(mark.problem(message))
            elif _is_unparted(key, value):
                before, _, after = key.value.partition(":")
                message = f"no blank after ':' in '{key.value}'; expected '{before}: {after}'"
                self.problems.append(mark.problem(message))
            else:
                self._refuse_controls(key.value, mark)
                yield key.value, mark, value

    def _mark(self, node: yaml.Node) -> Mark:
        return self._places.at(node.start_mark.line, node.start_mark.column)


def _is_unparted(key: yaml.ScalarNode, value: yaml.Node) -> bool:
    """Tell {rate:40Mbit}, where YAML sees one key without a value, from what was meant."""
    empty = isinstance(value, yaml.ScalarNode) and value.value == "" and value.style is None
    return empty and key.style is None and ":" in key.value
