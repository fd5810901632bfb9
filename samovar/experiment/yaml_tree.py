"""Read YAML files as trees of text: scalars stay as written, and every key and value has its position.

The models in keys/ convert the text to types. Reading text avoids the surprises of YAML 1.1, which reads `no`
as false, 010 as 8 and 10:20 as 620.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Self

import yaml
from yaml._yaml import CParser
from yaml.composer import Composer
from yaml.resolver import BaseResolver

from samovar.errors import DefinitionError, Problem
from samovar.installation import shipped_beside
from samovar.secrets import ADVICE, find_secrets

LARGEST_FILE_BYTES = 2**17
MOST_NODES = 50_000  # with aliases expanded: ten lines of aliases can expand to billions of values
MOST_NESTED = 40
_TOO_DEEP = (
    f"nested deeper than {MOST_NESTED} levels; use fewer levels, or write out an alias that contains itself"
)
_LINE_ENDS = re.compile("\r\n|[\n\r\x85\u2028\u2029]")  # line breaks of YAML 1.1
_CONTROL_CHARACTER = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")
_PLAIN_TAGS = {f"tag:yaml.org,2002:{kind}" for kind in ("str", "seq", "map")}
_LAYERS = {"profiles": "profile", "parts": "part", "fragments": "fragment"}
"""Keys that contain layers by name, and the word for one such layer: profiles.quick is `profile quick`."""


@dataclass(frozen=True)
class Position:
    """A position in a file; line and column count from 1, and `text` is the whole line.

    For a position on the command line, `line` is 0 and `file` is the option. `within` names the part,
    profile or fragment that contains the position.
    """

    file: str
    line: int
    column: int
    text: str = field(default="", compare=False, repr=False)
    within: str = field(default="", compare=False, repr=False)

    def problem(self, message: str) -> Problem:
        """Return a problem at this position."""
        return Problem(self.file, self.line, self.column, message, self.text)

    @property
    def layer(self) -> str:
        """The layer of this position, such as `--set`, `part x of profile quick` or `experiment y`."""
        if not self.line:
            return self.file.partition(" ")[0]
        path = Path(self.file)
        kind = "fragment" if path.parent.name == "fragments" else "experiment"
        return self.within or f"{kind} {path.stem}"

    def __str__(self) -> str:
        """Render as file:line:column, or as the option of the command line."""
        return f"{self.file}:{self.line}:{self.column}" if self.line else self.file


class Text(str):
    """A scalar as written, with its position."""

    position: Position

    def __new__(cls, value: str, position: Position) -> Self:
        """Return a scalar with its position."""
        scalar = super().__new__(cls, value)
        scalar.position = position
        return scalar


class Seq(list["Node"]):
    """A list with its position."""

    def __init__(self, items: list[Node], position: Position) -> None:
        super().__init__(items)
        self.position = position


class Map(dict[str, "Node"]):
    """A mapping with positions. `overridden` has each key's values in weaker layers, the strongest first."""

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

    def only(self, keys: Collection[str]) -> Map:
        """Return a shallow copy with only these keys."""
        return self.without((self.keys() | self.overridden.keys()).difference(keys))

    def without(self, keys: Collection[str]) -> Map:
        """Return a shallow copy without these keys and their values in weaker layers."""
        copy = self.copied()
        for key in keys:
            copy.pop(key, None)
            copy.overridden.pop(key, None)
        return copy


Node = Text | Seq | Map


def plain(node: object) -> object:
    """Return a node as dict, list or str, without positions."""
    if isinstance(node, dict):
        return {str(key): plain(value) for key, value in node.items()}
    if isinstance(node, list | tuple):
        return [plain(value) for value in node]
    return str(node)


def flow_text(node: Node) -> str:
    """Return a node as one line of YAML, without single quotes."""
    if isinstance(node, str):
        return str(node)
    dumped = yaml.safe_dump(
        plain(node), default_flow_style=True, sort_keys=False, width=10**6, allow_unicode=True
    )
    return dumped.strip().replace("'", "")


def node_at(tree: Node | None, *keys: str) -> Node | None:
    """Return the value at nested keys, or None if one of the keys is missing."""
    for key in keys:
        tree = tree.get(key) if isinstance(tree, Map) else None
    return tree


