"""Implement commands that run no trial: init, list, new, plan, explain, render, check, sudoers and schema."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from samovar import schema as generated_files
from samovar.campaign import HostScript, changed_recipes, policy_of, render_trial
from samovar.campaign.availability import Finding, blocked_trials, findings_of
from samovar.cli.program import command, event_display, open_controller, show, show_json
from samovar.cli.project import PlannedExperiment, Project, Request
from samovar.cli.project_folder import make_project, schema_folder
from samovar.cli.show_plan import PlanPreview, plan_csv, plan_json, plan_lines, trial_lines
from samovar.cli.text import columns, key_title, quantity_text, value_text
from samovar.errors import DefinitionError, PlanError, unknown
from samovar.experiment import Explanation, package_outputs, write_starter, yaml_tree
from samovar.hosts import HostFacts
from samovar.installation import SHIPPED, TEMPLATES
from samovar.plan import Pick
from samovar.units import counted

RECIPE_KINDS = ("aqm", "generator", "logger", "setting")


@command
def list_all(root: Path) -> None:
    """List experiments, testbeds, recipes, figures and tables, each with its origin and a description."""
    show(menu_lines(open_controller(root).project))


@command
def init(folder: Path) -> None:
    """Make a project folder, and show the commands to continue with."""
    for path in make_project(folder):
        show([f"written: {path}"])
    generated_files.write(folder)
    place = shlex.quote(str(folder))
    show([f"next: cd {place}", "      edit experiments/first.yaml; samovar plan first; samovar run first"])


@command
def new(root: Path, name: str, base: str = "") -> None:
    """Write experiments/NAME.yaml from the starter file, or as an extension of another experiment."""
    path = write_starter(TEMPLATES, root / "experiments", name, base, schema_folder(root))
    show([f"{path}: edit it, then run `fab plan {name}`"])


@command
def plan(
    root: Path,
    request: Request,
    *,
    as_json: bool = False,
    as_csv: bool = False,
    every_trial: bool = False,
    new_campaign: bool = False,
    pick: Pick | None = None,
) -> int:
    """Show a plan, or its picked trials; the exit code is 1 if one of the trials shown cannot run.

    If a single trial is picked by its id, all its values are shown.
    """
    project = open_controller(root).project
    planned = project.plan(request)
    if pick and pick == Pick(trials=pick.trials[:1]):
        (id_,) = pick.of(planned.plan).ids
        found = planned.plan.find(id_)
        show_json(found.as_json()) if as_json else show(trial_lines(found, project.catalogue))
        return 0
    preview = preview_plan(root, planned, new_campaign, pick)
    if as_json:
        show(plan_json(preview))
    else:
        show([plan_csv(preview)] if as_csv else plan_lines(preview, every_trial))
    return int(preview.nothing_can_run or bool(preview.blocked))


def preview_plan(
    root: Path, planned: PlannedExperiment, new_campaign: bool, pick: Pick | None = None
) -> PlanPreview:
    """Return all that is known about a plan before it runs. Hosts are queried if they can be reached."""
    controller = open_controller(root)
    project, preflight = controller.project, controller.preflight
    resume = project.resume_point(planned, new_campaign, pick)
    remaining = preflight.cost(planned, resume)
    findings, not_queried = preflight.check_running(planned, remaining)
    left_out = set[str]()
    if resume.picked:
        findings = findings_of(findings, resume.picked.ids)
        left_out = set(planned.plan.ids).difference(resume.picked.ids)
    blocked = blocked_trials(findings)
    return PlanPreview(
        planned.plan,
        resume,
        preflight.cost(planned, without=left_out),
        remaining,
        findings,
        blocked,
        not_queried,
        cost_possible=preflight.cost(planned, resume, blocked) if blocked else remaining,
        changed_recipes=changed_recipes(planned.plan, resume, project.catalogue),
    )


@command
def explain(root: Path, request: Request, key: str, trial: str = "") -> None:
    """Show where the value of a key comes from, and which other values it overrides."""
    show(explanation_lines(open_controller(root).project.explain(request, key, trial)))


@command
def render(root: Path, request: Request, pick: Pick | None = None, hosts: Sequence[str] = ()) -> None:
    """Print the scripts of all or the picked trials, on all hosts or on those in `hosts`."""
    project = open_controller(root).project
    for one in project.plan(request).by_testbed:
        for host in hosts:
            if host not in one.testbed.hosts:
                raise PlanError(f"--host {host}: {unknown('host', host, one.testbed.hosts)}")
        ids = set(pick.of(one.plan).ids) if pick else set(one.plan.ids)
        policy = policy_of(one.experiment, one.testbed, project.config, {})
        show(script_heading(one, len(ids), policy.calibrate))
        for trial in (trial for trial in one.plan.trials if trial.id in ids):
            scripts = render_trial(trial, project.catalogue, policy)
            show(line for one in scripts if not hosts or one.host in hosts for line in script_lines(one))


def script_heading(planned: PlannedExperiment, trials: int, calibrates: bool) -> Iterator[str]:
    """Yield comment lines that explain the scripts below and their placeholders."""
    plan = planned.plan
    of = f"{trials} of {counted(len(plan.trials), 'trial')}"
    yield f"# {plan.experiment} ({plan.profile or 'full'}) on {plan.testbed}: the scripts of {of}, in order"
    yield "# Placeholders stand for values known only in a run: <campaign>, <start>, and <KEY as found> for a"
    yield "# value that `read` prints. If such a value decides between scripts, one of them is shown."
    if calibrates:
        yield "# Each distinct path is measured before its first trial, by scripts that are not shown."


def script_lines(one: HostScript) -> Iterator[str]:
    """Yield a comment as heading, and a script below it, so that all output can be checked with `sh -n`."""
    note = f" ({one.note})" if one.note else ""
    yield f"\n# ==== trial {one.trial}, {one.phase}, host {one.host}{note}"
    yield from (f"# must print: {line}" for line in one.must_print.splitlines())
    yield from one.text.splitlines()


@command
def check(root: Path, request: Request) -> int:
    """Check that every host has what an experiment needs; the exit code is 1 if something is missing."""
    controller = open_controller(root)
    planned = controller.project.plan(request)
    with event_display(root) as display:
        facts, findings = controller.preflight.check(planned, display)
    show(facts_lines(facts))
    show(finding_lines(findings))
    return int(any(finding.stops for finding in findings))


@command
def sudoers(root: Path, request: Request) -> None:
    """Print the sudoers rules that each host needs if a user other than root logs in."""
    controller = open_controller(root)
    for one in controller.project.plan(request).by_testbed:
        show(controller.preflight.sudoers(one))


@command
def schema(root: Path) -> None:
    """Regenerate the editor schemas and, in a checkout, the generated reference pages."""
    changed = generated_files.write(root)
    show([f"written: {path}" for path in changed] or ["all generated files are current"])


def menu_lines(project: Project) -> Iterator[str]:
    """Yield the lines of `list`: experiments, testbeds, recipes, figures and tables.

    Outside samovar's checkout, each line also states whether the file belongs to the project or to samovar.
    """
    catalogue = project.catalogue

    def row(name: str, *cells: str, path: Path) -> tuple[str, ...]:
        origin = project.origin(path)
        return (f"  {name}", *([origin] if origin else []), *cells)

    for title, paths, key in (
        ("experiments", project.experiments(), "title"),
        ("testbeds", project.testbeds(), "description"),
    ):
        yield title
        yield from columns(row(path.stem, _top_level_text(path, key), path=path) for path in paths)
    for kind in RECIPE_KINDS:
        yield f"recipes: {kind}"
        yield from columns(
            row(name, os, _top_level_text(path, "summary"), path=path)
            for os in catalogue.operating_systems()
            for name in sorted(catalogue.names(kind, os))
            for path in [catalogue.path(kind, name, os)]
        )
    yield "quantities that loggers record, and the recipes that record them"
    recorders = {os: catalogue.quantities(os) for os in catalogue.operating_systems()}
    yield from columns(
        (f"  {name}", *(f"{os}: {' or '.join(known.get(name, ['none']))}" for os, known in recorders.items()))
        for name in sorted(set[str]().union(*recorders.values()))
    )
    shipped = package_outputs().kinds
    for kind, known in project.outputs.kinds.items():
        yield f"{kind}s"
        yield from columns(
            row(name, one.what, path=SHIPPED if shipped[kind].get(name) is one else project.root)
            for name, one in known.items()
        )


def _top_level_text(path: Path, key: str) -> str:
    """Return the first line of a key's value in YAML or in a recipe's header, without validating the file."""
    try:
        text = yaml_tree.read_text(path, "a text")
    except DefinitionError as error:
        return f"({error.problems[0].message.partition(';')[0]})"
    found = (line.partition(":")[2] for line in text.splitlines() if line.startswith(f"{key}:"))
    return next(found, "").strip().rstrip(">|").strip("'\"")


def explanation_lines(explanations: Sequence[Explanation]) -> Iterator[str]:
    """Yield the lines of `explain`: the value in effect, marked `»`, and below it the overridden values.

    If a later layer removes the key, all its values are marked `✗`.
    """
    for index, one in enumerate(explanations):
        yield from [""] if index else []
        yield _explanation_head(one)
        yield from columns(_explanation_rows(one))


def _explanation_head(one: Explanation) -> str:
    in_trial = [(where, quantity_text(key, value)) for where, key, value in one.in_trial]
    if in_trial and one.hosts:  # hosts with equal values are listed together
        places: dict[str, list[str]] = {}
        for where, value in in_trial:
            places.setdefault(value, []).append(where)
        return f"{one.title} = " + "; ".join(f"{value} at {', '.join(at)}" for value, at in places.items())
    if in_trial:
        return f"{one.title} = " + ", ".join(f"{where} {value}".strip() for where, value in in_trial)
    subject = f"{one.title}{one.at}"
    if one.levels:
        return f"{subject} is a factor: {', '.join(one.levels)}"
    if one.removed:
        return f"{subject} is removed by a later layer"
    if one.keys:
        return f"{subject}, by key"
    return f"{subject} = {one.values[0].text}" if one.values else f"{subject} is not set"


def _explanation_rows(one: Explanation, key: str = "") -> Iterator[tuple[str, ...]]:
    for own, inner in one.keys:
        yield from _explanation_rows(inner, f"{own}: ")
    for index, value in enumerate(one.values):
        mark = "✗" if one.removed else "»" if index == 0 else " "
        yield f"  {mark} {key}{value.text}", value.layer, value.place


def facts_lines(facts: Mapping[str, HostFacts]) -> Iterator[str]:
    """Yield the facts of each host, without facts that are unknown."""
    for host, fact in facts.items():
        yield host
        texts = {name: value_text(name, value) for name, value in fact.as_json().items() if name != "host"}
        yield from columns((f"  {key_title(name)}", text) for name, text in texts.items() if text)


def finding_lines(findings: Sequence[Finding]) -> Iterator[str]:
    """Yield a line for each finding, and if none stops a trial, a line that says so."""
    yield ""
    yield from (f"{'✗' if finding.stops else '?'} {finding}" for finding in findings)
    if not any(finding.stops for finding in findings):
        yield "✓ the testbed has what the experiment needs"
