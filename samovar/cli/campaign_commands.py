"""The commands that run, restore, show, merge, verify, analyse, export, compare and report campaigns."""

from __future__ import annotations

import re
import shlex
import shutil
from collections.abc import Sequence
from functools import partial
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING

import click

from samovar.cli import completion
from samovar.cli.options import (
    ALL,
    CAMPAIGN,
    EXPERIMENT,
    LOCAL,
    NEW,
    PART,
    PICK,
    PRINT_JSON,
    SHARD,
    flag,
    in_project,
    main,
    only_option,
    testbed_option,
    to_option,
)
from samovar.cli.program import event_display, show, show_json

if TYPE_CHECKING:  # takes long to import
    from samovar.analyse import AnalysedPart
    from samovar.campaign import Merged, Summary
    from samovar.cli.controller import Controller
    from samovar.cli.project import Request, RunRequest
    from samovar.plan import Pick

COMPARISONS = "comparisons"
"""Folder in the results folder for comparisons."""
WHERE = "local (default), slurm, or the folder of a Snakemake profile."
FORCE_LEASES = flag("--force/-f", "Take over hosts that another campaign has reserved.")


@main.command()
@EXPERIMENT
@PICK
@NEW
@SHARD
@flag("--allow-partial", "Skip the trials that the testbed cannot run.")
@flag("--fail-fast", "Stop after the first trial that fails.")
@FORCE_LEASES
@click.option(
    "--events", default="", help="Append each event to this file as a line of JSON; - is standard output."
)
@click.option(
    "--shards",
    type=click.IntRange(min=1),
    metavar="N",
    help="Run all trials in N shards at the same time, each in its own lab, and merge them.",
)
@click.option("--on", metavar="WHERE", help=f"Where the shards run: {WHERE}")
@in_project
def run(
    controller: Controller,
    request: Request,
    pick: Pick,
    new_campaign: bool,
    allow_partial: bool,
    fail_fast: bool,
    force: bool,
    events: str,
    shards: int | None,
    on: str | None,
) -> int:
    """Run the trials of an experiment; after an interrupt or a change, run those that are missing."""
    if on and shards is None:
        raise click.UsageError("--on needs --shards, such as --shards 4")
    if shards and (pick or request.shard or events):
        raise click.UsageError(
            "--shards runs all trials; it cannot be combined with --shard, --events or picked trials"
        )
    from samovar.campaign import merge_shards, run_command
    from samovar.cli.cluster_jobs import run_shards
    from samovar.cli.project import RunRequest

    options = ["--allow-partial"] * allow_partial + ["--fail-fast"] * fail_fast
    if shards:
        options += ["--new"] * new_campaign + ["--force"] * force
        folders = run_shards(controller, request, shards, on or LOCAL, options)
        with event_display(controller) as display:
            merged = merge_shards(folders, controller.project.results, emit=display)
        return _show_merged(merged)
    planned = controller.project.plan(request)
    resume = controller.project.resume_point(planned, new_campaign, pick)
    command = " ".join([run_command(planned.plan) + pick.options, *options])
    asked = RunRequest(planned, resume, allow_partial, fail_fast, force)
    return int(not _run_campaign(controller, asked, command, events).complete)


def _run_campaign(
    controller: Controller, request: RunRequest, same_command: str, events: str = ""
) -> Summary:
    """Run a campaign, and show its progress and summary. If nothing is left to run, no host is contacted."""
    from samovar.campaign import adopt_plan
    from samovar.cli.show_status import complete_lines, part_lines, summary_lines

    planned, resume = request.planned, request.resume
    events_on_stdout = events == "-"
    show_message = partial(show, to_stderr=events_on_stdout)
    if resume.folder and resume.nothing_to_do:
        summary = adopt_plan(resume.folder, planned.plan, planned.sources, resume.picked)
        if resume.picked.again:
            text = f"nothing to run again: no trial of {resume.folder} matches `{resume.picked.text}`"
            show_message([text])
        else:
            show_message(complete_lines(summary, planned.plan.experiment, f"{same_command} --new"))
        show_message(part_lines(summary.part, planned.plan))
        return summary
    from samovar.cli.progress import open_event_stream

    with (
        open_event_stream(events) as stream,
        event_display(controller, events_on_stdout, stream, resume=same_command) as display,
    ):
        overhead = controller.cost(planned, resume).times.overhead
        display.campaign.expect(planned.plan, resume.state, overhead.seconds)
        summary = controller.run(request, display)
    show_message(summary_lines(summary, same_command))
    show_message(part_lines(summary.part, planned.plan))
    return summary


