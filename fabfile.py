"""The menu: `fab -l` lists it. Tasks parse arguments and show what happens; samovar does the work."""

from __future__ import annotations

import io
import json
import os
import shlex
import sys
import time
from collections.abc import Callable, Iterable
from functools import wraps
from pathlib import Path
from typing import Any

from fabric import Connection, task
from invoke import Collection, Exit
from rich.console import Console

from samovar import lab
from samovar.analyse import analyse as analyse_campaign
from samovar.campaign.availability.requirements import blocked_trials
from samovar.campaign.collection import verify as verify_campaign
from samovar.campaign.folder import read_plan
from samovar.campaign.interrupts import EXIT_CODE, RESUMES, Interrupts, unrestored_lines
from samovar.campaign.journal import NAME as JOURNAL
from samovar.campaign.journal import fold, holder, read_journal
from samovar.cli import Controller, ExplainRequest, PlannedExperiment, PowerRequest, RunRequest, show_text
from samovar.cli.event_stream import opened_stream
from samovar.cli.export import plan_csv, plan_json
from samovar.cli.progress import Show
from samovar.cli.show_explanation import explanation_lines
from samovar.cli.show_plan import Seen, plan_lines
from samovar.cli.show_status import Asked, owner_lines, status_json, status_lines, verified_lines
from samovar.cli.show_trial import trial_lines
from samovar.cli.wording import columns, harmless
from samovar.errors import DefinitionError, SamovarError, TestbedError
from samovar.experiment import STUDIES, load_testbed
from samovar.plan.trial_values import find_trial
from samovar.report import exit_status, make_bundle, read_verdicts
from samovar.report.study_bundle import make_study
from samovar.schema import write as write_generated

CONTROLLER = Controller(Path(__file__).resolve().parent)


def show(lines: Iterable[str]) -> None:
    """Print lines."""
    for line in lines:
        print(harmless(line))


STYLES = {"message": "red", "line": "default", "caret": "bold red"}


def show_error(error: SamovarError) -> None:
    """Print an error, in colour on a terminal; mistakes in files with their lines."""
    console = Console(stderr=True)
    lines = error.lines(console.width) if isinstance(error, DefinitionError) else [("message", str(error))]
    for kind, line in lines:
        console.print(harmless(line), style=STYLES[kind], markup=False, highlight=False, soft_wrap=True)


def leave() -> None:
    """Report what the second Ctrl-C leaves unrestored."""
    console = Console(stderr=True)
    console.show_cursor(True)  # which a progress bar has hidden
    for line in unrestored_lines(CONTROLLER.running):
        console.print(harmless(line), markup=False, highlight=False, soft_wrap=True)


def guarded(body: Callable[..., None]) -> Callable[..., None]:
    """Turn errors into a message and an exit code, never a traceback."""

    @wraps(body)
    def run(*args: Any, **kwargs: Any) -> None:
        if isinstance(
            sys.stdout, io.TextIOWrapper
        ):  # a terminal without UTF-8 shows what it cannot as \u....
            sys.stdout.reconfigure(errors="backslashreplace")
        try:
            with Interrupts(leave):
                body(*args, **kwargs)
        except SamovarError as error:
            show_error(error)
            raise Exit(code=1) from None
        except KeyboardInterrupt:
            print(RESUMES, file=sys.stderr)
            raise Exit(code=EXIT_CODE) from None
        except BrokenPipeError:
            os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # the reader has gone: `fab plan … | head`
            raise Exit(code=0) from None
        except OSError as error:
            show_error(SamovarError(told(error)))
            raise Exit(code=1) from None

    return run


def told(error: OSError) -> str:
    """Say what the system refused: a file without permission, a full disk."""
    what = (error.strerror or str(error)).lower()
    return f"{error.filename}: {what}" if error.filename else what


@task(name="up", help={"testbed": "testbed file in hosts/"})
@guarded
def lab_up(c: Connection, testbed: str = "") -> None:
    """Start the virtual lab."""
    with Show(Console()) as progress:
        CONTROLLER.connections.lab_up(load_testbed(CONTROLLER.project.testbed_path(testbed)), None, progress)


DISTURB = "although a campaign is at work there; which, is written to results/forced.jsonl"


@task(name="down", help={"testbed": "testbed file in hosts/", "force": DISTURB})
@guarded
def lab_down(c: Connection, testbed: str = "", force: bool = False) -> None:
    """Stop the virtual lab and everything in it."""
    bed = load_testbed(CONTROLLER.project.testbed_path(testbed))
    with Show(Console()) as progress:
        if not CONTROLLER.connections.lab_down(bed, progress, force):
            progress.line(f"lab {bed.name}: was not running")


