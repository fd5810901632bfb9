"""What runs as root on hosts where another user logs in: what of it is refused, what allows it."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping

from samovar.hosts import HostFacts
from samovar.recipes import Login, Recipe, SudoCommand, allowed_commands, lasting_commands

ROOT_COMMAND, ROOT_LOGIN = "command as root", "root login"
"""What recipes ask of a host: a command that root does, or root to log in."""
ABOUT = (
    "# For the /etc/sudoers.d/samovar of each host: put them there by `visudo -f`; sudo 1.9.10 or later;",
    "# try them with `fab check`.",
)


def asked_as_root(recipe: Recipe) -> Iterator[tuple[str, str]]:
    """Name what a recipe needs root for, each with its sort."""
    header = recipe.header
    for pattern in (*header.root, *lasting_commands(header.root_lasting)):
        yield ROOT_COMMAND, pattern
    if header.root_login is not None:
        yield ROOT_LOGIN, f"{recipe.name}: {header.root_login}"


def granted(what: str, facts: HostFacts) -> Collection[str] | None:
    """Name what of one sort a host's user may do; None for root, who may do everything."""
    if facts.sudo is None:
        return None
    return facts.sudo.allowed if what == ROOT_COMMAND else ()


def refusal(what: str, name: str, interfaces: Iterable[str], facts: HostFacts) -> tuple[str, str]:
    """Say what a host's user is refused, and what would be accepted: a line of sudoers(5)."""
    assert facts.sudo  # root is refused nothing
    user, paths = facts.sudo.user, facts.sudo.paths
    if what == ROOT_LOGIN:
        return f"{user} logs in, and only root can do {name}", "accepted: user: root, or trials without it"
    (asked,) = allowed_commands([name], Login(user, tuple(interfaces)))
    return f"sudo -n {asked} is refused to {user}", f"sudoers lacks: {asked.line(user, paths)}"


def root_commands(patterns: Collection[str], interfaces: Iterable[str], user: str) -> list[SudoCommand]:
    """List what a host's user must be able to do as root."""
    return allowed_commands(sorted(patterns), Login(user, tuple(interfaces)))


def sudoers_lines(
    commands: Mapping[str, Iterable[SudoCommand]],
    only_root: Mapping[str, Iterable[str]],
    facts: Mapping[str, HostFacts],
) -> Iterator[str]:
    """Write what sudoers(5) takes for each host, and what no line of it can do."""
    yield from ABOUT
    for host, sudo in ((host, fact.sudo) for host, fact in facts.items()):
        yield f"# ---- {host}"
        if sudo is None:
            yield f"# root logs in at {host}, which needs no line"
            continue
        yield from (f"# only root can do {why}" for why in sorted(only_root[host]))
        for one in commands[host]:
            there = one.program in sudo.paths
            yield one.line(sudo.user, sudo.paths) if there else f"# {one.program} is not installed on {host}"
