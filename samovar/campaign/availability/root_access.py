"""Find the commands that need root on hosts where samovar does not log in as root; print sudoers(5) lines."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from samovar.hosts import HostFacts
from samovar.recipes import Recipe, SudoCommand, allowed_commands, lasting_commands

ROOT_COMMAND, ROOT_LOGIN = "command as root", "root login"
"""Kinds of needs: a command that sudo must allow, and a recipe that works only if root logs in."""
ABOUT = (
    "# Lines for /etc/sudoers.d/samovar of each host (sudo 1.9.10 or later): edit it with `visudo -f`, and",
    "# check the result with `fab check`.",
)


def root_needs(recipe: Recipe) -> Iterator[tuple[str, str]]:
    """Yield the kind and the name of everything for which a recipe needs root."""
    header = recipe.header
    for pattern in (*header.root, *lasting_commands(header.root_lasting)):
        yield ROOT_COMMAND, pattern
    if header.root_login is not None:
        yield ROOT_LOGIN, f"{recipe.name}: {header.root_login}"


def refusal(what: str, name: str, interfaces: Iterable[str], facts: HostFacts) -> tuple[str, str]:
    """Return what a host's login user cannot do as root, and the remedy, such as a sudoers line."""
    assert facts.sudo  # None for root, to whom nothing is refused
    user, paths = facts.sudo.user, facts.sudo.paths
    if what == ROOT_LOGIN:
        return (
            f"{user} logs in, but only root can do {name}",
            "log in as root (`user: root`), or leave out these trials",
        )
    (command,) = allowed_commands([name], user, interfaces)
    return f"sudo -n {command} is refused to {user}", f"sudoers lacks: {command.line(user, paths)}"


def sudoers_lines(
    commands: Mapping[str, Iterable[SudoCommand]],
    only_root: Mapping[str, Iterable[str]],
    facts: Mapping[str, HostFacts],
) -> Iterator[str]:
    """Yield the lines of sudoers(5) for each host, and comments on what sudo cannot allow."""
    yield from ABOUT
    for host, sudo in ((host, fact.sudo) for host, fact in facts.items()):
        yield f"# ---- {host}"
        if sudo is None:
            yield f"# root logs in at {host}; no line is needed"
            continue
        yield from (f"# only root can do {why}" for why in sorted(only_root[host]))
        for one in commands[host]:
            there = one.program in sudo.paths
            yield one.line(sudo.user, sudo.paths) if there else f"# {one.program} is not installed on {host}"
