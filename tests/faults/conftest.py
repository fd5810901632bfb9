"""Print one line for each fault, and a count at the end."""

from __future__ import annotations

from typing import Any

import pytest

WIDTH = 30


class Lines:
    """A pytest plugin that prints the result of each fault as soon as its test ends."""

    def __init__(self, terminal: Any) -> None:
        self._terminal = terminal
        self.survived: list[str] = []
        self.failed: list[str] = []

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Print a line when the test of a fault has ended, or could not start."""
        properties = {name: str(value) for name, value in report.user_properties}
        if "fault" not in properties or (report.when != "call" and report.passed) or report.skipped:
            return
        name = properties["fault"]
        if report.passed:
            self.survived.append(name)
            self._write("ok  ", name, properties["outcome"], green=True)
        else:
            self.failed.append(name)
            self._write("FAIL", name, _reason(report), red=True)

    def pytest_terminal_summary(self) -> None:
        """Print how many faults the campaigns survived."""
        if not self.survived and not self.failed:
            return
        of = len(self.survived) + len(self.failed)
        what = "nothing lost" if not self.failed else f"not: {', '.join(self.failed)}"
        self._terminal.write_line("")
        self._terminal.write_line(f"{len(self.survived)} of {of} faults survived, {what}")

    def _write(self, word: str, name: str, text: str, **colour: bool) -> None:
        self._terminal.ensure_newline()
        self._terminal.write(word, **colour)
        self._terminal.write_line(f" {name:<{WIDTH}} {text}")
        self._terminal.flush()


def _reason(report: pytest.TestReport) -> str:
    crash = getattr(report.longrepr, "reprcrash", None)
    text = crash.message if crash else report.longreprtext
    return str(text).splitlines()[0] if text else "failed"


def pytest_sessionstart(session: pytest.Session) -> None:
    """Register the plugin that prints the lines."""
    config = session.config
    terminal = config.pluginmanager.get_plugin("terminalreporter")
    if terminal is not None:
        config.pluginmanager.register(Lines(terminal), "fault-lines")


@pytest.hookimpl(tryfirst=True)
def pytest_report_teststatus(report: pytest.TestReport) -> tuple[str, str, str] | None:
    """Omit pytest's dot for a fault, which has a line of its own."""
    properties = {name for name, _ in report.user_properties}
    if report.when == "call" and "fault" in properties:
        return report.outcome, "", ""
    return None
