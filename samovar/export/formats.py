"""Export a campaign: R writes tables as CSV, which are converted to another format and moved to a folder.

The formats are listed in FORMATS.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from samovar import __version__
from samovar.analyse import AnalysedPart, run_r
from samovar.atomic_files import staged
from samovar.campaign import read_plan
from samovar.errors import ExportError
from samovar.events import Emit
from samovar.experiment import redacted
from samovar.export.flent_file import write_flent_files
from samovar.export.parquet import require_pyarrow, write_parquet
from samovar.plan import Plan

MEASURES = (
    *("metrics", "summary", "flows", "variance"),
    *("series", "rtt", "jitter", "sender", "samples", "cycles", "pauses", "closeup"),
)


class Format(NamedTuple):
    """A format of exports.

    `suffix` is the end of its file names, `what` a description of its files, `tables` the tables that R must
    write. `convert` writes files of the format from the CSV tables in a folder; it is None for the format
    CSV, which needs no conversion. `require` raises ExportError if a Python package that the format needs is
    not installed.
    """

    suffix: str
    what: str
    tables: Sequence[str]
    convert: Callable[[Path, Path, Mapping[str, str], Emit], None] | None = None
    require: Callable[[], None] = lambda: None


FORMATS: Mapping[str, Format] = {
    "csv": Format(".csv", "a file per table of measures", MEASURES),
    "parquet": Format(
        ".parquet",
        "the same tables with types; needs pyarrow",
        MEASURES,
        write_parquet,
        require_pyarrow,
    ),
    "flent": Format(".flent.gz", "a data file of Flent per trial", ("metrics", "series"), write_flent_files),
}


def export(
    campaign: Path,
    root: Path,
    format_name: str,
    to: Path,
    emit: Emit,
    part: AnalysedPart | None = None,
    overwrite: bool = False,
) -> list[Path]:
    """Export a campaign, or a part of its trials, into the folder `to`; return the files written.

    Raises ExportError if a file exists and `overwrite` is False, or if pyarrow is missing. Raises
    AnalysisError if R fails.
    """
    plan, form = read_plan(campaign), FORMATS[format_name]
    ids = part.trials if part else plan.ids
    names = ids if format_name == "flent" else form.tables
    old = [file for name in names if (file := to / f"{name}{form.suffix}").exists()]
    if old and not overwrite:
        raise ExportError(f"{old[0]} exists; give another folder with --to, or replace it with --overwrite")
    form.require()
    with staged(to) as folder:
        run_r("export", [str(campaign), str(folder), ",".join(form.tables)], root, emit, part)
        if form.convert:
            form.convert(folder, campaign, _about(campaign, plan), emit)
            for table in folder.glob("*.csv"):
                table.unlink()
        (folder / "columns.json").unlink()
        written = [to / file.name for file in sorted(folder.iterdir())]
    for file in {*old}.difference(written):  # a file of an earlier export whose table now has no rows
        file.unlink()
    return written


def _about(campaign: Path, plan: Plan) -> Mapping[str, str]:
    """Return the origin of the data, with text that looks like a secret removed."""
    about = {
        "version": __version__,
        "campaign": f"{campaign.resolve().parent.name}/{campaign.resolve().name}",
        "experiment": plan.experiment,
        "title": plan.title,
        "source": plan.source,
        "testbed": plan.testbed,
    }
    return {key: redacted(text, {}) for key, text in about.items()}
