"""Run the R analysis of a campaign in one R process, whose JSON lines become events."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Sequence
from pathlib import Path
from tempfile import NamedTemporaryFile, TemporaryFile
from typing import NamedTuple

from samovar.errors import AnalysisError
from samovar.events import Emit, Event
from samovar.experiment import PROJECT_MANIFEST
from samovar.installation import SHIPPED, r_library

HEAP = "--min-vsize=512M"
"""Memory that R allocates before its first garbage collection; most captures need less."""


class AnalysedPart(NamedTuple):
    """Some trials of a campaign, by their ids: how they were picked, as text and as options."""

    picked: str
    options: str
    trials: Sequence[str]


def analyse(campaign: Path, root: Path, emit: Emit, part: AnalysedPart | None = None) -> list[str]:
    """Measure a campaign's trials, or a part of them, and make its figures and tables.

    Return those that could not be made, with the reason.

    Raises AnalysisError with R's message if it fails or R is missing, InstallationError if the R package
    cannot be compiled.
    """
    library = r_library(emit)
    trials = {file.parent.name for file in (campaign / "trials").glob("*/manifest.json")}
    emit(Event("analysis-started", {"trials": len(trials.intersection(part.trials) if part else trials)}))
    own = [str(root / "analysis")] if (root / PROJECT_MANIFEST).exists() else []
    last = campaign / "bundle" / "analysis.json"  # the analysis writes no file after it
    before_ns = last.stat().st_mtime_ns if last.exists() else None
    script = SHIPPED / "analysis" / "inst" / "analyse.R"
    with NamedTemporaryFile("w", encoding="utf-8", suffix=".json") as file:
        if part:
            json.dump(part._asdict(), file)
            file.flush()
            own.append(f"--part={file.name}")
        _run_r([HEAP, str(script), str(campaign), *own], library, emit)
    if not last.exists() or last.stat().st_mtime_ns == before_ns:
        raise AnalysisError(f"R ended without finishing the analysis: it has not written {last}")
    unmade = json.loads(last.read_text("utf-8"))["figures_left_out"]
    return [f"{one['name']}: {one['reason']}" for one in unmade]


def _run_r(arguments: list[str], library: Path, emit: Emit) -> None:
    """Run R and emit its events; raises AnalysisError with the rest of its output if it fails."""
    # R reads UTF-8 and sorts in the same order whatever the locale of the user.
    environment = {**os.environ, "R_LIBS": str(library), "LC_ALL": "C.UTF-8"}
    messages: list[str] = []
    # A file, not a pipe: R may write more errors than a pipe holds while its output is being read.
    with TemporaryFile("w+", errors="replace") as errors:
        try:
            process = subprocess.Popen(
                ["Rscript", "--vanilla", *arguments],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=errors,
                env=environment,
                text=True,
                errors="replace",
            )
        except FileNotFoundError:
            raise AnalysisError("Rscript is not installed; run `make install`") from None
        with process:
            try:
                assert process.stdout
                for line in process.stdout:
                    try:
                        values = json.loads(line)
                        event = Event(str(values.pop("event")), values)
                    except (ValueError, KeyError, AttributeError, TypeError):
                        messages.append(line)
                    else:
                        emit(event)
            except BaseException:
                process.kill()
                raise
        if process.returncode:
            errors.seek(0)
            message = ("".join(messages) + errors.read()).strip()[-4000:]
            raise AnalysisError(f"R ended with code {process.returncode}:\n{message}")
