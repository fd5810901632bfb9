"""tools/lab-kernel, which fetches another kernel for labs: refused arguments, and verification by apt."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
from pathlib import Path

import pytest

PACKAGE = "Package: user-mode-linux\nVersion: 99\nArchitecture: amd64\nFilename: x.deb\nSize: 1\nSHA256: 00\n"
RELEASE = (
    "Suite: sid\nCodename: sid\nArchitectures: amd64\nComponents: main\nDate: Sun, 22 Nov 2026 00:00:00 UTC\n"
)
PACKAGES_FILE = "main/binary-amd64/Packages"


@pytest.fixture
def checkout(tmp_path: Path, root: Path) -> Path:
    """Return a folder that contains only the tool."""
    folder = tmp_path / "a checkout"
    (folder / "tools").mkdir(parents=True)
    shutil.copy(root / "tools" / "lab-kernel", folder / "tools")
    return folder


def refusal(checkout: Path, suite: str, mirror: str = "file:///nowhere") -> str:
    """Run the tool, which must fail and leave no files behind; return its standard error."""
    command = [str(checkout / "tools" / "lab-kernel"), suite]
    environment = {**os.environ, "MIRROR": mirror}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode != 0, done.stdout
    assert not (checkout / ".bin").exists()
    assert list(checkout.glob(".stamps/lab-kernel/*")) == []
    return done.stderr


@pytest.mark.parametrize("suite", ["a b", "-o", "../sid", "sid;true"])
def test_an_invalid_suite_name_is_refused(checkout: Path, suite: str) -> None:
    assert f"suite '{suite}': expected the name of a suite" in refusal(checkout, suite)


def test_a_missing_archive_is_reported(checkout: Path) -> None:
    assert "file:///nowhere: suite sid could not be read" in refusal(checkout, "sid")


def test_an_unsigned_archive_is_refused(checkout: Path, tmp_path: Path) -> None:
    suite = tmp_path / "archive" / "dists" / "sid"
    (suite / PACKAGES_FILE).parent.mkdir(parents=True)
    (suite / PACKAGES_FILE).write_text(PACKAGE)
    sums = f"SHA256:\n {hashlib.sha256(PACKAGE.encode()).hexdigest()} {len(PACKAGE)} {PACKAGES_FILE}\n"
    (suite / "Release").write_text(RELEASE + sums)
    assert "sid Release' is not signed" in refusal(checkout, "sid", f"file://{tmp_path}/archive")


def test_a_folder_whose_path_the_kernel_cannot_use_is_refused(checkout: Path) -> None:
    other = checkout.rename(checkout.with_name("a:b"))
    assert "below a folder with :" in refusal(other, "sid")
