"""Declare the commands of `samovar` and `fab`: names, arguments, options and help.

Each command returns an exit code. It imports its implementation when it is called, so that help and
completion are fast. A one-letter option means the same in every command.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import wraps
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from samovar import __version__
from samovar.cli import completion
from samovar.cli.project_folder import find_project
from samovar.errors import SamovarError, unknown

if TYPE_CHECKING:  # takes long to import
    from samovar.cli.project import Request
    from samovar.plan import Pick

Body = Callable[..., Any]
INTERRUPTED = 130
"""The exit code that shells report for a command that Ctrl-C has ended."""


class Commands(click.Group):
    """A group of commands whose error for an unknown command names the most similar one."""

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Return the command that the first argument names. As with `fab`, `lab.up` means `lab up`."""
        first, dot, second = args[0].partition(".")
        if dot and isinstance(self.commands.get(first), click.Group):
            args = [first, second, *args[1:]]
        if self.get_command(ctx, args[0]) is None and not args[0].startswith("-"):
            ctx.fail(unknown("command", args[0], self.list_commands(ctx)))
        return super().resolve_command(ctx, args)


def options(*several: Callable[[Body], Body]) -> Callable[[Body], Body]:
    """Combine several arguments and options into one decorator."""

    def decorate(body: Body) -> Body:
        for one in reversed(several):
            body = one(body)
        return body

    return decorate


def flag(name: str, text: str) -> Callable[[Body], Body]:
    """Return an option that takes no value, with `text` as its help.

    `name` has the option's name, and if need be its letter and the name of its parameter:
    `--all/-a/every_trial`.
    """
    return click.option(*name.split("/"), is_flag=True, help=text)


def _testbed(text: str) -> Callable[[Body], Body]:
    return click.option("--testbed", "-t", default="", shell_complete=completion.testbeds, help=text)


TESTBED = _testbed("Testbed file in hosts/ (default: `testbed` of config.yaml).")
FORCE = flag(
    "--force/-f",
    "Continue even if a campaign is using the hosts; results/forced.jsonl records that campaign.",
)
EXPERIMENT = options(
    click.argument("experiment", shell_complete=completion.experiments),
    click.option(
        "--profile",
        "-p",
        default="",
        shell_complete=completion.profiles,
        help="Profile of the experiment, such as quick.",
    ),
    _testbed("Testbed files in hosts/, separated by commas (default: the experiment's own)."),
    click.option(
        *("--set", "-s", "overrides"),
        multiple=True,
        metavar="KEY=VALUE",
        shell_complete=completion.overrides,
        help="Override one key, such as duration=10s; can be repeated.",
    ),
)
SHARD = click.option(
    "--shard",
    default="",
    metavar="K/N",
    help="Only the trials of shard K of N, as a campaign of its own; `merge` joins the shards.",
)
NEW = flag("--new/-n/new_campaign", "Begin a new campaign even if one can be resumed.")
CAMPAIGN = click.argument("campaign", default="", shell_complete=completion.campaigns)
PRINT_JSON = flag("--json/-j/as_json", "Print JSON.")
ALL = flag("--all/-a/every_trial", "Show every trial.")
TRIAL = click.option(
    "--trial",
    default="",
    shell_complete=completion.trials,
    help="One trial, by its id or the beginning of it.",
)


def _only(*names: str, of: str = "") -> Callable[[Body], Body]:
    return click.option(
        *names,
        multiple=True,
        metavar="FACTOR=LEVEL…",
        shell_complete=completion.levels,
        help=f"Only trials{of} with these levels, as in 'cc=cubic,cdg mtu=1500'; can be repeated.",
    )


PART = options(
    _only("--only", "-o"),
    click.option(
        *("--trial", "trials"),
        multiple=True,
        metavar="ID",
        shell_complete=completion.trials,
        help="Only this trial, by its id or the beginning of it; can be repeated.",
    ),
)
PICK = options(
    PART,
    click.option(
        "--first",
        type=click.IntRange(min=1),
        metavar="N",
        help="Only the first N trials that match, in the plan's order.",
    ),
    click.option(
        "--again",
        multiple=True,
        type=click.Choice(["invalid", "suspect", "failed"]),
        help="Run trials with this result again, and no others; can be repeated.",
    ),
)


