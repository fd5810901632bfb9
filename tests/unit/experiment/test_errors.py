"""Problems are shown with their line and a caret; long lines are cut."""

import pytest
from rich.cells import cell_len

from samovar.errors import DefinitionError, Problem
from samovar.experiment.yaml_tree import parse_yaml


def excerpt_of(text: str, column: int, width: int = 60) -> tuple[str, str]:
    excerpt = Problem("f", 1, column, "wrong", text).excerpt(width)
    assert excerpt is not None
    return excerpt


@pytest.mark.parametrize(
    ("text", "column", "line", "caret"),
    [
        ("rate: 40", 7, "rate: 40", "      ^"),
        ("\trate: 40", 8, " rate: 40", "       ^"),
        ("name: 電力線 x", 11, "name: 電力線 x", "             ^"),
        ("name: é x", 9, "name: é x", "        ^"),
        ("name: e\u0301 x", 10, "name: e\u0301 x", "        ^"),
        ("a: \x1b[31mred", 4, "a: ·[31mred", "   ^"),
        ("a: [", 9, "a: [", "    ^"),
    ],
    ids=[
        "ASCII",
        "tab",
        "wide characters",
        "accented letter",
        "combining accent",
        "terminal escape",
        "beyond the end",
    ],
)
def test_the_caret_is_under_the_column_of_the_problem(text: str, column: int, line: str, caret: str) -> None:
    assert excerpt_of(text, column) == (line, caret)


@pytest.mark.parametrize("column", [1, 5, 100, 195, 200])
def test_a_long_line_is_cut_around_the_caret(column: int) -> None:
    text = "".join(chr(ord("a") + index % 26) for index in range(200))
    line, caret = excerpt_of(text, column)
    assert line[len(caret) - 1] == text[column - 1]
    assert cell_len(line) <= 60
    assert line.startswith("…") == (column > 40)
    assert line.endswith("…") == (column < 160)


def test_a_long_line_of_wide_characters_is_cut_to_the_same_width() -> None:
    line, caret = excerpt_of("力" * 100 + "x" + "力" * 100, 101)
    assert 56 <= cell_len(line) <= 60
    assert cell_len(line[: line.index("x")]) == len(caret) - 1


def test_problems_are_sorted_by_place_and_each_is_followed_by_its_line_and_a_caret() -> None:
    _, problems = parse_yaml("a: 1\nb: {c: 1, c: 2}\na: 2\n", "f")
    error = DefinitionError([*problems, Problem("a", 0, 0, "is not there")])
    assert list(error.lines()) == [
        ("message", "a: is not there"),
        ("message", "f:2:11: duplicate key 'c', first in line 2; keep one"),
        ("line", "     2 | b: {c: 1, c: 2}"),
        ("caret", "       |           ^"),
        ("message", "f:3:1: duplicate key 'a', first in line 1; keep one"),
        ("line", "     3 | a: 2"),
        ("caret", "       | ^"),
    ]
    assert str(error) == "\n".join(text for kind, text in error.lines() if kind == "message")
