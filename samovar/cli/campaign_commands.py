"""Implement the commands that run, restore, show, verify, analyse, export and report campaigns."""

from __future__ import annotations

import shlex
import shutil
import time
import webbrowser
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from samovar.analyse import AnalysedPart
from samovar.analyse import analyse as run_analysis
from samovar.campaign import Archive, Restored, Summary, adopt_plan, read_plan, read_state, run_command
from samovar.campaign.collection import ARCHIVE, archive_traces, restore_traces
from samovar.campaign.collection import verify as verify_campaign
from samovar.campaign.journal import JOURNAL, holder
from samovar.cli.cluster_jobs import LOCAL
from samovar.cli.measure_jobs import measure_in_jobs
from samovar.cli.program import command, event_display, open_controller, show, show_json
from samovar.cli.project import Request, RunRequest
from samovar.cli.show_status import (
    CampaignStatus,
    others_text,
    status_json,
    status_lines,
    verification_lines,
)
from samovar.cli.text import columns, first_lines
from samovar.experiment import STUDIES, load_testbed
from samovar.export import FORMATS
from samovar.export import export as run_export
from samovar.plan import Pick, Plan
from samovar.report import PAGE, exit_status, make_bundle, make_study, read_campaign, write_index
from samovar.units import counted, format_bytes

COMPARISONS = "comparisons"
"""Folder in the results folder for comparisons."""
MOST_FAILURES = 40
"""At most this many failed trials are listed after a run."""


@command
def run(
    root: Path,
    request: Request,
    *,
    pick: Pick | None = None,
    new_campaign: bool = False,
    allow_partial: bool = False,
    fail_fast: bool = False,
    force: bool = False,
    events: str = "",
) -> int:
    """Run the missing trials of an experiment's campaign; start a campaign if none exists.

    With a `pick`, only the picked trials run; the others are left for a later run.
    """
    controller = open_controller(root)
    planned = controller.project.plan(request)
    resume = controller.project.resume_point(planned, new_campaign, pick)
    flags = " --allow-partial" * allow_partial + " --fail-fast" * fail_fast
    command = run_command(planned.plan) + (pick.options if pick else "") + flags
    asked = RunRequest(planned, resume, allow_partial, fail_fast, force)
    return int(not run_campaign(root, asked, command, events).complete)


def run_campaign(root: Path, request: RunRequest, same_command: str, events: str = "") -> Summary:
    """Run a campaign, and show its progress and summary. If nothing is left to run, no host is contacted."""
    controller, planned, resume = open_controller(root), request.planned, request.resume
    if resume.folder and resume.nothing_to_do:
        summary = adopt_plan(resume.folder, planned.plan, planned.sources, resume.picked)
        if resume.picked and resume.picked.again:
            show([f"nothing to run again: no trial of {resume.folder} matches `{resume.picked.text}`"])
        else:
            show(complete_lines(summary, planned.plan.experiment, f"{same_command} --new"))
        show(part_lines(summary.part, planned.plan))
        return summary
    from samovar.cli.progress import open_event_stream  # takes long to import

    events_on_stdout = events == "-"
    with (
        open_event_stream(events) as stream,
        event_display(root, events_on_stdout, stream, resume=same_command) as display,
    ):
        overhead = controller.preflight.cost(planned, resume).times.overhead
        display.campaign.expect(planned.plan, resume.state, overhead.seconds)
        summary = controller.run(request, display)
    show(summary_lines(summary, same_command), to_stderr=events_on_stdout)
    show(part_lines(summary.part, planned.plan), to_stderr=events_on_stdout)
    return summary


@command
def demo(root: Path) -> int:
    """Run experiments/demo.yaml in the virtual lab, analyse the campaign and make its PDF."""
    project = open_controller(root).project
    planned = project.plan(Request("demo"))
    resume = project.resume_point(planned)
    if resume.nothing_to_do:
        resume = project.resume_point(planned, new=True)
    summary = run_campaign(root, RunRequest(planned, resume), "fab demo")
    if summary.complete:
        analyse_campaign(root, summary.folder)
        make_report(root, str(summary.folder))
    return int(not summary.complete)


@command
def restore(root: Path, testbed: str = "", force: bool = False) -> int:
    """Restore hosts that interrupted campaigns have left changed, on one testbed or on all."""
    controller = open_controller(root)
    with event_display(root) as display:
        if testbed:
            bed = load_testbed(controller.project.testbed_path(testbed))
            restored = controller.restore(bed, display, force)
        else:
            restored = controller.restore_all(display, force)
    show(restored_lines(testbed, restored))
    return int(bool(restored.problems))


