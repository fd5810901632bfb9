"""Export a campaign: R writes tables as CSV, which are converted to a format of FORMATS."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from samovar import __version__
from samovar.analyse import AnalysedPart, run_r
from samovar.atomic_files import staged
from samovar.campaign import read_plan
from samovar.errors import ExportError
from samovar.events import Emit, Event
from samovar.export.flent_file import write_flent_files
from samovar.secrets import redacted

MEASURES = (
    *("metrics", "summary", "flows", "variance"),
    *("series", "rtt", "jitter", "sender", "samples", "cycles", "pauses", "closeup"),
)
BLOCK_BYTES = 1 << 26
"""The amount of CSV (64 MiB) that is converted to Parquet at a time, and becomes one row group of the
file."""


class Format(NamedTuple):
    """A format of exports.

    `suffix` is the end of its file names, `what` describes its files, and `tables` names the tables that R
    must write. `convert` writes files of the format from the CSV tables in a folder; it is None for the
    format CSV, which needs no conversion. `require` raises ExportError if a Python package that the format
    needs is not installed.
    """

    suffix: str
    what: str
    tables: Sequence[str]
    convert: Callable[[Path, Path, Mapping[str, str], Emit], None] | None = None
    require: Callable[[], None] = lambda: None


def require_pyarrow() -> None:
    """Raise ExportError, which names the command to install pyarrow, if pyarrow is missing."""
    try:
        import pyarrow  # noqa: F401
    except ImportError:
        raise ExportError(
            f"Parquet needs pyarrow; install it with `{sys.executable} -m pip install pyarrow`, "
            "or samovar as 'samovar[parquet]'"
        ) from None


def write_parquet(folder: Path, campaign: Path, about: Mapping[str, str], emit: Emit) -> None:
    """Write a Parquet file beside each CSV table in a folder, with the types in columns.json."""
    import pyarrow as pa
    from pyarrow import csv
    from pyarrow import parquet as pq

    types: Mapping[str, Any] = {
        "integer": pa.int64(),
        "numeric": pa.float64(),
        "logical": pa.bool_(),
        "time": pa.int64(),
    }
    time = pa.timestamp("ns", tz="UTC")
    tables = json.loads((folder / "columns.json").read_bytes())
    for done, (name, columns) in enumerate(tables.items(), 1):
        read_as = {column: types.get(kind, pa.string()) for column, kind in columns.items()}
        convert = csv.ConvertOptions(
            column_types=read_as,
            null_values=["NA"],
            strings_can_be_null=True,
            quoted_strings_can_be_null=False,
            true_values=["TRUE"],
            false_values=["FALSE"],
        )
        fields = [(column, time if columns[column] == "time" else kind) for column, kind in read_as.items()]
        origin = {f"samovar.{key}": text for key, text in {**about, "table": name}.items()}
        schema = pa.schema(fields, metadata=origin)
        read = csv.ReadOptions(block_size=BLOCK_BYTES)
        with (
            csv.open_csv(folder / f"{name}.csv", read, convert_options=convert) as rows,
            pq.ParquetWriter(folder / f"{name}.parquet", schema, compression="zstd") as out,
        ):
            for batch in rows:
                out.write_table(pa.Table.from_batches([batch]).cast(schema))
        emit(Event("exported", {"file": f"{name}.parquet", "done": done, "of": len(tables)}))


FORMATS: Mapping[str, Format] = {
    "csv": Format(".csv", "a file for each table of measures", MEASURES),
    "parquet": Format(
        ".parquet", "the same tables with types; needs pyarrow", MEASURES, write_parquet, require_pyarrow
    ),
    "flent": Format(
        ".flent.gz", "a Flent data file for each trial", ("metrics", "series"), write_flent_files
    ),
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
    about = {  # the origin of the data
        "version": __version__,
        "campaign": f"{campaign.resolve().parent.name}/{campaign.resolve().name}",
        **{key: str(getattr(plan, key)) for key in ("experiment", "title", "source", "testbed")},
    }
    with staged(to) as folder:
        run_r("export", [str(campaign), str(folder), ",".join(form.tables)], root, emit, part)
        if form.convert:
            form.convert(folder, campaign, {key: redacted(text, {}) for key, text in about.items()}, emit)
            for table in folder.glob("*.csv"):
                table.unlink()
        (folder / "columns.json").unlink()
        written = [to / file.name for file in sorted(folder.iterdir())]
    for file in {*old}.difference(written):  # a file of an earlier export whose table now has no rows
        file.unlink()
    return written
