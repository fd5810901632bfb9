"""The tasks of `fab`: names, options and help. samovar.cli does the work, imported when a task runs."""

from __future__ import annotations

import sys
from pathlib import Path

from fabric import Connection, task
from invoke import Collection, Exit

ROOT = Path(__file__).resolve().parent
sys.dont_write_bytecode = bool(sys.flags.dont_write_bytecode)
"""Fabric turns Python's cache of compiled modules off; with it, every command starts a quarter faster."""
REPEATABLE = ["set_"]

TESTBED = {"testbed": "a testbed file in hosts/ (default: `testbed` of config.yaml)"}
FORCE = {"force": "do it even if a campaign is using the hosts; results/forced.jsonl records which one"}
PLAN = {
    "experiment": "name of a file in experiments/",
    "profile": "a profile defined in the experiment, such as quick",
    "testbed": "testbed files in hosts/, separated by commas (default: the experiment's own)",
    "set": "override one key: KEY=VALUE, such as duration=10s; can be repeated",
}
NEW = {"new": "begin a new campaign even if one can be resumed"}
CAMPAIGN = {"campaign": "a campaign folder, EXPERIMENT/CAMPAIGN, or an experiment (default: the latest)"}


def end(exit_code: int) -> None:
    """End the program with the exit code of a command, unless it is 0."""
    if exit_code:
        raise Exit(code=exit_code)


@task(name="up", help=TESTBED)
def lab_up(c: Connection, testbed: str = "") -> None:
    """Start the virtual lab."""
    from samovar.cli import lab_commands

    end(lab_commands.start_lab(ROOT, testbed))


@task(name="down", help={**TESTBED, **FORCE})
def lab_down(c: Connection, testbed: str = "", force: bool = False) -> None:
    """Stop the virtual lab and all processes in it."""
    from samovar.cli import lab_commands

    end(lab_commands.stop_lab(ROOT, testbed, force))


@task(name="status", help=TESTBED)
def lab_status(c: Connection, testbed: str = "") -> None:
    """Show whether the virtual lab is running and which of its hosts answer."""
    from samovar.cli import lab_commands

    end(lab_commands.show_lab_status(ROOT, testbed))


@task(name="shell", help={"host": "a host of the testbed", **TESTBED})
def lab_shell(c: Connection, host: str, testbed: str = "") -> None:
    """Open a shell on a host of the virtual lab."""
    from samovar.cli import lab_commands

    end(lab_commands.open_shell(ROOT, host, testbed))


@task(name="list")
def list_all(c: Connection) -> None:
    """List the experiments, testbeds, recipes, figures and tables."""
    from samovar.cli import plan_commands

    end(plan_commands.list_all(ROOT))


@task(
    help={
        **PLAN,
        **NEW,
        "json": "print the plan as JSON",
        "csv": "print the plan as CSV, one row per trial",
        "all": "show every trial",
        "trial": "show one trial in full, by its id or the beginning of it",
    },
    iterable=REPEATABLE,
)
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
    """Show the trials of an experiment in order, their cost, and what the testbed cannot run."""
    from samovar.cli import Request, plan_commands

    request = Request(experiment, profile, testbed, set_)
    options = {"as_json": json, "as_csv": csv, "every_trial": all_, "new_campaign": new}
    end(plan_commands.plan(ROOT, request, trial=trial, **options))


@task(help=PLAN, iterable=REPEATABLE)
def check(c: Connection, experiment: str, set_: list[str], profile: str = "", testbed: str = "") -> None:
    """Check that the hosts have what an experiment needs, without changing them."""
    from samovar.cli import Request, plan_commands

    end(plan_commands.check(ROOT, Request(experiment, profile, testbed, set_)))


@task(help=PLAN, iterable=REPEATABLE)
def sudoers(c: Connection, experiment: str, set_: list[str], profile: str = "", testbed: str = "") -> None:
    """Print the sudoers rules for running an experiment as a user other than root."""
    from samovar.cli import Request, plan_commands

    end(plan_commands.sudoers(ROOT, Request(experiment, profile, testbed, set_)))


@task(help={"host": "a host of the testbed", "action": "on, off, cycle or status", **TESTBED, **FORCE})
def power(c: Connection, host: str, action: str, testbed: str = "", force: bool = False) -> None:
    """Switch the power of a host, or show its state, with the method in the testbed file."""
    from samovar.cli import lab_commands

    end(lab_commands.power(ROOT, host, action, testbed, force))


