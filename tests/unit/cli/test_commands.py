"""The command line of `samovar` and `fab`: projects, arguments, completion, pipes, Ctrl-C."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.unit.plan_values import plan_of, trial

ROOT = Path(__file__).parents[3]
SAMOVAR = (sys.executable, "-m", "samovar")
PLAN = plan_of([trial("cubic"), trial("cdg")])
FAB = (str(Path(sys.executable).with_name("fab")),)


def run(
    folder: Path, *words: str, program: tuple[str, ...] = SAMOVAR, **variables: str
) -> tuple[int, str, str]:
    """Run a command in a folder; return its exit code, standard output and standard error."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "COLUMNS": "100", **variables}
    command = [*program, *words]
    done = subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, timeout=120, check=False
    )
    return done.returncode, done.stdout, done.stderr


def test_the_command_browse_opens_the_index_of_campaigns(project: Path, tmp_path: Path) -> None:
    opened = tmp_path / "opened"
    browser = tmp_path / "browser"
    browser.write_text(f'#!/bin/sh\necho "$1" > {opened}\n')
    browser.chmod(0o755)
    code, out, err = run(project, "browse", BROWSER=str(browser))
    index = project / "results" / "index.html"
    assert (code, out, err) == (0, f"0 campaigns: {index}\n", "")
    assert opened.read_text().strip() == index.as_uri()
    opened.unlink()
    assert run(project, "browse", "--no-open", BROWSER=str(browser))[0] == 0
    assert "No campaign yet." in index.read_text()
    assert not opened.exists()


def test_a_tilde_in_the_path_of_the_results_folder_means_the_home_folder(tmp_path: Path) -> None:
    (tmp_path / "config.yaml").write_text("results: ~/campaigns\n")
    code, out, _ = run(tmp_path, "browse", "--no-open", HOME=str(tmp_path / "home"))
    assert (code, out) == (0, f"0 campaigns: {tmp_path / 'home' / 'campaigns' / 'index.html'}\n")


