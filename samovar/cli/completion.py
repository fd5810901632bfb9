"""Complete names on the command line, such as those of experiments and trials, and make the shells' scripts.

Completion only lists files, and reads YAML and plan.json without validation, so that Tab answers at once.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Iterator
from functools import wraps
from pathlib import Path
from typing import Any

import click
from click import shell_completion
from click.shell_completion import CompletionItem

from samovar.cli.project_folder import find_project, names
from samovar.errors import ProjectError
from samovar.installation import SHIPPED, TEMPLATES


@shell_completion.add_completion_class
class BashCompletion(shell_completion.BashComplete):
    """Completion in bash, which splits the typed line itself, because bash also splits words at `=`."""

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


def _completer(find: Callable[[Path, click.Context, str], Iterable[str]]) -> Any:
    """Return a function for Click that completes a word with texts from `find` that begin with the word.

    `find` is called with the folder of the project that the command would use. Outside a project, nothing is
    completed.
    """

    @wraps(find)
    def complete(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
        try:
            root = ctx.obj or find_project(Path(ctx.find_root().params.get("project") or "."))
        except ProjectError:
            return []
        return [CompletionItem(one) for one in find(root, ctx, incomplete) if one.startswith(incomplete)]

    return complete


experiments = _completer(lambda root, ctx, incomplete: names(root, "experiments"))
studies = _completer(lambda root, ctx, incomplete: names(root, "experiments/studies"))
testbeds = _completer(lambda root, ctx, incomplete: names(root, "hosts"))
power_actions = _completer(lambda root, ctx, incomplete: ("on", "off", "cycle", "status"))
profiles = _completer(lambda root, ctx, incomplete: _merged(root, ctx, "profiles"))
trials = _completer(
    lambda root, ctx, incomplete: (row[0] for row in _newest_plan(root, ctx).get("trials", []))
)


@_completer
def campaigns(root: Path, ctx: click.Context, incomplete: str) -> list[str]:
    """Complete an EXPERIMENT that has a campaign; after a slash, complete EXPERIMENT/CAMPAIGN."""
    results = _results(root)
    if "/" in incomplete:
        return sorted(str(plan.parent.relative_to(results)) for plan in results.glob("*/*/plan.json"))
    # A plan.json in any subfolder shows that the folder contains campaigns, not studies or comparisons.
    return sorted(path.name for path in results.glob("*") if next(path.glob("*/plan.json"), None))


@_completer
def overrides(root: Path, ctx: click.Context, incomplete: str) -> Iterator[str]:
    """Complete KEY=VALUE with the factors of the experiment and their levels."""
    for name, levels in _merged(root, ctx, "factors").items():
        yield from (f"{name}={level}" for level in _texts(levels))


@_completer
def hosts(root: Path, ctx: click.Context, incomplete: str) -> Iterable[str]:
    """Complete a host of the testbed that the command line or the experiment names."""
    own = _read(next(_experiment_files(root, _experiment(ctx)), root)).get("testbed")
    name = ctx.params.get("testbed") or own or _read(root / "config.yaml").get("testbed")
    files = (folder / "hosts" / f"{str(name).partition(',')[0]}.yaml" for folder in (root, SHIPPED))
    return _mapping(_read(next(filter(Path.is_file, files), root)).get("hosts"))


@_completer
def levels(root: Path, ctx: click.Context, incomplete: str) -> Iterator[str]:
    """Complete FACTOR=LEVEL of --only; after a space, another FACTOR=LEVEL; after a comma, another level.

    Factors and levels are those of the newest campaign's plan, and of the experiment's file and its parts.
    """
    before, space, word = incomplete.rpartition(" ")
    name, _, chosen = word.partition("=")
    parts = (one for one in _merged(root, ctx, "parts").values() if isinstance(one, dict))
    in_file = [_merged(root, ctx, "factors"), *(_mapping(one.get("factors")) for one in parts)]
    known: dict[str, dict[str, None]] = {}
    for factors in (*_planned_factors(root, ctx), *in_file):
        for factor, labels in factors.items():
            known.setdefault(factor, {}).update(dict.fromkeys(_texts(labels)))
    others, comma, _ = chosen.rpartition(",")
    if comma and name in known:
        left = [one for one in known[name] if one not in others.split(",")]
        known = {name: dict.fromkeys(f"{others},{one}" for one in left)}
    for factor, texts in known.items():
        yield from (f"{before}{space}{factor}={one}" for one in texts)


@_completer
def factors(root: Path, ctx: click.Context, incomplete: str) -> Iterator[str]:
    """Complete a factor of a campaign's plan; after a comma, another factor."""
    before, comma, _ = incomplete.rpartition(",")
    found = (name for factors in _planned_factors(root, ctx) for name in factors)
    for one in dict.fromkeys(("part", *found)):
        if one not in before.split(","):
            yield f"{before}{comma}{one}"