def map_at(tree: Node | None, *keys: str) -> Map | None:
    """Return the mapping at nested keys, or None if no mapping is there."""
    node = node_at(tree, *keys)
    return node if isinstance(node, Map) else None


def read_yaml(path: Path, may_be_empty: bool = False) -> tuple[Map, list[Problem]]:
    """Return the tree of a YAML file, whose top level must be a mapping, and the problems in the file.

    Problems such as a duplicate key do not make the rest unreadable. Raises DefinitionError if the file
    cannot be read at all, or is empty, unless it `may_be_empty`.
    """
    return parse_yaml(read_text(path), str(path), may_be_empty)


def parse_yaml(content: str, file: str, may_be_empty: bool = False) -> tuple[Map, list[Problem]]:
    """Return the tree and the problems of a YAML file's content; messages name the file `file`."""
    parser = _Parser(file, content)
    tree, problems = parser.parse(), parser.problems
    if tree is None and may_be_empty:
        return Map(parser.position(0, 0)), problems
    if not isinstance(tree, Map):
        what = "empty" if tree in (None, "", "~", "null") else "a list" if isinstance(tree, Seq) else "a text"
        position = parser.position(0, 0) if tree is None else tree.position
        message = f"the file is {what}; it must be a mapping (key: value)"
        raise DefinitionError([*problems, position.problem(message)])
    return tree, problems


def parse_value(content: str, start: Position) -> Node:
    """Parse one value that begins at `start`, such as VALUE of --set KEY=VALUE; raises DefinitionError."""
    parser = _Parser(start.file, content, start)
    node = parser.parse()
    if parser.problems:
        raise DefinitionError(parser.problems)
    return Text("", start) if node is None else node


def yaml_files(folder: Path) -> list[Path]:
    """Return the YAML files of a folder, and those shipped files whose names the folder does not have.

    Raises DefinitionError.
    """
    files: dict[str, Path] = {}
    for one in filter(Path.exists, (*shipped_beside(folder), folder)):
        try:
            files |= {path.name: path for path in one.iterdir() if path.suffix == ".yaml"}
        except OSError as error:
            raise _unreadable(one, error, "a folder") from error
    return [files[name] for name in sorted(files)]


def yaml_names(folder: Path) -> list[str]:
    """Return the sorted names, without .yaml, of the files from yaml_files(); raises DefinitionError."""
    return [path.stem for path in yaml_files(folder)]


def yaml_path(folder: Path, name: str) -> Path:
    """Return the path of a YAML file in a folder, or of the shipped file if the folder has no such file."""
    paths = [one / f"{name}.yaml" for one in (folder, *shipped_beside(folder))]
    return from_here(next((one for one in paths if one.exists()), paths[0]))


def from_here(path: Path) -> Path:
    """Return the path relative to the working folder, or the absolute path of a file outside that folder."""
    path = path.absolute()
    return path.relative_to(Path.cwd()) if path.is_relative_to(Path.cwd()) else path


def read_text(path: Path, what: str = "a YAML file") -> str:
    """Return the text of a small UTF-8 file.

    Raises DefinitionError, whose message says that the file must be `what`.
    """
    try:
        if path.exists() and not path.is_file():
            kind = "directory" if path.is_dir() else "named pipe (FIFO)" if path.is_fifo() else "device"
            raise DefinitionError.at(path, f"is a {kind}; it must be {what}")
        with path.open("rb") as stream:
            data = stream.read(LARGEST_FILE_BYTES + 1)
    except OSError as error:
        raise _unreadable(path, error, what) from error
    if len(data) > LARGEST_FILE_BYTES:
        message = f"the file is larger than {LARGEST_FILE_BYTES // 1024} KiB; this is not a definition file"
        raise DefinitionError.at(path, message)
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        before = data[: error.start].decode("utf-8")
        line, column = before.count("\n") + 1, len(before) - before.rfind("\n")
        message = "a byte that is not valid UTF-8; save the file as UTF-8"
        raise DefinitionError([Problem(str(path), line, column, message)]) from error


def _unreadable(path: Path, error: OSError, what: str) -> DefinitionError:
    reason = (error.strerror or "cannot be read").lower()
    return DefinitionError.at(path, f"{reason}; it must be {what}")


