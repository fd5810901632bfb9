"""Show the contents of a project: files, where values come from, scripts, facts of hosts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from samovar.campaign import policy_of, render_trial
from samovar.campaign.availability import Finding
from samovar.cli.project import PlannedExperiment, Project
from samovar.cli.text import columns, key_title, quantity_text, value_text
from samovar.errors import DefinitionError, PlanError, unknown
from samovar.experiment import Explanation, package_outputs, yaml_tree
from samovar.hosts import HostFacts
from samovar.installation import SHIPPED
from samovar.plan import Pick
from samovar.units import counted

RECIPE_KINDS = ("aqm", "generator", "logger", "setting")


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

    If a later layer sets a key that excludes this key, all values are marked `✗`.
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
        return f"{subject} has no value: a later layer sets a key that excludes it"
    if one.keys:
        return f"{subject}, by key"
    return f"{subject} = {one.values[0].text}" if one.values else f"{subject} is not set"


def _explanation_rows(one: Explanation, key: str = "") -> Iterator[tuple[str, ...]]:
    for own, inner in one.keys:
        yield from _explanation_rows(inner, f"{own}: ")
    for index, value in enumerate(one.values):
        mark = "✗" if one.removed else "»" if index == 0 else " "
        yield f"  {mark} {key}{value.text}", value.layer, value.place


def script_lines(
    planned: PlannedExperiment, project: Project, pick: Pick, hosts: Sequence[str]
) -> Iterator[str]:
    """Yield the scripts of all or the picked trials, on all hosts or on those in `hosts`.

    Headings are comments, so that all output can be checked with `sh -n`.
    """
    for host in hosts:
        if host not in planned.testbed.hosts:
            raise PlanError(f"--host {host}: {unknown('host', host, planned.testbed.hosts)}")
    plan = planned.plan
    ids = set(pick.of(plan).ids) if pick else set(plan.ids)
    of = f"{len(ids)} of {counted(len(plan.trials), 'trial')}"
    yield f"# {plan.experiment} ({plan.profile or 'full'}) on {plan.testbed}: the scripts of {of}, in order"
    yield "# Placeholders stand for values known only during a run: <campaign>, <start>, and <KEY as found>"
    yield "# for a value that `read` prints. If such a value selects the script, only one script is shown."
    policy = policy_of(planned.experiment, planned.testbed, project.config)
    if policy.calibrate:
        yield "# Each distinct path is measured before its first trial, by scripts that are not shown."
    for trial in (trial for trial in plan.trials if trial.id in ids):
        for one in render_trial(trial, project.catalogue, policy):
            if hosts and one.host not in hosts:
                continue
            note = f" ({one.note})" if one.note else ""
            yield f"\n# ==== trial {one.trial}, {one.phase}, host {one.host}{note}"
            yield from (f"# must print: {line}" for line in one.must_print.splitlines())
            yield from one.text.splitlines()


def facts_lines(facts: Mapping[str, HostFacts]) -> Iterator[str]:
    """Yield the facts of each host, without facts that are unknown."""
    for host, fact in facts.items():
        yield host
        texts = {name: value_text(name, value) for name, value in fact.as_json().items() if name != "host"}
        yield from columns((f"  {key_title(name)}", text) for name, text in texts.items() if text)


def finding_lines(findings: Sequence[Finding]) -> Iterator[str]:
    """Yield a line for each finding; if no finding stops a trial, also yield a line that says so."""
    yield ""
    yield from (f"{'✗' if finding.stops else '?'} {finding}" for finding in findings)
    if not any(finding.stops for finding in findings):
        yield "✓ the testbed has what the experiment needs"