def completed(folder: Path, *words: str) -> list[str]:
    """Return the completions that bash is offered for the last word."""
    line = " ".join(["samovar", *words])
    code, out, err = run(folder, _SAMOVAR_COMPLETE="bash_complete", COMP_WORDS=line)
    assert (code, err) == (0, "")
    return [line.partition(",")[2] for line in out.splitlines()]


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a project made by `samovar init`."""
    folder = tmp_path_factory.mktemp("mine") / "project"
    code, out, err = run(folder.parent, "init", "project")
    assert (code, err) == (0, "")
    assert "next: cd project" in out
    return folder


def test_samovar_and_fab_plan_a_new_project_from_its_folder_its_parent_and_a_subfolder(project: Path) -> None:
    outs = {
        run(project, "plan", "first"),
        run(project / "experiments", "plan", "first"),
        run(project, "plan", "experiments/first.yaml"),
        run(project.parent, "--project", "project", "plan", "first"),
        run(project, "plan", "first", program=FAB),
    }
    assert len(outs) == 1
    code, out, err = outs.pop()
    assert (code, err) == (0, "")
    assert "6 trials" in out


def test_an_experiment_of_a_project_may_extend_a_shipped_experiment(tmp_path: Path) -> None:
    assert run(tmp_path, "init", "mine")[0] == 0
    assert run(tmp_path / "mine", "new", "longer", "--from", "demo")[0] == 0
    code, out, err = run(tmp_path / "mine", "plan", "longer")
    assert (code, err) == (0, "")
    assert out.startswith("longer (full) on lab: demo, changed\n")


def test_a_project_uses_shipped_experiments_and_its_own_recipe_replaces_the_shipped_one(
    project: Path,
) -> None:
    recipe = project / "templates" / "linux" / "aqm" / "pfifo.sh.j2"
    recipe.parent.mkdir(parents=True)
    shipped = (ROOT / "templates" / "linux" / "aqm" / "pfifo.sh.j2").read_text()
    summary = next(line for line in shipped.splitlines() if line.startswith("summary:"))
    recipe.write_text(shipped.replace(summary, "summary: Mine."))
    lines = [line.split() for line in run(project, "list")[1].splitlines()]
    assert next(line for line in lines if line[:1] == ["first"])[:2] == ["first", "project"]
    assert next(line for line in lines if line[:1] == ["demo"])[:2] == ["demo", "samovar"]
    assert ["pfifo", "project", "linux", "Mine."] in lines
    assert run(project, "plan", "demo")[0] == 0


def test_a_command_outside_of_a_project_says_how_to_make_a_project() -> None:
    assert run(Path("/"), "plan", "demo") == (
        1,
        "",
        "/: not in a project: neither this folder nor one above has experiments/ or config.yaml; "
        "`samovar init FOLDER` makes a project\n",
    )


def test_a_deleted_folder_is_reported_without_a_traceback(tmp_path: Path) -> None:
    folder = tmp_path / "gone"
    folder.mkdir()
    delete = "import os, sys; os.rmdir(os.getcwd()); os.execv(sys.argv[1], sys.argv[1:])"
    code, out, err = run(folder, "list", program=(sys.executable, "-c", delete, *SAMOVAR))
    assert (code, out) == (1, "")
    assert err == "the current folder has been deleted; change to a project's folder\n"


def test_init_does_not_overwrite_a_project(project: Path) -> None:
    code, _, err = run(project.parent, "init", "project")
    assert code == 1
    assert err == "project: experiments/first.yaml exists already; choose a folder that is not a project\n"


@pytest.mark.parametrize("program", [SAMOVAR, FAB])
def test_an_unknown_command_is_reported_with_the_nearest_known_command(
    project: Path, program: tuple[str, ...]
) -> None:
    code, _, err = run(project, "pln", "demo", program=program)
    assert code == 2
    assert "unknown command 'pln'; did you mean 'plan'?" in err


@pytest.mark.parametrize("words", [("lab", "status"), ("lab.status",)])
def test_a_command_of_the_lab_may_be_written_with_a_dot(project: Path, words: tuple[str, ...]) -> None:
    assert run(project, *words)[:2] == (1, "lab lab: not running\n")


def test_the_option_help_may_precede_or_follow_the_command(project: Path) -> None:
    code, out, _ = run(project, "plan", "--help")
    assert (code, out.splitlines()[0]) == (0, "Usage: samovar plan [OPTIONS] EXPERIMENT")
    assert run(project, "--help", "plan", program=FAB)[1] == out
    assert run(project, "plan", "--help", program=FAB)[1] == out


def test_completion_offers_commands_names_levels_and_options(project: Path) -> None:
    assert completed(project, "pl") == ["plan"]
    assert completed(project, "plan", "fi") == ["first"]
    assert completed(project, "plan", "first", "--testbed", "la") == ["lab"]
    assert completed(project, "plan", "first", "--set", "cc=") == ["cc=newreno", "cc=cubic"]
    assert completed(project, "run", "first", "--fail") == ["--fail-fast"]
    assert completed(project, "run", "first", "--only", "cc=") == ["cc=newreno", "cc=cubic"]
    assert completed(project, "plan", "demo", "--only", "cc=cubic,cd") == ["cc=cubic,cdg"]
    assert completed(project, "plan", "demo", "--only", "'cc=cubic mtu=12") == ["cc=cubic mtu=1200"]
    assert completed(project, "lab", "") == ["down", "shell", "status", "up"]
    assert completed(project, "report", "--study", "net") == ["netgear"]
    assert completed(project, "compare", "a", "b", "--fail-if", "goodput") == ["goodput_bps"]


@pytest.mark.parametrize(
    ("file", "text", "words"),
    [
        ("experiments/edited.yaml", "factors: [cc]", ("run", "edited", "--set", "")),
        ("experiments/edited.yaml", "profiles: x", ("run", "edited", "--profile", "")),
        ("config.yaml", "results: 5", ("analyse", "")),
        ("results/mine/full-1/plan.json", '{"parts": [{}]}', ("analyse", "mine", "--only", "")),
        ("results/mine/full-1/plan.json", "{}", ("analyse", ".", "--only", "")),
    ],
)
def test_completion_offers_nothing_and_prints_no_error_if_a_file_is_invalid(
    tmp_path: Path, file: str, text: str, words: tuple[str, ...]
) -> None:
    for folder in ("experiments", "results/mine/full-1"):
        (tmp_path / folder).mkdir(parents=True)
    (tmp_path / file).write_text(text)
    assert not any(completed(tmp_path, *words))


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_a_completion_script_is_printed_for_each_shell(tmp_path: Path, shell: str) -> None:
    code, out, _ = run(tmp_path, "completion", shell)
    assert code == 0
    assert "_SAMOVAR_COMPLETE" in out


def test_help_imports_no_slow_module(project: Path) -> None:
    command = [sys.executable, "-X", "importtime", "-m", "samovar", "plan", "--help"]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(command, cwd=project, env=environment, capture_output=True, text=True, check=True)
    imported = {line.rpartition("|")[2].strip() for line in done.stderr.splitlines()}
    assert "click" in imported
    assert not imported & {
        "pydantic",
        "jinja2",
        "fabric",
        "rich.console",
        "samovar.experiment",
        "samovar.plan",
    }


@pytest.mark.parametrize(("words", "first"), [("list", "experiments\n"), ("plan demo --json", "{\n")])
def test_a_command_whose_output_pipe_is_closed_ends_without_an_error(
    words: str, first: str, project: Path
) -> None:
    words = " ".join([*SAMOVAR, words, "|", "head", "-1"])
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        ["bash", "-o", "pipefail", "-c", words], cwd=project, env=environment, capture_output=True, text=True
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, first, "")


def test_ctrl_c_while_a_command_starts_gives_exit_code_130_and_no_traceback(project: Path) -> None:
    interrupted = (
        "import builtins, signal, sys\n"
        "load = builtins.__import__\n"
        "def interrupting(name, *others, **named):\n"
        "    if name == 'samovar.cli.project': signal.raise_signal(signal.SIGINT)\n"
        "    return load(name, *others, **named)\n"
        "builtins.__import__ = interrupting\n"
        "sys.argv = ['samovar', 'list']\n"
        "from samovar.__main__ import main\n"
        "main()"
    )
    program = ("env", "--default-signal=INT", sys.executable, "-c", interrupted)
    code, out, err = run(project, program=program)
    assert (code, out, err.strip()) == (130, "", "")


def test_completion_offers_trials_and_levels_of_a_campaign(project: Path) -> None:
    campaign = project / "results" / "mine" / "full-20260101-000000"
    campaign.mkdir(parents=True)
    (campaign / "plan.json").write_bytes(PLAN.to_json())
    for words in (("analyse", "mine"), ("report", f"mine/{campaign.name}")):
        assert completed(project, *words, "--trial", "cu") == ["cubic-r1-6"]
        assert completed(project, *words, "--only", "cc=c") == ["cc=cubic", "cc=cdg"]
    (campaign / "plan.json").write_text("{")
    assert not any(completed(project, "analyse", "mine", "--trial", ""))


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        (("plan", "first", "--only", "cc=cubi"), 1, "--only cc=cubi: unknown level of cc 'cubi'; did you mean 'cubic'?"),
        (("run", "first", "--trial", "x"), 1, "--trial x: unknown trial 'x'; "),
        (("run", "first", "--again", "failed"), 1, "first has no campaign, so no trial can run again; "),
        (("run", "first", "--again", "failed", "--new"), 2, "--again runs trials of an existing campaign"),
        (("run", "first", "--again", "fail"), 2, "'fail' is not one of 'invalid', 'suspect', 'failed'"),
        (("run", "first", "--first", "0"), 2, "0 is not in the range x>=1"),
        (("report", "--study", "netgear", "--only", "cc=cubic"), 2, "pick trials of a campaign, not of a study"),
        (("report", "first", "--study", "netgear"), 2, "leave out CAMPAIGN or --study"),
        (("compare", "first", "other", "--to", "config.yaml"), 2, "'--to': Directory 'config.yaml' is a file."),
        (("export", "first", "--to", "config.yaml"), 2, "'--to': Directory 'config.yaml' is a file."),
    ],
)  # fmt: skip
def test_a_wrong_option_is_reported_before_a_campaign_is_created(
    project: Path, words: tuple[str, ...], code: int, message: str
) -> None:
    found, _, err = run(project, *words)
    assert (found, message in err, "Traceback" in err) == (code, True, False), err
    assert not (project / "results" / "first").exists()


def test_a_plan_of_picked_trials_shows_their_number_and_cost(project: Path) -> None:
    code, out, _ = run(project, "plan", "first", "--only", "cc=cubic", "--first", "2")
    assert code == 0
    assert "picked: 2 of them (cc=cubic, first 2)" in out.splitlines()
    assert "new campaign: 2 trials to run" in out.splitlines()
    assert "\ncost: 2 trials, " in out
    code, out, _ = run(project, "plan", "first", "--only", "cc=cubic", "--json")
    assert {one["treatment"]["cc"] for one in json.loads(out)["trials"]} == {"cubic"}


def test_a_plan_of_one_trial_can_be_printed_as_csv(project: Path) -> None:
    head, first, *_ = run(project, "plan", "first", "--csv")[1].splitlines()
    id_ = first.split(",")[1]
    assert run(project, "plan", "first", "--csv", "--trial", id_) == (0, f"{head}\n{first}\n", "")


@pytest.mark.parametrize(
    ("words", "typed", "expected"),
    [
        (["cc", "=", "cu"], "cc=cu", ["cubic"]),
        (["cc", "="], "cc=", ["newreno", "cubic"]),
        (["cc", "=", "cubic,new"], "cc=cubic,new", ["cubic,newreno"]),
        (["'cc=cu"], "'cc=cu", ["cc=cubic"]),
        (["c"], "c", ["cc=newreno", "cc=cubic"]),
    ],
)
def test_bash_is_offered_only_the_part_of_an_argument_that_it_will_replace(
    project: Path, tmp_path: Path, words: list[str], typed: str, expected: list[str]
) -> None:
    program = tmp_path / "samovar"
    program.write_text(f'#!/bin/sh\nexec {" ".join(SAMOVAR)} "$@"\n')
    program.chmod(0o755)
    script = """
    eval "$(samovar completion bash)"
    COMP_LINE="samovar plan first --only $1"; COMP_POINT=${#COMP_LINE}; shift
    COMP_WORDS=(samovar plan first --only "$@"); COMP_CWORD=$(($# + 3))
    _samovar_completion samovar
    printf '%s\\n' "${COMPREPLY[@]}"
    """
    done = subprocess.run(
        ["bash", "--norc", "-c", script, "bash", typed, *words],
        cwd=project,
        env={**os.environ, "PATH": f"{tmp_path}:{os.environ['PATH']}", "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=True,
    )
    assert (done.stdout.split(), done.stderr) == (expected, "")
