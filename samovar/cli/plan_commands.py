"""The commands that run no trial: init, list, new, plan, explain, render, check, sudoers and schema."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from samovar.cli import completion
from samovar.cli.options import (
    ALL,
    EXPERIMENT,
    NEW,
    PART,
    PICK,
    PRINT_JSON,
    SHARD,
    flag,
    in_project,
    main,
)
from samovar.cli.program import event_display, exit_code, show, show_json
from samovar.cli.project_folder import make_project

if TYPE_CHECKING:  # takes long to import
    from samovar.cli.controller import Controller
    from samovar.cli.project import Request
    from samovar.plan import Pick


@main.command()
@click.argument("folder", type=click.Path(path_type=Path))
def init(folder: Path) -> int:
    """Make a project folder with a commented experiment, the testbed file of a lab and a fabfile."""
    from samovar import schema

    def write() -> None:
        for path in make_project(folder):
            show([f"written: {path}"])
        schema.write(folder)
        place = shlex.quote(str(folder))
        show(
            [f"next: cd {place}", "      edit experiments/first.yaml; samovar plan first; samovar run first"]
        )

    return exit_code(write)


@main.command("list")
@in_project
def list_all(controller: Controller) -> None:
    """List the experiments, testbeds, recipes, figures and tables, and where they come from."""
    from samovar.cli.show_project import menu_lines

    show(menu_lines(controller.project))


@main.command()
@click.argument("name")
@click.option(
    *("--from", "base"),
    default="",
    shell_complete=completion.experiments,
    help="Experiment to extend (default: a commented starter).",
)
@in_project
def new(controller: Controller, name: str, base: str) -> None:
    """Write experiments/NAME.yaml, a commented experiment that can be planned at once."""
    from samovar.cli.starter import write_starter

    path = write_starter(controller.project.root, name, base)
    show([f"{path}: edit it, then run `fab plan {name}`"])


@main.command()
@EXPERIMENT
@ALL
@PRINT_JSON
@flag("--csv/as_csv", "Print CSV, one row per trial.")
@NEW
@SHARD
@PICK
@in_project
def plan(
    controller: Controller,
    request: Request,
    pick: Pick,
    every_trial: bool,
    as_json: bool,
    as_csv: bool,
    new_campaign: bool,
) -> int:
    """Show the trials of an experiment in order, their cost, and what the testbed cannot run."""
    from samovar.cli.show_plan import plan_csv, plan_json, plan_lines, trial_lines
    from samovar.plan import Pick

    planned = controller.project.plan(request)
    single = pick and pick == Pick(trials=pick.trials[:1])
    if single and not as_csv:  # a single trial is shown with all its values
        (id_,) = pick.of(planned.plan).ids
        trial = planned.plan.find(id_)
        show_json(trial.as_json()) if as_json else show(trial_lines(trial, controller.project.catalogue))
        return 0
    preview = controller.preview(planned, new_campaign, pick)
    if as_json:
        show(plan_json(preview))
    else:
        show([plan_csv(preview)] if as_csv else plan_lines(preview, every_trial))
    return int(preview.nothing_can_run or bool(preview.blocked))


@main.command()
@EXPERIMENT
@click.argument("key")
@click.option(
    "--trial",
    default="",
    shell_complete=completion.trials,
    help="One trial, by its id or the beginning of it.",
)
@in_project
def explain(controller: Controller, request: Request, key: str, trial: str) -> None:
    """Show where the value of a key is set, and which other values it overrides."""
    from samovar.cli.show_project import explanation_lines

    show(explanation_lines(controller.project.explain(request, key, trial)))


@main.command()
@EXPERIMENT
@PART
@click.option("--first", type=click.IntRange(min=1), metavar="N", help="Only the first N trials that match.")
@click.option(
    "--host",
    "hosts",
    multiple=True,
    metavar="HOST",
    shell_complete=completion.hosts,
    help="Only this host; can be repeated.",
)
@in_project
def render(controller: Controller, request: Request, pick: Pick, hosts: Sequence[str]) -> None:
    """Print the scripts that trials would run on each host, in order, without touching a host."""
    from samovar.cli.show_project import script_lines

    for one in controller.project.plan(request).by_testbed:
        show(script_lines(one, controller.project, pick, hosts))


@main.command()
@EXPERIMENT
@in_project
def check(controller: Controller, request: Request) -> int:
    """Check that the hosts have what an experiment needs, without changing them."""
    from samovar.cli.show_project import facts_lines, finding_lines

    planned = controller.project.plan(request)
    with event_display(controller) as display:
        facts, findings = controller.check(planned, display)
    show(facts_lines(facts))
    show(finding_lines(findings))
    return int(any(finding.stops for finding in findings))


@main.command()
@EXPERIMENT
@in_project
def sudoers(controller: Controller, request: Request) -> None:
    """Print the sudoers rules for running an experiment as a user other than root."""
    for one in controller.project.plan(request).by_testbed:
        show(controller.sudoers(one))


@main.command()
@in_project
def schema(controller: Controller) -> None:
    """Regenerate editor schemas (in a checkout, also reference pages) after changing keys or recipes."""
    from samovar.schema import write

    changed = write(controller.project.root)
    show([f"written: {path}" for path in changed] or ["all generated files are current"])