class _Parser:
    """Parses a file, or one value that begins at `start`.

    Keys that are duplicate, not words or without a space after `:` are reported and left out of the tree.
    """

    def __init__(self, file: str, content: str, start: Position | None = None) -> None:
        self._file, self._content, self._start = file, content, start
        self._lines = _LINE_ENDS.split(content)
        self.problems: list[Problem] = []
        self._count = 0

    def parse(self) -> Node | None:
        """Return the text as a tree, or None if it is empty.

        Raises DefinitionError if the text is not YAML, or contains a secret, which campaigns would record.
        """
        secrets = [
            # without the line, because it contains the secret and messages are logged
            replace(self._position_at(start), text="").problem(f"{kind}; {ADVICE}")
            for start, kind in find_secrets(self._content)
        ]
        if secrets:
            raise DefinitionError(secrets)
        unprintable = yaml.reader.Reader.NON_PRINTABLE.search(self._content)
        if unprintable:
            message = _unprintable(unprintable[0])
            raise DefinitionError([self._position_at(unprintable.start()).problem(message)])
        try:
            root = _Loader(self._content).get_single_node()
            return None if root is None else self._convert(root)
        except RecursionError:
            raise DefinitionError([self.position(0, 0).problem(_TOO_DEEP)]) from None
        except yaml.MarkedYAMLError as error:
            opening = error.context_mark if (error.problem or "") in _CAUSED_AT_OPENING else None
            mark = opening or error.problem_mark or error.context_mark
            position = self.position(mark.line, mark.column) if mark else self.position(0, 0)
            raise DefinitionError([position.problem(_message(error, position))]) from None

    def position(self, line: int, column: int, within: str = "") -> Position:
        """Return the position of a line and column, both from 0; at most the position of the text's end."""
        if line >= len(self._lines):
            line, column = len(self._lines) - 1, len(self._lines[-1])
        if self._start is not None:
            return replace(self._start, column=self._start.column + column)
        return Position(self._file, line + 1, column + 1, self._lines[line], within)

    def _position_at(self, index: int) -> Position:
        """Return the file, line and column of the character at an index of the text."""
        before = self._content[:index]
        return self.position(before.count("\n"), index - (before.rfind("\n") + 1))

    def _convert(self, node: yaml.Node, keys: tuple[str, ...] = (), within: str = "") -> Node:
        """Convert a node of PyYAML, at nested `keys`, and all nodes below it.

        Raises DefinitionError for too many or too deeply nested nodes.
        """
        position = self.position(node.start_mark.line, node.start_mark.column, within)
        self._count += 1
        if self._count > MOST_NODES:
            message = f"more than {MOST_NODES} values with aliases expanded; use fewer aliases"
            raise DefinitionError([position.problem(message)])
        if len(keys) >= MOST_NESTED:
            raise DefinitionError([position.problem(_TOO_DEEP)])
        if node.tag not in _PLAIN_TAGS:
            self.problems.append(position.problem(f"tag '{node.tag}'; tags are not allowed, remove it"))
        if isinstance(node, yaml.ScalarNode):
            self._refuse_control_characters(node.value, position)
            return Text(node.value, position)
        if isinstance(node, yaml.SequenceNode):
            return Seq([self._convert(item, (*keys, "-"), within) for item in node.value], position)
        return self._mapping(node, position, keys, within)

    def _mapping(self, node: yaml.Node, position: Position, keys: tuple[str, ...], within: str) -> Map:
        result = Map(position)
        names_layers = len(keys) in (1, 3) and keys[-1] in _LAYERS
        for key, key_position, value in self._entries(node):
            if key in result:
                message = f"duplicate key '{key}', first in line {result.key_positions[key].line}; keep one"
                self.problems.append(key_position.problem(message))
                continue
            own = within
            if names_layers:
                own = f"{_LAYERS[keys[-1]]} {key}" + (f" of {within}" if within else "")
            result.put(key, self._convert(value, (*keys, key), own), key_position)
        return result

    def _entries(self, node: yaml.Node) -> Iterator[tuple[str, Position, yaml.Node]]:
        for key, value in node.value:
            position = self.position(key.start_mark.line, key.start_mark.column)
            if not isinstance(key, yaml.ScalarNode):
                self.problems.append(position.problem("the key is a list or mapping; it must be a word"))
            elif key.value == "<<" and not key.style:
                message = "merge key '<<' is not supported; write the keys out, or use fragments"
                self.problems.append(position.problem(message))
            elif ":" in key.value and not key.style and not value.value:  # {rate:40Mbit} is one key to YAML
                self.problems.append(position.problem(f"missing space after ':' in '{key.value}'"))
            else:
                self._refuse_control_characters(key.value, position)
                yield key.value, position, value

    def _refuse_control_characters(self, value: str, position: Position) -> None:
        """Report control characters (escapes such as \\e), which a terminal that prints them would obey."""
        found = _CONTROL_CHARACTER.search(value)
        if found:
            self.problems.append(position.problem(_unprintable(found[0])))


