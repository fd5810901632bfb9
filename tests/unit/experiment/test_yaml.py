"""The YAML reader: scalars are read as written; ambiguous syntax and huge expansions of aliases are refused."""

from pathlib import Path

import pytest

from samovar.errors import DefinitionError
from samovar.experiment.yaml_tree import (
    LARGEST_FILE_BYTES,
    MOST_NODES,
    Map,
    parse_yaml,
    plain,
    read_yaml,
)

ROOT = Path(__file__).parents[3]
DEEP = "nested deeper than 40 levels; use fewer levels, or write out an alias that contains itself"
LAUGHS = "\n".join(
    ["a: &a [x, x, x, x, x, x, x, x, x, x]"]
    + [f"{b}: &{b} [{', '.join([f'*{a}'] * 10)}]" for a, b in zip("abcdefgh", "bcdefghi", strict=True)]
)
INVALID_YAML = {
    "duplicate key": ("a: 1\nb: 2\na: 3\n", "f:3:1: duplicate key 'a', first in line 1; keep one"),
    "duplicate key in a flow mapping": ("a: {b: 1, b: 2}", "f:1:11: duplicate key 'b', first in line 1; keep one"),
    "tab as indentation": ("a:\n\tb: 1\n", "f:2:1: tab character; YAML allows only spaces for indentation"),
    "tab after a complete line": ("a:\n  b: 1\n\tc: 2\n", "f:3:1: tab character; YAML allows only spaces for indentation"),
    "apostrophe in single quotes": ("a: 'it's'\n", "f:1:8: text after a closing quote or bracket; quote the whole value, and write '' for ' in single quotes"),
    "extra closing bracket": ("a: {b: 1}}\n", "f:1:10: text after a closing quote or bracket; quote the whole value, and write '' for ' in single quotes"),
    "colon within a flow mapping": ("a: {say: CDG: good}\n", "f:1:13: ': ' inside a value, or missing ',' before a key; quote the text, or add the comma"),
    "missing comma": ("a:\n  - {b: 1,\n     c: 2 d: 3}\n", "f:3:12: ': ' inside a value, or missing ',' before a key; quote the text, or add the comma"),
    "aliases that expand to too many values": (LAUGHS, f"f:1:32: more than {MOST_NODES} values with aliases expanded; use fewer aliases"),
    "alias to itself": ("a: &a [*a]", f"f:1:4: {DEEP}"),
    "alias without anchor": ("a: *b", "f:1:4: alias '*b' has no anchor; define '&b' before it"),
    "merge key": ("a: {<<: {b: 1}}", "f:1:5: merge key '<<' is not supported; write the keys out, or use fragments"),
    "two documents": ("a: 1\n---\nb: 2\n", "f:2:1: second document in one file; write one document per file"),
    "empty file": ("", "f:1:1: the file is empty; it must be a mapping (key: value)"),
    "file with comments only": ("# nothing\n", "f:1:1: the file is empty; it must be a mapping (key: value)"),
    "file that is a list": ("- a\n", "f:1:1: the file is a list; it must be a mapping (key: value)"),
    "file that is a text": ("just words\n", "f:1:1: the file is a text; it must be a mapping (key: value)"),
    "deep nesting": ("a: " + "[" * 50 + "]" * 50, f"f:1:43: {DEEP}"),
    "deep nesting of a whole file": ("[" * 200_000, f"f:1:1: {DEEP}"),
    "control character in a value": ("a: b\x07c\n", "f:1:5: control character U+0007; only printable text is allowed"),
    "list as a key": ("a: 1\n[b, c]: 2\n", "f:2:1: the key is a list or mapping; it must be a word"),
    "tag of a Python object": ("a: !!python/object:os.system {}\n", "f:1:4: tag 'tag:yaml.org,2002:python/object:os.system'; tags are not allowed, remove it"),
    "tag of binary data": ("a: !!binary aGk=\n", "f:1:4: tag 'tag:yaml.org,2002:binary'; tags are not allowed, remove it"),
    "tag of a set": ("a: !!set {b, c}\n", "f:1:4: tag 'tag:yaml.org,2002:set'; tags are not allowed, remove it"),
    "missing space after a colon": ("a: {rate:40Mbit}", "f:1:5: missing space after ':' in 'rate:40Mbit'"),
    "line without a colon": ("a: 1\nduration 10s\nb: 2\n", "f:2:1: missing ': ' in this line; write key: value"),
    "two colons in a line": ("a: b: c\n", "f:1:5: ': ' where no key or entry is allowed; quote the text that contains it"),
    "list that is not closed": ("a: [b, c\nd: 1\n", "f:2:2: missing ',' or ']' before this; close the bracket that opens in line 1"),
    "mapping that is not closed": ("a: {b: 1\nc: 2\n", "f:2:2: missing ',' or '}' before this; close the bracket that opens in line 1"),
    "quote that is not closed": ("a: 'b\nc: 2\n", "f:1:4: this quote is never closed; add the closing quote"),
    "percent sign before a text": ("a: %b\n", "f:1:4: a text cannot begin with one of & * ! | > % @ ` in YAML; quote the text"),
    "at sign before a text": ("a: @b\n", "f:1:4: a text cannot begin with one of & * ! | > % @ ` in YAML; quote the text"),
    "list that is not closed at the end of the file": ("a: [b,", "f:1:7: a '[' or '{' before this is never closed; close the bracket"),
    "two commas in a row": ("a: [b,, c]", "f:1:7: ',' where a key or value must be; write one, or quote the text"),
    "list that is closed like a mapping": ("a: [b, }", "f:1:8: '}' where a key or value must be; write one, or quote the text"),
    "list entry after a value": ("a: b\nc: [d] - e\n", "f:2:8: '- ' where no key or entry is allowed; quote the text that contains it"),
    "question mark after a value": ("a: [b] ? c\n", "f:1:8: '? ' where no key or entry is allowed; quote the text that contains it"),
    "indented first line": ("  a: 1\nb: 2\n", "f:2:1: this line is not indented like its neighbours; use the same number of spaces"),
    "unknown escape": ('a: "b\\q"\n', "f:1:6: unknown escape in double quotes; write \\\\ for a backslash, or use single quotes"),
    "ampersand before a text": ("a: & b\n", "f:1:5: a text cannot begin with one of & * ! | > % @ ` in YAML; quote the text"),
    "asterisk before a text": ("a: *.R\n", "f:1:5: a text cannot begin with one of & * ! | > % @ ` in YAML; quote the text"),
    "exclamation mark before a text": ("a: !<b c\n", "f:1:7: a text cannot begin with one of & * ! | > % @ ` in YAML; quote the text"),
    "tag with an undefined handle": ("a: !b!c d\n", "f:1:4: a text cannot begin with one of & * ! | > % @ ` in YAML; quote the text"),
    "percent sign in the first column": ("a: 1\n% b\n", "f:2:2: a text cannot begin with one of & * ! | > % @ ` in YAML; quote the text"),
    "vertical bar before a text": ("a: | b\n", "f:1:6: a text cannot begin with one of & * ! | > % @ ` in YAML; quote the text"),
    "greater-than sign before a quantity": ("a: >5ms\n", "f:1:6: a text cannot begin with one of & * ! | > % @ ` in YAML; quote the text"),
    "ragged indentation": ("a:\n    b: 1\n  c: 2\n", "f:3:3: this line is not indented like its neighbours; use the same number of spaces"),
}  # fmt: skip


