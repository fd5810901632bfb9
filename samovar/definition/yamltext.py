"""YAML as text with places: every scalar stays as written, every key and value knows its line and column.

Nothing is typed here, so YAML 1.1's surprises (no, 010, 10:20, 1e6) never happen; the schema types.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import yaml

from samovar.errors import DefinitionError, Problem

LARGEST_FILE_BYTES = 2**20
MOST_NODES = 50_000  # after aliases are followed: a file of ten lines can otherwise mean billions
DEEPEST = 40
PLAIN_TAGS = {f"tag:yaml.org,2002:{kind}" for kind in ("str", "seq", "map")}


@dataclass(frozen=True)
class Mark:
    """A place in a file; line and column count from 1, and `text` is the whole line."""

    file: str
    line: int
    column: int
    text: str = field(default="", compare=False, repr=False)

    def problem(self, message: str) -> Problem:
        """Return the mistake that stands here."""
        return Problem(self.file, self.line, self.column, message, self.text)

    def __str__(self) -> str:
        """Render as file:line:column; a place on the command line is the option itself."""
        return f"{self.file}:{self.line}:{self.column}" if self.line else self.file


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
    return parse_yaml(_read_text(path), str(path))


def parse_yaml(content: str, file: str) -> tuple[Map, list[Problem]]:
    """Parse a text like read_yaml does; `file` names it in messages."""
    root = _compose(content, file)
    start = Mark(file, 1, 1)
    if root is None:
        raise DefinitionError([start.problem("the file is empty; expected a mapping (key: value)")])
    converter = _Converter(file)
    tree = converter.convert(root)
    if not isinstance(tree, Map):
        what = "a list" if isinstance(tree, Seq) else "text"
        message = f"the file holds {what}; expected a mapping (key: value)"
        raise DefinitionError([*converter.problems, tree.mark.problem(message)])
    return tree, converter.problems


def _read_text(path: Path) -> str:
    try:
        with path.open("rb") as stream:
            data = stream.read(LARGEST_FILE_BYTES + 1)
    except OSError as error:
        reason = (error.strerror or "cannot be read").lower()
        raise DefinitionError([Problem(str(path), 0, 0, f"{reason}; expected a YAML file")]) from error
    if len(data) > LARGEST_FILE_BYTES:
        message = f"the file is larger than {LARGEST_FILE_BYTES // 1024} KiB; expected a definition, not data"
        raise DefinitionError([Problem(str(path), 0, 0, message)])
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        before = data[: error.start]
        mark = Mark(str(path), before.count(b"\n") + 1, error.start - (before.rfind(b"\n") + 1) + 1)
        raise DefinitionError([mark.problem("a byte that is no UTF-8; expected UTF-8 text")]) from error


class _BoundedLoader(yaml.BaseLoader):
    """PyYAML's untyped loader with a bound on nesting."""

    depth = 0

    def compose_node(self, parent: yaml.Node | None, index: int) -> yaml.Node | None:
        self.depth += 1
        if self.depth > DEEPEST:
            mark = self.peek_event().start_mark  # type: ignore[no-untyped-call]
            raise yaml.MarkedYAMLError(problem=f"nested deeper than {DEEPEST} levels", problem_mark=mark)
        node: yaml.Node | None = super().compose_node(parent, index)
        self.depth -= 1
        return node


def _compose(content: str, file: str) -> yaml.Node | None:
    try:
        return _BoundedLoader(content).get_single_node()
    except yaml.MarkedYAMLError as error:
        place = error.problem_mark or error.context_mark
        mark = Mark(file, place.line + 1, place.column + 1) if place else Mark(file, 1, 1)
        raise DefinitionError([mark.problem(_syntax_message(error))]) from error
    except yaml.reader.ReaderError as error:
        before = content[: error.position]
        mark = Mark(file, before.count("\n") + 1, error.position - (before.rfind("\n") + 1) + 1)
        message = f"a control character (U+{ord(content[error.position]):04X}); expected printable text"
        raise DefinitionError([mark.problem(message)]) from error


def _syntax_message(error: yaml.MarkedYAMLError) -> str:
    problem = error.problem or "cannot be read"
    if "'\\t'" in problem:
        return "a tab where YAML allows only spaces; indent with spaces"
    if "found another document" in problem:
        return "a second document starts here; expected one document per file"
    context = f" {error.context}" if error.context else ""
    return f"this is no YAML: {problem}{context}"


class _Converter:
    """From PyYAML's nodes to ours, collecting the mistakes that leave the rest readable."""

    def __init__(self, file: str) -> None:
        self.file = file
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
            return text(node.value, mark)
        return self._collection(node, mark)

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
            if isinstance(key, yaml.ScalarNode):
                yield key.value, mark, value
            else:
                self.problems.append(mark.problem("a key that is a list or mapping; expected a word"))

    def _mark(self, node: yaml.Node) -> Mark:
        return Mark(self.file, node.start_mark.line + 1, node.start_mark.column + 1)
