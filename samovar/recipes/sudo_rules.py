"""List commands that need root, as patterns of sudoers(5), for hosts where samovar does not log in as root.

A pattern is a POSIX extended regular expression for a whole command, starting with the program's name. In a
pattern, `<interface>` means a testbed interface of the host, `<device>` a device that samovar creates,
`<user>` the user who logs in, `<number>` a number without a sign, and `<words>` words without a slash.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

LONGEST = 1024
"""The longest regular expression that sudoers(5) accepts, in characters."""
BOUND = "timeout -k 10 <number> "
SIGNALS = "pkill -(TERM|KILL|USR1) -P [0-9]+ -x "
"""Sends a signal to a lasting command: to all children of a process (-P) with a given name (-x)."""

_DEVICE = "sv-[a-z0-9-]+"
_TOKENS = ("interface", "device", "user", "number", "words")
_GROUP = re.compile(r"\(([^()|]*)(?:\|[^()]*)?\)([?+*]?)")
_CLASS = re.compile(r"\[([^\]])[^\]]*\][+*]?")
_NICE = "nice -n -5 "


@dataclass(frozen=True)
class SudoCommand:
    """A command that sudo must allow: the pattern in the recipe, the program, a regular expression for its
    arguments, example arguments, and further programs that it starts.
    """

    pattern: str
    program: str
    arguments: str
    example: tuple[str, ...]
    inner: frozenset[str]

    def __str__(self) -> str:
        """Return the example as a user would type it."""
        return " ".join((self.program, *self.example))

    def line(self, user: str, paths: Mapping[str, str]) -> str:
        """Return the line of sudoers(5); a program without an entry in `paths` keeps its plain name."""
        # sudo has its own PATH, so programs that the command starts (timeout, nice) need full paths.
        words = (
            _escaped(paths[word]) if word in self.inner and word in paths else word
            for word in self.arguments.split(" ")
        )
        return f"{user} ALL=(root) NOPASSWD: {paths.get(self.program, self.program)} ^{' '.join(words)}$"


def checked_pattern(text: str) -> str:
    """Return a header's pattern of root commands; raises ValueError if sudoers(5) cannot express it."""
    unknown = [token for token in re.findall("<([^>]*)>", text) if token not in _TOKENS]
    if unknown:
        raise ValueError(f"unknown <{unknown[0]}>; expected <{'>, <'.join(_TOKENS[:-1])}> or <{_TOKENS[-1]}>")
    (command,) = allowed_commands([text], "user", ("eth0",))
    try:
        matched = re.fullmatch(command.arguments, " ".join(command.example))
    except re.error as error:
        raise ValueError(f"'{text}' is not a regular expression: {error}") from error
    if matched is None:
        raise ValueError(f"'{text}' is too complex: no example of the command can be derived from it")
    if len(command.arguments) + 2 > LONGEST:
        raise ValueError(f"'{text}' is longer than the {LONGEST} characters that sudoers accepts")
    return text


def lasting_commands(patterns: Iterable[str]) -> list[str]:
    """Return the patterns of the commands that start and that signal the lasting commands in `patterns`."""
    commands = []
    for pattern in patterns:
        program = pattern.removeprefix(_NICE).split(" ")[0]
        commands += [BOUND + pattern, SIGNALS + program]
    return commands


def allowed_commands(patterns: Iterable[str], user: str, interfaces: Iterable[str]) -> list[SudoCommand]:
    """Return the commands that sudo must allow `user` on a host with `interfaces`, without duplicates."""
    expressions = {
        "<interface>": f"({'|'.join([*map(_escaped, sorted(interfaces)), _DEVICE])})",
        "<device>": _DEVICE,
        "<user>": _escaped(user),
        "<number>": r"[0-9]+(\.[0-9]+)?",
        "<words>": "[a-z0-9_.:% -]+",
    }
    commands = []
    for pattern in dict.fromkeys(patterns):
        program, _, arguments = pattern.partition(" ")
        for token, expression in expressions.items():
            arguments = arguments.replace(token, expression)
        example = tuple(_example(arguments).split())
        inner = set[str]()
        if pattern.startswith(BOUND):  # timeout(1) starts a lasting command, perhaps through nice(1)
            command = pattern.removeprefix(BOUND)
            inner = {command.split(" ")[0], command.removeprefix(_NICE).split(" ")[0]}
        commands.append(SudoCommand(pattern, program, arguments, example, frozenset(inner)))
    return commands


def _escaped(text: str) -> str:
    return re.sub(r"([].+*?(){}|^$\\#[])", r"\\\1", text)


def _example(expression: str) -> str:
    """Return a text that matches a regular expression, with first alternatives and no optional parts."""
    text = _CLASS.sub(lambda match: match[1], expression)
    while (match := _GROUP.search(text)) is not None:
        chosen = "" if match[2] in ("?", "*") and match[2] else match[1]
        text = text[: match.start()] + chosen + text[match.end() :]
    return re.sub(r"\\(.)", r"\1", text.replace("?", ""))