@command
def status(root: Path, campaign: str = "", every_trial: bool = False, as_json: bool = False) -> None:
    """Show the progress of a campaign from its journal. Another process may be running the campaign."""
    folder = open_controller(root).project.campaign(campaign)
    is_running = holder(folder / JOURNAL) is not None
    state = CampaignStatus(folder, read_plan(folder), read_state(folder), time.time(), is_running)
    if as_json:
        show_json(status_json(state))
    else:
        show(status_lines(state, shutil.get_terminal_size().columns, every_trial))


@command
def verify(root: Path, campaign: str = "") -> int:
    """Compare every file of a campaign with its recorded checksum; the exit code is 1 if a file differs."""
    folder = open_controller(root).project.campaign(campaign)
    with event_display(root) as display:
        found = verify_campaign(folder, display)
    show(verification_lines(folder, found))
    return int(bool(found.findings))


@command
def archive(root: Path, campaign: str = "", restore: bool = False) -> None:
    """Move the traces of a campaign to an archive in its folder, or restore them from it."""
    folder = open_controller(root).project.campaign(campaign)
    if restore:
        show([f"{counted(restore_traces(folder), 'trace')} restored: {folder}"])
        return
    with event_display(root) as display:
        done = archive_traces(folder, display)
    before, after = (format_bytes(size, 3) for size in (done.before_bytes, done.after_bytes))
    show([f"{counted(done.traces, 'trace')}, {before} before, {after} now: {folder / ARCHIVE}"])


@command
def analyse(
    root: Path,
    campaign: str = "",
    pick: Pick | None = None,
    table_format: str = "csv",
    on: str = LOCAL,
    jobs: int | None = None,
) -> None:
    """Measure all or the picked trials of a campaign, and make its figures and tables.

    Trials are measured by at most `jobs` processes or, if `on` is not `local`, by so many jobs of a cluster.
    """
    folder = open_controller(root).project.campaign(campaign)
    FORMATS[table_format].require()
    if on == LOCAL:
        analyse_campaign(root, folder, pick, jobs)
    else:
        words = ["fab", "analyse", str(folder), "--on", on, *(["--jobs", str(jobs)] if jobs else [])]
        again = shlex.join(words) + (pick.options if pick else "")
        measure_in_jobs(root, folder, part_of(folder, pick), on, jobs, again)
        analyse_campaign(root, folder, pick)
    if table_format != "csv":  # R has written the CSV tables
        part = part_of(folder, pick)
        with event_display(root) as display:
            run_export(folder, root, table_format, folder / "tables", display, part, overwrite=True)
        show([f"tables: {folder / 'tables'}"])


@command
def export(
    root: Path,
    campaign: str = "",
    export_format: str | None = None,
    to: Path | None = None,
    pick: Pick | None = None,
    overwrite: bool = False,
) -> None:
    """Export all or the picked trials of a campaign. Without a format, list the formats."""
    if export_format is None:
        show(columns([(f"--format {name}", form.what) for name, form in FORMATS.items()]))
        return
    folder = open_controller(root).project.campaign(campaign)
    to = to or folder / "export"
    part = part_of(folder, pick)
    with event_display(root) as display:
        files = run_export(folder, root, export_format, to, display, part, overwrite)
    show([f"{counted(len(files), 'file')} in {to}"])


def analyse_campaign(
    root: Path, folder: Path, pick: Pick | None = None, processes: int | None = None
) -> None:
    """Run the R analysis of a campaign folder and show where its results are."""
    part = part_of(folder, pick)
    with event_display(root) as display:
        unmade = run_analysis(folder, root, display, part, processes)
    show(f"could not be made: {one}" for one in unmade)
    of = f" of {counted(len(part.trials), 'trial')} (picked: {part.picked})" if part else ""
    show([f"figures and tables{of}: {folder / 'bundle'}"])


def part_of(folder: Path, pick: Pick | None = None) -> AnalysedPart | None:
    """Return the trials to analyse: those in `pick`, otherwise those that the campaign's runs picked.

    Returns None if neither picks trials: all are analysed.
    """
    plan, state = read_plan(folder), read_state(folder)
    if pick:
        return AnalysedPart(str(pick), pick.options.strip(), pick.of(plan).ids)
    if state.part_text(plan.ids):
        ids = [id_ for id_ in plan.ids if not state.is_left_for_later(id_)]
        return AnalysedPart("; ".join(state.picks), "", ids)
    return None


