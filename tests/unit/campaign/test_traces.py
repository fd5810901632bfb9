"""Traces, outputs and captures from a host cannot fill the controller's memory, nor keep it busy for long."""

from __future__ import annotations

import gzip
import struct
from pathlib import Path

import pytest

from samovar.campaign.verdict.path_checks import check_queue_samples
from samovar.campaign.verdict.pcap_reader import read_capture
from samovar.campaign.verdict.traces import (
    LARGEST_RATIO,
    LONGEST_LINE_BYTES,
    LONGEST_TEXT_BYTES,
    open_lines,
    read_text,
)
from tests.unit.campaign.evidence_sample import evidence_of

ROW = b"1767225600000000000,eth1,pfifo,10:,1:1,0,0,0,0,0,0\n"


def test_a_trace_is_read_line_by_line(tmp_path: Path) -> None:
    file = tmp_path / "trace.csv.gz"
    file.write_bytes(gzip.compress(b"t_ns,value\n1,a\xff\n2,b"))
    with open_lines(file) as lines:
        assert list(lines) == ["t_ns,value\n", "1,a\ufffd\n", "2,b"]


def test_a_line_above_the_length_limit_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "bomb.csv.gz"
    file.write_bytes(gzip.compress(bytes(2 * LONGEST_LINE_BYTES)))
    with open_lines(file) as lines, pytest.raises(ValueError, match="a line of more than 1048576 bytes"):
        list(lines)


def test_a_trace_that_unpacks_to_far_more_than_its_compressed_size_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "bomb.csv.gz"
    file.write_bytes(gzip.compress((b"0" * 99_999 + b"\n") * 400))
    with (
        open_lines(file) as lines,
        pytest.raises(ValueError, match=f"more than {LARGEST_RATIO} times its size"),
    ):
        list(lines)


def test_the_trace_of_an_idle_queue_is_accepted(tmp_path: Path) -> None:
    file = tmp_path / "queue.csv.gz"
    rows = (b"%d" % (1767225600000000000 + n * 5_000_000) + ROW[19:] for n in range(100_000))
    file.write_bytes(gzip.compress(b"".join(rows), 9))
    with open_lines(file) as lines:
        assert sum(1 for _ in lines) == 100_000


def test_an_output_of_a_generator_above_the_size_limit_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "iperf.out.gz"
    file.write_bytes(gzip.compress(bytes(LONGEST_TEXT_BYTES + 1), 9))
    with pytest.raises(ValueError, match="unpacks to more than"):
        read_text(file)


def test_a_trace_with_a_line_above_the_length_limit_fails_a_check(tmp_path: Path) -> None:
    file = tmp_path / "traces" / "rtr-queue.csv.gz"
    file.parent.mkdir()
    header = (
        b"t_ns,interface,qdisc,handle,parent,backlog_bytes,backlog_packets,sent_bytes,sent_packets,drops,o\n"
    )
    file.write_bytes(gzip.compress(header + bytes(10 * LONGEST_LINE_BYTES), 9))
    (check,) = check_queue_samples(evidence_of(tmp_path))
    assert not check.ok
    assert "a line of more than" in check.observed


def test_an_impossibly_long_packet_is_refused_before_it_is_read(tmp_path: Path) -> None:
    file = tmp_path / "src-eth1.pcap.gz"
    head = struct.pack("<IHHiIII", 0xA1B23C4D, 2, 4, 0, 0, 96, 1)
    file.write_bytes(gzip.compress(head + struct.pack("<IIII", 0, 0, 1 << 31, 1 << 31) + bytes(1 << 24), 9))
    with pytest.raises(ValueError, match="a packet of 2147483648 bytes"):
        read_capture(file, 1_000_000)