def in_project(body: Body) -> Body:
    """Pass a command the project folder, a Request made from the options of EXPERIMENT, and a Pick from PART.

    The other arguments are passed by name. The command raises ProjectError if it is called outside a project.
    """

    @wraps(body)
    def run_in_project(**arguments: Any) -> Any:
        from samovar.cli.project import Request
        from samovar.plan import Pick

        root = click.get_current_context().obj or find_project(Path.cwd())
        if "experiment" in arguments:
            arguments["request"] = _taken(Request, Request._fields, arguments)
        if "trials" in arguments:
            arguments["pick"] = pick = _taken(Pick, ("only", "trials", "first", "again"), arguments)
            if pick.again and arguments.get("new_campaign"):
                raise click.UsageError(
                    "--again runs trials of an existing campaign again, but --new begins a new one"
                )
        return body(root, **arguments)

    return run_in_project


def _taken(kind: Callable[..., Any], names: Sequence[str], arguments: dict[str, Any]) -> Any:
    """Remove the arguments with these names, and return the object that is made from them."""
    return kind(**{name: arguments.pop(name) for name in names if name in arguments})


def implemented_in(module: str) -> Callable[[Body], Body]:
    """Have a command call the function of the same name in a module of samovar.cli; see in_project()."""

    def decorate(declared: Body) -> Body:
        @wraps(declared)
        def run_implementation(root: Path, **arguments: Any) -> Any:
            return getattr(import_module(f"samovar.cli.{module}"), declared.__name__)(root, **arguments)

        return in_project(run_implementation)

    return decorate


@click.group(cls=Commands, context_settings={"help_option_names": ["--help", "-h"]})
@click.option(
    *("--project", "-C"),
    type=click.Path(path_type=Path),
    help="Project folder (default: this folder, or the nearest one above it that is a project).",
)
@click.version_option(__version__, message="samovar %(version)s")
@click.pass_context
def main(ctx: click.Context, project: Path | None) -> None:
    """Run TCP experiments on real testbeds or virtual labs: plan, run, analyse, report."""
    if project is not None:
        ctx.obj = find_project(project)


@main.command()
@click.argument("folder", type=click.Path(path_type=Path))
def init(folder: Path) -> int:
    """Make a project folder with a commented experiment, the virtual lab and a fabfile."""
    from samovar.cli import plan_commands

    return plan_commands.init(folder)


@main.command("list")
@implemented_in("plan_commands")
def list_all() -> None:
    """List the experiments, testbeds, recipes, figures and tables, and where they come from."""


@main.command()
@click.argument("name")
@click.option(
    *("--from", "base"),
    default="",
    shell_complete=completion.experiments,
    help="Experiment to extend (default: a commented starter).",
)
@implemented_in("plan_commands")
def new() -> None:
    """Write experiments/NAME.yaml, a commented experiment that can be planned at once."""


@main.command()
@EXPERIMENT
@ALL
@PRINT_JSON
@flag("--csv/as_csv", "Print CSV, one row per trial.")
@NEW
@SHARD
@PICK
@implemented_in("plan_commands")
def plan() -> None:
    """Show the trials of an experiment in order, their cost, and what the testbed cannot run."""


@main.command()
@EXPERIMENT
@click.argument("key")
@TRIAL
@implemented_in("plan_commands")
def explain() -> None:
    """Show where the value of a key is set, and which other values it overrides."""


@main.command()
@EXPERIMENT
@PART
@click.option("--first", type=click.IntRange(min=1), metavar="N", help="Only the first N trials that match.")
@click.option(
    "--host",
    "hosts",
    multiple=True,
    metavar="HOST",
    shell_complete=completion.hosts,
    help="Only this host; can be repeated.",
)
@implemented_in("plan_commands")
def render() -> None:
    """Print the scripts that trials would run on each host, in order, without touching a host."""


@main.command()
@EXPERIMENT
@implemented_in("plan_commands")
def check() -> None:
    """Check that the hosts have what an experiment needs, without changing them."""


@main.command()
@EXPERIMENT
@implemented_in("plan_commands")
def sudoers() -> None:
    """Print the sudoers rules for running an experiment as a user other than root."""


