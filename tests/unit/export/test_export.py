"""`samovar export`: a small campaign in each format, read back by other programs."""

from __future__ import annotations

import csv
import gzip
import json
import os
import shutil
import subprocess
import sys
from functools import cache
from pathlib import Path
from typing import Any

import duckdb
import pyarrow.parquet as pq
import pytest
from flent import resultset
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from samovar import __version__
from samovar.atomic_files import staged
from samovar.cli.commands import run_commands
from samovar.events import Event
from samovar.export.flent_file import flent_data, on_grid, write_flent_files

ROOT = Path(__file__).parents[3]
SMALL = ROOT / "analysis" / "tests" / "traces" / "campaign-small"
TRIAL = "window-cubic-9999KB-1500-r1-aa50c2"
SECRET = "token=hunter2hunter2"


@pytest.fixture(scope="module")
def campaign(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return small_campaign(tmp_path_factory.mktemp("results"))


def small_campaign(results: Path) -> Path:
    """Copy the small campaign, with a secret in its title, without figures and tables, and with an empty journal."""
    folder = results / "small" / "full-1"
    shutil.copytree(SMALL, folder)
    (folder / "journal.jsonl").write_text("")
    plan = json.loads((folder / "plan.json").read_text())
    changed = {"title": f"Small, {SECRET}", "figures": [], "tables": []}
    (folder / "plan.json").write_text(json.dumps({**plan, **changed}))
    return folder


@pytest.fixture(scope="module")
def export_folder(campaign: Path) -> Path:
    """Return the folder to which the campaign is exported in all formats."""
    for name in ("csv", "parquet", "flent"):
        assert run_commands(["export", str(campaign), "--format", name], ROOT) == 0
    return campaign / "export"


@cache
def rows_of(table: Path) -> list[dict[str, str]]:
    with table.open(newline="") as lines:
        return list(csv.DictReader(lines))


def series_of(export_folder: Path, trial: str, quantity: str) -> list[tuple[float, float]]:
    rows = rows_of(export_folder / "series.csv")
    return [
        (float(r["t_s"]), float(r["mid"])) for r in rows if (r["trial"], r["quantity"]) == (trial, quantity)
    ]


def test_flent_loads_every_trial_with_the_numbers_of_the_tables(export_folder: Path) -> None:
    files = sorted(export_folder.glob("*.flent.gz"))
    assert {file.name.removesuffix(".flent.gz") for file in files} == {
        row["trial"] for row in rows_of(export_folder / "metrics.csv")
    }
    for file in files:
        loaded, trial = resultset.load(str(file)), file.name.removesuffix(".flent.gz")
        throughput = series_of(export_folder, trial, "throughput")
        assert list(zip(loaded.x_values, loaded.series("TCP upload::1"), strict=True)) == throughput
        for series, quantity in {
            "TCP upload::1": "throughput",
            "TCP upload::1::tcp_cwnd": "cwnd",
            "TCP upload::1::tcp_rtt": "srtt",
            "TCP upload::1::rtt": "rtt",
            "Ping (ms) ICMP": "rtt",
            "Router::queue": "queue",
        }.items():
            ours, theirs = series_of(export_folder, trial, quantity), list(loaded.raw_series(series))
            assert [value for _, value in theirs] == [value for _, value in ours]
            assert [t for t, _ in theirs] == pytest.approx([t for t, _ in ours], abs=2e-6)
        cwnd = [value for _, value in series_of(export_folder, trial, "cwnd")]
        assert [v for _, v in loaded.raw_series("TCP upload::1", raw_key="tcp_cwnd")] == cwnd
        assert loaded.series_meta("TCP upload::1", "UNITS") == "Mbits/s"
        metrics = loaded.series_meta("TCP upload::1", "METRICS")
        table = {
            r["metric"]: float(r["value"])
            for r in rows_of(export_folder / "metrics.csv")
            if (r["trial"], r["flow"]) == (trial, "bulk")
        }
        assert metrics == table
        assert loaded.meta("TITLE") == trial


def test_flent_shows_query_times_as_series_of_a_flow_not_of_the_router() -> None:
    trial = next((SMALL.parent / "applications" / "trials").glob("pfifo*"))
    manifest = json.loads((trial / "manifest.json").read_text())
    rows = [
        {"flow": flow, "quantity": quantity, "unit": unit, "t_s": "1", "low": "1", "mid": "1", "high": "1"}
        for flow, quantity, unit in (
            ("query-2", "throughput", "Mbit/s"),
            ("query", "query-time", "s"),
            ("", "queue", "packets"),
        )
    ]
    flows = {flow["label"]: {"goodput_bps": 1.0} for flow in manifest["resolved"]["flows"]}
    data = flent_data(manifest, rows, flows, {"title": "", "campaign": ""})
    assert {name: meta["FLOW"] for name, meta in data["metadata"]["SERIES_META"].items()} == {
        "TCP upload::7": "query-2",
        "TCP upload::6::query-time": "query",
        "Router::queue": "",
    }


def test_flent_computes_sums_and_averages_that_agree_with_the_series(
    export_folder: Path, tmp_path: Path
) -> None:
    words = ["-m", "flent", "-i", str(export_folder / f"{TRIAL}.flent.gz"), "-f", "summary"]
    done = subprocess.run(
        [sys.executable, *words], cwd=tmp_path, env={**os.environ, "HOME": str(tmp_path)}, capture_output=True, text=True, check=True
    )  # fmt: skip
    lines = [line.partition(" : ") for line in done.stdout.splitlines() if " : " in line]
    means = {name.strip(): values.split()[0] for name, _, values in lines}
    values = [value for _, value in series_of(export_folder, TRIAL, "throughput")]
    assert f"Title: '{TRIAL}'" in done.stdout
    expected = f"{sum(values) / len(values):.2f}"
    assert (means["TCP upload::1"], means["TCP upload sum"]) == (expected, expected)


def test_parquet_has_the_values_of_csv_with_types_and_metadata(export_folder: Path) -> None:
    tables = sorted(file.stem for file in export_folder.glob("*.csv"))
    assert {"metrics", "summary", "series", "cycles"} <= {*tables}
    assert tables == sorted(file.stem for file in export_folder.glob("*.parquet"))
    types = {"replicate": "int64", "n": "int64", "cycle": "int64", "value": "double", "t_ns": "timestamp[ns, tz=UTC]", "counts": "bool", "cc": "string"}  # fmt: skip
    for name in tables:
        table = pq.read_table(export_folder / f"{name}.parquet")
        rows = rows_of(export_folder / f"{name}.csv")
        assert table.column_names == list(rows[0])
        assert {c: str(table.schema.field(c).type) for c in types if c in table.column_names} == {
            c: types[c] for c in types if c in table.column_names
        }
        for column in table.column_names:
            kind = str(table.schema.field(column).type)
            values = table[column].cast("int64") if kind.startswith("timestamp") else table[column]
            read: Any = {"double": float, "string": str, "bool": "TRUE".__eq__}.get(kind, int)
            texts = [row[column] for row in rows]
            assert values.to_pylist() == [None if text == "NA" else read(text) for text in texts], column
        assert table.schema.metadata[b"samovar.version"].decode() == __version__
        assert table.schema.metadata[b"samovar.campaign"] == b"small/full-1"
        assert table.schema.metadata[b"samovar.table"].decode() == name


def test_duckdb_reads_the_same_times_and_counts_from_parquet_as_in_csv(export_folder: Path) -> None:
    relation = duckdb.sql(
        f"select trial, count(*), epoch_ns(min(t_ns)) from '{export_folder}/series.parquet' group by trial"
    )
    assert relation is not None
    found = relation.fetchall()
    rows = rows_of(export_folder / "series.csv")
    times = {trial: [int(row["t_ns"]) for row in rows if row["trial"] == trial] for trial, _, _ in found}
    assert len(found) == 6
    assert all((n, first) == (len(times[trial]), min(times[trial])) for trial, n, first in found)
    starts = {
        id_: json.loads((SMALL / "trials" / id_ / "manifest.json").read_text())["t_start_s"] for id_ in times
    }
    for row in rows[:: len(rows) // 50]:
        assert int(row["t_ns"]) / 1e9 == pytest.approx(starts[row["trial"]] + float(row["t_s"]), abs=1e-6)


def test_a_text_that_looks_like_a_secret_is_not_exported(export_folder: Path) -> None:
    for file in export_folder.iterdir():
        content = gzip.decompress(file.read_bytes()) if file.suffix == ".gz" else file.read_bytes()
        assert SECRET.encode() not in content
    assert (
        resultset.load(str(export_folder / f"{TRIAL}.flent.gz")).meta("NOTE").startswith("Small, …: cc cubic")
    )


def test_an_existing_file_is_replaced_only_with_overwrite_and_no_temporary_file_is_left(
    campaign: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["export", str(campaign), "--format", "flent", "--trial", "window-cubic", "--to", str(tmp_path)]
    file = tmp_path / f"{TRIAL}.flent.gz"
    assert run_commands(words, ROOT) == 0
    original = file.read_bytes()
    file.write_bytes(b"mine")
    assert run_commands(words, ROOT) == 1
    assert file.read_bytes() == b"mine"
    assert (
        f"{file} exists; give another folder with --to, or replace it with --overwrite"
        in capsys.readouterr().err
    )
    assert run_commands([*words, "--overwrite"], ROOT) == 0
    assert [one.name for one in tmp_path.iterdir()] == [file.name]
    assert file.read_bytes() == original


def test_an_export_of_picked_trials_has_metrics_and_summaries_of_these_trials_only(
    campaign: Path, tmp_path: Path
) -> None:
    words = [
        "export",
        str(campaign),
        "--format",
        "csv",
        "--trial",
        "window-cubic",
        "--trial",
        "window-newreno-9KB",
    ]
    assert run_commands([*words, "--to", str(tmp_path)], ROOT) == 0
    assert {row["cc"] for row in rows_of(tmp_path / "metrics.csv")} == {"cubic", "newreno"}
    assert {row["rwnd"] for row in rows_of(tmp_path / "summary.csv") if row["cc"] == "newreno"} == {"9KB"}


def test_an_unknown_trial_is_reported_before_any_file_is_written(
    campaign: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    to = tmp_path / "to"
    assert (
        run_commands(
            ["export", str(campaign), "--format", "csv", "--trial", "windows-cubic", "--to", str(to)], ROOT
        )
        == 1
    )
    assert "unknown trial 'windows-cubic'" in capsys.readouterr().err
    assert not to.exists()


def test_trials_that_were_judged_invalid_are_left_out_with_the_reason(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    campaign = small_campaign(tmp_path)
    path = campaign / "trials" / TRIAL / "manifest.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), "verdict": "invalid", "reasons": ["late"]}))
    words = ["export", str(campaign), "--format", "flent"]
    assert run_commands([*words, "--trial", TRIAL], ROOT) == 1
    assert "none of its 1 planned trials can be analysed: invalid: late (1)" in " ".join(
        capsys.readouterr().err.split()
    )
    assert [*(campaign / "export").iterdir()] == []
    assert run_commands(words, ROOT) == 0
    assert "1 of 6 trials are not exported: invalid: late (1)" in capsys.readouterr().out
    assert len([*(campaign / "export").iterdir()]) == 5


def test_without_a_format_the_formats_are_listed(capsys: pytest.CaptureFixture[str]) -> None:
    assert run_commands(["export"], ROOT) == 0
    listed = [line.split()[:2] for line in capsys.readouterr().out.splitlines()]
    assert listed == [["--format", name] for name in ("csv", "parquet", "flent")]


def test_without_pyarrow_parquet_is_refused_with_the_command_that_installs_it(
    campaign: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow", None)  # as Python marks a module that cannot be imported
    assert run_commands(["export", str(campaign), "--format", "parquet", "--to", str(tmp_path)], ROOT) == 1
    assert run_commands(["analyse", str(campaign), "--format", "parquet"], ROOT) == 1
    messages = capsys.readouterr().err
    assert (
        messages.count(f"Parquet needs pyarrow; install it with `{sys.executable} -m pip install pyarrow`")
        == 2
    )
    assert [*tmp_path.iterdir()] == []


def test_analyse_writes_parquet_beside_csv_and_removes_old_parquet_tables(campaign: Path) -> None:
    earlier = [campaign / "tables" / f"{name}.parquet" for name in ("metrics", "pauses")]
    for file in earlier:
        file.write_text("of an earlier analysis")
    assert run_commands(["analyse", str(campaign), "--format", "parquet"], ROOT) == 0
    # No trial has PAUSE frames, so that the earlier table of pauses is removed.
    assert [file.exists() for file in earlier] == [True, False]
    rows = pq.read_table(campaign / "tables" / "metrics.parquet").num_rows
    assert rows == len(rows_of(campaign / "tables" / "metrics.csv"))


def test_an_export_that_fails_leaves_existing_files_unchanged_and_no_new_ones(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("old")
    with pytest.raises(ZeroDivisionError), staged(tmp_path) as folder:
        (folder / "a").write_text("half")
        raise ZeroDivisionError
    assert [(file.name, file.read_text()) for file in tmp_path.iterdir()] == [("a", "old")]


@settings(suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(st.integers(0, 600), min_size=1, unique=True), st.integers(-10, 610))
def test_a_series_on_the_grid_passes_through_its_samples_and_lies_between_them(
    tenths: list[int], at: int
) -> None:
    times_s = [tenth / 10 for tenth in sorted(tenths)]
    points = [(t_s, 0.0, (7 * t_s) % 11, 0.0) for t_s in times_s]
    values = {t_s: value for t_s, _, value, _ in points}
    assert on_grid(points, times_s) == [*values.values()]
    [found] = on_grid(points, [at / 10])
    before, after = [t for t in times_s if t <= at / 10], [t for t in times_s if t >= at / 10]
    if not before or not after or after[0] - at / 10 > 5:
        assert found is None
    else:
        low, high = sorted((values[before[-1]], values[after[0]]))
        assert found is not None and low - 1e-9 <= found <= high + 1e-9


def test_a_trial_without_series_is_left_out_with_a_warning(tmp_path: Path) -> None:
    (tmp_path / "metrics.csv").write_text("trial,flow,metric,value\nx-r1,bulk,duration_s,1\n")
    (tmp_path / "series.csv").write_text("trial,flow,quantity,unit,t_s,low,mid,high\n")
    events: list[Event] = []
    write_flent_files(tmp_path, tmp_path, {}, events.append)
    assert events == [Event("warning", {"text": "x-r1: not exported: no flow has a throughput series"})]


def test_udp_flows_and_pings_are_not_uploads_of_tcp() -> None:
    generators = {"bulk": "nuttcp", "voice": "iperf3-udp", "echo": "ping", "more": "iperf3"}
    flows = [
        {"label": label, "generator": generator, "from": "src", "to": "dst", "to_address": "fd00::2"}
        for label, generator in generators.items()
    ]
    manifest = {
        "id": "x-r1-abc123", "part": "main", "treatment": {"cc": "bbr"}, "replicate": 1, "verdict": "valid",
        "t_start_s": 1795275289.25, "resolved": {"flows": flows, "duration_s": 1.5},
    }  # fmt: skip
    quantities = [("throughput", "Mbit/s"), ("rtt", "ms")]
    rows = [
        {"flow": label, "quantity": quantity, "unit": unit, "t_s": t, "low": "1", "mid": "2", "high": "3"}
        for label in generators for quantity, unit in quantities for t in ("0.1", "0.3")
    ]  # fmt: skip
    tcp = {"throughput_bps": 2e6, "goodput_bps": 1.9e6}
    metrics = {"bulk": tcp, "voice": {"throughput_bps": 2e6}, "echo": {"throughput_bps": 1e3}, "more": tcp}
    about = dict.fromkeys(("version", "campaign", "experiment", "title", "source", "testbed"), "x")
    loaded = resultset.ResultSet.unserialise(flent_data(manifest, rows, metrics, about))
    assert {*loaded.series_names} == {
        *("TCP upload::1", "TCP upload::1::rtt", "TCP upload::2", "TCP upload::2::rtt"),
        *("UDP upload::1", "UDP upload::1::rtt", "Ping (ms) ICMP", "Ping (ms) ICMP::throughput"),
    }
    assert loaded.series_meta("TCP upload::2", "FLOW") == "more"
    assert loaded.series_meta("Ping (ms) ICMP") == {"UNITS": "ms", "FLOW": "echo", "QUANTITY": "rtt"}
    assert loaded.meta("TEST_PARAMETERS") == {"upload_streams": "2"}
    assert (loaded.meta("IP_VERSION"), loaded.meta("LENGTH"), loaded.meta("STEP_SIZE")) == (6, 2, 0.2)
