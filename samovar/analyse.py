"""Run the R analysis of a campaign: one R process, whose lines of JSON become events."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from tempfile import TemporaryFile
from typing import IO

from samovar.errors import AnalysisError
from samovar.events import Emit, Event
from samovar.experiment import PROJECT_MANIFEST

LIBRARY = ".rlib"
SCRIPT = "analyse.R"
HEAP = "--min-vsize=512M"
"""Memory that R allocates before its first garbage collection; most captures need less."""
LAST = "bundle/analysis.json"
"""The last file that the analysis writes, below the campaign's folder."""


def analyse(campaign: Path, root: Path, emit: Emit) -> None:
    """Measure a campaign's trials and make its figures and tables.

    Raises AnalysisError with R's message if it fails, or if R or the project's R package is missing.
    """
    script = root / "analysis" / "inst" / SCRIPT
    library = root / LIBRARY
    if not (library / "samovar").is_dir():
        raise AnalysisError(f"{library}: the R package is not installed; run `make install`")
    trials = sum(1 for _ in (campaign / "trials").glob("*/manifest.json"))
    emit(Event("analysis-started", {"trials": trials}))
    # R reads UTF-8 and sorts in the same order whatever the locale of the user.
    environment = {**os.environ, "R_LIBS": str(library), "LC_ALL": "C.UTF-8"}
    # A file, not a pipe: R may write more errors than a pipe holds while its output is being read.
    before = _stamp(campaign / LAST)
    with TemporaryFile("w+", errors="replace") as errors:
        own = [str(root / "analysis")] if (root / PROJECT_MANIFEST).exists() else []
        command = ["Rscript", "--vanilla", HEAP, str(script), str(campaign), *own]
        process = _start(command, environment, errors)
        _follow(process, errors, emit)
    if _stamp(campaign / LAST) == before:
        raise AnalysisError(f"R ended without finishing the analysis: it has not written {campaign / LAST}")


def _stamp(file: Path) -> tuple[int, int] | None:
    """Return what identifies this version of a file; None if the file is missing."""
    try:
        status = file.stat()
    except FileNotFoundError:
        return None
    return status.st_ino, status.st_mtime_ns


def _start(command: list[str], environment: dict[str, str], errors: IO[str]) -> subprocess.Popen[str]:
    try:
        return subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=errors,
            env=environment,
            text=True,
            errors="replace",
        )
    except FileNotFoundError:
        raise AnalysisError("Rscript is not installed; run `make install`") from None


def _follow(process: subprocess.Popen[str], errors: IO[str], emit: Emit) -> None:
    messages: list[str] = []
    with process:
        try:
            assert process.stdout
            for line in process.stdout:
                event = _event(line)
                if event:
                    emit(event)
                else:
                    messages.append(line)
        except BaseException:
            process.kill()
            raise
    if process.returncode:
        errors.seek(0)
        message = ("".join(messages) + errors.read()).strip()[-4000:]
        raise AnalysisError(f"R ended with code {process.returncode}:\n{message}")


def _event(line: str) -> Event | None:
    try:
        values = json.loads(line)
        return Event(str(values.pop("event")), values)
    except (ValueError, KeyError, AttributeError, TypeError):
        return None