@task(
    help={
        "name": "name of the new experiment",
        "from": "an experiment to extend (default: a commented starter)",
    }
)
def new(c: Connection, name: str, from_: str = "") -> None:
    """Write experiments/NAME.yaml, a commented experiment that can be planned at once."""
    from samovar.cli import plan_commands

    end(plan_commands.new(ROOT, name, from_))


@task(
    help={
        **PLAN,
        "key": "a key as in --set: path.rate, traffic.bulk.size, cc",
        "trial": "explain the value in this trial, given by its id or the beginning of it",
    },
    iterable=REPEATABLE,
)
def explain(
    c: Connection,
    experiment: str,
    key: str,
    set_: list[str],
    trial: str = "",
    profile: str = "",
    testbed: str = "",
) -> None:
    """Show which file and line sets a value of an experiment, and the values that it overrides."""
    from samovar.cli import Request, plan_commands

    end(plan_commands.explain(ROOT, Request(experiment, profile, testbed, set_), key, trial))


@task(
    help={
        **PLAN,
        **NEW,
        "allow-partial": "skip the trials that the testbed cannot run",
        "fail-fast": "stop after the first trial that fails",
        "force": "take over hosts that another campaign has reserved",
        "events": "append each event to this file as a line of JSON; - is standard output",
    },
    iterable=REPEATABLE,
)
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
    """Run the trials of an experiment; after an interrupt or a change, run those that are missing."""
    from samovar.cli import Request, campaign_commands

    request = Request(experiment, profile, testbed, set_)
    options = {"new_campaign": new, "allow_partial": allow_partial, "fail_fast": fail_fast, "force": force}
    end(campaign_commands.run(ROOT, request, events=events, **options))


@task(
    help={
        "testbed": "a testbed file in hosts/ (default: all that interrupted campaigns have left changed)",
        "force": "take over hosts that another campaign has reserved",
    }
)
def restore(c: Connection, testbed: str = "", force: bool = False) -> None:
    """Restore hosts to their state before campaigns that were killed: of a testbed, or of all."""
    from samovar.cli import campaign_commands

    end(campaign_commands.restore(ROOT, testbed, force))


@task(help={**CAMPAIGN, "all": "show every trial", "json": "print the status as JSON"})
def status(c: Connection, campaign: str = "", all_: bool = False, json: bool = False) -> None:
    """Show the progress of a campaign, also while it runs."""
    from samovar.cli import campaign_commands

    end(campaign_commands.status(ROOT, campaign, every_trial=all_, as_json=json))


@task(help=CAMPAIGN)
def verify(c: Connection, campaign: str = "") -> None:
    """Check every file of a campaign against its recorded checksum."""
    from samovar.cli import campaign_commands

    end(campaign_commands.verify(ROOT, campaign))


@task(help=CAMPAIGN)
def analyse(c: Connection, campaign: str = "") -> None:
    """Measure the trials of a campaign and make its figures and tables (with R)."""
    from samovar.cli import campaign_commands

    end(campaign_commands.analyse(ROOT, campaign))


@task(help={**CAMPAIGN, "study": "a file in experiments/studies/: report several experiments together"})
def report(c: Connection, campaign: str = "", study: str = "") -> None:
    """Make the PDF of a campaign or study; exit code 1 or 2 if an expectation differs or has no data."""
    from samovar.cli import campaign_commands

    end(campaign_commands.report(ROOT, campaign, study))


@task
def schema(c: Connection) -> None:
    """Generate the editor schemas and reference tables again, after a change of keys or recipes."""
    from samovar.cli import campaign_commands

    end(campaign_commands.schema(ROOT))


@task
def demo(c: Connection) -> None:
    """Run experiments/demo.yaml in the virtual lab, analyse it and make its PDF."""
    from samovar.cli import campaign_commands

    end(campaign_commands.demo(ROOT))


TASKS = (list_all, new, plan, explain, check, sudoers, power, run, restore)
OF_CAMPAIGNS = (status, verify, analyse, report, schema, demo)
namespace = Collection(*TASKS, *OF_CAMPAIGNS)
namespace.add_collection(Collection("lab", lab_up, lab_status, lab_shell, lab_down))
