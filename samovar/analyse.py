"""Run the R package's scripts, such as the analysis of a campaign, and emit the events that they print."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
from collections.abc import Iterable, Sequence
from pathlib import Path
from tempfile import NamedTemporaryFile, TemporaryFile
from typing import NamedTuple

from samovar.campaign.collection import SUMS
from samovar.errors import AnalysisError
from samovar.events import Emit, Event, silent
from samovar.experiment import PROJECT_MANIFEST
from samovar.installation import SHIPPED, r_library

HEAP = "--min-vsize=512M"
"""R starts with this much heap, which is enough to analyse most captures without garbage collection."""
INPUT_ERROR = 3
"""The exit status of a script whose message says what is wrong in its input (report_failure() in R)."""


class AnalysedPart(NamedTuple):
    """The picked trials of a campaign: their description, the options that pick them, and their ids."""

    picked: str
    options: str
    trials: Sequence[str]


class Unmeasured(NamedTuple):
    """The trials of a campaign that are not measured yet, the largest first, and the size of each in bytes.

    `code` and `versions` identify the version of the code that measures trials.
    """

    trials: Sequence[str]
    bytes: Sequence[float]
    code: str
    versions: str


def analyse(
    campaign: Path, root: Path, emit: Emit, part: AnalysedPart | None = None, processes: int | None = None
) -> list[str]:
    """Measure a campaign's trials, or a part of them, and make the campaign's figures and tables.

    At most `processes` processes measure trials at the same time; None means the default of the R package.
    Returns a line `NAME: REASON` for each figure or table that could not be made.

    Raises AnalysisError if R is missing, or with R's message if it fails. Raises InstallationError if the R
    package cannot be compiled.
    """
    trials = {file.parent.name for file in (campaign / "trials").glob("*/manifest.json")}
    emit(Event("analysis-started", {"trials": len(trials.intersection(part.trials) if part else trials)}))
    last = campaign / "bundle" / "analysis.json"  # the last file that the analysis writes
    # The checksums of an earlier report would make `fab verify` report every file that R now replaces.
    last.with_name(SUMS).unlink(missing_ok=True)
    before_ns = last.stat().st_mtime_ns if last.exists() else None
    cores = [f"--cores={processes}"] if processes else []
    run_r("analyse", [str(campaign), *cores], root, emit, part)
    if not last.exists() or last.stat().st_mtime_ns == before_ns:
        raise AnalysisError(f"R ended without finishing the analysis: it has not written {last}")
    for table in (campaign / "tables").glob("*.parquet"):  # copies of tables of an earlier analysis
        table.unlink()
    unmade = json.loads(last.read_text("utf-8"))["figures_left_out"]
    return [f"{one['name']}: {one['reason']}" for one in unmade]


def unmeasured(campaign: Path, root: Path, emit: Emit, part: AnalysedPart | None = None) -> Unmeasured:
    """Return the trials of a campaign, or of a part of it, that are not measured yet, and their sizes.

    Raises AnalysisError and InstallationError as analyse() does.
    """
    found: list[Event] = []

    def keep(event: Event) -> None:
        found.append(event) if event.name == "unmeasured" else emit(event)

    run_r("unmeasured", [str(campaign)], root, keep, part)
    if not found:
        raise AnalysisError("R ended without listing the trials to measure")
    return Unmeasured(**found[0].values)  # type: ignore[arg-type]  # the keys that list_unmeasured() prints


def measure_commands(campaign: Path, root: Path, files: Iterable[str]) -> list[str]:
    """Return, for each JSON file, the shell command that measures the trials listed in the file.

    A later analysis finds the results in the cache. Each file has the key `trials`, and the keys `code` and
    `versions` with the values of Unmeasured.
    """
    words, variables = _r_command("measure", [str(campaign)], root, silent)
    words = ["env", *(f"{name}={value}" for name, value in variables.items()), *words]
    return [shlex.join([*words, f"--part={file}"]) for file in files]


def _r_command(
    script: str, arguments: Sequence[str], root: Path, emit: Emit
) -> tuple[list[str], dict[str, str]]:
    """Return the command line of one of the R package's scripts, and the environment variables it needs."""
    words = ["Rscript", "--vanilla", HEAP, str(SHIPPED / "analysis" / "inst" / f"{script}.R"), *arguments]
    if (root / PROJECT_MANIFEST).exists():
        words.append(str(root / "analysis"))
    # With this locale, R reads UTF-8 and sorts in the same order, whatever the locale of the user.
    return words, {"R_LIBS": str(r_library(emit)), "LC_ALL": "C.UTF-8"}


def run_r(
    script: str, arguments: Sequence[str], root: Path, emit: Emit, part: AnalysedPart | None = None
) -> None:
    """Run a script of the R package for a project, and emit an event for each line of JSON that it prints.

    With `part`, the script uses only the trials in `part`. Raises AnalysisError if R is missing or the script
    fails; the message has the script's other output. Raises InstallationError if the R package cannot be
    compiled.
    """
    words, variables = _r_command(script, arguments, root, emit)
    messages: list[str] = []
    # Errors go to a file, because a pipe could fill up while only R's standard output is read.
    with (
        TemporaryFile("w+", errors="replace") as errors,
        NamedTemporaryFile("w", encoding="utf-8", suffix=".json") as picked,
    ):
        if part:
            json.dump(part._asdict(), picked)
            picked.flush()
            words.append(f"--part={picked.name}")
        try:
            process = subprocess.Popen(
                words,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=errors,
                env={**os.environ, **variables},
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
            failed = f"R ended with code {process.returncode}:\n"
            raise AnalysisError(message if process.returncode == INPUT_ERROR else failed + message)
