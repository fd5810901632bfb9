"""What runs as root on a host where another user logs in: patterns of commands, as sudoers(5) takes them.

A pattern is a POSIX extended regular expression for a whole command, the program's name first, in which
`<interface>` stands for an interface of the host that takes part, `<device>` for one that samovar makes,
`<user>` for who logs in, `<number>` for one without a sign, and `<words>` for words without a slash.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

LONGEST = 1024
"""What sudoers(5) takes as a regular expression, in characters."""
BOUND = "timeout -k 2 <number> "
SIGNALS = "pkill -(TERM|KILL|USR1) -P [0-9]+ -x "
"""How what lasts is ended: a child of that process, and only of that name."""

_DEVICE = "sv-[a-z0-9-]+"
_FIXED = {"device": _DEVICE, "number": r"[0-9]+(\.[0-9]+)?", "words": "[a-z0-9_.:% -]+"}
_TOKEN = re.compile("<(interface|device|user|number|words)>")
_UNKNOWN = re.compile("<[^>]*>")
_GROUP = re.compile(r"\(([^()|]*)(?:\|[^()]*)?\)([?+*]?)")
_CLASS = re.compile(r"\[([^\]])[^\]]*\][+*]?")
_PREFIX = ("nice", "-n", "-5")


@dataclass(frozen=True)
class Login:
    """Who logs in at a host, and the interfaces there that take part."""

    user: str
    interfaces: tuple[str, ...]

    def value(self, token: str) -> str:
        """Return what a token of a pattern stands for, as a regular expression."""
        if token == "user":
            return _literal(self.user)
        if token == "interface":
            names = sorted(self.interfaces)
            return f"({'|'.join([*map(_literal, names), _DEVICE])})"
        return _FIXED[token]


@dataclass(frozen=True)
class SudoCommand:
    """A command that sudo is asked for: as a recipe names it, its program, what matches its arguments, and
    an example of them.
    """

    pattern: str
    program: str
    arguments: str
    example: tuple[str, ...]

    @property
    def words(self) -> list[tuple[str, bool]]:
        """The example in words; those are marked that are programs which the first one starts."""
        inner = inner_programs([self.pattern])
        return [(self.program, False), *((word, word in inner) for word in self.example)]

    @property
    def told(self) -> list[tuple[str, bool]]:
        """The line as sudo -l tells it, in pieces; those are marked that are programs."""
        inner = inner_programs([self.pattern])
        pieces = [(self.program, True), (" ^", False)]
        for word in self.arguments.split(" "):
            pieces += [(word, word in inner), (" ", False)]
        return [*pieces[:-1], ("$", False)]

    def __str__(self) -> str:
        """Say the example as it would be typed."""
        return " ".join((self.program, *self.example))

    def line(self, user: str, paths: Mapping[str, str]) -> str:
        """Return it as a line of sudoers(5); a program that is not in `paths` stands by its name."""
        inner = inner_programs([self.pattern])
        arguments = _resolved(self.arguments, {name: paths[name] for name in inner & paths.keys()})
        return f"{user} ALL=(root) NOPASSWD: {paths.get(self.program, self.program)} ^{arguments}$"


def _literal(text: str) -> str:
    return re.sub(r"([].+*?(){}|^$\\#[])", r"\\\1", text)


def checked_pattern(text: str) -> str:
    """Return a header's pattern; raises ValueError for one that sudoers could not take."""
    login = Login("user", ("eth0",))
    unknown = _UNKNOWN.search(_TOKEN.sub("", text))
    if unknown:
        raise ValueError(
            f"{unknown[0]} is not known; expected <interface>, <device>, <user>, <number> or <words>"
        )
    for one in allowed_commands([text], login):
        if not _is_example(one):
            raise ValueError(f"'{text}' is too intricate to make an example of")
        if len(one.arguments) + 2 > LONGEST:
            raise ValueError(f"'{text}' is longer than the {LONGEST} characters that sudoers takes")
    return text


def _is_example(command: SudoCommand) -> bool:
    try:
        return re.fullmatch(command.arguments, " ".join(command.example)) is not None
    except re.error as error:
        raise ValueError(f"'{command.pattern}' is no regular expression: {error}") from error


def lasting_commands(patterns: Iterable[str]) -> list[str]:
    """Return the patterns of what lasts as it is started and signalled."""
    made = []
    for pattern in patterns:
        words = pattern.split(" ")
        program = words[len(_PREFIX)] if tuple(words[: len(_PREFIX)]) == _PREFIX else words[0]
        made += [BOUND + pattern, SIGNALS + program]
    return made


def allowed_commands(patterns: Iterable[str], login: Login) -> list[SudoCommand]:
    """Work out what sudo must allow of each pattern, each once and in order."""
    return [_allowed(pattern, login) for pattern in dict.fromkeys(patterns)]


def _allowed(pattern: str, login: Login) -> SudoCommand:
    program, _, arguments = pattern.partition(" ")
    expression = _TOKEN.sub(lambda found: login.value(found[1]), arguments)
    return SudoCommand(pattern, program, expression, tuple(_example(expression).split()))


def _example(expression: str) -> str:
    """Make a text that an expression matches: the first of alternatives, nothing of what may be absent."""
    text = _CLASS.sub(lambda found: found[1], expression)
    while (found := _GROUP.search(text)) is not None:
        text = (
            text[: found.start()]
            + ("" if found[2] in ("?", "*") and found[2] else found[1])
            + text[found.end() :]
        )
    return re.sub(r"\\(.)", r"\1", text.replace("?", ""))


def _resolved(arguments: str, paths: Mapping[str, str]) -> str:
    """Put the full paths of programs that another one starts: it would look for them where it likes."""
    words = arguments.split(" ")
    return " ".join(_literal(paths[word]) if word in paths else word for word in words)


def inner_programs(patterns: Iterable[str]) -> frozenset[str]:
    """Name the programs that others start in what lasts; they are given by their full paths."""
    found: set[str] = set()
    for pattern in patterns:
        if pattern.startswith(BOUND):
            rest: Sequence[str] = pattern.removeprefix(BOUND).split(" ")
            if tuple(rest[: len(_PREFIX)]) == _PREFIX:
                found.add(rest[0])
                rest = rest[len(_PREFIX) :]
            found.add(rest[0])
    return frozenset(found)