@task(name="status", help={"testbed": "testbed file in hosts/"})
@guarded
def lab_status(c: Connection, testbed: str = "") -> None:
    """Say whether the virtual lab runs and which hosts answer."""
    name = CONTROLLER.project.testbed_path(testbed).stem
    status = lab.status(CONTROLLER.connections.lab_folder(name))
    running = f"running, {status.kernel} kernel {status.release}"
    show([f"lab {name}: {running if status.running else 'not running'}"])
    show(columns((h.name, h.address, "answers" if h.answered else "no answer") for h in status.hosts))
    if not status.running or not all(host.answered for host in status.hosts):
        raise Exit(code=1)


@task(name="shell", help={"host": "host of the testbed", "testbed": "testbed file in hosts/"})
@guarded
def lab_shell(c: Connection, host: str, testbed: str = "") -> None:
    """Open a shell on a host of the lab."""
    access = lab.read_access(CONTROLLER.connections.lab_folder(CONTROLLER.project.testbed_path(testbed).stem))
    if access is None:
        raise TestbedError("the lab is not running; `fab lab.up` starts it")
    command = lab.shell_command(access, host)
    os.execvp(command[0], command)


@task(name="list")
@guarded
def list_all(c: Connection) -> None:
    """List experiments, testbeds, recipes and figures."""
    show(
        show_text.menu_lines(
            CONTROLLER.project.root,
            CONTROLLER.project.experiments(),
            CONTROLLER.project.testbeds(),
            CONTROLLER.project.catalogue,
        )
    )


PLAN_HELP = {
    "experiment": "name of a file in experiments/",
    "profile": "a profile that the experiment defines, such as quick",
    "testbed": "testbed file in hosts/ (default: the experiment's own)",
    "set": "KEY=VALUE over experiment and profile, such as duration=10s; may be given again",
}
SETS = ["set_"]  # options that may be given more than once


VIEW_HELP = {
    "json": "print for machines",
    "csv": "print a row per trial",
    "all": "show every trial",
    "trial": "show one trial in full, by its id or the beginning of it",
}
NEW_HELP = {"new": "begin another campaign although there is one that could go on"}


@task(help={**PLAN_HELP, **VIEW_HELP, **NEW_HELP}, iterable=SETS)
@guarded
def plan(
    c: Connection,
    experiment: str,
    set_: list[str],
    profile: str = "",
    testbed: str = "",
    json: bool = False,
    csv: bool = False,
    all_: bool = False,
    new: bool = False,
    trial: str = "",
) -> None:
    """Show the design, what stands and what will run, what it costs, and what the testbed cannot do."""
    study = CONTROLLER.project.plan(experiment, profile, testbed, set_)
    if trial:
        found = find_trial(study.plan, trial)
        show([_dump(found.as_json())] if json else trial_lines(found))
        return
    seen = _seen(study, new)
    if json:
        show([_dump(plan_json(seen))])
    else:
        show(plan_csv(seen) if csv else plan_lines(seen, all_, _width()))
    if seen.hopeless:
        raise Exit(code=1)


def _width() -> int | None:
    """Return how wide the terminal is; None where there is none, so that what reads on gets whole lines."""
    console = Console()
    return console.width if console.is_terminal else None


def _dump(value: object) -> str:
    return json.dumps(value, indent=1, ensure_ascii=False)


def _seen(study: PlannedExperiment, new: bool) -> Seen:
    """Put together all that can be known of a plan before it runs, whether or not the testbed answers."""
    standing = CONTROLLER.project.resume_point(study, new)
    left = CONTROLLER.preflight.cost(study, standing)
    findings, unasked = CONTROLLER.preflight.check_or_predict(study, left)
    blocked = blocked_trials(findings)
    each = CONTROLLER.preflight.cost_by_testbed(study, standing) if study.others else {}
    possible = CONTROLLER.preflight.cost(study, standing, blocked) if blocked else left
    cost, recipes = CONTROLLER.preflight.cost(study), CONTROLLER.project.changed_recipes(study, standing)
    return Seen(study.plan, standing, cost, left, findings, blocked, unasked, each, possible, recipes)


