"""Errors in the arguments and files of `fab` are reported in a sentence, without a traceback."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
FAB = Path(sys.executable).with_name("fab")


@pytest.fixture
def checkout(tmp_path: Path) -> Iterator[Path]:
    for name in ("samovar", "templates", "analysis"):
        (tmp_path / name).symlink_to(ROOT / name)
    for name in ("experiments", "hosts"):
        (tmp_path / name).mkdir()
    for name in ("config.yaml", "fabfile.py", "experiments/demo.yaml", "hosts/lab.yaml"):
        (tmp_path / name).write_bytes((ROOT / name).read_bytes())
    yield tmp_path


def fab(checkout: Path, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    environment = {"PATH": os.environ["PATH"], "HOME": str(checkout), **environment}
    return subprocess.run(
        [FAB, *arguments],
        cwd=checkout,
        env=environment,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("plan demoo", "experiments/: unknown experiment 'demoo'; did you mean 'demo'? known: demo"),
        ("plan demo --testbed labb", "hosts/: unknown testbed 'labb'; did you mean 'lab'? known: lab"),
        ("plan demo --testbed lab,", "--testbed lab,: empty name before or after a comma; write testbeds as in lab,dumbbell"),
        ("plan demo --profile quik", "--profile quik: unknown profile of demo 'quik'; known: none"),
        ("explain demo cc --trial x", "unknown trial 'x'; known: buffer-newreno-"),
        ("explain demo path.rat", "demo: unknown key 'path.rat'; did you mean 'path.rate'? known: "),
        ("status x", "no campaign 'x' in "),
        ("report --study x", "experiments/studies/: unknown study 'x'; known: none"),
        ("run demo --events /nowhere/x", "/nowhere/x: events cannot be written: No such file or directory"),
    ],
)  # fmt: skip
def test_a_wrong_argument_is_reported_with_the_known_names(
    checkout: Path, arguments: str, message: str
) -> None:
    done = fab(checkout, *arguments.split())
    assert done.returncode == 1
    assert done.stderr.startswith(message) or message in done.stderr.splitlines()


def test_errors_in_the_name_of_a_profile_in_overrides_and_in_files_are_reported_together(
    checkout: Path,
) -> None:
    path = checkout / "experiments/demo.yaml"
    path.write_text(
        path.read_text().replace("rtt: 4ms", "rtt: 4").replace("order: {kind: blocked", "order: {kind: block")
    )
    done = fab(checkout, "plan", "demo", "--profile", "quik", "--set", "duration=5")
    places = [line.split(": ")[0] for line in done.stderr.splitlines() if line[0] != " "]
    assert places == [
        "--profile quik",
        "--set duration=5",
        "experiments/demo.yaml:12:27",
        "experiments/demo.yaml:13:15",
    ]


def test_files_that_cannot_be_read_are_listed_with_the_reason(checkout: Path) -> None:
    (checkout / "experiments/folder.yaml").mkdir()
    (checkout / "hosts/broken.yaml").symlink_to("nowhere")
    done = fab(checkout, "list")
    assert (done.returncode, done.stderr) == (0, "")
    assert "  folder  (is a directory)" in done.stdout.splitlines()
    assert "  broken  (no such file or directory)" in done.stdout.splitlines()


@pytest.mark.parametrize(
    ("target", "message"),
    [("/dev/null", "is not a folder"), ("nowhere", "is a link to a missing folder"), ("results", "is a link to a missing folder")],
    ids=["file", "broken link", "link to itself"],
)  # fmt: skip
def test_a_results_path_that_is_not_a_folder_is_reported_before_a_lab_is_started(
    checkout: Path, target: str, message: str
) -> None:
    (checkout / "results").symlink_to(target)
    for task in ("plan", "run"):
        done = fab(checkout, task, "demo")
        assert (done.returncode, "Traceback" in done.stderr) == (1, False)
        assert message in done.stdout + done.stderr
        assert not (checkout / ".lab").exists()


def test_a_file_in_the_place_of_a_folder_is_reported(checkout: Path) -> None:
    (checkout / "experiments/fragments").write_text("")
    path = checkout / "experiments/demo.yaml"
    path.write_text(path.read_text().replace("testbed: lab", "testbed: lab\nuse: slow"))
    done = fab(checkout, "plan", "demo")
    assert (done.returncode, done.stderr) == (
        1,
        "experiments/fragments: not a directory; it must be a folder\n",
    )


def test_characters_that_the_terminal_cannot_encode_are_printed_as_escapes(checkout: Path) -> None:
    path = checkout / "experiments/demo.yaml"
    path.write_text(path.read_text().replace("A short queue", "A short q\u00fc\u00fc"), encoding="utf-8")
    done = fab(checkout, "list", LC_ALL="POSIX", PYTHONUTF8="0", PYTHONCOERCECLOCALE="0")
    assert (done.returncode, done.stderr) == (0, "")
    assert r"  demo  A short q\xfc\xfc, three congestion controls" in done.stdout.splitlines()


def test_a_closed_pipe_and_a_full_disk_give_no_traceback(checkout: Path) -> None:
    for shell, code, message in (
        ("fab plan demo | head -1", 0, ""),
        # `true` reads nothing, so that SIGPIPE may end `fab`, whose exit code is then 141.
        ("fab -l | true; case ${PIPESTATUS[0]} in 0 | 141) ;; *) exit 9 ;; esac", 0, ""),
        ("fab plan demo > /dev/full", 1, "no space left on device\n"),
    ):
        done = subprocess.run(
            ["bash", "-o", "pipefail", "-c", shell.replace("fab", str(FAB))], cwd=checkout, capture_output=True, text=True,
            timeout=120, check=False,
        )  # fmt: skip
        assert (done.returncode, done.stderr) == (code, message)


def test_an_error_is_shown_with_its_place_in_a_narrow_terminal(checkout: Path) -> None:
    path = checkout / "experiments/demo.yaml"
    path.write_text(path.read_text().replace("buffer: 100packets", "buffer: 100"))
    _, line, caret = fab(checkout, "plan", "demo", COLUMNS="40", NO_COLOR="1").stderr.splitlines()
    assert max(len(line), len(caret)) <= 40
    assert line[caret.index("^") :].startswith("100")


def test_listing_the_tasks_imports_no_slow_module() -> None:
    done = subprocess.run(
        [sys.executable, "-X", "importtime", FAB, "-l"], cwd=ROOT, capture_output=True, text=True, check=True
    )
    imported = {line.rpartition("|")[2].strip() for line in done.stderr.splitlines()}
    assert "fabric" in imported
    assert not imported & {
        "pydantic",
        "jinja2",
        "rich.console",
        "typst",
        "samovar.experiment",
        "samovar.plan",
    }
