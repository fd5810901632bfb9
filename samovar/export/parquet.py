"""Convert CSV tables to Parquet files with column types and the origin of the data; needs pyarrow."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from samovar.errors import ExportError
from samovar.events import Emit, Event

BLOCK_BYTES = 1 << 26
"""This much CSV (64 MiB) is converted at a time, and becomes a row group of the Parquet file."""


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
    """Write a Parquet file beside each CSV table in a folder.

    The types of the columns are read from columns.json.
    """
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
        convert = csv.ConvertOptions(
            column_types={column: types.get(kind, pa.string()) for column, kind in columns.items()},
            null_values=["NA"],
            strings_can_be_null=True,
            quoted_strings_can_be_null=False,
            true_values=["TRUE"],
            false_values=["FALSE"],
        )
        fields = [
            (column, time if kind == "time" else types.get(kind, pa.string()))
            for column, kind in columns.items()
        ]
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