@main.command()
@EXPERIMENT
@PICK
@NEW
@SHARD
@flag("--allow-partial", "Skip the trials that the testbed cannot run.")
@flag("--fail-fast", "Stop after the first trial that fails.")
@flag("--force/-f", "Take over hosts that another campaign has reserved.")
@click.option(
    "--events", default="", help="Append each event to this file as a line of JSON; - is standard output."
)
@click.option(
    "--shards",
    type=click.IntRange(min=1),
    metavar="N",
    help="Run all trials in N shards at the same time, each in a lab of its own, and merge them.",
)
@click.option(
    "--on",
    metavar="WHERE",
    help="Where the shards run: local (default), slurm, or the folder of a Snakemake profile.",
)
@in_project
def run(
    root: Path, request: Request, pick: Pick, shards: int | None, on: str | None, **arguments: Any
) -> int:
    """Run the trials of an experiment; after an interrupt or a change, run those that are missing."""
    from samovar.cli import campaign_commands, shard_commands

    if shards is None:
        if on:
            raise click.UsageError("--on needs --shards, such as --shards 4")
        return campaign_commands.run(root, request, pick=pick, **arguments)
    if pick or request.shard or arguments["events"]:
        raise click.UsageError(
            "--shards runs all trials; it cannot be combined with --shard, --events or picked trials"
        )
    names = {"--new": "new_campaign", "--force": "force", "--fail-fast": "fail_fast"}
    names |= {"--allow-partial": "allow_partial"}
    options = [option for option, name in names.items() if arguments[name]]
    return shard_commands.run_in_shards(root, request, shards, on or "local", options)


@main.command()
@click.argument("shards", nargs=-1, required=True, shell_complete=completion.campaigns)
@flag("--force/-f", "Merge even if shards are missing or were run with different versions.")
@implemented_in("shard_commands")
def merge() -> None:
    """Merge shards into one campaign; SHARDS are their campaigns, or an experiment for its newest shards."""


@main.command()
@_testbed("Testbed file in hosts/ (default: all testbeds with hosts that were left changed).")
@flag("--force/-f", "Take over hosts that another campaign has reserved.")
@implemented_in("campaign_commands")
def restore() -> None:
    """Restore hosts that were left changed when a campaign was killed."""


@main.command()
@CAMPAIGN
@ALL
@PRINT_JSON
@implemented_in("campaign_commands")
def status() -> None:
    """Show the progress of a running or ended campaign."""


@main.command()
@CAMPAIGN
@implemented_in("campaign_commands")
def verify() -> None:
    """Check every file of a campaign against its recorded checksum."""


@main.command()
@CAMPAIGN
@flag("--restore", "Restore the traces from the archive, and remove it.")
@implemented_in("campaign_commands")
def archive() -> None:
    """Move the traces of a campaign to one smaller file; `--restore` restores them byte for byte."""


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
@click.option(
    "--on",
    default="local",
    metavar="WHERE",
    help="Where trials are measured: local (default), slurm, or the folder of a Snakemake profile.",
)
@click.option(
    "--jobs",
    type=click.IntRange(min=1),
    metavar="N",
    help="Measure in N processes (default: 2) or, on a cluster, in N jobs (default: 8).",
)
@implemented_in("campaign_commands")
def analyse() -> None:
    """Measure the trials of a campaign and make its figures and tables (with R)."""


@main.command()
@CAMPAIGN
@PART
@click.option(
    "--format",
    "export_format",
    type=click.Choice(["csv", "parquet", "flent"]),
    help="Format to write (default: list the formats).",
)
@click.option(
    "--to", type=click.Path(path_type=Path), help="Folder to write to (default: export/ of the campaign)."
)
@flag("--overwrite", "Replace files of an earlier export.")
@implemented_in("campaign_commands")
def export() -> None:
    """Export results for other programs: tables as CSV or Parquet, trials as data files of Flent."""


