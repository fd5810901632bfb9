"""Read compressed traces of a trial, and parse traces of queues and WLANs.

Reading has limits, because a small damaged file can unpack to terabytes.
"""

from __future__ import annotations

import csv
import gzip
import zlib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

LONGEST_LINE_BYTES = 1 << 20
LARGEST_RATIO = 250
"""A trace may unpack to at most this many times its size. The factor is 3 to 20 for numbers, 50 for samples
of an idle queue, and 1030 for zeros."""
SLACK_BYTES = 16 << 20
LONGEST_TEXT_BYTES = 64 << 20
LEAF = "10:"
"""The handle of the bottleneck's queue discipline, as the Linux recipe sets it."""
UNREADABLE = (OSError, EOFError, ValueError, KeyError, TypeError, csv.Error, zlib.error)
"""Exceptions that reading a damaged or hostile trace may raise."""
DUMMYNET = "dummynet"
"""The value of `qdisc` in queue traces of FreeBSD, where `handle` is the number of the dummynet pipe."""


@contextmanager
def open_lines(file: Path) -> Iterator[Iterator[str]]:
    """Open a compressed text, and yield an iterator over its lines with their line endings.

    Reading the lines may raise the exceptions in UNREADABLE, and raises ValueError if a line or the text is
    too long.
    """
    most_bytes = LARGEST_RATIO * file.stat().st_size + SLACK_BYTES
    with gzip.open(file, "rb") as packed:
        yield _lines(packed, most_bytes)


def _lines(packed: gzip.GzipFile, most_bytes: int) -> Iterator[str]:
    count = 0
    while line := packed.readline(LONGEST_LINE_BYTES + 1):
        count += len(line)
        if len(line) > LONGEST_LINE_BYTES:
            raise ValueError(f"has a line of more than {LONGEST_LINE_BYTES} bytes, the limit for a trace")
        if count > most_bytes:
            raise ValueError(f"unpacks to more than {LARGEST_RATIO} times its size, the limit for a trace")
        yield line.decode("ascii", "replace")


def read_text(file: Path) -> str:
    """Return the content of a compressed text file.

    May raise the exceptions in UNREADABLE. Raises ValueError if the text has more than LONGEST_TEXT_BYTES.
    """
    with gzip.open(file, "rb") as packed:
        data = packed.read(LONGEST_TEXT_BYTES + 1)
    if len(data) > LONGEST_TEXT_BYTES:
        limit = "the limit for the output of a traffic generator"
        raise ValueError(f"unpacks to more than {LONGEST_TEXT_BYTES} bytes, {limit}")
    return data.decode(errors="replace")


class QueueSample(NamedTuple):
    """The state of the bottleneck's queue at one time."""

    t_ns: int
    backlog_packets: int
    backlog_bytes: int
    sent_bytes: int
    is_instant: bool
    """Whether the values were read at the time `t_ns`. Dummynet's values are read by a program that starts
    after `t_ns`."""


def read_queue_samples(lines: Iterable[str], interface: str) -> Iterator[QueueSample]:
    """Yield the samples of the bottleneck's queue at an interface. May raise the exceptions in UNREADABLE."""
    for row in csv.DictReader(lines):
        if row["interface"] == interface and (row["handle"] == LEAF or row["qdisc"] == DUMMYNET):
            values = (row[key] for key in ("t_ns", "backlog_packets", "backlog_bytes", "sent_bytes"))
            t_ns, packets, size, sent = map(int, values)
            yield QueueSample(t_ns, packets, size, sent, is_instant=row["qdisc"] != DUMMYNET)


def read_frames_dropped(lines: Iterable[str], station: str) -> int:
    """Return how many frames a station of a simulated WLAN dropped, from the samples of its logger.

    A frame is dropped if the station's queue is full, or after the last retry. May raise the exceptions in
    UNREADABLE.
    """
    dropped = [
        int(row["drops"]) + int(row["given_up"]) for row in csv.DictReader(lines) if row["station"] == station
    ]
    return dropped[-1] - dropped[0] if dropped else 0
