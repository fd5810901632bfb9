"""Implement the commands that start, stop and enter the virtual lab, and `power` for real hosts."""

from __future__ import annotations

import os
from pathlib import Path

from samovar import lab
from samovar.cli.program import command, event_display, open_controller, show
from samovar.cli.text import columns
from samovar.errors import TestbedError
from samovar.experiment import load_testbed


@command
def start_lab(root: Path, testbed: str = "") -> None:
    """Start the virtual lab of a testbed."""
    controller = open_controller(root)
    with event_display(root) as display:
        controller.connections.lab_up(load_testbed(controller.project.testbed_path(testbed)), None, display)


@command
def stop_lab(root: Path, testbed: str = "", force: bool = False) -> None:
    """Stop the virtual lab of a testbed, and all processes in it."""
    controller = open_controller(root)
    bed = load_testbed(controller.project.testbed_path(testbed))
    with event_display(root) as display:
        if not controller.connections.lab_down(bed, display, force):
            display.line(f"lab {bed.name}: was not running")


@command
def show_lab_status(root: Path, testbed: str = "") -> int:
    """Show whether the lab runs and which hosts answer; the exit code is 0 only if all hosts answer."""
    controller = open_controller(root)
    name = controller.project.testbed_path(testbed).stem
    access = lab.read_access(controller.connections.lab_folder(name))
    if access is None:
        show([f"lab {name}: not running"])
        return 1
    show([f"lab {name}: running, {access.kernel} kernel {access.release}"])
    answers = lab.answering_hosts(access)
    rows = ((host, address, host in answers) for host, address in access.hosts.items())
    show(columns((host, address, "answers" if found else "no answer") for host, address, found in rows))
    return int(len(answers) < len(access.hosts))


@command
def open_shell(root: Path, host: str, testbed: str = "") -> None:
    """Replace this process by an ssh process with a shell on a host of the lab."""
    controller = open_controller(root)
    access = lab.read_access(controller.connections.lab_folder(controller.project.testbed_path(testbed).stem))
    if access is None:
        raise TestbedError("the lab is not running; `fab lab.up` starts it")
    program = lab.shell_command(access, host)
    os.execvp(program[0], program)


@command
def power(root: Path, host: str, action: str, testbed: str = "", force: bool = False) -> None:
    """Switch the power of a host on or off, power-cycle it, or show whether it is on."""
    with event_display(root) as display:
        answer = open_controller(root).connections.switch_power(host, action, testbed, force, display)
    show([answer or f"{host}: power {action}: done"])