@task(help=PLAN_HELP, iterable=SETS)
@guarded
def check(c: Connection, experiment: str, set_: list[str], profile: str = "", testbed: str = "") -> None:
    """Check that the testbed has what an experiment needs; changes nothing on it."""
    study = CONTROLLER.project.plan(experiment, profile, testbed, set_)
    with Show(Console()) as progress:
        facts, findings = CONTROLLER.preflight.check(study, progress)
    show(show_text.facts_lines(facts))
    show(show_text.finding_lines(findings))
    if any(finding.stops for finding in findings):
        raise Exit(code=1)


@task(help=PLAN_HELP, iterable=SETS)
@guarded
def sudoers(c: Connection, experiment: str, set_: list[str], profile: str = "", testbed: str = "") -> None:
    """Print what sudoers must allow a user who is not root on each host; changes nothing."""
    for one in CONTROLLER.project.plan(experiment, profile, testbed, set_).by_testbed:
        show(CONTROLLER.preflight.sudoers(one))


@task(
    help={
        "host": "host of the testbed",
        "action": "on, off, cycle or status",
        "testbed": "testbed file in hosts/",
        "force": DISTURB,
    }
)
@guarded
def power(c: Connection, host: str, action: str, testbed: str = "", force: bool = False) -> None:
    """Switch a host on or off as its testbed file says, or ask whether it is on."""
    with Show(Console()) as progress:
        said = CONTROLLER.connections.switch_power(PowerRequest(host, action, testbed, force), progress)
    show([said or f"{host}: power {action}: done"])


@task(help={"name": "of the experiment", "from": "an experiment to extend, in place of a starter"})
@guarded
def new(c: Connection, name: str, from_: str = "") -> None:
    """Write experiments/NAME.yaml: a commented experiment that can be planned at once."""
    path = CONTROLLER.project.new_experiment(name, from_)
    show([f"{path}: edit it, then `fab plan {name}`"])


@task(
    help={
        **PLAN_HELP,
        "key": "as a factor's name: path.rate, traffic.bulk.size, cc",
        "trial": "a trial's id",
    },
    iterable=SETS,
)
@guarded
def explain(
    c: Connection,
    experiment: str,
    key: str,
    set_: list[str],
    trial: str = "",
    profile: str = "",
    testbed: str = "",
) -> None:
    """Show where a value of an experiment comes from, and what it hides."""
    question = ExplainRequest(experiment, key, trial, profile, testbed, set_)
    show(explanation_lines(CONTROLLER.project.explain(question)))


RUN_HELP = {
    "allow-partial": "leave out the trials that the testbed cannot run, and run the others",
    "fail-fast": "end the campaign after the first trial that fails",
    "force": "take hosts from the campaign that holds them",
    "events": "add a line of JSON to this file for each thing that happens; - for standard output",
}


@task(help={**PLAN_HELP, **NEW_HELP, **RUN_HELP}, iterable=SETS)
@guarded
def run(
    c: Connection,
    experiment: str,
    set_: list[str],
    profile: str = "",
    testbed: str = "",
    new: bool = False,
    allow_partial: bool = False,
    fail_fast: bool = False,
    force: bool = False,
    events: str = "",
) -> None:
    """Run what a campaign lacks of an experiment as it is now; begin a campaign if there is none."""
    study = CONTROLLER.project.plan(experiment, profile, testbed, set_)
    flags = (f" --profile {profile}" if profile else "") + (f" --testbed {testbed}" if testbed else "")
    flags += "".join(f" --set {shlex.quote(one)}" for one in set_)
    flags += " --allow-partial" * allow_partial + " --fail-fast" * fail_fast
    going = RunRequest(study, CONTROLLER.project.resume_point(study, new), allow_partial, fail_fast, force)
    _run(going, f"fab run {experiment}{flags}", events)


def _run(going: RunRequest, again: str, events: str = "") -> Path:
    study, standing = going.planned, going.resume
    if standing.folder and standing.nothing_to_do:
        summary = CONTROLLER.adopt_plan(study, standing.folder)
        show(show_text.settled_lines(summary, study.plan.experiment, f"{again} --new"))
        return summary.folder
    with opened_stream(events) as stream, Show(Console(stderr=events == "-"), stream) as progress:
        progress.take(study.plan, standing.state, CONTROLLER.preflight.cost(study, standing).overhead.seconds)
        summary = CONTROLLER.run(going, progress)
    for line in show_text.summary_lines(summary, again):
        print(harmless(line), file=sys.stderr if events == "-" else sys.stdout)
    if not summary.whole:
        raise Exit(code=1)
    return summary.folder