@main.command()
@in_project
def demo(controller: Controller) -> int:
    """Run the experiment `demo` in the virtual lab, analyse it and make its PDF."""
    from samovar.cli.project import Request, RunRequest

    planned = controller.project.plan(Request("demo"))
    resume = controller.project.resume_point(planned)
    if resume.nothing_to_do:
        resume = controller.project.resume_point(planned, new=True)
    summary = _run_campaign(controller, RunRequest(planned, resume), "fab demo")
    if summary.complete:
        _analyse_campaign(controller, summary.folder)
        _make_report(controller, str(summary.folder))
    return int(not summary.complete)


@main.command()
@click.argument("shards", nargs=-1, required=True, shell_complete=completion.campaigns)
@flag("--force/-f", "Merge even if shards are missing or were run with different versions.")
@in_project
def merge(controller: Controller, shards: Sequence[str], force: bool) -> int:
    """Merge SHARDS into one campaign; the name of an experiment stands for its newest shards."""
    from samovar.campaign import latest_shards, merge_shards

    project = controller.project
    if len(shards) == 1 and (project.results / shards[0]).is_dir() and "/" not in shards[0]:
        folders = latest_shards(shards[0], project.results)
    else:
        folders = [project.campaign(one) for one in shards]
    with event_display(controller) as display:
        merged = merge_shards(folders, project.results, force, display)
    return _show_merged(merged)


def _show_merged(merged: Merged) -> int:
    """Show a merged campaign; return 1 if any of its trials are left to run, otherwise 0."""
    from samovar.campaign import read_plan, read_state, summarise
    from samovar.cli.show_status import merged_lines

    plan, state = read_plan(merged.folder), read_state(merged.folder)
    summary = summarise(merged.folder, plan, state, plan.ids)
    show(merged_lines(merged, plan, state, summary))
    return int(not summary.complete)


@main.command()
@testbed_option("Testbed file in hosts/ (default: all testbeds with hosts that were left changed).")
@FORCE_LEASES
@in_project
def restore(controller: Controller, testbed: str, force: bool) -> int:
    """Restore hosts that were left changed when a campaign was killed."""
    from samovar.cli.show_status import restored_lines

    with event_display(controller) as display:
        bed = controller.project.testbed(testbed) if testbed else None
        restored = controller.restore(bed, display, force)
    show(restored_lines(testbed, restored))
    return int(bool(restored.problems))


@main.command()
@CAMPAIGN
@ALL
@PRINT_JSON
@in_project
def status(controller: Controller, campaign: str, every_trial: bool, as_json: bool) -> None:
    """Show the progress of a running or ended campaign."""
    from samovar.cli.show_status import CampaignStatus, status_json, status_lines

    state = CampaignStatus.read(controller.project.campaign(campaign))
    width = shutil.get_terminal_size().columns
    show_json(status_json(state)) if as_json else show(status_lines(state, width, every_trial))


@main.command()
@CAMPAIGN
@in_project
def verify(controller: Controller, campaign: str) -> int:
    """Check every file of a campaign against its recorded checksum."""
    from samovar.campaign.collection import verify
    from samovar.cli.show_status import verification_lines

    folder = controller.project.campaign(campaign)
    with event_display(controller) as display:
        found = verify(folder, display)
    show(verification_lines(folder, found))
    return int(bool(found.findings))


@main.command()
@CAMPAIGN
@flag("--restore", "Restore the traces and remove the archive.")
@in_project
def archive(controller: Controller, campaign: str, restore: bool) -> None:
    """Move the traces of a campaign to one smaller file; `--restore` restores them byte for byte."""
    from samovar.campaign.collection import ARCHIVE, archive_traces, restore_traces
    from samovar.units import counted, format_bytes

    folder = controller.project.campaign(campaign)
    if restore:
        show([f"{counted(restore_traces(folder), 'trace')} restored: {folder}"])
        return
    with event_display(controller) as display:
        done = archive_traces(folder, display)
    before, after = (format_bytes(size, 3) for size in (done.before_bytes, done.after_bytes))
    show([f"{counted(done.traces, 'trace')}, {before} before, {after} now: {folder / ARCHIVE}"])