@command
def report(root: Path, campaign: str = "", study: str = "", pick: Pick | None = None) -> int:
    """Make the PDF of a campaign or of a study. If trials are picked, they are analysed first.

    The exit code is 1 if a result differs from its expectation, 2 if none differs but data are missing for
    one, otherwise 0.
    """
    if pick:
        analyse_campaign(root, open_controller(root).project.campaign(campaign), pick)
    return exit_status(make_report(root, campaign, study))


def make_report(root: Path, campaign: str, study: str = "") -> list[str]:
    """Make the PDF, show its scorecard, and return the verdict of each expectation."""
    project = open_controller(root).project
    part = "" if study else read_campaign(project.campaign(campaign)).part
    with event_display(root) as display:
        if study:
            wanted = project.study_report(study)
            folder = project.results / STUDIES / wanted.study
            pdf, verdicts = make_study(wanted, project.campaign, folder, display, project.outputs)
        else:
            pdf, verdicts = make_bundle(project.campaign(campaign), display, project.outputs)
    counts = (f"{verdicts.count(verdict)} {verdict}" for verdict in ("reproduced", "differs", "no data"))
    show([f"scorecard: {', '.join(counts)}", *([part] if part else []), str(pdf.with_name(PAGE)), str(pdf)])
    return verdicts


@command
def browse(root: Path, no_open: bool = False) -> None:
    """Write an index of all campaigns of a project, and open it in a browser unless `no_open`."""
    results = open_controller(root).project.results
    campaigns = [plan.parent for plan in reversed(Archive(results).plans())]
    others = sorted(one for name in (STUDIES, COMPARISONS) for one in (results / name).glob("*/"))
    index, unread = write_index(results, campaigns, others)
    show(f"cannot be read: {one}" for one in unread)
    show([f"{counted(len(campaigns), 'campaign')}: {index}"])
    if not no_open:
        webbrowser.open(index.resolve().as_uri())


def summary_lines(summary: Summary, same_command: str) -> Iterator[str]:
    """Yield the lines to print after a run: results, failures, and the command that runs missing trials."""
    yield f"{summary.done} of {counted(summary.trials, 'trial')} done: {summary.folder}"
    if summary.stopped:
        yield f"stopped: {summary.stopped}"
    yield from (f"  ✗ {host} is quarantined: {why}" for host, why in summary.quarantined.items())
    failed = [f"  ✗ {id_}: {'; '.join(why) or 'not run'}" for id_, why in summary.failed.items()]
    yield from first_lines(failed, MOST_FAILURES)
    if summary.failed:
        yield f"to run the missing trials: {same_command}"
    for reasons, number in Counter(summary.blocked.values()).items():
        yield f"  − {counted(number, 'trial')} cannot run: {'; '.join(reasons)}"


def complete_lines(summary: Summary, experiment: str, again: str) -> Iterator[str]:
    """Yield the lines to print for a complete campaign: its report, and the command to measure it again."""
    picked = "picked " if summary.part else ""
    are = "is" if summary.trials == 1 else "are"
    yield f"all {counted(summary.trials, f'{picked}trial')} {are} done: {summary.folder}"
    pdf = summary.folder / "bundle" / f"{experiment}.pdf"
    yield f"report: {pdf}" if pdf.is_file() else "no report yet: run `fab analyse`, then `fab report`"
    yield f"to measure everything again: {again}"


def part_lines(part: str, plan: Plan) -> Iterator[str]:
    """Yield a line on how much of a plan has run, and how to run the rest; nothing if `part` is empty."""
    if part:
        yield f"{part}; {others_text(plan)}"


def restored_lines(testbed: str, restored: Restored) -> Iterator[str]:
    """Yield the lines to print after `restore`: the restored hosts by campaign, and the problems."""
    for campaign, hosts in restored.hosts.items():
        if hosts:
            yield f"✓ {campaign}: {', '.join(hosts)} restored"
    yield from (f"✗ {problem}" for problem in restored.problems)
    if not restored.hosts and not restored.problems:
        where = f"{testbed}: " if testbed else ""
        yield f"{where}nothing to restore; no interrupted campaign has left a host changed"