class _Loader(Composer, CParser, BaseResolver):
    """Composes untyped nodes from the events of libyaml."""

    def __init__(self, content: str) -> None:
        CParser.__init__(self, content)
        Composer.__init__(self)
        BaseResolver.__init__(self)


def _unprintable(character: str) -> str:
    return f"control character U+{ord(character):04X}; only printable text is allowed"


_CAUSED_AT_OPENING = ("could not find expected ':'", "found unexpected end of stream")
"""Errors that are reported where the unfinished key or quote begins, not where libyaml noticed them."""

_CLOSE = "close the bracket"
_QUOTE = "quote the text"
_MESSAGES: Sequence[tuple[str, str]] = (
    (r"any token .*'\\t'$|tab character", "tab character; YAML allows only spaces for indentation"),
    (r"found another document", "second document in one file; write one document per file"),
    (r"could not find expected ':'", "missing ': ' in this line; write key: value"),
    (
        r"mapping values are not allowed .*'(.)'$|(?:entries|keys) are not allowed .*'(.)'$",
        rf"'\1\2 ' where no key or entry is allowed; {_QUOTE} that contains it",
    ),
    (
        r"expected ',' or .* behind ': ' ':'$",
        f"': ' inside a value, or missing ',' before a key; {_QUOTE}, or add the comma",
    ),
    (r"expected ',' or '(.)'", rf"missing ',' or '\1' before this; {_CLOSE}"),
    (r"expected node content .*''$", f"a '[' or '{{' before this is never closed; {_CLOSE}"),
    (r"expected node content .*'(.)'$", rf"'\1' where a key or value must be; write one, or {_QUOTE}"),
    (r"found unexpected end of stream", "this quote is never closed; add the closing quote"),
    (r"undefined alias '(.*?)'", r"alias '*\1' has no anchor; define '&\1' before it"),
    (r"duplicate anchor '([^']*)'", r"anchor '&\1' is defined twice; define it once"),
    (
        r"expected (?:key|<document start>|'-' indicator).* behind",
        "text after a closing quote or bracket; quote the whole value, and write '' for ' in single quotes",
    ),
    (
        r"expected (?:key|<document start>|'-' indicator)",
        "this line is not indented like its neighbours; use the same number of spaces",
    ),
    (r"escape", r"unknown escape in double quotes; write \\\\ for a backslash, or use single quotes"),
    (
        r"any token|alias|anchor|tag|directive|block scalar",
        f"a text cannot begin with one of & * ! | > % @ ` in YAML; {_QUOTE}",
    ),
)
"""Patterns, each with the message to show if it matches what _message() puts together about an error."""


def _message(error: yaml.MarkedYAMLError, position: Position) -> str:
    """Return the message for an error of libyaml.

    The message depends on libyaml's own message, the text before the error in its line, and the character at
    the error.
    """
    before, character = position.text[: position.column - 1], position.text[position.column - 1 :][:1]
    behind = "behind ': '" if ": " in before else "behind text" if before.strip() else ""
    problem = f"{error.problem or 'cannot be read'} {error.context or ''} {behind} {character!r}"
    found = ((re.search(pattern, problem), words) for pattern, words in _MESSAGES)
    message = next((match.expand(words) for match, words in found if match), f"not valid YAML: {problem}")
    opening, here = error.context_mark, error.problem_mark
    if opening and here and opening.line != here.line and message.endswith(_CLOSE):
        return f"{message} that opens in line {opening.line + 1}"
    return message
