"""Text from hosts cannot control the terminal of the user."""

from __future__ import annotations

import io
import subprocess
import sys
from pathlib import Path

import pytest
from rich.console import Console

from samovar.cli.progress import EventDisplay
from samovar.cli.text import harmless

ROOT = Path(__file__).parents[3]
CONTROL_SEQUENCES = [
    "\x1b[2J",
    "\x1b]0;title\x07",
    "\x1b]52;c;cm0gLXJm\x07",
    "\x9b31m",
    "\x08\x08",
    "\r",
    "\u202egnp.exe",
    "\u2066",
    "\udcff",
    "\x00",
]


@pytest.mark.parametrize("text", CONTROL_SEQUENCES)
def test_a_terminal_escape_becomes_a_dot(text: str) -> None:
    shown = harmless(f"iperf3 {text} 3.12")
    assert shown.startswith("iperf3 ·")
    assert shown.endswith(" 3.12")
    assert shown.isprintable()


def test_text_without_terminal_escapes_is_unchanged() -> None:
    text = "✓ größer\t3 µs — 测试\nzwei é"
    assert harmless(text) == text


@pytest.mark.parametrize("text", CONTROL_SEQUENCES)
def test_progress_lines_contain_no_terminal_escapes(text: str) -> None:
    out = io.StringIO()
    EventDisplay(console=Console(file=out, force_terminal=False)).line(f"src: {text}!")
    assert "src: ·" in out.getvalue()
    assert text not in out.getvalue().rstrip("\n")


def test_errors_and_listings_contain_no_terminal_escapes() -> None:
    program = (
        "from samovar.cli.program import show, show_error; from samovar.errors import SamovarError\n"
        "show(['a\\x1b[2Jb']); show_error(SamovarError('c\\x1b[2Jd'))"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert done.stdout == "a·[2Jb\n"
    assert done.stderr == "c·[2Jd\n"
