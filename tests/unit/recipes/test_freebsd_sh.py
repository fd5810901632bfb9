"""Find shell text that FreeBSD's sh and dash run differently; tests run the recipes of FreeBSD in dash."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.unit.recipes.freebsd_sample import ROOT

# In `a=1 b=$a`, FreeBSD's sh expands both values before it sets either variable (evalcommand() of its eval.c): b gets the earlier
# value of a. dash sets one variable after the other, so that tests in dash cannot find this difference.
ASSIGNED = re.compile(r"(?<![\w$.{/-])([A-Za-z_]\w*)=")
CLOSERS = {"(": ")", "{": "}"}


def end_of_word(text: str, at: int) -> int:
    """Return the index of the end of the shell word that begins at index `at`."""
    open_: list[str] = []
    while at < len(text) and (open_ or text[at] not in " \t\n;&|()<>"):
        if open_ and text[at] == open_[-1]:
            open_.pop()
        else:
            at = add_closer(text, at, open_)
        at += 1
    return at


def add_closer(text: str, at: int, open_: list[str]) -> int:
    """Return the last index of what begins at index `at`: an opening, an escape, a text in single quotes, or any character.

    The closing character of an opening is added to `open_`.
    """
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


def dependent_assignments(text: str) -> Iterator[str]:
    """Yield commands in which an assignment uses a variable that the same command assigns before."""
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


def patterns_with_newlines(text: str) -> Iterator[str]:
    """Yield the beginning of each ${NAME%PATTERN} or ${NAME#PATTERN} whose pattern has a newline outside of quotes."""
    for found in re.finditer(r"\$\{\w+[#%]", text):
        open_, at = ["}"], found.end()
        while at < len(text) and open_:
            if open_[-1] == "}" and text[at] == "\n":
                yield text[found.start() : at + 2]
                break
            if text[at] == open_[-1]:
                open_.pop()
            else:
                at = add_closer(text, at, open_)
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
    assert list(dependent_assignments(path.read_text())) == []


# FreeBSD's sh takes a newline within ${NAME%PATTERN} for the end of the word: Syntax error: Missing '}' (readtoken1() of parser.c;
# seen in FreeBSD 11.3; FreeBSD 15 has no such error).
@pytest.mark.parametrize("path", SOURCES, ids=lambda path: str(path.relative_to(ROOT)))
def test_no_pattern_within_braces_has_an_unquoted_newline(path: Path) -> None:
    assert list(patterns_with_newlines(path.read_text())) == []


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ('echo "${version%%\n*}"', True),
        ("echo ${text##*\n}", True),
        ('echo "${text##*"$newline"}"\n', False),
        ('echo "${text##*"\n"}"\n', False),
        ("a=${b%%[!0-9]*}\nc=${d#\\}}\n", False),
        ("newline='\n'\na=${b%\"$newline\"*}\n", False),
    ],
)
def test_patterns_with_an_unquoted_newline_are_found(text: str, found: bool) -> None:
    assert (list(patterns_with_newlines(text)) != []) is found


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
def test_uses_of_a_variable_assigned_in_the_same_command_are_found(text: str, found: bool) -> None:
    assert (list(dependent_assignments(text)) != []) is found
