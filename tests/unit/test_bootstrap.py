"""tools/bootstrap installs what is missing and nothing else; the tests run it in a new folder with empty locks."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from samovar.errors import InstallationError
from samovar.installation import lab_program

ROOT = Path(__file__).parent.parent.parent
LOCKS = ("requirements.lock", "requirements-dev.lock")


def clone_in(folder: Path) -> Path:
    """Make a clone that needs no package beyond the machine's own, and has no R package."""
    (folder / "tools").mkdir()
    shutil.copy(ROOT / "tools" / "bootstrap", folder / "tools")
    (folder / "packages.debian").write_text("# a comment\n\nbash   # always there\ncoreutils\n")
    for lock in LOCKS:
        (folder / lock).write_text("# nothing\n")
    return folder


@pytest.fixture
def clone(tmp_path: Path) -> Path:
    """A clone in which nothing is installed."""
    return clone_in(tmp_path)


@pytest.fixture(scope="module")
def installed_clone(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A clone in which everything is installed, before and after each test."""
    clone = clone_in(tmp_path_factory.mktemp("clone"))
    first = bootstrap(clone, "--dev")
    assert first.returncode == 0, first.stderr
    assert "creating .venv" in first.stdout
    return clone


def bootstrap(clone: Path, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    command = [str(clone / "tools" / "bootstrap"), *arguments]
    return subprocess.run(
        command, env={**os.environ, **environment}, stdin=subprocess.DEVNULL, capture_output=True, text=True
    )


def test_a_second_run_installs_nothing(installed_clone: Path) -> None:
    second = bootstrap(installed_clone, "--dev")
    assert (second.returncode, second.stdout) == (0, "samovar: nothing to install\n")


def test_python_of_the_clone_imports_the_modules_of_the_clone_in_every_folder(
    installed_clone: Path, tmp_path: Path
) -> None:
    (installed_clone / "samovar.py").write_text("print('found')")
    python = installed_clone / ".venv" / "bin" / "python"
    command = [str(python), "-c", "import samovar"]
    assert subprocess.run(command, cwd=tmp_path, capture_output=True, text=True).stdout == "found\n"


def test_only_the_lock_file_that_changed_is_installed_again(installed_clone: Path) -> None:
    (installed_clone / "requirements-dev.lock").write_text("# nothing, with another comment\n")
    again = bootstrap(installed_clone, "--dev")
    assert again.stdout == "samovar: installing requirements-dev.lock into .venv\n"


def test_devices_must_be_compiled_again_after_a_change_of_their_sources(
    installed_clone: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("samovar.installation.CHECKOUT", installed_clone)
    sources = installed_clone / "samovar" / "lab" / "devices"
    sources.mkdir(parents=True)
    programs = " ".join(f"$(OUT)/{name}" for name in ("adapter", "wlan", "register_state.so"))
    (sources / "Makefile").write_text(f"all:\n\ttouch {programs}\n\tchmod +x {programs}\n")
    compiled = "samovar: compiling samovar/lab/devices into .bin\n"
    for source in ("int first;", "int second;"):
        (sources / "device.c").write_text(source)
        with pytest.raises(InstallationError, match=r"must be compiled, .*; run `make install` in "):
            lab_program("wlan")
        assert bootstrap(installed_clone).stdout == compiled
        assert lab_program("wlan") == installed_clone / ".bin" / "wlan"
    assert bootstrap(installed_clone).stdout == "samovar: nothing to install\n"
    shutil.rmtree(installed_clone / "samovar")


def test_a_virtual_environment_that_was_removed_is_made_again(installed_clone: Path) -> None:
    shutil.rmtree(installed_clone / ".venv")
    again = bootstrap(installed_clone, "--dev")
    expected = ["creating .venv", *(f"installing {lock} into .venv" for lock in LOCKS)]
    assert again.stdout.splitlines() == [f"samovar: {line}" for line in expected]


def test_a_package_whose_hash_differs_is_refused(installed_clone: Path) -> None:
    lock, wheel = installed_clone / "requirements.lock", installed_clone / "wrong-1-py3-none-any.whl"
    before = lock.read_text()
    wheel.write_bytes(b"not what was locked")
    lock.write_text(f"wrong @ {wheel.as_uri()} --hash=sha256:{'0' * 64}\n")
    refused = bootstrap(installed_clone)
    lock.write_text(before)
    assert refused.returncode == 1
    assert "DO NOT MATCH THE HASHES" in refused.stderr
    assert refused.stderr.splitlines()[-1].startswith("samovar: pip could not install requirements.lock")
    assert bootstrap(installed_clone).stdout == "samovar: nothing to install\n"


def test_a_missing_interpreter_is_reported(clone: Path) -> None:
    refused = bootstrap(clone, PYTHON="/nonexistent/python3")
    assert refused.returncode == 1
    assert refused.stderr.startswith("samovar: no program /nonexistent/python3; name Python 3.11 or newer")


def test_missing_packages_are_listed_for_a_user_who_cannot_install_them(clone: Path) -> None:
    (clone / "packages.debian").write_text("bash\nno-such-package-for-samovar\n")
    # The programs that the script needs, without sudo, and an `id` that prints the number of an ordinary user.
    programs = clone / "programs"
    programs.mkdir()
    for name in (
        "bash",
        "cat",
        "comm",
        "dirname",
        "dpkg-query",
        "flock",
        "mkdir",
        "sed",
        "sort",
        "stat",
        "xargs",
    ):
        found = shutil.which(name)
        assert found
        (programs / name).symlink_to(found)
    (programs / "id").write_text("#!/bin/sh\necho 1000\n")
    (programs / "id").chmod(0o755)
    refused = bootstrap(clone, PATH=str(programs))
    assert refused.returncode == 1
    assert refused.stderr.splitlines() == [
        "samovar: Debian packages are missing, and this user is neither root nor may use sudo; as root, run:",
        "  apt-get install --no-install-recommends no-such-package-for-samovar",
    ]
    assert not (clone / ".venv").exists()