@main.command()
@CAMPAIGN
@PART
@click.option(
    "--format",
    "table_format",
    type=click.Choice(["csv", "parquet"]),
    default="csv",
    help="Format of the files in tables/; parquet adds a Parquet file to each CSV file.",
)
@click.option("--on", default=LOCAL, metavar="WHERE", help=f"Where trials are measured: {WHERE}")
@click.option(
    "--jobs",
    type=click.IntRange(min=1),
    metavar="N",
    help="Measure in N processes (default: 2) or, on a cluster, in N jobs (default: 8).",
)
@in_project
def analyse(
    controller: Controller, campaign: str, pick: Pick, table_format: str, on: str, jobs: int | None
) -> None:
    """Measure the trials of a campaign and make its figures and tables (with R)."""
    from samovar.cli.cluster_jobs import measure_in_jobs
    from samovar.export import FORMATS, export

    folder = controller.project.campaign(campaign)
    FORMATS[table_format].require()
    if on == LOCAL:
        _analyse_campaign(controller, folder, pick, jobs)
    else:
        words = ["fab", "analyse", str(folder), "--on", on, *(["--jobs", str(jobs)] if jobs else [])]
        measure_in_jobs(
            controller, folder, _part_of(folder, pick), on, jobs, shlex.join(words) + pick.options
        )
        _analyse_campaign(controller, folder, pick)
    if table_format != "csv":  # R has written the CSV tables
        root, part = controller.project.root, _part_of(folder, pick)
        with event_display(controller) as display:
            export(folder, root, table_format, folder / "tables", display, part, overwrite=True)
        show([f"tables: {folder / 'tables'}"])


def _analyse_campaign(
    controller: Controller, folder: Path, pick: Pick | None = None, processes: int | None = None
) -> None:
    """Run the R analysis of a campaign folder and show where its results are."""
    from samovar.analyse import analyse

    part = _part_of(folder, pick)
    with event_display(controller) as display:
        unmade = analyse(folder, controller.project.root, display, part, processes)
    show(f"could not be made: {one}" for one in unmade)
    of = f" of the picked trials ({part.picked})" if part else ""
    show([f"figures and tables{of}: {folder / 'bundle'}"])


def _part_of(folder: Path, pick: Pick | None = None) -> AnalysedPart | None:
    """Return the trials to analyse: those in `pick`, otherwise those that the campaign's runs picked.

    Returns None, which means all trials, if `pick` is empty and the runs did not pick trials.
    """
    from samovar.analyse import AnalysedPart
    from samovar.campaign import read_plan, read_state

    plan, state = read_plan(folder), read_state(folder)
    if pick:
        return AnalysedPart(str(pick), pick.options.strip(), pick.of(plan).ids)
    if state.part_text(plan.ids):
        ids = [id_ for id_ in plan.ids if not state.is_left_for_later(id_)]
        return AnalysedPart("; ".join(state.picks), "", ids)
    return None


@main.command()
@CAMPAIGN
@PART
@click.option(
    "--format",
    "export_format",
    type=click.Choice(["csv", "parquet", "flent"]),
    help="Format to write (default: list the formats).",
)
@to_option("export/ of the campaign")
@flag("--overwrite", "Replace files of an earlier export.")
@in_project
def export(
    controller: Controller,
    campaign: str,
    pick: Pick,
    export_format: str | None,
    to: Path | None,
    overwrite: bool,
) -> None:
    """Export results for other programs: tables as CSV or Parquet, trials as data files of Flent."""
    from samovar.cli.text import columns
    from samovar.export import FORMATS, export
    from samovar.units import counted

    if export_format is None:
        show(columns([(f"--format {name}", form.what) for name, form in FORMATS.items()]))
        return
    folder = controller.project.campaign(campaign)
    to, part = to or folder / "export", _part_of(folder, pick)
    with event_display(controller) as display:
        files = export(folder, controller.project.root, export_format, to, display, part, overwrite)
    show([f"{counted(len(files), 'file')} in {to}"])


