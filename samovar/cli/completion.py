"""Complete names of experiments, campaigns, trials, hosts and levels on the command line.

Completion only lists files, and reads YAML and plan.json without validation, so that Tab answers at once.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import click
from click import shell_completion

from samovar.cli.project_folder import find_project, names
from samovar.errors import ProjectError
from samovar.installation import SHIPPED, TEMPLATES

Items = list[shell_completion.CompletionItem]


@shell_completion.add_completion_class
class BashCompletion(shell_completion.BashComplete):
    """Completion in bash that splits the line as typed into words, because bash also splits at `=`."""

    def get_completion_args(self) -> tuple[list[str], str]:
        """Return the complete words of the line, and the word at the cursor."""
        line = os.environ["COMP_WORDS"]
        words = shell_completion.split_arg_string(line)
        if line[-1:].isspace() and not words[-1][-1:].isspace():  # the blank is not inside quotes
            words.append("")
        return words[1:-1], words[-1]


def completion_script(program: click.Command, shell: str) -> str:
    """Return the script with which bash, zsh or fish completes commands of samovar.

    Unlike Click's own scripts, it also completes the value in --option=VALUE, and values with commas.
    """
    kind = shell_completion.get_completion_class(shell)
    assert kind is not None
    kind.source_template = (TEMPLATES / "completion" / f"samovar.{shell}").read_text("utf-8")
    return kind(program, {}, "samovar", "_SAMOVAR_COMPLETE").source()


def _root(ctx: click.Context) -> Path | None:
    """Return the project folder that the command would use, or None outside a project."""
    given = ctx.find_root().params.get("project")
    try:
        return ctx.obj or find_project(Path(given or "."))
    except ProjectError:
        return None


def _results(ctx: click.Context) -> Path | None:
    """Return the results folder of the project, or None outside a project."""
    root = _root(ctx)
    return root / _read(root / "config.yaml").get("results", "results") if root else None


def _matching(found: Iterable[str], incomplete: str) -> Items:
    return [shell_completion.CompletionItem(one) for one in found if one.startswith(incomplete)]


def _files(folder: str) -> Any:
    def complete(ctx: click.Context, param: click.Parameter, incomplete: str) -> Items:
        root = _root(ctx)
        return _matching(names(root, folder), incomplete) if root else []

    return complete


experiments, studies, testbeds = _files("experiments"), _files("experiments/studies"), _files("hosts")


def power_actions(ctx: click.Context, param: click.Parameter, incomplete: str) -> Items:
    """Complete an action of the command `power`."""
    return _matching(("on", "off", "cycle", "status"), incomplete)


def campaigns(ctx: click.Context, param: click.Parameter, incomplete: str) -> Items:
    """Complete an EXPERIMENT that has a campaign; after a slash, complete EXPERIMENT/CAMPAIGN."""
    results = _results(ctx)
    if results is None:
        return []
    if "/" in incomplete:
        found = [str(plan.parent.relative_to(results)) for plan in results.glob("*/*/plan.json")]
    else:  # one plan shows that a folder has campaigns, and not studies or comparisons
        found = [path.name for path in results.glob("*") if next(path.glob("*/plan.json"), None)]
    return _matching(sorted(found), incomplete)


def profiles(ctx: click.Context, param: click.Parameter, incomplete: str) -> Items:
    """Complete a profile of the experiment that the command line names."""
    return _matching(_merged(ctx, "profiles"), incomplete)


def overrides(ctx: click.Context, param: click.Parameter, incomplete: str) -> Items:
    """Complete KEY=VALUE with the factors of the experiment and their levels."""
    factors = _merged(ctx, "factors")
    pairs = (f"{name}={level}" for name, levels in factors.items() for level in _texts(levels))
    return _matching(pairs, incomplete)


def trials(ctx: click.Context, param: click.Parameter, incomplete: str) -> Items:
    """Complete the id of a trial from the plan of the experiment's newest campaign."""
    return _matching((row[0] for row in _newest_plan(ctx).get("trials", [])), incomplete)


def hosts(ctx: click.Context, param: click.Parameter, incomplete: str) -> Items:
    """Complete a host of the testbed that the command line or the experiment names."""
    root = _root(ctx)
    if root is None:
        return []
    own = _read(next(_experiment_files(root, _experiment(ctx)), root)).get("testbed")
    name = ctx.params.get("testbed") or own or _read(root / "config.yaml").get("testbed")
    files = (folder / "hosts" / f"{str(name).partition(',')[0]}.yaml" for folder in (root, SHIPPED))
    return _matching(_read(next(filter(Path.is_file, files), root)).get("hosts") or (), incomplete)


