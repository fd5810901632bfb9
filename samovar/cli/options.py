"""Define the command group and shared options; load the project of a command, and run the command in it.

A one-letter option means the same in every command.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import wraps
from pathlib import Path
from typing import Any

import click

from samovar import __version__
from samovar.cli import completion
from samovar.cli.program import exit_code
from samovar.cli.project_folder import find_project
from samovar.errors import unknown

Body = Callable[..., Any]
LOCAL = "local"
"""The value of --on for work that is done on this computer."""


class Commands(click.Group):
    """A group of commands whose error for an unknown command names the most similar one."""

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Return the command that the first argument names. As with `fab`, `lab.up` means `lab up`."""
        first, dot, second = args[0].partition(".")
        if dot and isinstance(self.commands.get(first), click.Group):
            args = [first, second, *args[1:]]
        if self.get_command(ctx, args[0]) is None and not args[0].startswith("-"):
            ctx.fail(unknown("command", args[0], self.list_commands(ctx)))
        return super().resolve_command(ctx, args)


@click.group(cls=Commands, context_settings={"help_option_names": ["--help", "-h"]})
@click.option(
    *("--project", "-C"),
    type=click.Path(path_type=Path),
    help="Project folder (default: this folder, or the nearest one above it that is a project).",
)
@click.version_option(__version__, message="samovar %(version)s")
@click.pass_context
def main(ctx: click.Context, project: Path | None) -> None:
    """Run TCP experiments on real testbeds or virtual labs: plan, run, analyse, report."""
    if project is not None:
        ctx.obj = find_project(project)


def options(*several: Callable[[Body], Body]) -> Callable[[Body], Body]:
    """Combine several arguments and options into one decorator."""

    def decorate(body: Body) -> Body:
        for one in reversed(several):
            body = one(body)
        return body

    return decorate


def flag(name: str, text: str) -> Callable[[Body], Body]:
    """Return an option that takes no value, with `text` as its help.

    `name` is the option's name, optionally followed by its letter and the name of its parameter:
    `--all/-a/every_trial`.
    """
    return click.option(*name.split("/"), is_flag=True, help=text)


def testbed_option(text: str) -> Callable[[Body], Body]:
    """Return the option --testbed with `text` as its help."""
    return click.option("--testbed", "-t", default="", shell_complete=completion.testbeds, help=text)


def to_option(default: str) -> Callable[[Body], Body]:
    """Return the option --to, which names a folder to write to; `default` is the default for the help."""
    path = click.Path(file_okay=False, path_type=Path)
    return click.option("--to", type=path, help=f"Folder to write to (default: {default}).")


EXPERIMENT = options(
    click.argument("experiment", shell_complete=completion.experiments),
    click.option(
        "--profile",
        "-p",
        default="",
        shell_complete=completion.profiles,
        help="Profile of the experiment, such as quick.",
    ),
    testbed_option("Testbed files in hosts/, separated by commas (default: the experiment's own)."),
    click.option(
        *("--set", "-s", "overrides"),
        multiple=True,
        metavar="KEY=VALUE",
        shell_complete=completion.overrides,
        help="Override one key, such as duration=10s; can be repeated.",
    ),
)
SHARD = click.option(
    "--shard",
    default="",
    metavar="K/N",
    help="Only the trials of shard K of N, as a separate campaign; `merge` joins the shards.",
)
NEW = flag("--new/-n/new_campaign", "Begin a new campaign even if one can be resumed.")
CAMPAIGN = click.argument("campaign", default="", shell_complete=completion.campaigns)
PRINT_JSON = flag("--json/-j/as_json", "Print JSON.")
ALL = flag("--all/-a/every_trial", "Show every trial.")


def only_option(*names: str, of: str = "") -> Callable[[Body], Body]:
    """Return an option that picks trials by levels.

    `of` names the campaign of the trials in the help text, as in ` of A`.
    """
    return click.option(
        *names,
        multiple=True,
        metavar="FACTOR=LEVEL…",
        shell_complete=completion.levels,
        help=f"Only trials{of} with these levels, as in 'cc=cubic,cdg mtu=1500'; can be repeated.",
    )


PART = options(
    only_option("--only", "-o"),
    click.option(
        *("--trial", "trials"),
        multiple=True,
        metavar="ID",
        shell_complete=completion.trials,
        help="Only this trial, by its id or the beginning of it; can be repeated.",
    ),
)
PICK = options(
    PART,
    click.option(
        "--first",
        type=click.IntRange(min=1),
        metavar="N",
        help="Only the first N trials that match, in the plan's order.",
    ),
    click.option(
        "--again",
        multiple=True,
        type=click.Choice(["invalid", "suspect", "failed"]),
        help="Run trials with this result again, and no others; can be repeated.",
    ),
)


def in_project(body: Body) -> Body:
    """Call a command with its project's controller, a Request made from EXPERIMENT, and a Pick from PART.

    The other arguments are passed by name. The command returns its exit code. Raises ProjectError outside a
    project.
    """

    @wraps(body)
    def run_in_project(**arguments: Any) -> int:
        from samovar.cli.controller import Controller
        from samovar.cli.project import Request
        from samovar.plan import Pick

        root = click.get_current_context().obj or find_project(Path())
        if "experiment" in arguments:
            arguments["request"] = _taken(Request, Request._fields, arguments)
        if "trials" in arguments:
            arguments["pick"] = pick = _taken(Pick, ("only", "trials", "first", "again"), arguments)
            if pick.again and arguments.get("new_campaign"):
                raise click.UsageError(
                    "--again runs trials of an existing campaign again, but --new begins a new one"
                )
        return exit_code(lambda: body(Controller(root), **arguments))

    return run_in_project


def _taken(kind: Callable[..., Any], names: Sequence[str], arguments: dict[str, Any]) -> Any:
    """Remove the named arguments from `arguments`, and return the object that `kind` makes from them."""
    return kind(**{name: arguments.pop(name) for name in names if name in arguments})
