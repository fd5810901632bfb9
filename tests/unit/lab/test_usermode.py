"""The user-mode kernel of a lab: the configuration, and the message for each error."""

from __future__ import annotations

from pathlib import Path

import pytest

from samovar import lab
from samovar.cli.controller import Controller
from samovar.errors import DefinitionError, LabError
from samovar.experiment import load_config
from samovar.lab import kernel as lab_kernel
from samovar.lab.kernel import DEBIAN_USER_MODE, find_user_mode

INSTALL_HINT = "install a user-mode Linux that runs here: `apt install user-mode-linux`, or `make lab-kernel`"


def program(folder: Path, text: str = "#!/bin/sh\necho 9.9.9\n", mode: int = 0o755) -> Path:
    """Make a program that prints its release, as a user-mode kernel does."""
    path = folder / "linux.uml"
    path.write_text(text)
    path.chmod(mode)
    return path


def refusal(kernel: lab.UserModeConfig) -> str:
    with pytest.raises(LabError) as raised:
        find_user_mode(kernel)
    return str(raised.value)


def test_debian_s_own_kernel_is_found_with_its_modules() -> None:
    found = find_user_mode(DEBIAN_USER_MODE)
    assert found.program.name == "linux.uml"
    assert (found.modules / found.release / "modules.dep").is_file()


def test_the_release_is_the_one_that_the_kernel_prints(tmp_path: Path) -> None:
    (tmp_path / "modules" / "9.9.9").mkdir(parents=True)
    found = find_user_mode(lab.UserModeConfig(str(program(tmp_path)), tmp_path / "modules"))
    assert (found.program, found.release) == (tmp_path / "linux.uml", "9.9.9")


def test_relative_paths_in_config_yaml_are_relative_to_the_project(tmp_path: Path) -> None:
    (tmp_path / "config.yaml").write_text("lab: {uml: {program: k/linux.uml, modules: k/modules}}\n")
    assert Controller(tmp_path).connections.user_mode == lab.UserModeConfig(
        f"{tmp_path}/k/linux.uml", tmp_path / "k/modules"
    )


def test_the_default_is_the_program_on_path_with_debian_s_modules(tmp_path: Path) -> None:
    (tmp_path / "config.yaml").write_text("retries: 0\n")
    assert Controller(tmp_path).connections.user_mode == DEBIAN_USER_MODE


def test_an_unknown_key_is_refused_with_the_known_keys(tmp_path: Path) -> None:
    (tmp_path / "config.yaml").write_text("lab: {uml: {programm: linux.uml}}\n")
    with pytest.raises(DefinitionError, match=r"programm.*program"):
        load_config(tmp_path / "config.yaml")


def test_a_program_that_is_missing_or_not_executable_is_refused(tmp_path: Path) -> None:
    plain = str(program(tmp_path, mode=0o644))
    for name in ("linux.nowhere", f"{tmp_path}/none", plain):
        message = f"lab.uml.program: {name}: not a program that this user may start; {INSTALL_HINT}"
        assert refusal(lab.UserModeConfig(name)) == message


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("#!/bin/sh\necho bad >&2; exit 3\n", "`--version` ends with status 3: bad"),
        ("#!/bin/sh\necho some other program\n", "status 0: some other program"),
        ("#!/bin/sh\n", "status 0: no output"),
        ("#!/nowhere/sh\n", "No such file or directory"),
        ("\0", "Exec format error"),
    ],
)
def test_a_program_without_a_release_is_refused_with_its_output(
    tmp_path: Path, text: str, reason: str
) -> None:
    message = refusal(lab.UserModeConfig(str(program(tmp_path, text))))
    assert message.startswith(f"lab.uml.program: {tmp_path}/linux.uml: ")
    assert reason in message
    assert message.endswith(INSTALL_HINT)


def test_a_program_that_the_boot_folder_would_hide_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lab_kernel, "HIDDEN", tmp_path)
    assert "where a lab has its own files; move the program elsewhere" in refusal(
        lab.UserModeConfig(str(program(tmp_path)))
    )


@pytest.mark.parametrize(
    ("folders", "present"),
    [([], "none"), (["."], "none"), (["8.1", "8.2"], "8.1, 8.2")],
)
def test_modules_of_another_release_are_refused_with_the_present_releases(
    tmp_path: Path, folders: list[str], present: str
) -> None:
    for name in folders:
        (tmp_path / "m" / name).mkdir(parents=True)
    message = refusal(lab.UserModeConfig(str(program(tmp_path)), tmp_path / "m"))
    problem = f"no modules for 9.9.9, the release of {tmp_path}/linux.uml; present: {present}"
    assert message == f"lab.uml.modules: {tmp_path}/m: {problem}"