@main.command()
@click.argument("a", shell_complete=completion.campaigns)
@click.argument("b", default="", shell_complete=completion.campaigns)
@_only("--only", "-o")
@_only("--only-a", of=" of A")
@_only("--only-b", of=" of B")
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
    help="Exit code 1 if a change is beyond this limit, 2 if that cannot be judged; can be repeated.",
)
@click.option(
    "--to", type=click.Path(path_type=Path), help="Folder to write to (default: in results/comparisons/)."
)
@flag("--all/-a/every_metric", "Show metrics without a change, too.")
@in_project
def compare(
    root: Path,
    b: str,
    only: tuple[str, ...],
    only_a: tuple[str, ...],
    only_b: tuple[str, ...],
    **arguments: Any,
) -> int:
    """Compare two campaigns, or two parts of one; print the changes, and write a PDF and JUnit XML."""
    from samovar.cli import compare_commands
    from samovar.plan import Pick

    if not b and not (only_a or only_b):
        raise click.UsageError("name a second campaign, or parts of the first with --only-a and --only-b")
    picks = Pick(only + only_a), Pick(only + only_b)
    return compare_commands.compare(root, b=b, picks=picks, **arguments)


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
def report(root: Path, campaign: str, study: str, pick: Pick) -> int:
    """Make the PDF of a campaign or study; exit code 1 if an expectation is not met, 2 if one has no data."""
    from samovar.cli import campaign_commands

    if pick and study:
        raise click.UsageError("--only and --trial pick trials of a campaign, not of a study")
    return campaign_commands.report(root, campaign, study, pick)


@main.command()
@flag("--no-open", "Only write the index.")
@implemented_in("campaign_commands")
def browse() -> None:
    """Write an index of all campaigns, results/index.html, and open it in a browser."""


@main.command()
@implemented_in("plan_commands")
def schema() -> None:
    """Regenerate editor schemas (in a checkout, also reference pages) after changing keys or recipes."""


@main.command()
@implemented_in("campaign_commands")
def demo() -> None:
    """Run the experiment `demo` in the virtual lab, analyse it and make its PDF."""


@main.command()
@click.argument("host", shell_complete=completion.hosts)
@click.argument("action", shell_complete=completion.power_actions)
@TESTBED
@FORCE
@implemented_in("lab_commands")
def power() -> None:
    """Switch or query the power of a host, with the method in the testbed file."""


@main.group(cls=Commands)
def lab() -> None:
    """Start, stop and enter the virtual lab of a testbed."""


@lab.command("up")
@TESTBED
@implemented_in("lab_commands")
def start_lab() -> None:
    """Start the virtual lab."""


@lab.command("down")
@TESTBED
@FORCE
@implemented_in("lab_commands")
def stop_lab() -> None:
    """Stop the virtual lab and all processes in it."""


@lab.command("status")
@TESTBED
@implemented_in("lab_commands")
def show_lab_status() -> None:
    """Show whether the virtual lab is running and which of its hosts answer."""


@lab.command("shell")
@click.argument("host", shell_complete=completion.hosts)
@TESTBED
@implemented_in("lab_commands")
def open_shell() -> None:
    """Open a shell on a host of the virtual lab."""


@main.group("import", cls=Commands)
def import_() -> None:
    """Import experiments or results of another tool."""


@import_.command("teacup")
@click.argument("config", type=click.Path(path_type=Path))
@click.option("--name", default="", help="Name of the experiment and the testbed (default: the file's).")
@implemented_in("import_commands")
def import_config() -> None:
    """Write an experiment and a testbed from a TEACUP configuration, without executing it."""


@import_.command("teacup-results")
@click.argument("folder", type=click.Path(path_type=Path))
@implemented_in("import_commands")
def import_results() -> None:
    """Make a campaign from a TEACUP results folder, for `analyse` and `report`."""


@main.command("completion")
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
def completion_script(shell: str) -> int:
    """Print a shell's completion script: `eval "$(samovar completion bash)"` in ~/.bashrc."""
    from click.shell_completion import get_completion_class

    kind = get_completion_class(shell)
    assert kind is not None
    click.echo(kind(main, {}, "samovar", "_SAMOVAR_COMPLETE").source())
    return 0


def run_commands(arguments: Sequence[str], root: Path | None = None) -> int:
    """Run one command line and return its exit code, which is 2 for a wrong argument.

    `root` is the project folder; None means the folder given by --project, otherwise the current folder.
    """
    try:
        return main.main(list(arguments), prog_name="samovar", standalone_mode=False, obj=root) or 0
    except click.ClickException as error:
        error.show()
        return error.exit_code
    except SamovarError as error:
        click.echo(str(error), err=True)
        return 1
    except (KeyboardInterrupt, click.Abort):
        return INTERRUPTED
    except click.exceptions.Exit as end:
        return end.exit_code
