"""The R stage: one R process for a campaign; Python and R meet only in files and in lines of JSON."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from tempfile import TemporaryFile
from typing import IO

from samovar.errors import AnalysisError
from samovar.events import Emit, Event

LIBRARY = ".rlib"
SCRIPT = "analyse.R"
HEAP = "--min-vsize=512M"
"""So much may R's vectors grow before R looks through all that it holds; most captures are read without."""
LAST = "bundle/analysis.json"
"""What R writes when all else is there, below the campaign's folder."""


def analyse(campaign: Path, root: Path, emit: Emit) -> None:
    """Measure a campaign's trials and draw its figures and tables.

    Raises AnalysisError with R's own words when it fails, or when R or the project's R package is missing.
    """
    script = root / "analysis" / "inst" / SCRIPT
    library = root / LIBRARY
    if not (library / "samovar").is_dir():
        raise AnalysisError(f"{library}: the R package is not installed there; `make install` does it")
    trials = sum(1 for _ in (campaign / "trials").glob("*/manifest.json"))
    emit(Event("analysis-started", {"trials": trials}))
    # R reads UTF-8 and sorts alike everywhere, whatever the caller's locale.
    environment = {**os.environ, "R_LIBS": str(library), "LC_ALL": "C.UTF-8"}
    # A file, not a pipe: R may say more than a pipe holds while its other output is being read.
    before = _stamp(campaign / LAST)
    with TemporaryFile("w+", errors="replace") as errors:
        process = _start(["Rscript", "--vanilla", HEAP, str(script), str(campaign)], environment, errors)
        _follow(process, errors, emit)
    if _stamp(campaign / LAST) == before:
        raise AnalysisError(f"R ended before its work was done: it has not written {campaign / LAST}")


def _stamp(file: Path) -> tuple[int, int] | None:
    """Tell this writing of a file from any other; None where there is none."""
    try:
        seen = file.stat()
    except FileNotFoundError:
        return None
    return seen.st_ino, seen.st_mtime_ns


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
        raise AnalysisError("Rscript is not installed; `make install` does it") from None


def _follow(process: subprocess.Popen[str], errors: IO[str], emit: Emit) -> None:
    said: list[str] = []
    with process:
        try:
            assert process.stdout
            for line in process.stdout:
                event = _event(line)
                if event:
                    emit(event)
                else:
                    said.append(line)
        except BaseException:
            process.kill()
            raise
    if process.returncode:
        errors.seek(0)
        words = ("".join(said) + errors.read()).strip()[-4000:]
        raise AnalysisError(f"R ended with code {process.returncode}:\n{words}")


def _event(line: str) -> Event | None:
    try:
        values = json.loads(line)
        return Event(str(values.pop("event")), values)
    except (ValueError, KeyError, AttributeError, TypeError):
        return None
