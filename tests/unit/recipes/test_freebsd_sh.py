"""Differences between FreeBSD's sh and dash, with which its recipes are tested."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.unit.recipes.freebsd_sample import ROOT

# Of `a=1 b=$a` FreeBSD's sh expands both before it sets either (evalcommand() of its eval.c): b gets what a was before.
# dash sets one after the other, so nothing that is run here would tell.
ASSIGNED = re.compile(r"(?<![\w$.{/-])([A-Za-z_]\w*)=")
CLOSERS = {"(": ")", "{": "}"}


def end_of_word(text: str, at: int) -> int:
    """Find where a word of the shell ends that begins at a place."""
    open_: list[str] = []
    while at < len(text) and (open_ or text[at] not in " \t\n;&|()<>"):
        if open_ and text[at] == open_[-1]:
            open_.pop()
        else:
            at = opened(text, at, open_)
        at += 1
    return at


def opened(text: str, at: int, open_: list[str]) -> int:
    """Take note of what a character opens that must be closed; return the last place that belongs to it."""
    if text[at] == "\\":
        return at + 1
    if text[at] == "'" and open_[-1:] != ['"']:
        return max(text.find("'", at + 1), at)
    if text[at] == '"':
        open_.append('"')
    elif text[at : at + 2] in ("$(", "${"):
        open_.append(CLOSERS[text[at + 1]])
        return at + 1
    elif text[at] in CLOSERS and open_ and open_[-1] != '"':
        open_.append(CLOSERS[text[at]])
    return at


def leaning(text: str) -> Iterator[str]:
    """Find commands in which an assignment uses what an earlier one of the same command assigns."""
    done = 0
    for found in ASSIGNED.finditer(text):
        if found.start() < done:
            continue
        names: list[str] = []
        one: re.Match[str] | None = found
        while one:
            done = end_of_word(text, one.end())
            value = text[one.end() : done]
            if any(re.search(rf"\$\{{?{name}\b", value) for name in names):
                yield text[found.start() : done]
            names.append(one[1])
            following = done + len(text[done:]) - len(text[done:].lstrip(" \t"))
            one = ASSIGNED.match(text, following) if following > done else None


def cut_in_two(text: str) -> Iterator[str]:
    """Find the pattern of a ${NAME%%PATTERN} or ${NAME##PATTERN} that has a line's end outside of quotes."""
    for found in re.finditer(r"\$\{\w+[#%]", text):
        open_, at = ["}"], found.end()
        while at < len(text) and open_:
            if open_[-1] == "}" and text[at] == "\n":
                yield text[found.start() : at + 2]
                break
            if text[at] == open_[-1]:
                open_.pop()
            else:
                at = opened(text, at, open_)
            at += 1


SOURCES = sorted(
    path
    for pattern in (
        "templates/freebsd*/**/*.j2",
        "templates/posix/**/*.j2",
        "templates/*/program/*.sh",
        "samovar/hosts/*.sh",
        "samovar/hosts/*.py",
        "samovar/recipes/*.py",
        "samovar/campaign/collection/*.py",
        "samovar/campaign/*.py",
    )
    for path in ROOT.glob(pattern)
)


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: str(path.relative_to(ROOT)))
def test_no_assignment_uses_a_variable_assigned_in_the_same_command(path: Path) -> None:
    assert list(leaning(path.read_text())) == []


# It takes the end of a line within ${NAME%PATTERN} for the end of the word: Syntax error: Missing '}' (readtoken1() of parser.c;
# seen with 11.3's, and no longer there in the one that is in FreeBSD 15).
@pytest.mark.parametrize("path", SOURCES, ids=lambda path: str(path.relative_to(ROOT)))
def test_no_pattern_within_braces_has_a_bare_end_of_line(path: Path) -> None:
    assert list(cut_in_two(path.read_text())) == []


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ('echo "${version%%\n*}"', True),
        ("echo ${said##*\n}", True),
        ('echo "${said##*"$newline"}"\n', False),
        ('echo "${said##*"\n"}"\n', False),
        ("a=${b%%[!0-9]*}\nc=${d#\\}}\n", False),
        ("newline='\n'\na=${b%\"$newline\"*}\n", False),
    ],
)
def test_a_pattern_that_a_line_ends_in_is_found(text: str, found: bool) -> None:
    assert (list(cut_in_two(text)) != []) is found


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("hz=$(sysctl -n x) hz=${hz##* }", True),
        ('a=$(f "$1" "$2") b=$(g "$a")\n', True),
        ("  floor=$(printf '%s' x) ceiling=$floor\n", True),
        ("a=$(f); a=${a%% *}\n", False),
        ("a=1 && b=$a\n", False),
        ("a=1\nb=$a\n", False),
        ("a='x b=$a' c=2\n", False),
        ("a=${1%% *} b=${1#* }\n", False),
    ],
)
def test_a_use_of_a_variable_assigned_in_the_same_command_is_found(text: str, found: bool) -> None:
    assert (list(leaning(text)) != []) is found
