"""Offer the commands of `samovar` as tasks of Fabric's `fab`, with equal names, arguments and behaviour."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from signal import SIG_DFL, SIGPIPE, signal
from typing import Any

import click
from invoke import Collection, Exit, task

from samovar.cli.commands import main, run_commands


def fab_tasks(root: Path) -> Collection:
    """Return the tasks for a project's fabfile.py, one for each command.

    If the command line of `fab` names a task, `samovar`'s own parser runs this task here at once, and the
    process exits. Invoke's parser is not used, because it has no optional positional arguments, and its
    one-letter options depend on the order of parameters.
    """
    from fabric.main import program

    # Fabric disables Python's cache of compiled modules. With the cache, commands start a quarter faster.
    sys.dont_write_bytecode = bool(sys.flags.dont_write_bytecode)
    if hasattr(program, "core"):  # the program `fab` is loading the fabfile
        wanted = program.args["help"].value
        words = [wanted, "--help"] if isinstance(wanted, str) else program.core.unparsed
        if words:
            raise Exit(code=run_commands(words, root))
        signal(SIGPIPE, SIG_DFL)  # `fab -l | head` ends without a traceback
    tasks = Collection()
    for name, command in _flat(main):
        *groups, last = name.split(".")
        inner = tasks
        for group in groups:
            if group not in inner.collections:
                inner.add_collection(Collection(group))
            inner = inner.collections[group]
        inner.add_task(_task(root, name, command), name=last)
    return tasks


def _flat(group: click.Group, prefix: str = "") -> Iterator[tuple[str, click.Command]]:
    for name, command in group.commands.items():
        if isinstance(command, click.Group):
            yield from _flat(command, f"{prefix}{name}.")
        else:
            yield f"{prefix}{name}", command


def _task(root: Path, name: str, command: click.Command) -> Any:
    def body(c: object) -> None:
        code = run_commands([name], root)
        if code:
            raise Exit(code=code)

    body.__doc__ = command.help
    return task(name=name.rpartition(".")[2])(body)