@task(help={"testbed": "testbed file in hosts/", "force": RUN_HELP["force"]})
@guarded
def restore(c: Connection, testbed: str = "", force: bool = False) -> None:
    """Put hosts back as journals say they were before a campaign that was cut off."""
    bed = load_testbed(CONTROLLER.project.testbed_path(testbed))
    with Show(Console()) as progress:
        restored = CONTROLLER.restore(bed, progress, force)
    show(show_text.restored_lines(bed.name, restored))
    if restored.problems:
        raise Exit(code=1)


CAMPAIGN_HELP = {"campaign": "its folder, experiment/campaign, or an experiment (default: the latest)"}


@task(help={**CAMPAIGN_HELP, "all": "show every trial", "json": "print for machines"})
@guarded
def status(c: Connection, campaign: str = "", all_: bool = False, json: bool = False) -> None:
    """Show where a campaign stands, also while it runs."""
    folder = CONTROLLER.project.campaign(campaign)
    journal = folder / JOURNAL
    entries = read_journal(journal) if journal.exists() else []
    held = holder(journal) is not None
    asked = Asked(folder, read_plan(folder), fold(entries), time.time(), held)
    if json:
        show([_dump(status_json(asked))])
    else:
        show([*status_lines(asked, Console().width, all_), *owner_lines(entries)])


@task(help=CAMPAIGN_HELP)
@guarded
def verify(c: Connection, campaign: str = "") -> None:
    """Compare every file of a campaign with the checksums of when it was written."""
    folder = CONTROLLER.project.campaign(campaign)
    with Show(Console()) as progress:
        found = verify_campaign(folder, progress)
    show(verified_lines(folder, found))
    if found.findings:
        raise Exit(code=1)


@task(help=CAMPAIGN_HELP)
@guarded
def analyse(c: Connection, campaign: str = "") -> None:
    """Measure a campaign's trials and draw its figures and tables (R)."""
    _analyse(CONTROLLER.project.campaign(campaign))


def _analyse(folder: Path) -> None:
    with Show(Console()) as progress:
        analyse_campaign(folder, CONTROLLER.project.root, progress)
    show([f"figures and tables: {folder / 'bundle'}"])


@task(help={**CAMPAIGN_HELP, "study": "a file in experiments/studies/: one report of several experiments"})
@guarded
def report(c: Connection, campaign: str = "", study: str = "") -> None:
    """Set a campaign's PDF bundle, or a study's; the exit code says whether its expectations hold."""
    status = exit_status(_study(study) if study else _bundle(CONTROLLER.project.campaign(campaign)))
    if status:
        raise Exit(code=status)


def _study(name: str) -> list[str]:
    study = CONTROLLER.project.study_report(name)
    folder = CONTROLLER.project.results / STUDIES / study.study
    with Show(Console()) as progress:
        pdf, verdicts = make_study(study, CONTROLLER.project.campaign, folder, progress)
    _show_scorecard(verdicts, pdf)
    return verdicts


def _bundle(folder: Path) -> list[str]:
    with Show(Console()) as progress:
        pdf = make_bundle(folder, progress)
    verdicts = read_verdicts(folder)
    _show_scorecard(verdicts, pdf)
    return verdicts


def _show_scorecard(verdicts: list[str], pdf: Path) -> None:
    counts = {verdict: verdicts.count(verdict) for verdict in ("reproduced", "differs", "no data")}
    show([f"scorecard: {', '.join(f'{n} {verdict}' for verdict, n in counts.items())}", str(pdf)])


@task
@guarded
def schema(c: Connection) -> None:
    """Make the JSON Schemas of editors and the reference say what the types and recipes say."""
    changed = write_generated(CONTROLLER.project.root)
    show([f"written: {path}" for path in changed] or ["everything is current"])


@task
@guarded
def demo(c: Connection) -> None:
    """Start the lab, run experiments/demo.yaml, analyse it, set its PDF, stop the lab."""
    study = CONTROLLER.project.plan("demo", "", "")
    standing = CONTROLLER.project.resume_point(study)
    if standing.nothing_to_do:
        standing = CONTROLLER.project.resume_point(study, new=True)
    folder = _run(RunRequest(study, standing), "fab demo")
    _analyse(folder)
    _bundle(folder)


TASKS = (
    list_all,
    new,
    plan,
    explain,
    check,
    sudoers,
    power,
    run,
    restore,
    status,
    verify,
    analyse,
    report,
    schema,
    demo,
)
namespace = Collection(*TASKS)
namespace.add_collection(Collection("lab", lab_up, lab_status, lab_shell, lab_down))