def levels(ctx: click.Context, param: click.Parameter, incomplete: str) -> Items:
    """Complete FACTOR=LEVEL of --only: after a space another FACTOR=LEVEL, after a comma another level.

    Factors and levels are those of the experiment's file and of its newest campaign's plan.
    """
    before, space, word = incomplete.rpartition(" ")
    name, _, chosen = word.partition("=")
    known: dict[str, dict[str, None]] = {}
    for factors in (*(part["factors"] for part in _newest_plan(ctx).get("parts", [])), *_factors(ctx)):
        for factor, labels in factors.items():
            known.setdefault(factor, {}).update(dict.fromkeys(_texts(labels)))
    others, comma, _ = chosen.rpartition(",")
    if comma and name in known:
        known = {
            name: dict.fromkeys(f"{others},{one}" for one in known[name] if one not in others.split(","))
        }
    return _matching(
        (f"{before}{space}{factor}={label}" for factor, labels in known.items() for label in labels),
        incomplete,
    )


def factors(ctx: click.Context, param: click.Parameter, incomplete: str) -> Items:
    """Complete a factor of a campaign's plan; after a comma, another factor."""
    before, comma, _ = incomplete.rpartition(",")
    found = dict.fromkeys(name for part in _newest_plan(ctx).get("parts", []) for name in part["factors"])
    return _matching(
        (f"{before}{comma}{one}" for one in ("part", *found) if one not in before.split(",")), incomplete
    )


def limits(ctx: click.Context, param: click.Parameter, incomplete: str) -> Items:
    """Complete the metric of a limit, from outputs.yaml of the package and of the project."""
    folders = (SHIPPED / "analysis" / "inst", (_root(ctx) or SHIPPED) / "analysis")
    found = dict.fromkeys(
        name for one in folders for name in _read(one / "outputs.yaml").get("metrics") or ()
    )
    return _matching(found, incomplete)


def _factors(ctx: click.Context) -> Iterator[dict[str, Any]]:
    """Yield the factors in the experiment's file: those of the experiment, and those of each part."""
    yield _merged(ctx, "factors")
    for part in _merged(ctx, "parts").values():
        if isinstance(part, dict) and isinstance(part.get("factors"), dict):
            yield part["factors"]


def _newest_plan(ctx: click.Context) -> dict[str, Any]:
    """Return the plan.json of the campaign that the command line names, or of the newest campaign.

    The newest campaign is that of the experiment that the command line names. Returns an empty mapping if
    there is no such campaign.
    """
    results, name = _results(ctx), str(ctx.params.get("campaign") or ctx.params.get("a") or _experiment(ctx))
    if results is None or not name:
        return {}
    files = [results / name / "plan.json", *sorted(results.glob(f"{Path(name).stem}/*-*/plan.json"))[-1:]]
    try:
        tree = json.loads(next(file for file in files if file.is_file()).read_bytes())
    except (OSError, ValueError, StopIteration):
        return {}
    return tree if isinstance(tree, dict) else {}


def _experiment(ctx: click.Context) -> str:
    """Return the experiment that the command line names; empty if it names none.

    If the last option still lacks its value, Click has the experiment in `args`, not in `params`.
    """
    return str(ctx.params.get("experiment") or next(iter(ctx.args), ""))


def _merged(ctx: click.Context, key: str) -> dict[str, Any]:
    """Return the mapping under a key, merged from the experiment's file and all files that it extends."""
    root, name = _root(ctx), _experiment(ctx)
    found: dict[str, Any] = {}
    seen: set[str] = set()
    while root and name and name not in seen:
        seen.add(name)
        path = next(_experiment_files(root, name), None)
        tree = _read(path) if path else {}
        found = {**(tree.get(key) or {}), **found}
        name = str(tree.get("extends") or "")
    return found


def _experiment_files(root: Path, name: str) -> Iterator[Path]:
    own = Path(name) if name.endswith(".yaml") else root / "experiments" / f"{name}.yaml"
    yield from (path for path in (own, SHIPPED / "experiments" / own.name) if path.is_file())


def _read(path: Path) -> dict[str, Any]:
    """Return the top-level mapping of a YAML file; empty if the file cannot be read.

    Errors in the file are not reported during completion, but when the command is run.
    """
    import yaml

    try:
        tree = yaml.load(path.read_text("utf-8"), yaml.CSafeLoader)
    except (OSError, yaml.YAMLError, UnicodeDecodeError):
        return {}
    return tree if isinstance(tree, dict) else {}


def _texts(levels: Any) -> list[str]:
    """Return the levels of a factor as text: plain values, and the labels of levels that are mappings."""
    levels = levels if isinstance(levels, list) else []
    labels = (one.get("label") if isinstance(one, dict) else one for one in levels)
    return [str(one) for one in labels if isinstance(one, str | int | float)]
