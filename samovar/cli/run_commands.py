"""Commands that run trials or restore hosts: run, restore, demo."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

from samovar.campaign import Restored, Summary, adopt_plan, run_command
from samovar.cli.campaign_commands import analyse_campaign, make_campaign_report
from samovar.cli.program import command, event_display, open_controller, show
from samovar.cli.progress import open_event_stream
from samovar.cli.project import RunRequest
from samovar.experiment import load_testbed
from samovar.units import counted

MOST_FAILURES = 40
"""Failed trials listed after a run."""


@command
def run(
    root: Path,
    experiment: str,
    overrides: Sequence[str] = (),
    profile: str = "",
    testbed: str = "",
    *,
    new_campaign: bool = False,
    allow_partial: bool = False,
    fail_fast: bool = False,
    force: bool = False,
    events: str = "",
) -> int:
    """Run the trials of an experiment that its campaign does not have yet; begin one if there is none."""
    controller = open_controller(root)
    planned = controller.project.plan(experiment, profile, testbed, overrides)
    resume = controller.project.resume_point(planned, new_campaign)
    request = RunRequest(planned, resume, allow_partial, fail_fast, force)
    command = run_command(planned.plan) + " --allow-partial" * allow_partial + " --fail-fast" * fail_fast
    return int(not run_campaign(root, request, command, events).complete)


def run_campaign(root: Path, request: RunRequest, same_command: str, events: str = "") -> Summary:
    """Run a campaign and show its progress and summary; a complete campaign touches no host."""
    controller, planned, resume = open_controller(root), request.planned, request.resume
    if resume.folder and resume.nothing_to_do:
        summary = adopt_plan(resume.folder, planned.plan, planned.sources)
        show(complete_lines(summary, planned.plan.experiment, f"{same_command} --new"))
        return summary
    events_on_stdout = events == "-"
    with open_event_stream(events) as stream, event_display(root, events_on_stdout, stream) as display:
        overhead = controller.preflight.cost(planned, resume).times.overhead
        display.expect(planned.plan, resume.state, overhead.seconds)
        summary = controller.run(request, display)
    show(summary_lines(summary, same_command), to_stderr=events_on_stdout)
    return summary


@command
def demo(root: Path) -> int:
    """Run experiments/demo.yaml in the virtual lab, analyse it and make its PDF."""
    controller = open_controller(root)
    planned = controller.project.plan("demo", "", "")
    resume = controller.project.resume_point(planned)
    if resume.nothing_to_do:
        resume = controller.project.resume_point(planned, new=True)
    summary = run_campaign(root, RunRequest(planned, resume), "fab demo")
    if not summary.complete:
        return 1
    analyse_campaign(root, summary.folder)
    make_campaign_report(root, summary.folder)
    return 0


@command
def restore(root: Path, testbed: str = "", force: bool = False) -> int:
    """Restore the hosts of a testbed to the state recorded before an interrupted campaign."""
    controller = open_controller(root)
    bed = load_testbed(controller.project.testbed_path(testbed))
    with event_display(root) as display:
        restored = controller.restore(bed, display, force)
    show(restored_lines(bed.name, restored))
    return int(bool(restored.problems))


def summary_lines(summary: Summary, same_command: str) -> Iterator[str]:
    """Show the end of a run and, where trials are missing, the command that runs them."""
    yield f"{summary.done} of {summary.trials} trials done: {summary.folder}"
    if summary.stopped:
        yield f"stopped: {summary.stopped}"
    yield from (f"  ✗ {host} is quarantined: {why}" for host, why in summary.quarantined.items())
    failed = list(summary.failed.items())
    for trial, reasons in failed[:MOST_FAILURES]:
        yield f"  ✗ {trial}: {'; '.join(reasons) or 'not run'}"
    if len(failed) > MOST_FAILURES:
        yield f"  … {len(failed) - MOST_FAILURES:,} more"
    if summary.failed:
        yield f"to run the missing trials: {same_command}"
    for reasons, number in Counter(summary.blocked.values()).items():
        yield f"  − {counted(number, 'trial')} cannot run: {'; '.join(reasons)}"


def complete_lines(summary: Summary, experiment: str, again: str) -> Iterator[str]:
    """Show that a campaign is complete, where its report is, and how to measure it again."""
    yield f"all {counted(summary.trials, 'trial')} are done: {summary.folder}"
    pdf = summary.folder / "bundle" / f"{experiment}.pdf"
    yield f"report: {pdf}" if pdf.is_file() else "no report yet: run `fab analyse`, then `fab report`"
    yield f"to measure everything again: {again}"


def restored_lines(testbed: str, restored: Restored) -> Iterator[str]:
    """Show which hosts were restored after which campaign, and which could not be."""
    for campaign, hosts in restored.hosts.items():
        if hosts:
            yield f"✓ {campaign}: {', '.join(hosts)} restored"
    yield from (f"✗ {problem}" for problem in restored.problems)
    if not restored.hosts and not restored.problems:
        yield f"{testbed}: nothing to restore; no campaign has left a host changed"