@main.command()
@click.argument("a", shell_complete=completion.campaigns)
@click.argument("b", default="", shell_complete=completion.campaigns)
@only_option("--only", "-o")
@only_option("--only-a", of=" of A")
@only_option("--only-b", of=" of B")
@click.option(
    "--by",
    default="",
    metavar="FACTOR,…",
    shell_complete=completion.factors,
    help="Factors that distinguish treatments (default: all factors with levels that A and B share).",
)
@click.option(
    "--fail-if",
    "limits",
    multiple=True,
    metavar="METRIC<-5%",
    shell_complete=completion.limits,
    help="Return exit code 1 if a change is beyond this limit, 2 if that is unknown; can be repeated.",
)
@to_option("in results/comparisons/")
@flag("--all/-a/every_metric", "Also show metrics without a change.")
@in_project
def compare(
    controller: Controller,
    a: str,
    b: str,
    only: tuple[str, ...],
    only_a: tuple[str, ...],
    only_b: tuple[str, ...],
    by: str,
    limits: Sequence[str],
    to: Path | None,
    every_metric: bool,
) -> int:
    """Compare two campaigns, or two parts of one; print the changes, and write a PDF and JUnit XML."""
    if not b and not (only_a or only_b):
        raise click.UsageError("name a second campaign, or parts of the first with --only-a and --only-b")
    from samovar.cli.show_comparison import comparison_lines
    from samovar.plan import Pick
    from samovar.report import COMPARISON_PDF, PAGE, Side, make_comparison, parse_limit, read_campaign

    project = controller.project
    parsed = [parse_limit(text, project.outputs) for text in limits]
    folders = (project.campaign(name) for name in (a, b or a))
    picks = (Pick(only + only_a), Pick(only + only_b))
    sides = [Side(read_campaign(one), _part_of(one, pick)) for one, pick in zip(folders, picks, strict=True)]
    names = (comparison_name(project.results, one.folder, part) for one, part in sides)
    to = to or project.results / COMPARISONS / "-vs-".join(names)
    factors = [one for word in by.split(",") if (one := word.strip())]
    with event_display(controller) as display:
        comparison = make_comparison((sides[0], sides[1]), factors, parsed, project.root, to, display)
    show(comparison_lines(comparison, every_metric))
    show([str(to / PAGE), str(to / COMPARISON_PDF)])
    return comparison.exit_code


def comparison_name(results: Path, folder: Path, part: AnalysedPart | None) -> str:
    """Return the name of a campaign, or of a part of it, for the folders of comparisons.

    A campaign of another project may have the same name, so a hash of its path is added to its name.
    """
    path = folder.resolve()
    words = f"{path.parent.name}-{path.name} {part.options if part else ''}"
    if path.parent.parent != results.resolve():
        words += f"-{sha256(bytes(path)).hexdigest()[:6]}"
    return re.sub("[^A-Za-z0-9.]+", "-", words).strip("-")


@main.command()
@CAMPAIGN
@PART
@click.option(
    "--study",
    default="",
    shell_complete=completion.studies,
    help="File in experiments/studies/: report several experiments together.",
)
@in_project
def report(controller: Controller, campaign: str, study: str, pick: Pick) -> int:
    """Make the PDF of a campaign or study; exit code 1 if an expectation is not met, 2 if one has no data."""
    if pick and study:
        raise click.UsageError("--only and --trial pick trials of a campaign, not of a study")
    if campaign and study:
        raise click.UsageError("a report is of a campaign or of a study; leave out CAMPAIGN or --study")
    from samovar.report import exit_status

    if pick:
        _analyse_campaign(controller, controller.project.campaign(campaign), pick)
    return exit_status(_make_report(controller, campaign, study))


def _make_report(controller: Controller, campaign: str, study: str = "") -> list[str]:
    """Make the PDF, show its scorecard, and return the verdict of each expectation."""
    from samovar.experiment import STUDIES
    from samovar.report import PAGE, make_bundle, make_study, read_campaign

    project = controller.project
    part = "" if study else read_campaign(project.campaign(campaign)).part
    with event_display(controller) as display:
        if study:
            wanted = project.study_report(study)
            folder = project.results / STUDIES / wanted.study
            pdf, verdicts = make_study(wanted, project.campaign, folder, display, project.outputs)
        else:
            pdf, verdicts = make_bundle(project.campaign(campaign), display, project.outputs)
    counts = (f"{verdicts.count(verdict)} {verdict}" for verdict in ("reproduced", "differs", "no data"))
    show([f"scorecard: {', '.join(counts)}", *([part] if part else []), str(pdf.with_name(PAGE)), str(pdf)])
    return verdicts


@main.command()
@flag("--no-open", "Only write the index.")
@in_project
def browse(controller: Controller, no_open: bool) -> None:
    """Write an index of all campaigns, results/index.html, and open it in a browser."""
    import webbrowser

    from samovar.campaign import campaigns_in
    from samovar.experiment import STUDIES
    from samovar.report import write_index
    from samovar.units import counted

    results = controller.project.results
    campaigns = campaigns_in(results)
    others = sorted(one for name in (STUDIES, COMPARISONS) for one in (results / name).glob("*/"))
    index, unread = write_index(results, campaigns, others)
    show(f"cannot be read: {one}" for one in unread)
    show([f"{counted(len(campaigns), 'campaign')}: {index}"])
    if not no_open:
        webbrowser.open(index.resolve().as_uri())