@pytest.mark.parametrize("case", INVALID_YAML)
def test_invalid_or_unsupported_yaml_is_refused_at_its_place_in_one_sentence(case: str) -> None:
    content, message = INVALID_YAML[case]
    assert errors_of(content) == message


def errors_of(content: str) -> str:
    try:
        _, problems = parse_yaml(content, "f")
    except DefinitionError as error:
        return str(error)
    return "\n".join(map(str, problems))


@pytest.mark.parametrize(
    "written",
    [
        "no",
        "on",
        "y",
        "~",
        "null",
        "010",
        "0x10",
        "10:20",
        "1e6",
        "1_000",
        ".inf",
        "2026-01-01",
        "=",
        "1.10",
        "+1",
    ],
)
def test_scalars_that_yaml_1_1_would_convert_are_read_as_written(written: str) -> None:
    tree, problems = parse_yaml(f"a: {written}\nb: [{written}]\nc: {{{written}: d}}\n", "f")
    assert plain(tree) == {"a": written, "b": [written], "c": {written: "d"}}
    assert problems == []


def test_an_alias_has_the_value_of_its_anchor() -> None:
    tree, problems = parse_yaml("a: &a {b: 1}\nc: [*a, *a]\n", "f")
    assert plain(tree) == {"a": {"b": "1"}, "c": [{"b": "1"}, {"b": "1"}]}
    assert problems == []


def test_a_byte_order_mark_and_windows_line_ends_keep_positions(tmp_path: Path) -> None:
    (tmp_path / "f.yaml").write_bytes(b"\xef\xbb\xbfa: 1\r\nb:\r\n  c: 2\r\n")
    tree, problems = read_yaml(tmp_path / "f.yaml")
    assert plain(tree) == {"a": "1", "b": {"c": "2"}}
    assert isinstance(tree["b"], Map)
    mark = tree["b"].key_positions["c"]
    assert (mark.line, mark.column, mark.text, problems) == (3, 3, "  c: 2", [])


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"a: 1\nb: caf\xe9\n", "f.yaml:2:7: a byte that is not valid UTF-8; save the file as UTF-8"),
        ("é: ".encode() + b"\xff", "f.yaml:1:4: a byte that is not valid UTF-8; save the file as UTF-8"),
        ("a: 1\n".encode("utf-16"), "f.yaml:1:1: a byte that is not valid UTF-8; save the file as UTF-8"),
        (
            b"a: " + b"x" * LARGEST_FILE_BYTES,
            "f.yaml: the file is larger than 128 KiB; this is not a definition file",
        ),
        (b"a: \x00\n", "f.yaml:1:4: control character U+0000; only printable text is allowed"),
    ],
    ids=["Latin-1", "invalid byte after a letter of two bytes", "UTF-16", "too large", "NUL character"],
)
def test_a_file_that_is_too_large_or_not_text_is_refused(
    tmp_path: Path, content: bytes, message: str
) -> None:
    (tmp_path / "f.yaml").write_bytes(content)
    with pytest.raises(DefinitionError) as caught:
        read_yaml(tmp_path / "f.yaml")
    assert str(caught.value) == f"{tmp_path}/{message}"


def test_a_folder_in_place_of_a_file_and_a_missing_file_are_refused(tmp_path: Path) -> None:
    for path, message in ((tmp_path, "is a directory"), (tmp_path / "f.yaml", "no such file or directory")):
        with pytest.raises(DefinitionError) as caught:
            read_yaml(path)
        assert str(caught.value) == f"{path}: {message}; it must be a YAML file"
