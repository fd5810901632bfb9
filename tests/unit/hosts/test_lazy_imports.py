"""Slow third-party packages are imported when they are needed, so that commands without hosts start at once."""

from __future__ import annotations

import subprocess
import sys

import pytest


@pytest.mark.parametrize(
    ("package", "imported_later"),
    [
        ("samovar.hosts", {"fabric", "invoke", "paramiko", "jinja2"}),
        ("samovar.lab", {"fabric", "invoke", "paramiko", "jinja2"}),
        ("samovar.recipes", {"jinja2"}),
    ],
)
def test_importing_a_package_imports_neither_the_ssh_library_nor_the_template_engine(
    package: str, imported_later: set[str]
) -> None:
    text = f"import sys, {package}; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, check=True)
    assert imported_later & set(done.stdout.split()) == set()
