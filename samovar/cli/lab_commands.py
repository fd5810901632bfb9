"""The commands for the virtual lab, the power of real hosts, and imports from TEACUP."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import TYPE_CHECKING

import click

from samovar.cli import completion
from samovar.cli.options import Commands, flag, in_project, main, testbed_option
from samovar.cli.program import event_display, show
from samovar.cli.text import columns
from samovar.errors import TestbedError
from samovar.installation import schema_folder
from samovar.units import counted

if TYPE_CHECKING:  # takes long to import
    from samovar import lab
    from samovar.cli.controller import Controller

TESTBED = testbed_option("Testbed file in hosts/ (default: `testbed` of config.yaml).")
FORCE = flag("--force/-f", "Continue even if a campaign is using the hosts.")


@main.command()
@click.argument("host", shell_complete=completion.hosts)
@click.argument("action", shell_complete=completion.power_actions)
@TESTBED
@FORCE
@in_project
def power(controller: Controller, host: str, action: str, testbed: str, force: bool) -> None:
    """Switch or query the power of a host, with the method in the testbed file."""
    with event_display(controller) as display:
        answer = controller.connections.switch_power(host, action, testbed, force, display)
    show([answer or f"{host}: power {action}: done"])


@main.group("lab", cls=Commands)
def lab_group() -> None:
    """Start, stop and enter the virtual lab of a testbed."""


@lab_group.command("up")
@TESTBED
@in_project
def start_lab(controller: Controller, testbed: str) -> None:
    """Start the virtual lab."""
    with event_display(controller) as display:
        controller.connections.lab_up(controller.project.testbed(testbed), None, display)


@lab_group.command("down")
@TESTBED
@FORCE
@in_project
def stop_lab(controller: Controller, testbed: str, force: bool) -> None:
    """Stop the virtual lab and all processes in it.

    Also stops the labs that killed shards of a campaign have left running.
    """
    bed, connections = controller.project.testbed(testbed), controller.connections
    with event_display(controller) as display:
        shards = ("", *connections.shards_with_labs(bed.name))
        stopped = [connections.lab_down(bed, display, force, shard) for shard in shards]
        if not any(stopped):
            display.line(f"lab {bed.name}: was not running")


@lab_group.command("status")
@TESTBED
@in_project
def show_lab_status(controller: Controller, testbed: str) -> int:
    """Show whether the virtual lab is running and which of its hosts answer."""
    from samovar import lab

    name, access = _lab_access(controller, testbed)
    if access is None:
        show([f"lab {name}: not running"])
        return 1
    show([f"lab {name}: running, {access.kernel} kernel {access.release}"])
    answers = lab.answering_hosts(access)
    rows = ((host, address, host in answers) for host, address in access.hosts.items())
    show(columns((host, address, "answers" if found else "no answer") for host, address, found in rows))
    return int(len(answers) < len(access.hosts))


@lab_group.command("shell")
@click.argument("host", shell_complete=completion.hosts)
@TESTBED
@in_project
def open_shell(controller: Controller, host: str, testbed: str) -> None:
    """Open a shell on a host of the virtual lab."""
    from samovar import lab

    _, access = _lab_access(controller, testbed)
    if access is None:
        raise TestbedError("the lab is not running; `fab lab.up` starts it")
    program = lab.shell_command(access, host)
    os.execvp(program[0], program)


def _lab_access(controller: Controller, testbed: str) -> tuple[str, lab.Access | None]:
    """Return a lab's name, and how to reach its hosts, which is None if the lab is not running."""
    from samovar import lab

    name = controller.project.testbed_path(testbed).stem
    return name, lab.read_access(controller.connections.lab_folder(name))


@main.group("import", cls=Commands)
def import_group() -> None:
    """Import experiments or results of another tool."""


@import_group.command("teacup")
@click.argument("config", type=click.Path(path_type=Path))
@click.option("--name", default="", help="Name of the experiment and the testbed (default: the file's name).")
@in_project
def import_config(controller: Controller, config: Path, name: str) -> None:
    """Write an experiment and a testbed from a TEACUP configuration, without executing its code."""
    from samovar import teacup
    from samovar.cli.project import Request

    project = controller.project
    name = name or re.sub(r"[^A-Za-z0-9_-]+", "-", config.stem).strip("-_") or "teacup"
    found = teacup.import_config(config, project.root, name, project.catalogue, schema_folder(project.root))
    show(columns([("variable", "in samovar", "remark"), *found.rows]))
    if found.notes:
        show(["", "to check:", *(f"  {note}" for note in found.notes)])
    show(["", *(f"written: {path}" for path in found.files)])
    planned = project.plan(Request(name))
    counts = f"{found.teacup_trials} in TEACUP, {len(planned.plan.trials)} in samovar"
    show([f"trials: {counts}; `samovar plan {name}` shows them"])


@import_group.command("teacup-results")
@click.argument("folder", type=click.Path(path_type=Path))
@in_project
def import_results(controller: Controller, folder: Path) -> None:
    """Make a campaign from a TEACUP results folder, for `analyse` and `report`."""
    from samovar import teacup

    found = teacup.import_results(folder, controller.project.results)
    show([f"  {note}" for note in found.notes])
    show([f"{counted(found.trials, 'trial')}: {found.folder}"])
    label = f"{found.folder.parent.name}/{found.folder.name}"
    show([f"next: samovar analyse {label}; samovar report {label}"])
