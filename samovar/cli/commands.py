"""Run one of all commands of `samovar` and `fab`, and turn its errors into an exit code.

The modules `*_commands` declare the commands by subject: name, arguments, help, and what the command does.
A command imports what it needs when it is called, so that help and completion are fast.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import click

from samovar.campaign import EXIT_CODE
from samovar.cli import campaign_commands as campaign_commands  # declares commands when it is imported
from samovar.cli import lab_commands as lab_commands
from samovar.cli import plan_commands as plan_commands
from samovar.cli.completion import completion_script
from samovar.cli.options import main as main
from samovar.cli.program import show_error
from samovar.errors import SamovarError


@main.command("completion")
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
def print_completion(shell: str) -> None:
    """Print a shell's completion script, for `eval "$(samovar completion bash)"` in ~/.bashrc."""
    click.echo(completion_script(main, shell))


def run_commands(arguments: Sequence[str], root: Path | None = None) -> int:
    """Run one command line and return its exit code, which is 2 for a wrong argument.

    `root` is the project folder; None means the folder given by --project, otherwise the current folder.
    """
    try:
        return main.main(list(arguments), prog_name="samovar", standalone_mode=False, obj=root) or 0
    except click.ClickException as error:
        error.show()
        return error.exit_code
    except SamovarError as error:
        show_error(error)
        return 1
    except (KeyboardInterrupt, click.Abort):
        return EXIT_CODE
