"""Setting recipe `command`: a user's command runs unchanged, and is refused without a command that undoes it or `undo: none`."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from samovar.campaign.host_state import changed, parse_state
from samovar.recipes import Catalogue
from tests.unit.plans import CATALOGUE, planned, study

FUNCTIONS = 'fail() { echo "$*" >&2; exit 1; }\n'
TROUBLE = 'it\'s; $(touch injected) `touch injected` "double" \\ *'


def run(block: str, folder: Path, **values: str) -> subprocess.CompletedProcess[str]:
    recipe = CATALOGUE.recipe("setting", "command", "linux")
    (folder / "campaign" / "trial").mkdir(parents=True, exist_ok=True)
    script = f"{FUNCTIONS}dir={folder}/campaign/trial\n" + recipe.render(block, {**values, "was": {}})
    return subprocess.run(["sh", "-c", script], cwd=folder, capture_output=True, text=True, check=False)


def test_the_state_that_a_command_changes_is_read_and_restored(tmp_path: Path) -> None:
    values = {"run": "echo on >f", "undo": "rm f", "state": "cat f 2>/dev/null; true"}
    before = run("read", tmp_path, **values).stdout
    assert run("set", tmp_path, **values).returncode == 0
    during = run("read", tmp_path, **values).stdout
    assert run("restore", tmp_path, **values).stdout == ""
    after = run("read", tmp_path, **values).stdout
    assert parse_state(during) == {"command.state": "on"}
    assert before == after != during


def test_the_output_of_commands_is_not_part_of_the_state(tmp_path: Path) -> None:
    values = {"run": "echo mode=on", "undo": "echo mode=off"}
    printed = [run(block, tmp_path, **values) for block in ("set", "restore")]
    assert [parse_state(done.stdout) for done in printed] == [{}, {}]
    assert [done.stderr for done in printed] == ["mode=on\n", "mode=off\n"]


def test_a_failed_undo_is_reported_as_a_difference_of_the_state(tmp_path: Path) -> None:
    values = {"run": "true", "undo": "exit 7"}
    before = parse_state(run("read", tmp_path, **values).stdout)
    run("set", tmp_path, **values)
    restored = run("restore", tmp_path, **values).stdout + run("read", tmp_path, **values).stdout
    assert [one.key for one in changed(before, parse_state(restored))] == ["command.undo"]


def test_an_undo_that_is_repeated_or_comes_before_its_command_may_fail(tmp_path: Path) -> None:
    # Both happen if a trial fails, or if a host has restored itself because it lost its controller.
    values = {"run": "mkdir f", "undo": "rmdir f"}
    for block in ("restore", "set", "restore", "restore"):
        assert run(block, tmp_path, **values).stdout == ""
    assert list((tmp_path / "campaign").iterdir()) == [tmp_path / "campaign" / "trial"]


def test_a_command_without_an_undo_is_refused_before_it_runs(tmp_path: Path) -> None:
    done = run("set", tmp_path, run="touch f")
    assert done.returncode == 1
    assert "command.run needs command.undo" in done.stderr
    assert not (tmp_path / "f").exists()


def test_a_command_may_be_declared_not_reversible(tmp_path: Path) -> None:
    assert run("set", tmp_path, run="touch f", undo="none").returncode == 0
    assert run("restore", tmp_path, run="touch f", undo="none").stdout == ""
    assert (tmp_path / "f").exists()


def test_a_failed_command_fails_the_setting_with_its_exit_code(tmp_path: Path) -> None:
    done = run("set", tmp_path, run="exit 3", undo="none")
    assert (done.returncode, done.stderr.strip()) == (1, "command.run failed with exit code 3")


@pytest.mark.parametrize("block", ["read", "set", "restore"])
def test_a_command_with_any_characters_is_passed_to_sh_as_one_argument(block: str, tmp_path: Path) -> None:
    recipe = CATALOGUE.recipe("setting", "command", "linux")
    script = recipe.render(block, {"run": TROUBLE, "undo": TROUBLE, "state": TROUBLE, "was": {}})
    shell = FUNCTIONS + 'dir=trial/x\nsh() { printf "<%s>" "$2"; }\n' + script
    (tmp_path / "trial").mkdir()
    done = subprocess.run(["sh", "-c", shell], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert f"<{TROUBLE}>" in done.stdout + done.stderr
    assert not (tmp_path / "injected").exists()


@pytest.mark.parametrize("system", ["linux", "freebsd"])
def test_linux_and_freebsd_have_the_setting_command(system: str) -> None:
    catalogue: Catalogue = CATALOGUE
    assert catalogue.parameters("setting", "command", system)


def test_commands_may_be_levels_of_a_factor_for_one_host() -> None:
    text = study(
        "settings: {command.undo: {receiver: none}}\n"
        "factors: {load: {sets: command.run, at: receiver, levels: ['true', 'sleep 1']}}\n"
    )
    settings = [trial.resolved.hosts for trial in planned(text).trials]
    assert {hosts["dst"].settings["command"]["run"] for hosts in settings} == {"true", "sleep 1"}
    assert all("command" not in hosts["src"].settings for hosts in settings)
