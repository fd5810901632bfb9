"""Implement the commands that import configurations and results of TEACUP."""

from __future__ import annotations

import re
from pathlib import Path

from samovar import teacup
from samovar.cli.program import command, open_controller, show
from samovar.cli.project import Request
from samovar.cli.project_folder import schema_folder
from samovar.cli.text import columns
from samovar.units import counted


@command
def import_config(root: Path, config: Path, name: str = "") -> None:
    """Write an experiment and a testbed from a TEACUP configuration, and plan the experiment.

    Shows the translation of each variable of TEACUP.
    """
    project = open_controller(root).project
    name = name or re.sub(r"[^A-Za-z0-9_-]+", "-", config.stem).strip("-_") or "teacup"
    found = teacup.import_config(config, root, name, project.catalogue, schema_folder(root))
    show(columns([("variable", "in samovar", "remark"), *found.rows]))
    if found.notes:
        show(["", "to check:", *(f"  {note}" for note in found.notes)])
    show(["", *(f"written: {path}" for path in found.files)])
    planned = project.plan(Request(name))
    counts = f"{found.teacup_trials} in TEACUP, {len(planned.plan.trials)} in samovar"
    show([f"trials: {counts}; `samovar plan {name}` shows them"])


@command
def import_results(root: Path, folder: Path) -> None:
    """Make a campaign from a TEACUP results folder, and show what was left out."""
    found = teacup.import_results(folder, open_controller(root).project.results)
    show([f"  {note}" for note in found.notes])
    label = f"{found.folder.parent.name}/{found.folder.name}"
    show(
        [
            f"{counted(found.trials, 'trial')}: {found.folder}",
            f"next: samovar analyse {label}; samovar report {label}",
        ]
    )
