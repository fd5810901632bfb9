"""`samovar import teacup-results`: a results folder in TEACUP's layout becomes a campaign that can be reported."""

from __future__ import annotations

import csv
import gzip
import json
import os
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from samovar.campaign.collection import verify
from samovar.cli.commands import run_commands
from samovar.teacup import import_results
from samovar.teacup.result_files import find_trials, read_capture, ttprobe_as_tcp_probe, web10g_as_tcp_info
from tests.unit.teacup.results_folder import PREFIX, SECRET, make_results, make_trial, put

EXPERIMENT = "exp-20261122-120000"


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / "experiments").mkdir()
    (tmp_path / "config.yaml").write_text("testbed: lab\n")
    return tmp_path


def manifests(folder: Path) -> Iterator[dict[str, Any]]:
    for file in sorted(folder.glob("trials/*/manifest.json")):
        yield json.loads(file.read_text())


def test_a_results_folder_can_be_imported_analysed_reported_and_verified(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    old = make_results(project / "old")
    assert run_commands(["import", "teacup-results", str(old)], project) == 0
    assert "4 trials: " in capsys.readouterr().out
    assert run_commands(["analyse", EXPERIMENT], project) == 0
    assert run_commands(["report", EXPERIMENT], project) == 0
    campaign = project / "results" / EXPERIMENT / "latest"
    assert (campaign / "bundle" / f"{EXPERIMENT}.pdf").read_bytes().startswith(b"%PDF")
    rows = list(csv.DictReader((campaign / "tables" / "metrics.csv").read_text().splitlines()))
    assert {row["verdict"] for row in rows} == {"suspect"}
    assert {(row["del"], row["tcp"], row["replicate"]) for row in rows} == {
        ("50", tcp, run) for tcp in ("newreno", "cdg") for run in "12"
    }
    medians = {row["metric"]: float(row["value"]) for row in rows if row["trial"].endswith("newreno_run_0")}
    # 10 Mbit/s through dummynet, which counts IP packets; the sender's own SRTT is that of its SIFTR log.
    assert 9e6 < medians["throughput_bps"] < 1.01e7
    assert 20 < medians["rtt_median_ms"] < 110
    assert medians["srtt_median_ms"] == pytest.approx(57.5)
    assert run_commands(["verify", EXPERIMENT], project) == 0
    capsys.readouterr()
    assert run_commands(["status", EXPERIMENT], project) == 0
    assert "4 suspect" in capsys.readouterr().out


def test_trials_keep_their_test_ids_and_have_flows_hosts_and_files(project: Path) -> None:
    found = import_results(make_results(project / "old"), project / "results")
    trials = list(manifests(found.folder))
    assert [one["id"] for one in trials] == sorted(
        f"{PREFIX}_del_50_tcp_{tcp}_run_{run}" for tcp in ("newreno", "cdg") for run in (0, 1)
    )
    for one in trials:
        (flow,) = one["resolved"]["flows"]
        assert (flow["label"], flow["from"], flow["to"], flow["port"]) == ("tcp-5201", "src", "dst", 5201)
        assert (flow["from_address"], flow["to_address"]) == ("172.16.10.2", "172.16.11.2")
        assert one["resolved"]["hosts"]["gw"]["role"] == "router"
        assert one["resolved"]["captures"] == [
            {"host": host, "interface": "em1", "snaplen_bytes": 96} for host in ("dst", "src")
        ]
        assert one["reasons"] == [
            "imported from TEACUP: no file records that the settings in its test id were in force"
        ]
        kinds = {(file["kind"], file["host"]) for file in one["files"]}
        assert kinds == {
            ("capture", "src"),
            ("capture", "dst"),
            ("logger", "src"),
            ("generator", "src"),
            ("generator", "dst"),
        }
    assert verify(found.folder).findings == []


def test_the_archived_configuration_with_its_passwords_is_not_copied(project: Path) -> None:
    found = import_results(make_results(project / "old", runs=1), project / "results")
    contents = [
        gzip.decompress(data) if data[:2] == b"\x1f\x8b" else data
        for data in (one.read_bytes() for one in found.folder.rglob("*") if one.is_file())
    ]
    assert not any(SECRET.encode() in data for data in contents)
    assert [note for note in found.notes if "as it holds passwords" in note] != []


def test_a_folder_cannot_be_imported_twice(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    old = make_results(project / "old", runs=1)
    assert run_commands(["import", "teacup-results", str(old)], project) == 0
    assert run_commands(["import.teacup-results", str(old)], project) == 1
    assert "exists already" in capsys.readouterr().err


def test_a_single_trial_has_no_factors(project: Path) -> None:
    old = project / "old" / PREFIX
    old.mkdir(parents=True)
    make_trial(old, PREFIX)
    (one,) = manifests(import_results(old, project / "results").folder)
    assert (one["id"], one["treatment"], one["replicate"]) == (PREFIX, {}, 1)


def test_a_test_id_with_spaces_becomes_an_id_and_levels_that_commands_read(project: Path) -> None:
    old = make_results(project / "old", levels=("bw_10 mbit", "bw_10+mbit"), runs=1)
    assert run_commands(["import", "teacup-results", str(old)], project) == 0
    assert run_commands(["analyse", EXPERIMENT, "--only", "bw=10-mbit"], project) == 0
    assert run_commands(["verify", EXPERIMENT], project) == 0
    found = {
        one["id"]: one["treatment"]["bw"] for one in manifests(project / "results" / EXPERIMENT / "latest")
    }
    plain = f"{PREFIX}_del_50_bw_10-mbit_run_0"
    assert found == {plain: "10-mbit", f"{plain}-2": "10+mbit"}


def test_a_factor_named_like_a_column_of_tables_gets_another_name(project: Path) -> None:
    old = make_results(project / "old", levels=("flow_2", "flow_3"), runs=1)
    assert run_commands(["import", "teacup-results", str(old)], project) == 0
    assert run_commands(["analyse", EXPERIMENT], project) == 0
    assert run_commands(["export", EXPERIMENT, "--format", "flent"], project) == 0
    table = project / "results" / EXPERIMENT / "latest" / "tables" / "metrics.csv"
    rows = csv.DictReader(table.read_text().splitlines())
    assert {(row["flow-levels"], row["flow"]) for row in rows if row["flow"]} == {
        ("2", "tcp-5201"),
        ("3", "tcp-5201"),
    }


def test_a_file_belongs_to_the_trial_whose_complete_test_id_is_in_its_name(project: Path) -> None:
    old = make_results(project / "old", levels=("tcp_newreno",), runs=11)
    names = [len(trial.hosts["src"]) for trial in find_trials(old)]
    assert len(names) == 11
    assert len(set(names)) == 1


def test_the_prefix_of_test_ids_is_found_in_a_folder_of_another_name(project: Path) -> None:
    old = make_results(project / "old", runs=1).rename(project / "old" / "mine")
    levels = {
        tuple(one["treatment"].items()) for one in manifests(import_results(old, project / "results").folder)
    }
    assert {dict(one)["tcp"] for one in levels} == {"newreno", "cdg"}


WEB10G_ROW = {
    0: "1795268293.250001", 1: "7", 2: "172.16.10.2", 3: "16394", 4: "172.16.11.2", 5: "5201", 10: "3", 19: "1448",
    22: "57", 23: "257", 25: "14480", 26: "2147483647", 31: "65536", 107: "4294967290", 108: "1442",
}  # fmt: skip


def web10g(**changes: str) -> str:
    row = {at: changes.get(f"c{at}", text) for at, text in WEB10G_ROW.items()}
    return ",".join(row.get(at, "0") for at in range(122))


def test_a_log_of_web10g_becomes_a_trace_of_tcp_info() -> None:
    later = web10g(c0="1795268293.260001", c107="994", c108="994")
    text = web10g_as_tcp_info("\n".join(["Timestamp,CID,LocalAddress", web10g(), later, web10g()[:50]]))
    first, second = csv.DictReader(text.splitlines())
    assert (first["t_ns"], first["cwnd_packets"], first["ssthresh_packets"]) == (
        "1795268293250001000",
        "10.0",
        "2147483647",
    )
    assert (first["srtt_us"], first["rto_us"], first["unacked_packets"]) == ("57000", "257000", "1")
    assert (second["bytes_acked"], second["unacked_packets"]) == (
        "1000",
        "0",
    )  # the sequence numbers wrap at 32 bits


def test_a_log_of_ttprobe_becomes_a_trace_of_tcp_probe() -> None:
    row = "i,1795268293.250001,172.16.10.2,16394,172.16.11.2,5201,9,1448,57123,14480,2896,65536,29200,1,1000,3896,52"
    (found,) = csv.DictReader(ttprobe_as_tcp_probe(f"{row}\n{row[:30]}\n").splitlines())
    assert (found["cwnd_packets"], found["ssthresh_packets"], found["srtt_us"]) == ("10.0", "2.0", "57123")
    assert (found["snd_una"], found["snd_nxt"], found["snd_wnd_bytes"]) == ("1000", "3896", "65536")


@pytest.mark.parametrize(("name", "logger"), [("web10g", "tcp-info"), ("ttprobe", "tcp-probe")])
def test_tcp_logs_of_linux_become_traces_and_are_kept(name: str, logger: str, project: Path) -> None:
    old = project / "old" / PREFIX
    old.mkdir(parents=True)
    make_trial(old, PREFIX, log=(name, web10g()))
    found = import_results(old, project / "results")
    (one,) = manifests(found.folder)
    (trace,) = [file for file in one["files"] if file["kind"] == "logger"]
    assert (trace["logger"], trace["path"]) == (logger, f"traces/src-{logger}.csv.gz")
    assert (found.folder / "trials" / PREFIX / "logs" / f"{PREFIX}_src_{name}.log.gz").is_file()


def udp_frame(fragment: int, size: int) -> bytes:
    """Return an Ethernet frame with a UDP packet over IPv4, or with a later fragment of such a packet."""
    ip = struct.pack(
        ">BBHHHBBH4s4s", 0x45, 0, 20 + size, 7, fragment, 64, 17, 0, b"\xac\x10\n\2", b"\xac\x10\v\2"
    )
    return bytes(12) + b"\x08\x00" + ip + struct.pack(">HHHH", 6000, 7000, 1500, 0) + bytes(size - 8)


def test_fragments_and_short_packets_belong_to_one_udp_stream(tmp_path: Path) -> None:
    frames = [udp_frame(0x2000, 1480), udp_frame(185, 28)[:34] + bytes(28), udp_frame(0, 10)]
    head = bytes.fromhex("d4c3b2a1020004000000000000000000ffff000001000000")
    packets = [struct.pack("<IIII", at, 0, len(frame), len(frame)) + frame for at, frame in enumerate(frames)]
    (tmp_path / "a.dmp.gz").write_bytes(gzip.compress(head + b"".join(packets)))
    _, (stream,) = read_capture(tmp_path / "a.dmp.gz")
    assert (stream.ports, stream.payload_bytes, stream.last_s) == ((6000, 7000), 1472 + 2, 2.0)


def test_loggers_are_in_the_same_order_at_each_import(project: Path) -> None:
    old = project / "old" / PREFIX
    old.mkdir(parents=True)
    make_trial(old, PREFIX, log=("ttprobe", "i,1\n"))
    put(old, f"{PREFIX}_src_web10g.log", web10g())
    (one,) = manifests(import_results(old, project / "results").folder)
    assert [logger["logger"] for logger in one["resolved"]["loggers"]] == ["tcp-info", "tcp-probe"]


def damage(folder: Path, name: str, data: bytes) -> None:
    for file in folder.glob(f"*{name}"):
        file.write_bytes(data)


@pytest.mark.parametrize(
    ("name", "data"),
    [
        ("_src.dmp.gz", b""),
        ("_src.dmp.gz", b"not gzip"),
        ("_src.dmp.gz", gzip.compress(b"not a capture" * 9)),
        (
            "_src.dmp.gz",
            gzip.compress(bytes.fromhex("d4c3b2a1020004000000000000000000ffff000001000000") + b"\xff" * 64),
        ),
        ("_src_ifconfig.log.gz", b"\x1f\x8b truncated"),
        ("_src_uname.log.gz", b"\x1f\x8b truncated"),
        ("_src_siftr.log.gz", gzip.compress(b"enable_time_secs=1" * 99)[:-9]),
        ("_src_siftr.log.gz", gzip.compress((1795268293).to_bytes(8, "little") * 9)),
    ],
)
def test_a_damaged_file_is_left_out_and_reported(
    name: str, data: bytes, project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    old = make_results(project / "old", levels=("tcp_newreno",), runs=2)
    damage(old, f"run_0{name}", data)
    assert run_commands(["import", "teacup-results", str(old)], project) == 0
    printed = capsys.readouterr()
    assert f"run_0{name}" in printed.out
    assert "Traceback" not in printed.err


@pytest.mark.parametrize("kind", ["empty", "missing", "file", "text", "no captures"])
def test_a_folder_without_trials_is_refused_with_a_message(
    kind: str, project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    old = project / "old"
    if kind == "file":
        old.write_text("x")
    elif kind != "missing":
        old.mkdir()
    if kind == "text":
        (old / "a_b_c.log").write_text("x")
    if kind == "no captures":
        put(old, "x_src_uname.log", "Linux")
    assert run_commands(["import", "teacup-results", str(old)], project) == 1
    error = capsys.readouterr().err.replace("\n", " ")
    assert "not a folder" in error or "no TEACUP trial" in error
    assert not (project / "results").exists()


def test_symbolic_links_are_not_followed(project: Path) -> None:
    old = make_results(project / "old", levels=("tcp_newreno",), runs=1)
    secret = project / "secret"
    secret.write_text("hunter22")
    os.symlink(secret, old / f"{PREFIX}_del_50_tcp_newreno_run_0_src_sysctl.log")
    found = import_results(old, project / "results")
    assert not list(found.folder.rglob("*sysctl*"))