@_completer
def limits(root: Path, ctx: click.Context, incomplete: str) -> Iterable[str]:
    """Complete the metric of a limit, from outputs.yaml of the package and of the project."""
    files = (SHIPPED / "analysis" / "inst" / "outputs.yaml", root / "analysis" / "outputs.yaml")
    return dict.fromkeys(name for file in files for name in _mapping(_read(file).get("metrics")))


def _planned_factors(root: Path, ctx: click.Context) -> Iterator[dict[str, Any]]:
    """Yield the factors of each part of the newest plan, with the labels of their levels."""
    for part in _newest_plan(root, ctx).get("parts", []):
        yield _mapping(_mapping(part).get("factors"))


def _newest_plan(root: Path, ctx: click.Context) -> dict[str, Any]:
    """Return the plan.json of the campaign that the command line names.

    If the command line names only an experiment, the newest campaign of the experiment is used. Returns an
    empty mapping if the campaign does not exist.
    """
    results, name = _results(root), str(ctx.params.get("campaign") or ctx.params.get("a") or _experiment(ctx))
    if not name:
        return {}
    experiment = Path(name).stem  # empty for a folder such as `.`
    newest = sorted(results.glob(f"{experiment}/*-*/plan.json"))[-1:] if experiment else []
    files = [results / name / "plan.json", *newest]
    try:
        tree = json.loads(next(file for file in files if file.is_file()).read_bytes())
    except (OSError, ValueError, StopIteration):
        return {}
    return _mapping(tree)


def _results(root: Path) -> Path:
    return root / Path(str(_read(root / "config.yaml").get("results", "results"))).expanduser()


def _experiment(ctx: click.Context) -> str:
    """Return the experiment that the command line names; empty if it names none.

    If the last option still lacks its value, Click has the experiment in `args`, not in `params`.
    """
    return str(ctx.params.get("experiment") or next(iter(ctx.args), ""))


def _merged(root: Path, ctx: click.Context, key: str) -> dict[str, Any]:
    """Return the mapping under a key, merged from the experiment's file and all files that it extends."""
    name = _experiment(ctx)
    found: dict[str, Any] = {}
    seen: set[str] = set()
    while name and name not in seen:
        seen.add(name)
        path = next(_experiment_files(root, name), None)
        tree = _read(path) if path else {}
        found = {**_mapping(tree.get(key)), **found}
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
    return _mapping(tree)


def _mapping(value: Any) -> dict[str, Any]:
    """Return a value if it is a mapping, else an empty one, because an edited file may have any value."""
    return value if isinstance(value, dict) else {}


def _texts(levels: Any) -> list[str]:
    """Return the levels of a factor as text: plain values, and the labels of levels that are mappings."""
    levels = levels if isinstance(levels, list) else []
    labels = (one.get("label") if isinstance(one, dict) else one for one in levels)
    return [str(one) for one in labels if isinstance(one, str | int | float)]
